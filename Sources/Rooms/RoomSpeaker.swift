import Identities

/// The person named in an event, as of then. A class, as it goes with every message.
package final class RoomSpeaker: Sendable {
    package let nick: String
    /// The full source as IRC writes it: `nick!user@host`.
    package let source: String
    package let account: String?
    package let isBot: Bool

    /// Without an account it need be no person: the server, for example.
    package init(nick: String, source: String, account: String? = nil, isBot: Bool = false) {
        self.nick = nick
        self.source = source
        self.account = account
        self.isBot = isBot
    }

    package convenience init(_ person: Person) {
        self.init(nick: person.nick, source: person.source, account: person.account, isBot: person.isBot)
    }
}

/// A person as they last spoke.
struct KnownSpeaker {
    let who: RoomSpeaker
    /// The state of the identities then.
    let revision: UInt64
}

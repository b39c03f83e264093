import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms
import Upstream
import WireBytes

// What people chose for themselves: whom they do not hear, and what others are told of their reading.

extension IRCServer {
    func choicesOwner(_ session: IRCSession) -> AccountPreferences.Owner {
        session.account.map { .account(AccountName.fold($0.name)) } ?? .client(session.id)
    }

    /// What somebody wants to be told of their reading, over what the room has; nil: they have said nothing.
    func receiptsChoice(of session: IRCSession) -> ReceiptPolicy? {
        choices.receipts(of: choicesOwner(session)) ?? session.account?.receipts
    }

    /// By what somebody is known who is not to be heard.
    func muteTarget(_ person: Person) -> AccountPreferences.Target {
        if case .remote(let key) = person.kind { return .remote(key) }
        return person.account.map { .account(AccountName.fold($0)) } ?? .nick(settings.casemapping.fold(person.nick))
    }

    func isMuted(_ person: Person, for session: IRCSession) -> Bool {
        choices.hasMutes && choices.isMuted(muteTarget(person), by: choicesOwner(session))
    }

    /// Whether the client muted who said something.
    func isMuted(_ message: StoredMessage, in room: Room, for session: IRCSession) -> Bool {
        choices.hasMutes && mutes(in: room, of: session).cover(message)
    }

    /// Whom the client does not hear, as what they said in the room is kept.
    func mutes(in room: Room, of session: IRCSession) -> StoredMutes {
        var mutes = StoredMutes()
        guard choices.hasMutes else { return mutes }
        mutes.foldsAsRFC1459 = settings.casemapping == .rfc1459
        for mute in choices.mutes(of: choicesOwner(session)) {
            switch mute.target {
            case .account(let name): mutes.accounts.insert(name)
            case .nick(let nick): mutes.nicks.insert(nick)
            case .remote(let key):
                guard key.backend == room.settings.backend else { continue }
                if let id = key.id { mutes.ids.insert(id) } else if let name = key.name { mutes.names.append(name) }
            }
        }
        return mutes
    }

    func clientsMuting(_ person: Person) -> Set<ClientID> {
        guard choices.hasMutes else { return [] }
        var clients: Set<ClientID> = []
        for owner in choices.owners(muting: muteTarget(person)) {
            switch owner {
            case .client(let client): clients.insert(client)
            case .account(let name):
                clients.formUnion(
                    context.identities.person(account: name).flatMap { context.identities[$0] }?.clients ?? [])
            }
        }
        return clients
    }

    // MARK: - In the store

    // What accounts chose is kept as a whole whenever something of it changes, and is there again before anybody can connect.
    // Connections without an account leave nothing behind.

    /// Has the store keep what the session's account chose.
    func keepChoices(of session: IRCSession) {
        guard let account = session.account else { return }
        context.keep(.choices(choices.stored(of: AccountName.fold(account.name))))
        if context.isDurable { session.kept(under: context.ledger.next) }
    }

    /// The connection is the account's from now on, and what was chosen there too.
    func moveChoices(of session: IRCSession, to account: AccountSettings) {
        if let chosen = choices.move(session.id, to: AccountName.fold(account.name)) { context.keep(.choices(chosen)) }
    }
}

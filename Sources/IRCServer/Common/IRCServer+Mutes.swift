import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms
import Upstream
import WireBytes

// Preferences of users: mutes, and receipts.

extension IRCServer {
    func choicesOwner(_ session: IRCSession) -> AccountPreferences.Owner {
        session.account.map { .account(AccountName.fold($0.name)) } ?? .client(session.id)
    }

    /// The user's policy for sending receipts, which overrides the room's; nil: not set.
    func receiptsChoice(of session: IRCSession) -> ReceiptPolicy? {
        choices.receipts(of: choicesOwner(session)) ?? session.account?.receipts
    }

    /// The identity under which a person is muted.
    func muteTarget(_ person: Person) -> AccountPreferences.Target {
        if case .remote(let key) = person.kind { return .remote(key) }
        return person.account.map { .account(AccountName.fold($0)) } ?? .nick(settings.casemapping.fold(person.nick))
    }

    func isMuted(_ person: Person, for session: IRCSession) -> Bool {
        choices.hasMutes && choices.isMuted(muteTarget(person), by: choicesOwner(session))
    }

    /// Whether the client muted the message's author.
    func isMuted(_ message: StoredMessage, in room: Room, for session: IRCSession) -> Bool {
        choices.hasMutes && mutes(in: room, of: session).cover(message)
    }

    /// The client's mutes in stored form, to be matched with stored messages of the room.
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

    // All preferences of an account are written whenever one changes, and restored before clients can connect. Those of
    // connections without an account are not persisted.

    /// Persists the preferences of the session's account.
    func keepChoices(of session: IRCSession) {
        guard let account = session.account else { return }
        context.keep(.choices(choices.stored(of: AccountName.fold(account.name))))
        if context.isDurable { session.kept(under: context.ledger.next) }
    }

    /// Moves the connection's preferences to the account.
    func moveChoices(of session: IRCSession, to account: AccountSettings) {
        if let chosen = choices.move(session.id, to: AccountName.fold(account.name)) { context.keep(.choices(chosen)) }
    }
}

import Accounts
import BridgeTypes
import ChatModel
import Rooms

// What accounts chose at the service, over the end of the process: it is kept as a whole whenever something of it changes, and
// is there again before anybody can connect. Connections without an account leave nothing behind.

extension IRCServer {
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

    func sayFull(to session: IRCSession) {
        say("Too many people have chosen something here already.", to: session)
    }
}

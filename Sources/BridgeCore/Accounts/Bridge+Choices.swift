import ChatModel
import IRCProtocol

// What accounts chose at the service, over the end of the process: it is kept as a whole whenever something of it changes, and
// is there again before anybody can connect. Connections without an account leave nothing behind.

extension Bridge {
    /// Has the store keep what the session's account chose.
    func keepChoices(of session: IRCSession) {
        guard let account = session.account else { return }
        keepChoices(of: account.name)
        if context.isDurable { session.lastKept = context.ledger.next }
    }

    private func keepChoices(of account: String) {
        context.keep(.choices(context.choices.stored(of: AccountBook.fold(account))))
    }

    /// The connection is the account's from now on, and what was chosen there too.
    func moveChoices(of session: IRCSession, to account: AccountSettings) {
        let name = AccountBook.fold(account.name)
        let before = context.choices.stored(of: name)
        context.choices.move(session.id, to: name)
        if context.choices.stored(of: name) != before { keepChoices(of: name) }
    }

    func sayFull(to session: IRCSession) {
        say("Too many people have chosen something here already.", to: session)
    }

    /// Takes up what an earlier process kept. After the accounts.
    func restoreChoices(_ stored: [StoredChoices]) {
        // Earlier programs kept them under the name as it was written then, each spelling apart. Where there are several, what
        // is kept in the form of today was chosen last.
        let folded = Set(stored.map(\.account).filter { AccountBook.fold($0) == $0 })
        let others = stored.filter { !folded.contains($0.account) }
        for kept in stored {
            let account = AccountBook.fold(kept.account)
            if kept.account == account || !folded.contains(account) { context.choices.restore(kept, of: account) }
        }
        for other in others {
            context.keep(.choices(StoredChoices(account: other.account)))
            keepChoices(of: other.account)
        }
    }

    /// Somebody made an account of this name: what is kept of one that had it before is not theirs.
    func forgetChoices(ofEarlier account: String) {
        let name = AccountBook.fold(account)
        guard !context.choices.stored(of: name).isEmpty else { return }
        context.choices.forget(account: name)
        keepChoices(of: account)
    }
}

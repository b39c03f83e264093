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

    private func keepChoices(of account: String) { context.keep(.choices(context.choices.stored(of: account))) }

    /// The connection is the account's from now on, and what was chosen there too.
    func moveChoices(of session: IRCSession, to account: AccountSettings) {
        let before = context.choices.stored(of: account.name)
        context.choices.move(session.id, to: account.name)
        if context.choices.stored(of: account.name) != before { keepChoices(of: account.name) }
    }

    func sayFull(to session: IRCSession) {
        say("Too many people have chosen something here already.", to: session)
    }

    /// Takes up what an earlier process kept. After the accounts.
    func restoreChoices(_ stored: [StoredChoices]) {
        // The configuration may write the name otherwise today.
        for kept in stored { context.choices.restore(kept, of: accounts[kept.account]?.name ?? kept.account) }
    }

    /// Somebody made an account of this name: what is kept of one that had it before is not theirs.
    func forgetChoices(ofEarlier account: String) {
        let earlier = context.choices.stored(of: account)
        guard !earlier.isEmpty else { return }
        context.choices.forget(account: account)
        keepChoices(of: account)
    }
}

import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms

// The rooms in which accounts are: what is remembered of them, and handed to the store.

extension IRCServer {
    /// Whether clients of the account come back to its rooms: as the person chose, else as the configuration has it.
    func rejoins(_ account: String) -> Bool { choices.rejoins(AccountName.fold(account)) ?? settings.rejoins }

    /// The client is in the room, and so is its account.
    func rememberMembership(_ room: Room, _ session: IRCSession) {
        guard let account = session.account?.name, rejoins(account) else { return }
        let (changes, isFull) = memberships.enter(
            room.storedKey, channel: room.channel, account,
            present: Set(session.rooms.compactMap { self.room($0)?.storedKey }))
        if isFull {
            context.note(
                .warn, "memberships-full",
                "too many rooms of accounts are remembered; who enters more joins them by hand the next time")
        }
        keepMemberships(changes, for: session)
    }

    /// The account is in none of its rooms any more.
    func forgetMemberships(of account: String, for author: IRCSession) {
        keepMemberships(memberships.leaveAll(account), for: author)
    }

    /// The account is not in the room any more.
    ///
    /// - Parameter author: whoever sees to that, and waits for the disk at the next PING.
    func forgetMembership(of account: String, in room: StoredRoomKey, for author: IRCSession?) {
        keepMemberships(memberships.leave(room, account), for: author)
    }

    /// Somebody leaves a room in which they are not: they do not want to come back to it either.
    func forgetMembership(channel: String, _ session: IRCSession) {
        guard let account = session.account?.name else { return }
        let folded = settings.casemapping.fold(channel)
        let meant = memberships.rooms(of: account).first { settings.casemapping.fold($0.channel) == folded }
        if let meant { forgetMembership(of: account, in: meant.room, for: session) }
    }

    /// Has the store keep how it stands.
    private func keepMemberships(_ changes: [StoreOperation], for author: IRCSession?) {
        guard !changes.isEmpty else { return }
        if context.isDurable { author?.kept(under: context.ledger.next) }
        for change in changes { context.keep(change) }
    }
}

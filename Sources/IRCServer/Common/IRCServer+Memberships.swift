import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms

// Memberships: the rooms of accounts, in memory and in the store.

extension IRCServer {
    /// Whether clients of the account return to its rooms: the person's choice, else the configured default.
    func rejoins(_ account: String) -> Bool { choices.rejoins(AccountName.fold(account)) ?? settings.rejoins }

    /// Records that the account is in the room, with one of its clients.
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

    /// Deletes all memberships of the account.
    func forgetMemberships(of account: String, for author: IRCSession) {
        keepMemberships(memberships.leaveAll(account), for: author)
    }

    /// Deletes a membership of the account.
    ///
    /// - Parameter author: the client that caused it, whose next PONG waits for the write.
    func forgetMembership(of account: String, in room: StoredRoomKey, for author: IRCSession?) {
        keepMemberships(memberships.leave(room, account), for: author)
    }

    /// Deletes the membership for a PART from a room in which the client is not: it also declines to return.
    func forgetMembership(channel: String, _ session: IRCSession) {
        guard let account = session.account?.name else { return }
        let folded = settings.casemapping.fold(channel)
        let meant = memberships.rooms(of: account).first { settings.casemapping.fold($0.channel) == folded }
        if let meant { forgetMembership(of: account, in: meant.room, for: session) }
    }

    /// Persists changed memberships.
    private func keepMemberships(_ changes: [StoreOperation], for author: IRCSession?) {
        guard !changes.isEmpty else { return }
        if context.isDurable { author?.kept(under: context.ledger.next) }
        for change in changes { context.keep(change) }
    }
}

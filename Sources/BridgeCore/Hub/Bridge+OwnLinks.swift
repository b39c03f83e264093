public import BridgeTypes
import Dialects
import IRCServer
import Rooms
import Upstream
import WireBytes

// Links that accounts have of their own, beside those of the rooms. Whatever is said of a room's number may be about one.

extension Bridge {
    /// Tells a room's link, or an account's own, what happened.
    func drive(_ id: RoomID, _ verb: (UpstreamSession, DialectContext, inout Turn) -> [LinkEvent]) {
        if let room = room(id) {
            let events = context.drive(room.link) { verb(room.link, room.lane.dialectContext, &$0) }
            room.handle(events, context)
        } else if let (room, own) = roomTable.ownLink(id) {
            let events = context.drive(own.link) { verb(own.link, own.dialectContext, &$0) }
            room.handle(events, from: own, context)
        }
    }

    /// The room, and the account whose login is shown, where `id` is an account's own link and not a room.
    public func ownLogin(of id: RoomID) -> (room: RoomID, account: String)? {
        context.ownLinks[id].map { ($0.room, $0.account) }
    }

    /// Handles a timer of an account's own link; false for every other.
    func fireOwnLinkTimer(_ key: TimerKey) -> Bool {
        switch key {
        case .linger(let id): fire(id) { $0.ownLingerTimerFired($1, context) }
        case .ownIdentity(let id): fire(id) { $0.ownIdentityTimerFired($1, context) }
        default: false
        }
    }

    private func fire(_ id: RoomID, _ body: (Room, OwnLink) -> Void) -> Bool {
        guard let (room, own) = roomTable.ownLink(id) else { return false }
        body(room, own)
        return true
    }
}

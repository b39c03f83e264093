public import BridgeTypes
import Dialects
import IRCServer
import Rooms
import Upstream
import WireBytes

// Own links, which share the number space of rooms.

extension Bridge {
    /// Calls a verb of a room's link or an own link.
    func drive(_ id: RoomID, _ verb: (UpstreamSession, DialectContext, inout Turn) -> [LinkEvent]) {
        if let room = room(id) {
            let events = context.drive(room.link) { verb(room.link, room.lane.dialectContext, &$0) }
            room.handle(events, context)
        } else if let (room, own) = roomTable.ownLink(id) {
            let events = context.drive(own.link) { verb(own.link, own.dialectContext, &$0) }
            room.handle(events, from: own, context)
        }
    }

    /// The room and the account of an own link; nil: `id` is a room.
    public func ownLogin(of id: RoomID) -> (room: RoomID, account: String)? {
        context.ownLinks[id].map { ($0.room, $0.account) }
    }

    /// Handles a timer of an own link; false: another timer.
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

import Dialects
import WireBytes

// Links that accounts have of their own, beside those of the rooms. Whatever is said of a room's number may be about one.

extension Bridge {
    /// Tells a room's link, or an account's own, what happened.
    func drive(_ id: RoomID, _ verb: (UpstreamSession, DialectContext) -> [LinkEvent]) {
        if let room = room(id) {
            room.handle(verb(room.link, room.lane.dialectContext), context)
        } else if let (room, own) = ownLink(id) {
            room.handle(verb(own.link, own.dialectContext), from: own, context)
        }
    }

    /// An account's own link and its room.
    func ownLink(_ id: RoomID) -> (room: Room, own: OwnLink)? {
        guard let own = context.ownLinks[id], let room = room(own.room) else { return nil }
        return (room, own)
    }

    /// A room's own lane, or that of an account's own link.
    func lane(_ id: RoomID) -> (room: Room, lane: SendLane)? {
        room(id).map { ($0, $0.lane) } ?? ownLink(id).map { ($0.room, $0.own) }
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
        guard let (room, own) = ownLink(id) else { return false }
        body(room, own)
        return true
    }
}

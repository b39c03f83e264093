import BridgeTypes
import ChatModel
import IRCServer
import Identities
import Rooms
import WireBytes

// Stored state of closed rooms, and of identities.

extension Bridge {
    // MARK: - Rooms that are not open

    /// Logs stored outboxes of rooms that are not open. They stay on disk until the room is configured again or opened by a
    /// template; then the messages are sent, or fail as too old.
    func noteMessagesWithoutRoom(_ stored: StoredState) {
        let open = Set(rooms.map(\.storedKey))
        let others = stored.rooms.filter { !open.contains($0.key) }
        for (key, room) in others.sorted(by: { ($0.key.backend, $0.key.room) < ($1.key.backend, $1.key.room) }) {
            let waiting = room.outbox.count { $0.state == .queued || $0.state == .written }
            guard waiting > 0 else { continue }
            context.note(
                .warn, "messages-without-room", "messages from IRC wait for a room that is not open",
                ["backend": key.backend, "room": key.room, "messages": String(waiting)])
        }
    }

    // MARK: - Identities

    /// Interval at which present users are persisted as seen: 3 % of the time for which absent users' nicks stay assigned.
    static let identitiesInterval: Duration = .seconds(24 * 60 * 60)

    func identitiesTimerFired() {
        context.identities.persistPresent()
        context.set(.identities, at: context.now.monotonic + Self.identitiesInterval)
    }
}

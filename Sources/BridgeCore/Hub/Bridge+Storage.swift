import BridgeTypes
import ChatModel
import IRCServer
import Identities
import Rooms
import WireBytes

// What is asked of the store for rooms and people.

extension Bridge {
    // MARK: - Rooms that are not open

    /// What waits for rooms that are not open stays on disk until they are: when they are configured again, or somebody
    /// joins a room of the template. Then it goes, or its author is told that it is too old.
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

    /// How often people who are here are kept as seen. A tenth of a percent of the time for which nicks stay theirs does
    /// not matter.
    static let identitiesInterval: Duration = .seconds(24 * 60 * 60)

    func identitiesTimerFired() {
        context.identities.keepPresent()
        context.timers.set(.identities, at: context.now.monotonic + Self.identitiesInterval)
    }
}

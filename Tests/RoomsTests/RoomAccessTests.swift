import ChatModel
import Testing
import WireBytes

@testable import Rooms

@Suite("What a backend says of a room itself")
struct RoomAccessTests {
    private static let start = MonotonicInstant(nanoseconds: 0)

    private enum Event { case up, down, stopped, unknown, readOnly }

    private static func access(_ events: [Event]) -> RoomAccess {
        let access = RoomAccess()
        for event in events {
            switch event {
            case .up: access.linkCameUp()
            case .down: access.linkWentDown()
            case .stopped: access.linkStopped()
            case .unknown: access.refused(.unknown, "no", at: start)
            case .readOnly: access.refused(.readOnly, "no", at: start)
            }
        }
        return access
    }

    @Test("a state ends with the link that it is about, and one that came later than its opening after a minute")
    func states() {
        let rows: [([Event], unknown: Bool, readOnly: Bool, later: Bool)] = [
            ([], false, false, false),
            ([.unknown], true, false, true),
            ([.up, .unknown, .down], true, false, true),
            ([.unknown, .down, .up], false, false, false),
            ([.unknown, .down, .stopped], false, false, false),
            ([.readOnly, .up], false, true, true),
            ([.up, .readOnly], false, true, false),
            ([.up, .readOnly, .down], false, false, false),
            ([.up, .readOnly, .stopped], false, false, false),
            ([.up, .readOnly, .unknown, .down], true, false, true),
        ]
        let later = Self.start + RoomAccess.retryInterval
        for (events, unknown, readOnly, isLasting) in rows {
            let access = Self.access(events)
            #expect((access.words(.unknown, now: Self.start) != nil) == unknown, "\(events)")
            #expect((access.words(.readOnly, now: Self.start) != nil) == readOnly, "\(events)")
            let words = access.words(.unknown, now: later) ?? access.words(.readOnly, now: later)
            #expect((words != nil) == isLasting, "\(events)")
        }
    }
}

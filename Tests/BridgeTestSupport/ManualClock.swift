import BridgeCore
import BridgeTypes
import ChatModel
import IRCServer
public import WireBytes

/// Both clocks of a test, moved by hand and together; only the wall clock can be set.
public struct ManualClock: Sendable {
    /// 2026-11-21T12:00:00.000Z, the wall time at which every test begins.
    public static let epochMilliseconds: Int64 = 1_795_262_400_000

    /// Time since the beginning of the test.
    public private(set) var elapsed: Duration = .zero

    /// The offset of the wall clock from the right time.
    public var lead: Duration = .zero

    public init() {}

    public var now: Now {
        Now(
            monotonic: MonotonicInstant(nanoseconds: elapsed.wholeNanoseconds),
            wall: ChatTimestamp(milliseconds: rightTime + lead.wholeNanoseconds / 1_000_000))
    }

    /// The right time.
    public var rightTime: Int64 { Self.epochMilliseconds + elapsed.wholeNanoseconds / 1_000_000 }

    /// Moves on to `instant`; never backwards.
    public mutating func move(to instant: MonotonicInstant) {
        elapsed = max(elapsed, .nanoseconds(instant.nanoseconds))
    }

    /// The seconds elapsed with three decimals, as transcripts write them.
    public var text: String { Self.text(elapsed) }

    public static func text(_ elapsed: Duration) -> String {
        let milliseconds = elapsed.wholeNanoseconds / 1_000_000
        let fraction = String(milliseconds % 1000)
        return "\(milliseconds / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction
    }
}

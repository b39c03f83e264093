import ChatModel
import WireBytes

/// What each verb is lent: clocks, random numbers, deadlines and a writer. Effects go to each machine's own list of
/// actions.
package struct Turn: ~Copyable {
    package private(set) var now: Now
    private var random: AnyRandomNumberGenerator
    private var timers = DeadlineHeap<TimerKey>()
    /// Bytes that a verb has written and not taken yet.
    private var writer = ByteWriter()

    package init(now: Now, random: AnyRandomNumberGenerator) {
        self.now = now
        self.random = random
    }

    /// Begins the next verb.
    package mutating func begin(at now: Now) { self.now = now }

    // MARK: - Timers

    package mutating func set(_ timer: TimerKey, at due: MonotonicInstant) { timers.set(timer, at: due) }

    package mutating func cancel(_ timer: TimerKey) { timers.cancel(timer) }

    /// Nil: it is not set.
    package func due(_ timer: TimerKey) -> MonotonicInstant? { timers[timer] }

    /// The earliest of all timers.
    package mutating func nextDue() -> MonotonicInstant? { timers.next() }

    /// Takes the earliest timer that is due.
    package mutating func popDue() -> TimerKey? { timers.popDue(now.monotonic) }

    package var timerCount: Int { timers.count }

    // MARK: - Writing

    package mutating func write<Result, Failure>(
        _ body: (inout ByteWriter) throws(Failure) -> Result
    ) throws(Failure) -> Result { try body(&writer) }

    /// For WebSocket frames, which are masked.
    package mutating func write<Result>(
        _ body: (inout ByteWriter, inout AnyRandomNumberGenerator) -> Result
    ) -> Result { body(&writer, &random) }

    /// All that was written since the last call.
    package mutating func takeWritten() -> ByteSlice { writer.take() }

    // MARK: - Random numbers

    package mutating func draw<Result>(_ body: (inout AnyRandomNumberGenerator) -> Result) -> Result { body(&random) }

    package mutating func randomBytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    }

    /// A new message id: an upper-case UUID.
    package mutating func freshChatID() -> ChatID { .random(using: &random) }

    /// A new message id for wires where it must be a number: see ``ChatID/init(number:)``.
    package mutating func freshChatNumber() -> ChatID {
        ChatID(number: UInt64.random(in: .min ... .max, using: &random))
    }
}

/// A random number generator chosen at run time: the system's in production, a seeded one in tests.
public struct AnyRandomNumberGenerator: RandomNumberGenerator {
    private var base: any RandomNumberGenerator

    public init(_ base: any RandomNumberGenerator) { self.base = base }

    public mutating func next() -> UInt64 { base.next() }
}

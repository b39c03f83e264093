import ChatModel
import Digests
import WireBytes

/// The inputs of one verb: clocks, random numbers, deadlines and a writer. Effects go to each machine's own list of
/// actions.
package struct Turn: ~Copyable {
    package private(set) var now: Now
    package var random: AnyRandomNumberGenerator
    package var timers = DeadlineHeap<TimerKey>()
    /// A buffer for bytes written in this verb.
    package var writer = ByteWriter()

    package init(now: Now, random: AnyRandomNumberGenerator) {
        self.now = now
        self.random = random
    }

    /// Begins the next verb.
    package mutating func begin(at now: Now) { self.now = now }

    package mutating func randomBytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    }

    /// A new message id: an upper-case UUID.
    package mutating func freshChatID() -> ChatID { ChatID(UUIDv4.make(using: &random)) }

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

import ChatModel
import Digests
import WireBytes

/// Everything that one verb may use, and nothing else: the clocks, chance, deadlines and a writer. What a machine wants of
/// the world is in its own list of actions.
package struct Turn: ~Copyable {
    package private(set) var now: Now
    package var random: AnyRandomNumberGenerator
    package var timers = DeadlineHeap<TimerKey>()
    /// For bytes that leave in this verb.
    package var writer = ByteWriter()

    package init(now: Now, random: AnyRandomNumberGenerator) {
        self.now = now
        self.random = random
    }

    /// The next verb begins.
    package mutating func begin(at now: Now) { self.now = now }

    package mutating func randomBytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    }

    /// A fresh id for a message of ours: an upper-case UUID.
    package mutating func freshChatID() -> ChatID { ChatID(UUIDv4.make(using: &random)) }
}

/// A random source chosen at run time: the system's in production, a seeded one in tests.
public struct AnyRandomNumberGenerator: RandomNumberGenerator {
    private var base: any RandomNumberGenerator

    public init(_ base: any RandomNumberGenerator) { self.base = base }

    public mutating func next() -> UInt64 { base.next() }
}

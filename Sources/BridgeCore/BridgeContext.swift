import ChatModel
import Digests
import IRCProtocol
import WireBytes

/// What the machines below the bridge share during one verb: the clocks, chance, the writer, who is who, deadlines, and
/// the list of actions that the driver will run. One instance, confined to its bridge.
final class BridgeContext {
    let settings: BridgeSettings
    let identities: IdentityMap
    var now: Now
    var random: AnyRandomNumberGenerator
    var writer = ByteWriter()
    var timers = DeadlineHeap<TimerKey>()
    private(set) var actions: [BridgeAction] = []
    /// Rooms that wait for a connection slot, in order.
    private var connectQueue: [RoomID] = []
    private var connectBudget: TokenBucket
    /// What rooms want of their backends' accounts, in order.
    private(set) var backendWishes: [BackendWish] = []

    init(settings: BridgeSettings, now: Now, random: AnyRandomNumberGenerator) {
        self.settings = settings
        self.identities = IdentityMap(settings: settings)
        self.now = now
        self.random = random
        self.connectBudget = TokenBucket(
            rate: settings.limits.upstreamConnectsPerSecond, burst: settings.limits.upstreamConnectsPerSecond ?? 1)
    }

    // MARK: - Actions

    func emit(_ action: BridgeAction) { actions.append(action) }

    func takeActions() -> [BridgeAction] {
        defer { actions.removeAll(keepingCapacity: true) }
        return actions
    }

    func note(_ level: BridgeNote.Level, _ event: String, _ text: String, _ metadata: [String: String] = [:]) {
        emit(.note(BridgeNote(level, event, text, metadata)))
    }

    /// Notes what was said, where the operator asked for that.
    func noteChat(_ direction: String, room: String, nick: String, _ text: String) {
        guard settings.notesChatText else { return }
        note(
            .trace, "message-" + direction, MessageRendering.excerpt(text), ["room": room, "nick": nick])
    }

    // MARK: - Backends

    /// Tells the backend that everything in the room was read.
    func requestMarkRead(_ room: RoomID) { backendWishes.append(.markRead(room)) }

    // MARK: - Connection slots

    func requestConnectSlot(_ room: RoomID) {
        connectQueue.append(room)
        // Granted from the timer, never from within the request: a link is not re-entered.
        if timers[.connectGate] == nil {
            timers.set(.connectGate, at: connectBudget.nextGrant(now: now.monotonic))
        }
    }

    /// Rooms that may connect now.
    func takeConnectSlots() -> [RoomID] {
        var granted = 0
        while granted < connectQueue.count, connectBudget.take(now: now.monotonic) { granted += 1 }
        let rooms = Array(connectQueue.prefix(granted))
        connectQueue.removeFirst(granted)
        if !connectQueue.isEmpty {
            timers.set(.connectGate, at: connectBudget.nextGrant(now: now.monotonic))
        }
        return rooms
    }

    // MARK: - Chance

    func randomBytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    }

    /// A fresh id for a message of ours: an upper-case UUID.
    func freshChatID() -> ChatID { ChatID(UUIDv4.make(using: &random)) }

    // MARK: - Message ids

    /// The bridge's own id of a message: 22 characters, the same after a restart without storage.
    func messageID(backend: String, room: String, sender: ChatID?, id: ChatID?) -> String {
        var input: [UInt8] = []
        func add(_ part: String) {
            input.append(contentsOf: part.utf8)
            input.append(0)
        }
        add(backend)
        add(room)
        add(sender?.canonical ?? "")
        add(id?.canonical ?? freshChatID().rawValue)
        return Self.base64URL(SHA256.hash(input).prefix(16))
    }

    private static let base64Alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    private static func base64URL(_ bytes: ArraySlice<UInt8>) -> String {
        var text: [UInt8] = []
        var bits: UInt32 = 0
        var bitCount = 0
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            bitCount += 8
            while bitCount >= 6 {
                bitCount -= 6
                text.append(base64Alphabet[Int(bits >> UInt32(bitCount) & 63)])
            }
        }
        if bitCount > 0 { text.append(base64Alphabet[Int(bits << UInt32(6 - bitCount) & 63)]) }
        return String(decoding: text, as: UTF8.self)
    }
}

/// What a room wants of its backend's account.
enum BackendWish {
    case markRead(RoomID)
}

/// A random source chosen at run time: the system's in production, a seeded one in tests.
public struct AnyRandomNumberGenerator: RandomNumberGenerator {
    private var base: any RandomNumberGenerator

    public init(_ base: any RandomNumberGenerator) { self.base = base }

    public mutating func next() -> UInt64 { base.next() }
}

import ChatModel
import Dialects
import Digests
import HTTPProtocol
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
    /// The first of them that asks the store something.
    private var asksStoreFrom: Int?
    /// Rooms that wait for a connection slot, in order.
    private var connectQueue: [(room: RoomID, turn: String?)] = []
    private var connectBudget: TokenBucket
    /// Backends whose rooms get their credentials from the account there and not from the driver.
    var backendsWithLogin: Set<String> = []
    /// The rooms of these.
    var roomsWithAccount: Set<RoomID> = []
    /// What must not be repeated of the accounts that are known, by backend.
    var accountTokens: [String: [String]] = [:]
    /// Counts the changes of anything that must not be repeated.
    var secretsVersion = 0
    /// When people made their accounts, by the name as it is written: what was said in that name before is another's.
    var accountsMadeAt: [String: ChatTimestamp] = [:]
    /// The author of what is nobody's.
    private(set) lazy var nobody = freshChatID()
    /// What accounts show of their own, by the account's and the room's name.
    let ownLogins: [String: [String: OwnLoginSettings]]
    /// Links of accounts' own. Their ids are below those of all rooms.
    private(set) var ownLinks: [RoomID: OwnLink] = [:]
    private var ownLinkIDs: [String: RoomID] = [:]
    /// What rooms want of their backends' accounts, in order.
    private(set) var backendWishes: [BackendWish] = []
    /// Who opens a connection now among rooms that take turns, by backend, and how long the others wait at least.
    private var connectTurns: [String: ConnectTurn] = [:]
    /// What is kept outlasts the process.
    let isDurable: Bool
    /// When this process began.
    let beganAt: MonotonicInstant
    var ledger = StoreLedger()
    /// What the store had no room for.
    var unkept = UnkeptChanges()
    private var lanesAwaitingStore: Set<RoomID> = []
    /// What people chose for themselves alone.
    var choices = PersonalChoices()
    /// Where backends want a token for their files, by the backend's name.
    let guardedBases: [String: HTTPURL]
    /// Files that were uploaded here, for whoever says their links.
    var uploads: UploadBook

    private struct ConnectTurn {
        var holder: RoomID?
        var notBefore: MonotonicInstant
    }

    init(settings: BridgeSettings, isDurable: Bool, now: Now, random: AnyRandomNumberGenerator) {
        self.settings = settings
        self.isDurable = isDurable
        self.beganAt = now.monotonic
        self.identities = IdentityMap(settings: settings)
        self.now = now
        self.random = random
        self.uploads = UploadBook(settings.media?.uploads ?? [])
        self.ownLogins = Dictionary(
            settings.accounts.filter { !$0.ownLogins.isEmpty }.map { ($0.name, $0.ownLogins) },
            uniquingKeysWith: { first, _ in first })
        self.guardedBases = Dictionary(
            settings.backends.compactMap { backend in
                guard backend.dialect.traits.guardsFiles, let base = backend.httpBase else { return nil }
                return (backend.name, base)
            }, uniquingKeysWith: { first, _ in first })
        self.connectBudget = TokenBucket(
            rate: settings.limits.upstreamConnectsPerSecond, burst: settings.limits.upstreamConnectsPerSecond ?? 1)
        if isDurable {
            identities.keep = { [unowned self] in keep($0) }
            identities.wall = { [unowned self] in self.now.wall }
        }
    }

    // MARK: - Actions

    /// Asks the store something about all that was changed until now.
    func ask(_ question: BridgeAction) {
        asksStoreFrom = asksStoreFrom ?? actions.count
        actions.append(question)
    }

    func emit(_ action: BridgeAction) {
        if case .readCredentials(let room, let afterRefusal) = action, roomsWithAccount.contains(room) {
            backendWishes.append(.credentials(room, afterRefusal: afterRefusal))
        } else {
            actions.append(action)
        }
    }

    /// Has the store keep a change, where there is one. It goes with all that this verb changes, under
    /// ``StoreLedger/next``.
    func keep(_ change: @autoclosure () -> StoreOperation) {
        guard isDurable else { return }
        ledger.add(change())
    }

    /// Has the store keep what is new of an accepted message.
    func keep(_ change: @autoclosure () -> StoreOperation, about message: ChatID) {
        guard isDurable else { return }
        ledger.add(change(), about: message)
    }

    /// Something in the outbox of a room, or of an account's own link, waits for the store.
    func awaitStore(_ lane: RoomID) { lanesAwaitingStore.insert(lane) }

    func takeLanesAwaitingStore() -> [RoomID] {
        defer { lanesAwaitingStore = [] }
        return lanesAwaitingStore.sorted { $0.index < $1.index }
    }

    func takeActions() -> [BridgeAction] {
        if let order = ledger.take() {
            let action = BridgeAction.store(order.ticket, order.changes)
            // Who asks about a room's past sees all that was said before.
            if let first = asksStoreFrom { actions.insert(action, at: first) } else { actions.append(action) }
        }
        asksStoreFrom = nil
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

    /// Asks for messages; the answer comes to ``Room/historyArrived(_:isComplete:_:)``.
    func requestHistory(_ room: RoomID, _ query: HistoryQuery) { backendWishes.append(.history(room, query)) }

    /// Asks for messages from before the room's beginning here; the answer comes to ``Room/olderArrived(_:isComplete:_:)``.
    func requestOlder(_ room: RoomID, _ query: HistoryQuery) { backendWishes.append(.olderHistory(room, query)) }

    /// Tells the backend that everything in the room was read.
    func requestMarkRead(_ room: RoomID) { backendWishes.append(.markRead(room)) }

    /// Asks the backend as whom it sees an account; the answer comes to ``Room/ownIdentified(_:_:_:)``.
    func requestOwnIdentity(_ own: RoomID) { backendWishes.append(.ownIdentity(own)) }

    // MARK: - Links of accounts' own

    /// The same id each time for an account and a room.
    func ownLinkID(account: String, room: RoomID) -> RoomID {
        let key = "\(room.index) \(account)"
        if let known = ownLinkIDs[key] { return known }
        let id = RoomID(index: -1 - ownLinkIDs.count)
        ownLinkIDs[key] = id
        return id
    }

    func enter(_ own: OwnLink) {
        ownLinks[own.id] = own
        if let backend = own.login.backend, backendsWithLogin.contains(backend) { roomsWithAccount.insert(own.id) }
    }

    func leave(_ own: OwnLink) {
        ownLinks[own.id] = nil
        roomsWithAccount.remove(own.id)
        for timer in [TimerKey.link(own.id), .outbox(own.id), .markRead(own.id), .linger(own.id), .ownIdentity(own.id)]
        {
            timers.cancel(timer)
        }
    }

    private var lastBackendCall: UInt64 = 0

    func nextBackendCall() -> BackendCallID {
        lastBackendCall += 1
        return BackendCallID(rawValue: lastBackendCall)
    }

    func takeBackendWishes() -> [BackendWish] {
        defer { backendWishes.removeAll() }
        return backendWishes
    }

    // MARK: - Connection slots

    /// - Parameter turn: the backend whose rooms open one after the other; nil where they need not.
    func requestConnectSlot(_ room: RoomID, turn: String? = nil) {
        connectQueue.append((room, turn))
        // Granted from the timer, never from within the request: a link is not re-entered.
        wakeConnectGate(at: connectBudget.nextGrant(now: now.monotonic))
    }

    /// Rooms that may connect now.
    func takeConnectSlots() -> [RoomID] {
        var rooms: [RoomID] = []
        var waiting: [(room: RoomID, turn: String?)] = []
        var wake: MonotonicInstant?
        for entry in connectQueue {
            let allowed = turnBegins(entry.room, entry.turn)
            if let allowed, allowed <= now.monotonic, connectBudget.take(now: now.monotonic) {
                if let turn = entry.turn { connectTurns[turn] = ConnectTurn(holder: entry.room, notBefore: allowed) }
                rooms.append(entry.room)
                continue
            }
            waiting.append(entry)
            // Whoever waits for another room's turn is woken by its end.
            guard let allowed else { continue }
            let due = max(allowed, connectBudget.nextGrant(now: now.monotonic))
            wake = wake.map { min($0, due) } ?? due
        }
        connectQueue = waiting
        if let wake { timers.set(.connectGate, at: wake) }
        return rooms
    }

    /// When the room's turn begins; nil: not before another room's ends.
    private func turnBegins(_ room: RoomID, _ turn: String?) -> MonotonicInstant? {
        guard let turn, let state = connectTurns[turn] else { return now.monotonic }
        return state.holder == nil || state.holder == room ? state.notBefore : nil
    }

    /// Whoever got a slot is gone: the next of its backend may open.
    func endConnectTurns(of room: RoomID) {
        for turn in connectTurns.keys.sorted() { endConnectTurn(turn, room) }
    }

    /// The room's session is usable, or failed: the next of its backend may open, after `pause`.
    func endConnectTurn(_ turn: String?, _ room: RoomID, pause: Duration = .zero) {
        guard let turn, connectTurns[turn]?.holder == room else { return }
        let next = now.monotonic + pause
        connectTurns[turn] = ConnectTurn(holder: nil, notBefore: next)
        guard connectQueue.contains(where: { $0.turn == turn }) else { return }
        wakeConnectGate(at: max(next, connectBudget.nextGrant(now: now.monotonic)))
    }

    /// No later than it was to open already: others may wait for less.
    private func wakeConnectGate(at due: MonotonicInstant) {
        timers.set(.connectGate, at: timers[.connectGate].map { min($0, due) } ?? due)
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
        input.reserveCapacity(192)
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
        String(unsafeUninitializedCapacity: (bytes.count * 8 + 5) / 6) { text in
            var end = 0
            var bits: UInt32 = 0
            var bitCount = 0
            func add(_ sextet: UInt32) {
                text.initializeElement(at: end, to: base64Alphabet[Int(sextet & 63)])
                end += 1
            }
            for byte in bytes {
                bits = bits << 8 | UInt32(byte)
                bitCount += 8
                while bitCount >= 6 {
                    bitCount -= 6
                    add(bits >> UInt32(bitCount))
                }
            }
            if bitCount > 0 { add(bits << UInt32(6 - bitCount)) }
            return end
        }
    }
}

/// What a room wants of its backend's account.
enum BackendWish {
    case credentials(RoomID, afterRefusal: Bool)
    case history(RoomID, HistoryQuery)
    case olderHistory(RoomID, HistoryQuery)
    case markRead(RoomID)
    case ownIdentity(RoomID)
}

/// A random source chosen at run time: the system's in production, a seeded one in tests.
public struct AnyRandomNumberGenerator: RandomNumberGenerator {
    private var base: any RandomNumberGenerator

    public init(_ base: any RandomNumberGenerator) { self.base = base }

    public mutating func next() -> UInt64 { base.next() }
}

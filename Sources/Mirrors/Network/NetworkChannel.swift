import BridgeTypes
import IRCProtocol
import WireBytes

/// A channel of a network, and our place in it.
///
/// | phase   | meaning                                | leaves by                                                             |
/// |---------|----------------------------------------|------------------------------------------------------------------------|
/// | apart   | JOIN is to be sent, or there is no connection | registered → joining                                            |
/// | joining | JOIN is sent                           | our JOIN → joined; refused for a time, 30 s → waiting; else → refused   |
/// | joined  | messages go both ways                  | KICK, PART, 442 → waiting; connection lost → apart                      |
/// | waiting | back-off                               | its time, INVITE → joining; our JOIN → joined; connection lost → apart  |
/// | refused | no try would change the answer         | INVITE → joining; our JOIN → joined; connection lost → apart            |
struct NetworkChannel {
    enum Phase: Equatable {
        case apart
        case joining(until: MonotonicInstant)
        case joined
        case waiting(until: MonotonicInstant)
        case refused
    }

    /// A series of requests for what was said since the last message.
    ///
    /// What is said meanwhile waits, so that all comes in its order.
    struct CatchUp {
        /// How long the answer is waited for; nil: the owner has a page, and says when it wants the next.
        var until: MonotonicInstant?
        var usesMsgid: Bool
        /// The newest of it; what came before is in the history, and is read there.
        var live: [IRCMessage] = []
    }

    /// Longest wait for the answer to JOIN and CHATHISTORY.
    private static let answerTimeout: Duration = .seconds(30)
    private static let maxLive = 500

    let settings: IRCNetworkSettings.Channel
    private(set) var phase = Phase.apart
    /// Refusals since the channel was joined.
    private var refusals = 0
    /// Removals from the channel, each soon after the one before.
    private var removals = 0
    private var joinedAt: MonotonicInstant?
    /// The network refused RELAYMSG here.
    private(set) var refusesRelaymsg = false
    private(set) var lastSeen: IRCNetworkPosition?
    private(set) var catchUp: CatchUp?
    /// Who writes in the room.
    private var writing: Set<String> = []
    private var typingSentAt: MonotonicInstant?

    private static let maxWriting = 50
    private static let typingInterval: Duration = .seconds(3)

    init(_ settings: IRCNetworkSettings.Channel) {
        self.settings = settings
        lastSeen = settings.lastSeen
    }

    /// The connection ended; what was learned of the channel stays.
    mutating func connectionEnded() {
        phase = .apart
        catchUp = nil
        writing = []
        typingSentAt = nil
        refusesRelaymsg = false
    }

    // MARK: - Membership

    mutating func joins(now: MonotonicInstant) { phase = .joining(until: now + Self.answerTimeout) }

    mutating func joined(at now: MonotonicInstant) {
        phase = .joined
        refusals = 0
        joinedAt = now
    }

    /// A JOIN that will not succeed.
    mutating func refused() { phase = .refused }

    /// A JOIN is tried again.
    ///
    /// - Parameter seldom: after the longest wait at once.
    /// - Returns: when.
    mutating func waits(seldom: Bool, now: Now) -> Now {
        refusals += 1
        return waits(
            seldom
                ? NetworkDelays.longestJoin
                : NetworkDelays.doubling(NetworkDelays.firstJoin, refusals, cap: NetworkDelays.longestJoin), now)
    }

    /// We are no longer in the channel.
    ///
    /// - Returns: when the next JOIN is due.
    mutating func removed(now: Now) -> Now { waits(removalDelay(now.monotonic), now) }

    private mutating func waits(_ delay: Duration, _ now: Now) -> Now {
        let until = now.later(by: delay)
        phase = .waiting(until: until.monotonic)
        return until
    }

    /// A removal behind so long a time in the channel is the first one again.
    private static let calmAfter: Duration = .seconds(10 * 60)

    /// The wait before the next JOIN after a KICK: 5 s, and twice as long each time.
    private mutating func removalDelay(_ now: MonotonicInstant) -> Duration {
        if let joinedAt, now - joinedAt >= Self.calmAfter { removals = 0 }
        removals += 1
        return NetworkDelays.doubling(.seconds(5), removals, cap: NetworkDelays.longestJoin)
    }

    // MARK: - Speaking

    mutating func relaymsgRefused() { refusesRelaymsg = true }

    /// A user in the room begins to write, or ceases to.
    ///
    /// - Returns: whether a user writes now, where the network is to be told.
    mutating func types(_ nick: String, _ isTyping: Bool, now: MonotonicInstant) -> Bool? {
        let wasTyping = !writing.isEmpty
        if !isTyping { writing.remove(nick) } else if writing.count < Self.maxWriting { writing.insert(nick) }
        let isActive = !writing.isEmpty
        guard wasTyping || isActive else { return nil }
        if isActive, let typingSentAt, now - typingSentAt < Self.typingInterval { return nil }
        return isActive
    }

    mutating func typingSent(_ isActive: Bool, at now: MonotonicInstant) { typingSentAt = isActive ? now : nil }

    // MARK: - History

    mutating func saw(_ position: IRCNetworkPosition) { lastSeen = position }

    mutating func catchesUp(usesMsgid: Bool, now: MonotonicInstant) {
        catchUp = CatchUp(until: now, usesMsgid: usesMsgid)
    }

    /// A page is asked for, behind an id or a time.
    mutating func requestsPage(usesMsgid: Bool, now: MonotonicInstant) {
        catchUp?.usesMsgid = usesMsgid
        catchUp?.until = now + Self.answerTimeout
    }

    /// The owner has a page.
    mutating func tookPage() { catchUp?.until = nil }

    /// The network does not know the id.
    mutating func forgetsMsgid() { catchUp?.usesMsgid = false }

    /// - Returns: false: the channel does not catch up.
    mutating func holds(_ message: IRCMessage) -> Bool {
        guard catchUp != nil else { return false }
        catchUp?.live.append(message)
        // Pages follow until nothing is missing, so these will be in one of them.
        if let count = catchUp?.live.count, count > Self.maxLive { catchUp?.live.removeFirst(Self.maxLive / 2) }
        return true
    }

    /// - Returns: what was said meanwhile; nil: the channel did not catch up.
    mutating func endCatchUp() -> [IRCMessage]? {
        defer { catchUp = nil }
        return catchUp?.live
    }
}

/// How long is waited before something is tried again.
enum NetworkDelays {
    static let longestJoin: Duration = .seconds(15 * 60)
    static let firstJoin: Duration = .seconds(30)

    /// - Parameter count: 1 or more.
    static func doubling(_ first: Duration, _ count: Int, cap: Duration) -> Duration {
        var delay = first
        for _ in 1..<max(count, 1) where delay < cap { delay = delay * 2 }
        return min(delay, cap)
    }

    /// Between connections: 2 s to 5 min, and a fifth more or less, so that many relays do not return in step. To 30 s
    /// behind usable ones: it is the way there that fails, and messages wait.
    static func reconnect(
        failures: Int, shortConnections: Int, random: inout some RandomNumberGenerator
    ) -> Duration {
        let delay = max(
            doubling(.seconds(2), failures, cap: .seconds(5 * 60)),
            doubling(.seconds(2), shortConnections, cap: .seconds(30)))
        return delay * Double.random(in: 0.8...1.2, using: &random)
    }
}

/// Why a server refuses a JOIN, and whether it may think otherwise.
///
/// Source: modern.ircdocs.horse, "Numerics"; 480 and 489 as InspIRCd, UnrealIRCd and Solanum have them.
struct NetworkJoinRefusal {
    enum Hope {
        /// With a growing back-off.
        case soon
        /// Each quarter of an hour.
        case seldom
        case none
    }

    let reason: String
    let hope: Hope

    static let table: [String: NetworkJoinRefusal] = [
        "403": NetworkJoinRefusal(reason: "the network has no such channel", hope: .seldom),
        "405": NetworkJoinRefusal(reason: "the network allows no more channels", hope: .seldom),
        "437": NetworkJoinRefusal(reason: "the channel is not available at the moment", hope: .soon),
        "470": NetworkJoinRefusal(reason: "the network forwards the channel to another", hope: .seldom),
        "471": NetworkJoinRefusal(reason: "the channel is full", hope: .soon),
        "473": NetworkJoinRefusal(reason: "the channel takes invited users only", hope: .seldom),
        "474": NetworkJoinRefusal(reason: "the channel has banned this client", hope: .seldom),
        "475": NetworkJoinRefusal(reason: "the channel has another key", hope: .seldom),
        "476": NetworkJoinRefusal(reason: "the network takes no such name", hope: .none),
        "477": NetworkJoinRefusal(reason: "the channel takes users with an account only", hope: .seldom),
        "479": NetworkJoinRefusal(reason: "the network takes no such name", hope: .none),
        "480": NetworkJoinRefusal(reason: "the channel takes no more users for now", hope: .soon),
        "489": NetworkJoinRefusal(reason: "the channel takes users over TLS only", hope: .none),
        "520": NetworkJoinRefusal(reason: "the channel takes operators of the network only", hope: .none),
    ]
}

/// Why a server refuses a message to a channel.
enum NetworkSpeechRefusal {
    /// Numerics with the channel as their second parameter, which may be answers to a message; true: the state may pass.
    ///
    /// Source: modern.ircdocs.horse, "Numerics"; 415, 437 and 439 as ircu and InspIRCd have them.
    private static let table: [String: Bool] = [
        "401": false, "403": false, "404": true, "408": false, "415": false, "417": false, "435": true, "437": true,
        "439": true, "442": true, "477": false, "482": false, "531": false,
    ]
    /// In the text of a 404: a state that lasts, or something about the message itself.
    private static let lasting = ["+b", "+r", "+c", "+t", "+g", "ban", "quiet", "regist", "colo", "filter", "ctcp"]

    /// - Returns: the reason, and whether to try no more; nil: it is not an answer to a message.
    static func reading(_ message: IRCMessage) -> (reason: String, isFinal: Bool)? {
        guard let passes = table[message.command] else { return nil }
        let text = PrintableText.of(message.params.last ?? "")
        let lowered = text.lowercased()
        let isFinal = !passes || message.command == "404" && lasting.contains { lowered.contains($0) }
        return (text.isEmpty ? "the network refuses it" : text, isFinal)
    }
}

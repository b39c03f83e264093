import BridgeTypes
import IRCProtocol
import WireBytes

/// What waits to be written over one connection, and what was written and is not answered.
struct NetworkOutbox {
    /// Lines of a post that wait.
    struct Waiting {
        var unit: NetworkUnit
        let token: UInt64
        let channel: Int
        /// In another form than before: in front of later posts.
        var isAgain = false
    }

    /// Lines that are not answered.
    struct Sent {
        /// Nil: the post is settled, and the answer only has to be counted.
        var token: UInt64?
        let channel: Int
        let command: String
        let label: String?
        /// The number of its last line.
        let line: UInt64
        let sentAt: MonotonicInstant
    }

    /// A post that is neither delivered nor failed.
    struct Progress {
        let post: MirrorPost
        let channel: Int
        /// Units that wait or are not answered.
        var open: Int
        /// The network's, of the first unit.
        var id: String?
    }

    private var bucket: TokenBucket
    /// Lines written over the connection.
    private(set) var lineCount: UInt64 = 0
    /// Lines that are no posts, which go first.
    private(set) var control: [IRCMessage] = []
    private(set) var waiting: [Waiting] = []
    /// Oldest first.
    private(set) var sent: [Sent] = []
    private(set) var posts: [UInt64: Progress] = [:]
    /// When the bucket lets the next line pass; nil: nothing waits for it.
    private(set) var nextGrant: MonotonicInstant?

    /// More lines than all verbs of a tame network cause; what a wild one causes beyond is dropped.
    private static let maxControl = 200

    init(rate: Double?, burst: Double) { bucket = TokenBucket(rate: rate, burst: burst) }

    var waitingLineCount: Int { waiting.reduce(0) { $0 + $1.unit.messages.count } }

    // MARK: - Writing

    /// Whether lines of this cost may be written now, by the flood limit; they count as written. Otherwise ``nextGrant``
    /// tells when.
    mutating func grants(_ cost: Double, now: MonotonicInstant) -> Bool {
        nextGrant = nil
        if bucket.take(cost, now: now) { return true }
        nextGrant = bucket.nextGrant(now: now)
        return false
    }

    /// Nothing waits for the flood limit.
    mutating func rest() { nextGrant = nil }

    /// Whether a line that need not be written may be, without delaying others.
    mutating func grantsAside(now: MonotonicInstant) -> Bool { waiting.isEmpty && bucket.take(now: now) }

    mutating func wroteLine() { lineCount += 1 }

    /// The next lines of a post, which are written now.
    mutating func popUnit() -> Waiting { waiting.removeFirst() }

    mutating func wrote(_ unit: Sent) { sent.append(unit) }

    mutating func append(control message: IRCMessage) {
        if control.count < Self.maxControl { control.append(message) }
    }

    mutating func popControl() -> IRCMessage? { control.isEmpty ? nil : control.removeFirst() }

    // MARK: - Posts

    mutating func accept(_ post: MirrorPost, as units: [NetworkUnit], token: UInt64, channel: Int) {
        posts[token] = Progress(post: post, channel: channel, open: units.count)
        waiting += units.map { Waiting(unit: $0, token: token, channel: channel) }
    }

    /// Puts a post in another form in front of those that came later.
    mutating func insertAgain(_ post: MirrorPost, as units: [NetworkUnit], token: UInt64, channel: Int) {
        posts[token] = Progress(post: post, channel: channel, open: units.count)
        let place = waiting.firstIndex { !$0.isAgain } ?? waiting.endIndex
        let again = units.map { Waiting(unit: $0, token: token, channel: channel, isAgain: true) }
        waiting.insert(contentsOf: again, at: place)
    }

    /// Lines are answered.
    mutating func answered(_ index: Int) -> Sent { sent.remove(at: index) }

    /// Lines were taken, under an id of the network's.
    ///
    /// - Returns: the post, when these were its last; it is settled then.
    mutating func confirm(_ lines: Sent, id: String?) -> (token: UInt64, id: String?)? {
        guard let token = lines.token, var progress = posts[token] else { return nil }
        progress.open -= 1
        progress.id = progress.id ?? id
        posts[token] = progress.open == 0 ? nil : progress
        return progress.open == 0 ? (token, progress.id) : nil
    }

    /// The post is settled: what waits of it is dropped, and answers to the rest are ignored.
    mutating func settle(_ token: UInt64) -> Progress? {
        waiting.removeAll { $0.token == token }
        for index in sent.indices where sent[index].token == token { sent[index].token = nil }
        return posts.removeValue(forKey: token)
    }
}

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

    var bucket: TokenBucket
    /// Lines written over the connection.
    var lineCount: UInt64 = 0
    /// Lines that are no posts, which go first.
    private(set) var control: [IRCMessage] = []
    var waiting: [Waiting] = []
    /// Oldest first.
    var sent: [Sent] = []
    var posts: [UInt64: Progress] = [:]
    /// When the bucket lets the next line pass; nil: nothing waits for it.
    var nextGrant: MonotonicInstant?

    /// More lines than all verbs of a tame network cause; what a wild one causes beyond is dropped.
    private static let maxControl = 200

    init(rate: Double?, burst: Double) { bucket = TokenBucket(rate: rate, burst: burst) }

    var waitingLineCount: Int { waiting.reduce(0) { $0 + $1.unit.messages.count } }

    mutating func append(control message: IRCMessage) {
        if control.count < Self.maxControl { control.append(message) }
    }

    mutating func popControl() -> IRCMessage? { control.isEmpty ? nil : control.removeFirst() }

    /// Puts a post in another form in front of those that came later.
    mutating func insertAgain(_ units: [NetworkUnit], token: UInt64, channel: Int) {
        let place = waiting.firstIndex { !$0.isAgain } ?? waiting.endIndex
        let again = units.map { Waiting(unit: $0, token: token, channel: channel, isAgain: true) }
        waiting.insert(contentsOf: again, at: place)
    }

    /// The post is settled: what waits of it is dropped, and answers to the rest are nobody's.
    mutating func settle(_ token: UInt64) -> Progress? {
        waiting.removeAll { $0.token == token }
        for index in sent.indices where sent[index].token == token { sent[index].token = nil }
        return posts.removeValue(forKey: token)
    }
}

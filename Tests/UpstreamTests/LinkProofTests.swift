import BridgeTypes
import ChatModel
import Testing
import Upstream
import WireBytes

/// Up to when a link is known to have carried everything, in seconds after the link was asked for.
@Suite("What proves that a link is whole")
struct LinkProofTests {
    enum Step {
        /// The ping of this name is sent, inside the JSON; or the protocol's own.
        case ping(String)
        case protocolPing(String)
        /// An answer; without a name, to any open ping.
        case pong(String?)
        /// A message with this time of the server's.
        case message(Double)
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var name: String
        /// The events, by the monotonic clock.
        var steps: [(at: Double, lead: Double, step: Step)]
        /// By the wall clock at 1000 s.
        var proven: Double
        var testDescription: String { name }

        init(_ name: String, _ steps: [(Double, Step)], leads: [Double] = [], _ proven: Double) {
            self.name = name
            self.steps = steps.enumerated().map { ($1.0, $0 < leads.count ? leads[$0] : 0, $1.1) }
            self.proven = proven
        }
    }

    private static func now(_ at: Double, lead: Double = 0) -> Now {
        Now(
            monotonic: MonotonicInstant(nanoseconds: Int64(at * 1_000_000_000)),
            wall: ChatTimestamp(milliseconds: 1_000_000_000 + Int64((at + lead) * 1000)))
    }

    static let rows: [Row] = [
        Row("nothing but the link", [], 0),
        Row("a ping that is not answered", [(20, .ping("1"))], 0),
        Row("an answer, however late", [(20, .ping("1")), (29, .pong("1"))], 20),
        Row("an answer to a later ping", [(20, .ping("1")), (25, .ping("2")), (26, .pong("2"))], 25),
        Row("an answer to an earlier ping", [(20, .ping("1")), (25, .ping("2")), (26, .pong("1"))], 20),
        Row("an answer that does not say to what", [(20, .ping("1")), (25, .ping("2")), (26, .pong(nil))], 20),
        Row(
            "such an answer, while the protocol's own ping is under way",
            [(20, .protocolPing("1")), (21, .pong(nil))], 0),
        Row(
            "such an answer, with a ping of each kind under way",
            [(20, .ping("a")), (25, .protocolPing("1")), (26, .pong(nil)), (27, .pong(nil))], 20),
        Row("an answer to the protocol's own ping", [(20, .protocolPing("1")), (21, .pong("1"))], 20),
        Row("an answer to no ping", [(20, .ping("1")), (26, .pong("x"))], 0),
        Row("an answer without any ping", [(26, .pong(nil))], 0),
        Row("the same answer again", [(20, .ping("1")), (21, .pong("1")), (22, .ping("2")), (23, .pong("1"))], 20),
        Row("a message in time", [(30, .message(30))], 30),
        Row("a message that was held back", [(50, .message(30))], 30),
        Row("an older message after a newer one", [(50, .message(40)), (51, .message(30))], 40),
        Row("a message from before the ping", [(20, .ping("1")), (21, .pong("1")), (22, .message(10))], 20),
        Row("a server whose clock is behind", [(30, .message(-3600))], 0),
        Row("a server whose clock leads", [(30, .message(75)), (40, .message(85))], 40),
        Row("the same, and then a message that was held back", [(30, .message(75)), (60, .message(80))], 35),
        Row(
            "our clock is set back, then a message is held back",
            [(30, .message(30)), (40, .message(40)), (60, .message(45))], leads: [0, -60, -60], -15),
        Row(
            "our clock is set back while a message is held back",
            [(30, .message(30)), (72, .message(65))], leads: [0, -45], 20),
        Row("a first message from the future, which may be held back", [(72, .message(65))], leads: [-45], 0),
        Row(
            "a server whose clock leads, as the second message shows",
            [(30, .message(75)), (40, .message(85)), (60, .message(95))], 50),
        Row("a time that cannot be", [(30, .message(-9e15))], 0),
    ]

    @Test("the newest of what is proved", arguments: rows)
    func proof(row: Row) {
        var proof = LinkProof(since: Self.now(0))
        for (at, lead, step) in row.steps {
            let now = Self.now(at, lead: lead)
            switch step {
            case .ping(let ref): proof.asked(ref, isInJSON: true, at: now)
            case .protocolPing(let ref): proof.asked(ref, at: now)
            case .pong(let ref): proof.answered(ref)
            case .message(let said):
                let at = 1_000_000_000 + (said * 1000)
                proof.stamped(ChatTimestamp(milliseconds: Int64(at)), now: now)
            }
        }
        #expect(proof.until.earliest(by: Self.now(1000)) == Self.now(row.proven).wall)
    }

    @Test("no time, however far off, breaks it")
    func extremes() {
        let moments = [Int64.min, .min + 1, -1, 0, .max].map { ChatTimestamp(milliseconds: $0) }
        for wall in moments {
            for at in moments {
                let now = Now(monotonic: MonotonicInstant(nanoseconds: 5_000_000_000), wall: wall)
                var proof = LinkProof(since: now)
                proof.stamped(at, now: now)
                proof.stamped(wall, now: Now(monotonic: MonotonicInstant(nanoseconds: .max), wall: at))
                #expect(proof.until.earliest(by: now) <= wall)
            }
        }
    }

    @Test("pings that nobody answers are not kept for ever, and the newest counts")
    func many() {
        var proof = LinkProof(since: Self.now(0))
        for second in 1...100 { proof.asked(String(second), at: Self.now(Double(second))) }
        proof.answered("1")
        #expect(proof.until.earliest(by: Self.now(1000)) == Self.now(0).wall)
        proof.answered("100")
        #expect(proof.until.earliest(by: Self.now(1000)) == Self.now(100).wall)
    }
}

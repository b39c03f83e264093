import HTTPProtocol
import Testing
import Transport
import WireBytes

@testable import ChatBridge

@Suite("HTTP: who reads fast enough")
struct HTTPPaceTests {
    private func at(_ seconds: Double) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: Int64(seconds * 1_000_000_000))
    }

    private static let limits = HTTPPace.Limits(stall: .seconds(60), window: .seconds(120), bytesPerSecond: 1000)

    /// Looks at bytes taken by a time, in seconds, until the first verdict that it is too slow.
    private func looks(_ pace: inout HTTPPace, _ rows: [(taken: Int, at: Double)]) -> Double? {
        for row in rows where !pace.look(taken: row.taken, now: at(row.at)) { return row.at }
        return nil
    }

    @Test("who takes nothing for the whole time is not waited for")
    func stalls() {
        var pace = HTTPPace(Self.limits)
        #expect(pace.nextLook == nil)
        pace.waits(taken: 0, now: at(0))
        #expect(pace.nextLook == at(15))
        let end = looks(&pace, [(0, 15), (0, 59), (0, 60)])
        #expect(end == 60)
    }

    @Test("whoever takes something is, until it is too little over a while")
    func isSlow() {
        var pace = HTTPPace(Self.limits)
        pace.waits(taken: 0, now: at(0))
        // 10 kB each 15 s are 80 kB in 120 s.
        let end = looks(&pace, (1...20).map { ($0 * 10_000, Double($0) * 15) })
        #expect(end == 120)
        var faster = HTTPPace(Self.limits)
        faster.waits(taken: 0, now: at(0))
        let never = looks(&faster, (1...80).map { ($0 * 15_000, Double($0) * 15) })
        #expect(never == nil)
    }

    @Test("time in which nothing waits does not count")
    func pauses() {
        var pace = HTTPPace(Self.limits)
        for round in 0..<100 {
            let start = Double(round) * 1000
            pace.waits(taken: round * 50_000, now: at(start))
            let stall = pace.stall(taken: round * 50_000, now: at(start + 9))
            pace.drained(taken: (round + 1) * 50_000, now: at(start + 10))
            let end = looks(&pace, [((round + 1) * 50_000, start + 900)])
            let later = pace.stall(taken: 0, now: at(start + 900))
            #expect(stall == .seconds(9) && end == nil && later == nil && pace.nextLook == nil)
        }
    }

    @Test("a new answer begins anew")
    func begins() {
        var pace = HTTPPace(Self.limits)
        pace.waits(taken: 0, now: at(0))
        let first = looks(&pace, [(1, 59)])
        pace.reset()
        pace.waits(taken: 1, now: at(70))
        let second = looks(&pace, [(1, 129), (1, 130)])
        #expect(first == nil && second == 130)
    }
}

@Suite("HTTP: whose places they are")
struct HTTPPlacesTests {
    @Test("a place is free again when its pass is gone, for everybody and for its owner")
    func places() {
        let places = HTTPPlaces(limit: 3, limitOfEach: 2)
        var passes = [places.take(for: "a"), places.take(for: "a")]
        #expect(places.isFull(for: "a") && places.take(for: "a") == nil && !places.isFull(for: "b"))
        #expect(!places.isFull(for: nil))
        passes.append(places.take(for: nil))
        #expect(places.isFull && places.take(for: "b") == nil)
        passes[0] = nil
        #expect(!places.isFull && !places.isFull(for: "a") && places.taken == 2)
        passes = []
        #expect(places.taken == 0 && places.take(for: "a") != nil)
    }

    @Test(
        "whose visit it is",
        arguments: [
            ("203.0.113.7", [], "203.0.113.7"), ("203.0.113.7", ["198.51.100.1"], "203.0.113.7"),
            ("2001:db8:1:2:3:4:5:6", [], "2001:db8:1:2::/64"), ("2001:db8:1:2::9", [], "2001:db8:1:2::/64"),
            ("127.0.0.1", [], nil), ("127.0.0.1", ["198.51.100.1"], "198.51.100.1"),
            ("172.18.0.3", ["10.9.8.7, 198.51.100.1"], "198.51.100.1"),
            ("127.0.0.1", ["198.51.100.1", "2001:db8::1"], "2001:db8:0:0::/64"),
            ("::1", ["::ffff:198.51.100.1"], "198.51.100.1"), ("127.0.0.1", ["unknown"], nil),
            ("127.0.0.1", ["198.51.100.1, nonsense"], nil), ("fd00::1", [""], nil),
        ] as [(String, [String], String?)])
    func visitors(_ peer: String, _ forwarded: [String], _ network: String?) throws {
        let address = try #require(SocketAddress(host: peer, port: 1))
        let headers = HTTPHeaders(forwarded.map { ("X-Forwarded-For", $0) })
        #expect(HTTPVisitor.network(address, headers) == network)
    }
}

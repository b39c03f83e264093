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
        let places = ConcurrencyLimiter(limit: 3, limitOfEach: 2)
        var passes = [places.take(for: "a"), places.take(for: "a")]
        #expect(places.isFull(for: "a") && places.take(for: "a") == nil && !places.isFull(for: "b"))
        passes.append(places.take(for: "b"))
        #expect(places.isFull && places.take(for: "c") == nil)
        passes[0] = nil
        #expect(!places.isFull && !places.isFull(for: "a") && places.taken == 2)
        passes = []
        #expect(places.taken == 0 && places.take(for: "a") != nil)
    }

    @Test("who may be many has more places than one, and leaves some to others")
    func crowds() {
        let places = ConcurrencyLimiter(limit: 8, limitOfEach: 2)
        let proxy = HTTPVisitor(network: "10.0.0.1", isSharedAddress: true)
        var passes = (0..<8).map { _ in places.take(for: proxy) }
        #expect(passes.compactMap(\.self).count == 6 && places.isFull(for: proxy) && !places.isFull)
        // Somebody whose address is the proxy's is not the proxy.
        let visitor = HTTPVisitor(network: "10.0.0.1")
        passes += (0..<3).map { _ in places.take(for: visitor) }
        #expect(passes.compactMap(\.self).count == 8 && places.isFull)
        let few = ConcurrencyLimiter(limit: 8, limitOfEach: 1, limitOfSharedAddress: 3)
        let taken = (0..<8).map { _ in few.take(for: proxy) }
        #expect(taken.compactMap(\.self).count == 3)
    }

    struct Visit: CustomTestStringConvertible {
        var testDescription: String
        var peer: String
        var forwarded: [String] = []
        /// Web servers that the configuration names.
        var named: [String] = []
        var network: String
        var isSharedAddress = false
    }

    static let visits = [
        Visit(testDescription: "from outside", peer: "203.0.113.7", network: "203.0.113.7"),
        Visit(
            testDescription: "from outside, with somebody else's name", peer: "203.0.113.7",
            forwarded: ["198.51.100.1"], network: "203.0.113.7"),
        Visit(testDescription: "a /64 is one", peer: "2001:db8:1:2:3:4:5:6", network: "2001:db8:1:2::/64"),
        Visit(testDescription: "however it is written", peer: "2001:db8:1:2::9", network: "2001:db8:1:2::/64"),
        Visit(testDescription: "of this machine", peer: "127.0.0.1", network: "127.0.0.1", isSharedAddress: true),
        Visit(
            testDescription: "of a private network", peer: "192.168.1.9", network: "192.168.1.9", isSharedAddress: true),
        Visit(
            testDescription: "of a carrier's network", peer: "100.64.0.9", network: "100.64.0.9", isSharedAddress: true),
        Visit(testDescription: "of a local /64", peer: "fd00::1", network: "fd00:0:0:0::/64", isSharedAddress: true),
        Visit(
            testDescription: "of this machine, with somebody else's name", peer: "127.0.0.1",
            forwarded: ["198.51.100.1"], network: "127.0.0.1", isSharedAddress: true),
        Visit(
            testDescription: "of a private network, with somebody else's name", peer: "10.0.0.9",
            forwarded: ["198.51.100.1"], network: "10.0.0.9", isSharedAddress: true),
        Visit(
            testDescription: "of a local /64, with somebody else's name", peer: "fd00::1", forwarded: ["198.51.100.1"],
            network: "fd00:0:0:0::/64", isSharedAddress: true),
        Visit(
            testDescription: "through a proxy of this machine", peer: "127.0.0.1", forwarded: ["198.51.100.1"],
            named: ["127.0.0.1"], network: "198.51.100.1"),
        Visit(
            testDescription: "only the last word counts", peer: "172.18.0.3", forwarded: ["10.9.8.7, 198.51.100.1"],
            named: ["172.16.0.0/12"], network: "198.51.100.1"),
        Visit(
            testDescription: "in the last of several fields", peer: "127.0.0.1",
            forwarded: ["198.51.100.1", "2001:db8::1"], named: ["127.0.0.0/8"], network: "2001:db8:0:0::/64"),
        Visit(
            testDescription: "IPv4 within IPv6", peer: "::1", forwarded: ["::ffff:198.51.100.1"], named: ["::1"],
            network: "198.51.100.1"),
        Visit(
            testDescription: "a proxy that does not know", peer: "127.0.0.1", forwarded: ["unknown"],
            named: ["127.0.0.1"], network: "127.0.0.1", isSharedAddress: true),
        Visit(
            testDescription: "a proxy that talks nonsense", peer: "127.0.0.1", forwarded: ["198.51.100.1, nonsense"],
            named: ["127.0.0.1"], network: "127.0.0.1", isSharedAddress: true),
        Visit(
            testDescription: "a proxy that says nothing", peer: "fd00::1", forwarded: [""], named: ["fd00::/64"],
            network: "fd00:0:0:0::/64", isSharedAddress: true),
        Visit(
            testDescription: "a visitor of the own network, through a proxy", peer: "10.0.0.1",
            forwarded: ["10.0.0.9"], named: ["10.0.0.1"], network: "10.0.0.9"),
        Visit(
            testDescription: "who is not named is a visitor", peer: "10.0.0.9", forwarded: ["198.51.100.1"],
            named: ["10.0.0.1"], network: "10.0.0.9"),
        Visit(
            testDescription: "nor is this machine, then", peer: "127.0.0.1", forwarded: ["198.51.100.1"],
            named: ["10.0.0.0/24"], network: "127.0.0.1"),
        Visit(
            testDescription: "who is named speaks for others", peer: "203.0.113.9", forwarded: ["198.51.100.1"],
            named: ["203.0.113.9"], network: "198.51.100.1"),
        Visit(
            testDescription: "one behind the other", peer: "10.0.0.2", forwarded: ["198.51.100.1, 10.0.0.1"],
            named: ["10.0.0.0/24"], network: "198.51.100.1"),
        Visit(
            testDescription: "none but proxies", peer: "10.0.0.2", forwarded: ["10.0.0.1"], named: ["10.0.0.0/24"],
            network: "10.0.0.2", isSharedAddress: true),
    ]

    @Test("whose visit it is", arguments: visits)
    func visitors(_ row: Visit) throws {
        let address = try #require(SocketAddress(host: row.peer, port: 1))
        let headers = HTTPHeaders(row.forwarded.map { ("X-Forwarded-For", $0) })
        let proxies = HTTPProxies(named: row.named.compactMap { NetworkRange($0) })
        #expect(proxies.named.count == row.named.count)
        let visitor = HTTPVisitor(address, headers, proxies)
        #expect(visitor == HTTPVisitor(network: row.network, isSharedAddress: row.isSharedAddress))
    }
}

@Suite("HTTP: how long an answer is waited for")
struct HTTPPatienceTests {
    private func at(_ seconds: Int64) -> MonotonicInstant { MonotonicInstant(nanoseconds: seconds * 1_000_000_000) }

    private func patience(stall: Duration?) throws -> HTTPTimeout {
        var request = HTTPClientRequest(try HTTPURL(parsing: "http://chat.example/"))
        request.timeout = .seconds(100)
        request.stallTimeout = stall
        return HTTPTimeout(request, now: at(0))
    }

    @Test("in all, where nothing else is said")
    func whole() throws {
        var patience = try patience(stall: nil)
        #expect(patience.nextLook(now: at(0)) == at(100))
        patience.moved(now: at(99))
        #expect(patience.nextLook(now: at(99)) == at(100) && patience.nextLook(now: at(100)) == nil)
    }

    @Test("as long as something comes, or is not wanted, and no longer than in all")
    func steady() throws {
        var patience = try patience(stall: .seconds(10))
        #expect(patience.nextLook(now: at(0)) == at(10) && patience.nextLook(now: at(10)) == nil)
        for second in stride(from: Int64(9), to: 90, by: 9) {
            patience.moved(now: at(second))
            #expect(patience.nextLook(now: at(second + 9)) == at(second + 10))
        }
        // Whoever reads slowly is somebody else's to judge.
        #expect(patience.nextLook(now: at(92), isPaused: true) == at(100))
        #expect(patience.nextLook(now: at(92)) == nil)
        patience.moved(now: at(95))
        #expect(patience.nextLook(now: at(95)) == at(100) && patience.nextLook(now: at(100), isPaused: true) == nil)
    }
}

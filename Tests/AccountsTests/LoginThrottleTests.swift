import Testing
import WireBytes

@testable import Accounts

@Suite("LoginThrottle")
struct LoginThrottleTests {
    private func at(_ seconds: Int64) -> MonotonicInstant { MonotonicInstant(nanoseconds: seconds * 1_000_000_000) }

    @Test("the first failure is answered at once, others with growing delays up to half a minute")
    func waits() {
        var throttle = LoginThrottle()
        let waits = (0..<20).map { _ in throttle.recordFailure("192.0.2.1", .unknown, now: at(5)) }
        #expect(
            waits.prefix(7) == [.zero, .seconds(1), .seconds(2), .seconds(4), .seconds(8), .seconds(16), .seconds(30)])
        #expect(waits.dropFirst(7).allSatisfy { $0 == .seconds(30) })
        #expect(throttle.recordFailure("192.0.2.2", .unknown, now: at(5)) == .zero)
    }

    @Test(
        "an IPv6 address counts as its network",
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "::ffff:192.0.2.1"), ("::1", "::/64"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
            ("2001:db8::7", "2001:db8::/64"), ("fe80::1%eth0", "fe80::/64"), ("/run/irc.sock", "/run/irc.sock"),
        ])
    func networks(_ address: String, _ network: String) {
        #expect(LoginThrottle.network(of: address) == network)
    }

    @Test("a success clears failures for the same target, a quarter of an hour all")
    func forgets() {
        var throttle = LoginThrottle()
        for _ in 0..<3 { _ = throttle.recordFailure("a", .account("ann"), now: at(0)) }
        for other in [.account("bob"), .server, .gateway, .token, .unknown] as [LoginThrottle.Target] {
            throttle.recordSuccess("a", other)
        }
        #expect(throttle.recordFailure("a", .account("ann"), now: at(1)) == .seconds(4))
        throttle.recordSuccess("a", .account("ann"))
        #expect(throttle.recordFailure("a", .account("ann"), now: at(1)) == .zero)
        for _ in 0..<3 { _ = throttle.recordFailure("b", .unknown, now: at(0)) }
        #expect(throttle.recordFailure("b", .unknown, now: at(15 * 60)) > .zero)
        #expect(throttle.recordFailure("b", .unknown, now: at(15 * 60 + 15 * 60 + 1)) == .zero)
    }

    @Test("an account's failures delay all addresses but its last eight")
    func homes() {
        var throttle = LoginThrottle()
        for number in 1...9 { throttle.recordSuccess("203.0.113.\(number)", .account("ann")) }
        for number in 1...20 { _ = throttle.recordFailure("198.51.100.\(number)", .account("ann"), now: at(0)) }
        #expect(throttle.recordFailure("203.0.113.9", .account("ann"), now: at(1)) == .zero)
        #expect(throttle.recordFailure("203.0.113.2", .account("ann"), now: at(1)) == .zero)
        #expect(throttle.recordFailure("203.0.113.1", .account("ann"), now: at(1)) == LoginThrottle.maxDelay)
        #expect(throttle.recordFailure("203.0.113.8", .account("bob"), now: at(1)) == .zero)
    }

    @Test(
        "failures delay a success for a bounded time, and those of others not at a known address",
        arguments: [
            ("nothing failed", [], "a", "ann", 0, 0), ("a slip", [("a", "ann")], "a", "ann", 0, 0),
            ("two", [("a", "ann"), ("a", "ann")], "a", "ann", 0, 1),
            ("two at others", [("a", "bob"), ("a", "cal")], "a", "ann", 0, 1),
            ("two from elsewhere", [("b", "ann"), ("c", "ann")], "a", "ann", 0, 1),
            ("two at others from elsewhere", [("b", "bob"), ("b", "bob")], "a", "ann", 0, 0),
            ("many", Array(repeating: ("a", "ann"), count: 9), "a", "ann", 0, 10),
            ("many, a while ago", Array(repeating: ("a", "ann"), count: 9), "a", "ann", 25, 5),
            ("many, long ago", Array(repeating: ("a", "ann"), count: 9), "a", "ann", 31, 0),
            ("at home, from elsewhere", [("b", "eve"), ("c", "eve")], "home", "eve", 0, 0),
            ("at home, at others", [("home", "bob"), ("home", "bob")], "home", "eve", 0, 0),
            ("at home, at this", [("home", "eve"), ("home", "eve")], "home", "eve", 0, 1),
        ] as [(String, [(String, String)], String, String, Int64, Int64)])
    func owed(
        _ name: String, _ failures: [(String, String)], _ address: String, _ account: String, _ later: Int64,
        _ wait: Int64
    ) {
        var throttle = LoginThrottle()
        throttle.recordSuccess("home", .account("eve"))
        for failure in failures { _ = throttle.recordFailure(failure.0, .account(failure.1), now: at(0)) }
        #expect(throttle.successDelay(address, .account(account), now: at(later)) == .seconds(wait), "\(name)")
    }

    @Test("the targets of one address are bounded and count together")
    func manyTargets() {
        var throttle = LoginThrottle()
        for number in 0..<1000 { _ = throttle.recordFailure("a", .account("\(number)"), now: at(0)) }
        #expect(throttle.recordFailure("a", .account("ann"), now: at(1)) == LoginThrottle.maxDelay)
        throttle.recordSuccess("a", .account("999"))
        #expect(throttle.recordFailure("a", .unknown, now: at(1)) == LoginThrottle.maxDelay)
    }

    @Test("the number of addresses is bounded, and the newest stay")
    func bounded() {
        var throttle = LoginThrottle()
        for index in 0..<30_000 {
            _ = throttle.recordFailure("address \(index)", .unknown, now: at(Int64(index / 100)))
        }
        #expect(throttle.count <= LoginThrottle.capacity)
        #expect(throttle.recordFailure("address 29999", .unknown, now: at(300)) == .seconds(1))
        #expect(throttle.recordFailure("address 0", .unknown, now: at(300)) == .zero)
    }
}

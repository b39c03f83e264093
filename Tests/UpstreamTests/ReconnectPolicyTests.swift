import BridgeTestSupport
import Dialects
import Testing

@testable import Upstream

@Suite("ReconnectPolicy")
struct ReconnectPolicyTests {
    private static let envelope = BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0.25)

    @Test(
        "delays double up to the cap",
        arguments: [(1, 1.0), (2, 2), (3, 4), (5, 16), (6, 30), (7, 30), (1_000_000, 30)])
    func doubling(row: (failures: Int, seconds: Double)) {
        let exact = ReconnectPolicy(traits: BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0))
        var random = SeededGenerator(seed: 1)
        let delay = exact.delay(failures: row.failures, retryAfter: nil, random: &random)
        #expect(delay == .milliseconds(Int64(row.seconds * 1000)))
    }

    @Test("jitter spreads over its whole range and never leaves it")
    func jitter() {
        let policy = ReconnectPolicy(traits: Self.envelope)
        var random = SeededGenerator(seed: 2)
        let delays = (0..<2000).map { _ in policy.delay(failures: 3, retryAfter: nil, random: &random) }
        #expect(delays.allSatisfy { $0 >= .seconds(3) && $0 <= .seconds(5) })
        #expect(delays.contains { $0 < .milliseconds(3100) } && delays.contains { $0 > .milliseconds(4900) })
    }

    @Test(
        "Retry-After is a least delay, within reason",
        arguments: [(Duration.seconds(0), 1.0), (.seconds(120), 120), (.seconds(86_400), 3600)])
    func retryAfter(row: (value: Duration, seconds: Double)) {
        let exact = ReconnectPolicy(traits: BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0))
        var random = SeededGenerator(seed: 3)
        #expect(
            exact.delay(failures: 1, retryAfter: row.value, random: &random) == .milliseconds(Int64(row.seconds * 1000))
        )
    }

    @Test("nonsense settings do not trap")
    func nonsense() {
        var random = SeededGenerator(seed: 4)
        for traits in [
            BackoffTraits(first: .zero, factor: 0, cap: .zero, jitter: 1),
            BackoffTraits(first: .seconds(1 << 40), factor: 1e9, cap: .seconds(1 << 31), jitter: 0),
        ] {
            let policy = ReconnectPolicy(traits: traits)
            for failures in [-1, 0, 1, .max] {
                #expect(policy.delay(failures: min(failures, 1 << 20), retryAfter: nil, random: &random) >= .zero)
            }
        }
    }
}

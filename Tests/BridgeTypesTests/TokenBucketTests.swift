import BridgeTypes
import Testing
import WireBytes

private func at(_ seconds: Double) -> MonotonicInstant { MonotonicInstant(nanoseconds: Int64(seconds * 1e9)) }

@Suite("TokenBucket")
struct TokenBucketTests {
    @Test("a burst is granted, then the rate")
    func burst() {
        var bucket = TokenBucket(rate: 2, burst: 3)
        let atOnce = (0..<5).map { _ in bucket.take(now: at(0)) }
        #expect(atOnce == [true, true, true, false, false])
        #expect(bucket.take(now: at(0.4)) == false)
        #expect(bucket.take(now: at(0.5)) == true)
        let afterLong = (0..<5).map { _ in bucket.take(now: at(100)) }
        #expect(afterLong == [true, true, true, false, false])
    }

    @Test("an expensive line is granted and makes the next wait longer")
    func cost() {
        var bucket = TokenBucket(rate: 1, burst: 1)
        #expect(bucket.take(3, now: at(0)) == true)
        #expect(bucket.take(now: at(2.9)) == false)
        #expect(bucket.take(now: at(3.001)) == true)
    }

    @Test("a token is available at the next grant", arguments: [0.3, 1.0, 3.0, 7.7])
    func nextGrant(rate: Double) {
        var bucket = TokenBucket(rate: rate, burst: 1)
        var now = at(0)
        for _ in 0..<1000 {
            let grant = bucket.nextGrant(now: now)
            #expect(grant >= now)
            now = grant
            #expect(bucket.take(now: now) == true)
        }
        let seconds = Double(now.nanoseconds) / 1e9
        #expect(abs(seconds - 999 / rate) < 0.01)
    }

    @Test("without a rate, or with none above zero, nothing is refused", arguments: [nil, 0, -1] as [Double?])
    func unlimited(rate: Double?) {
        var bucket = TokenBucket(rate: rate, burst: 1)
        let grants = (0..<100).map { _ in bucket.take(now: at(0)) }
        #expect(!grants.contains(false))
        #expect(bucket.nextGrant(now: at(0)) == at(0))
    }

    @Test("a clock that stands still or goes back gives nothing")
    func backwards() {
        var bucket = TokenBucket(rate: 1, burst: 1)
        #expect(bucket.take(now: at(10)) == true)
        #expect(bucket.take(now: at(5)) == false)
        #expect(bucket.take(now: at(10)) == false)
        #expect(bucket.take(now: at(11)) == true)
    }
}

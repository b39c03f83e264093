import Digests
import Testing
import WireBytes

@testable import Accounts

@Suite("Registered accounts")
struct AccountTableTests {
    @Test("the number of addresses is bounded")
    func addresses() {
        var throttle = RegistrationThrottle()
        let now = MonotonicInstant(nanoseconds: 0)
        let taken = (0..<30_000).count { throttle.take("address \($0)", now: now) }
        #expect(taken == RegistrationThrottle.capacity && throttle.count == RegistrationThrottle.capacity)
        let later = now + RegistrationThrottle.period
        #expect(throttle.take("one more", now: later) && throttle.count == 1)
    }

    @Test("the number of registered accounts is bounded")
    func bounded() {
        let accounts = AccountTable([], minIterations: 1)
        let verifier = SCRAMVerifier.unmatchable(iterations: 1)
        for number in 0..<AccountTable.maxRegistered {
            #expect(accounts.hasRoom(for: 1))
            _ = accounts.addRegistered(AccountSettings(name: "a\(number)", password: verifier))
        }
        #expect(!accounts.hasRoom(for: 1))
    }
}

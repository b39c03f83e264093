import Digests
import Testing
import WireBytes

@testable import Accounts

@Suite("Accounts that people make")
struct AccountBookTests {
    @Test("any number of addresses fits the memory")
    func addresses() {
        var throttle = RegistrationThrottle()
        let now = MonotonicInstant(nanoseconds: 0)
        let taken = (0..<30_000).count { throttle.take("address \($0)", now: now) }
        #expect(taken == RegistrationThrottle.capacity && throttle.count == RegistrationThrottle.capacity)
        let later = now + RegistrationThrottle.period
        #expect(throttle.take("one more", now: later) && throttle.count == 1)
    }

    @Test("there is an end to the number of accounts")
    func bounded() {
        let book = AccountBook([], least: 1)
        let verifier = SCRAMVerifier.unmatchable(iterations: 1)
        for number in 0..<AccountBook.maxMade {
            #expect(book.hasRoom(for: 1))
            _ = book.addMade(AccountSettings(name: "a\(number)", password: verifier))
        }
        #expect(!book.hasRoom(for: 1))
    }
}

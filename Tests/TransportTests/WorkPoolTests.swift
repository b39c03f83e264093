import Glibc
import Synchronization
import Testing
import Transport

@Suite("WorkPool")
struct WorkPoolTests {
    /// A gate that blocks work until the test opens it.
    private final class Gate: Sendable {
        let running = Atomic<Int>(0)
        let most = Atomic<Int>(0)
        let isOpen = Atomic<Bool>(false)

        func pass() {
            let now = running.add(1, ordering: .sequentiallyConsistent).newValue
            most.max(now, ordering: .sequentiallyConsistent)
            while !isOpen.load(ordering: .sequentiallyConsistent) { sched_yield() }
            running.subtract(1, ordering: .sequentiallyConsistent)
        }
    }

    @Test("at most so many run at a time, so many wait, and one more is refused")
    func bounds() async {
        let pool = WorkPool(name: "test", maxThreads: 2, maxWaiting: 3)
        let gate = Gate()
        let (ended, end) = AsyncStream<Int>.makeStream()
        var taken: [Bool] = []
        for index in 0..<7 {
            taken.append(
                pool.submit {
                    gate.pass()
                    end.yield(index)
                })
        }
        #expect(taken == [true, true, true, true, true, false, false])
        gate.isOpen.store(true, ordering: .sequentiallyConsistent)
        var done: Set<Int> = []
        for await index in ended {
            done.insert(index)
            if done.count == 5 { break }
        }
        #expect(done == [0, 1, 2, 3, 4])
        #expect((1...2).contains(gate.most.load(ordering: .sequentiallyConsistent)))
    }

    @Test("a pool that was idle works again")
    func again() async {
        let pool = WorkPool(name: "test", maxThreads: 1, maxWaiting: 100)
        for round in 0..<50 {
            let value = await withCheckedContinuation { continuation in
                if !pool.submit({ continuation.resume(returning: round) }) { continuation.resume(returning: -1) }
            }
            #expect(value == round)
        }
    }
}

import Glibc
import Testing
import Threads
import Transport

@Suite("Asynchronous code on the calling thread")
struct CallingThreadTests {
    private static func thisThread() -> UInt { pthread_self() }

    @Test("it runs on the thread that waits for it, also behind what other threads did, and returns its result")
    func stays() async throws {
        let loop = try NetworkLoop.start(name: "others")
        let threads = await withCheckedContinuation { continuation in
            let started = startDetachedThread(name: "caller") {
                let caller = Self.thisThread()
                let found = runOnThisThread {
                    var found = [Self.thisThread()]
                    let other = await loop.run { _ in Self.thisThread() }
                    found.append(Self.thisThread())
                    await Task.yield()
                    found.append(Self.thisThread())
                    return (found, other)
                }
                continuation.resume(returning: (caller, found.0, found.1))
            }
            if case .failure(let failure) = started { Issue.record("no thread: \(failure)") }
        }
        loop.stop()
        #expect(threads.1 == [threads.0, threads.0, threads.0])
        #expect(threads.2 != threads.0)
    }
}

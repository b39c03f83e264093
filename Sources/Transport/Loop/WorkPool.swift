import Threads

/// A bounded queue before a few threads, for calls that block.
///
/// Threads are made when there is work and leave when there is none. Results go back to a loop by
/// ``NetworkLoop/enqueue(_:)``; a loop that stops does not wait for them.
public final class WorkPool: Sendable {
    private struct State {
        var waiting: [@Sendable () -> Void] = []
        var threads = 0
    }

    private let name: String
    private let maxThreads: Int
    private let maxWaiting: Int
    private let state = Locked(State())

    /// - Parameters:
    ///   - name: of the threads; its first 15 bytes.
    ///   - maxThreads: pieces of work at a time; at least one.
    ///   - maxWaiting: pieces that may wait for a thread.
    public init(name: String, maxThreads: Int, maxWaiting: Int) {
        self.name = name
        self.maxThreads = max(1, maxThreads)
        self.maxWaiting = max(0, maxWaiting)
    }

    private enum Place {
        case taken
        case needsThread
        case full
    }

    /// Calls `work` once, soon, on a thread of the pool.
    ///
    /// - Returns: false when too much waits already, or no thread can be made; then `work` is never called.
    public func submit(_ work: @escaping @Sendable () -> Void) -> Bool {
        let place = state.withLock { state -> Place in
            if state.threads < maxThreads {
                state.threads += 1
                return .needsThread
            }
            guard state.waiting.count < maxWaiting else { return .full }
            state.waiting.append(work)
            return .taken
        }
        guard place == .needsThread else { return place == .taken }
        // The new thread begins with this piece, so that when it cannot be made nothing was promised.
        switch startDetachedThread(name: name, { self.run(beginningWith: work) }) {
        case .success: return true
        case .failure:
            state.withLock { $0.threads -= 1 }
            return false
        }
    }

    private func run(beginningWith first: @Sendable () -> Void) {
        first()
        while true {
            let next = state.withLock { state -> (@Sendable () -> Void)? in
                guard !state.waiting.isEmpty else {
                    state.threads -= 1
                    return nil
                }
                return state.waiting.removeFirst()
            }
            guard let next else { return }
            next()
        }
    }
}

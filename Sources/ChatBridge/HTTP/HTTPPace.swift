import WireBytes

/// Measures whether a client reads an answer fast enough.
///
/// Bytes count when they leave the queue, and time only while some wait in it: a slow backend is not the reader's
/// fault. The kernel takes bytes in steps of some ten kilobytes, so short spans are meaningless.
struct HTTPPace {
    struct Limits: Sendable {
        /// Longest time in which nothing is taken. As nginx waits (`send_timeout`).
        var stall: Duration = .seconds(60)
        /// Time over which ``bytesPerSecond`` is required.
        var window: Duration = .seconds(120)
        /// A tenth of a bad mobile line. Below it, a file takes longer than its link opens.
        var bytesPerSecond = 1024
    }

    let limits: Limits
    private(set) var isWaiting = false
    private var taken = 0
    private var lookedAt = MonotonicInstant(nanoseconds: 0)
    /// When bytes were last taken, or began to wait.
    private var movedAt = MonotonicInstant(nanoseconds: 0)
    private var takenInWindow = 0
    private var timeInWindow = Duration.zero

    init(_ limits: Limits = Limits()) { self.limits = limits }

    /// Bytes wait from now on.
    ///
    /// - Parameter taken: bytes that have left the queue since the connection began.
    mutating func waits(taken: Int, now: MonotonicInstant) {
        guard !isWaiting else { return }
        isWaiting = true
        self.taken = taken
        lookedAt = now
        movedAt = now
    }

    /// None wait any more.
    mutating func drained(taken: Int, now: MonotonicInstant) {
        guard isWaiting else { return }
        count(taken: taken, now: now)
        isWaiting = false
    }

    /// Another answer begins, which nothing of the last one is held against.
    mutating func reset() { self = HTTPPace(limits) }

    /// False: it is to be waited for no longer.
    mutating func look(taken: Int, now: MonotonicInstant) -> Bool {
        guard isWaiting else { return true }
        count(taken: taken, now: now)
        if now - movedAt >= limits.stall { return false }
        guard timeInWindow >= limits.window else { return true }
        let isFast =
            Double(takenInWindow) * 1e9 >= Double(limits.bytesPerSecond) * Double(timeInWindow.wholeNanoseconds)
        takenInWindow = 0
        timeInWindow = .zero
        return isFast
    }

    /// How long no waiting byte was taken; nil: the queue is empty.
    mutating func stall(taken: Int, now: MonotonicInstant) -> Duration? {
        guard isWaiting else { return nil }
        count(taken: taken, now: now)
        return now - movedAt
    }

    private mutating func count(taken: Int, now: MonotonicInstant) {
        if taken > self.taken {
            movedAt = now
            takenInWindow += taken - self.taken
            self.taken = taken
        }
        timeInWindow += max(now - lookedAt, .zero)
        lookedAt = now
    }

    /// When ``look(taken:now:)`` is wanted; nil: the queue is empty.
    var nextLook: MonotonicInstant? { isWaiting ? lookedAt + limits.stall / 4 : nil }
}

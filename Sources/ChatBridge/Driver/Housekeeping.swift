import WireBytes

/// Decides when to return freed memory: a storm of joins or a large NAMES leaves the heap full of holes, and an idle
/// process would retain its peak size.
struct Housekeeping {
    /// Actions after which there may be something to give back.
    static let enoughWork = 2000
    /// How often to look whether the moment is quiet. The heap is walked then, which takes milliseconds.
    static let interval: Duration = .seconds(5)
    /// Fewer actions than this in an interval: quiet.
    static let quiet = 200

    private var work = 0
    private var workAtLook = 0
    private var lookAt: MonotonicInstant?

    mutating func worked(_ actions: Int) { work += actions }

    mutating func nextDeadline(_ now: MonotonicInstant) -> MonotonicInstant? {
        if lookAt == nil, work >= Self.enoughWork {
            workAtLook = work
            lookAt = now + Self.interval
        }
        return lookAt
    }

    /// Whether to give back now.
    mutating func isDue(_ now: MonotonicInstant) -> Bool {
        guard let due = lookAt, now >= due else { return false }
        guard work - workAtLook < Self.quiet else {
            workAtLook = work
            lookAt = now + Self.interval
            return false
        }
        lookAt = nil
        work = 0
        return true
    }
}

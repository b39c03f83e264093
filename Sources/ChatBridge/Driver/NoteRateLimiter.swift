import WireBytes

/// Limits log messages that strangers can cause: a number of notes in a period, then silence until its end.
struct NoteRateLimiter {
    static let notes = 20
    static let period: Duration = .seconds(60)

    private var left = NoteRateLimiter.notes
    private var since: MonotonicInstant?

    /// Notes left after this one; nil when it is not to be written.
    mutating func take(_ now: MonotonicInstant) -> Int? {
        if since.map({ now >= $0 + Self.period }) ?? true {
            since = now
            left = Self.notes
        }
        guard left > 0 else { return nil }
        left -= 1
        return left
    }
}

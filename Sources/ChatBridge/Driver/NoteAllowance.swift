import WireBytes

/// Keeps strangers from filling the log: so many notes in a while, then silence until it is over.
struct NoteAllowance {
    static let notes = 20
    static let period: Duration = .seconds(60)

    private var left = NoteAllowance.notes
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

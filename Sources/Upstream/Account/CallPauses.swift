import WireBytes

/// The pauses of a backend's calls after failures: each kind for itself, so that a broken one delays no other; all of
/// them where the backend is overloaded.
struct CallPauses {
    /// Wait after the first failed call of a kind; each further one in a row doubles it.
    static let first: Duration = .seconds(1)
    /// The longest of these waits.
    static let longest: Duration = .seconds(60)
    /// Doubling goes no further: ``longest`` is reached by then.
    private static let maxDoublings = 10

    private struct Pause {
        var until: MonotonicInstant
        /// The failure, as a sentence.
        var reason: String
        var failures = 0
    }

    private var pauses: [BackendPurpose.Kind: Pause] = [:]
    private var all: Pause?

    /// - Parameter retryAfter: the backend's `Retry-After`.
    mutating func failed(
        _ kind: BackendPurpose.Kind, retryAfter: Duration?, reason: String, now: MonotonicInstant
    ) {
        let failures = pauses[kind]?.failures ?? 0
        var pause = Self.first
        for _ in 0..<min(failures, Self.maxDoublings) where pause < Self.longest { pause *= 2 }
        pause = max(min(pause, Self.longest), Self.credible(retryAfter ?? .zero))
        let until = max(now + pause, pauses[kind]?.until ?? now)
        pauses[kind] = Pause(until: until, reason: reason, failures: min(failures + 1, Self.maxDoublings))
    }

    mutating func holdAll(for pause: Duration, reason: String, now: MonotonicInstant) {
        let until = max(now + Self.credible(pause), all?.until ?? now)
        all = Pause(until: until, reason: reason)
    }

    private static func credible(_ pause: Duration) -> Duration { min(pause, ReconnectPolicy.longestRetryAfter) }

    mutating func succeeded(_ kind: BackendPurpose.Kind) { pauses[kind] = nil }

    private func longest(of kind: BackendPurpose.Kind) -> Pause? {
        guard let own = pauses[kind] else { return all }
        guard let all, all.until > own.until else { return own }
        return all
    }

    /// When such calls may be made again; may be past, and then they may.
    func end(of kind: BackendPurpose.Kind) -> MonotonicInstant? { longest(of: kind)?.until }

    func isPaused(_ kind: BackendPurpose.Kind, now: MonotonicInstant) -> Bool {
        end(of: kind).map { now < $0 } ?? false
    }

    /// Why such a call cannot be made before `deadline`; nil: it can.
    func reason(of kind: BackendPurpose.Kind, until deadline: MonotonicInstant) -> String? {
        longest(of: kind).flatMap { $0.until >= deadline ? $0.reason : nil }
    }
}

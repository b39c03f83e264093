import BridgeTypes
import WireBytes

/// Links that wait to be opened: so many a second over all together, and where a backend opens its rooms one after the
/// other, one of these at a time.
package final class ConnectQueue {
    /// In order.
    private var waiting: [(link: RoomID, backend: String?)] = []
    private var budget: TokenBucket
    /// The room that is being opened among those that take turns, by backend, and the least wait of the others.
    private var openings: [String: Opening] = [:]

    private struct Opening {
        var holder: RoomID?
        var notBefore: MonotonicInstant
    }

    init(connectsPerSecond: Double?) { budget = TokenBucket(rate: connectsPerSecond, burst: connectsPerSecond ?? 1) }

    /// Granted by ``grant(_:)``, from a timer and never from within: a link is not re-entered.
    ///
    /// - Parameter backend: the backend whose rooms open one after the other; nil where they need not.
    func request(_ link: RoomID, inTurnOf backend: String?, _ turn: inout Turn) {
        waiting.append((link, backend))
        wake(at: budget.nextGrant(now: turn.now.monotonic), &turn)
    }

    /// Links that may connect now.
    package func grant(_ turn: inout Turn) -> [RoomID] {
        let now = turn.now.monotonic
        var granted: [RoomID] = []
        var left: [(link: RoomID, backend: String?)] = []
        var wake: MonotonicInstant?
        for entry in waiting {
            let allowed = turnBegins(of: entry.backend, entry.link, now: now)
            if let allowed, allowed <= now, budget.take(now: now) {
                if let backend = entry.backend { openings[backend] = Opening(holder: entry.link, notBefore: allowed) }
                granted.append(entry.link)
                continue
            }
            left.append(entry)
            // A link that waits for another room's turn is woken by its end.
            guard let allowed else { continue }
            let due = max(allowed, budget.nextGrant(now: now))
            wake = wake.map { min($0, due) } ?? due
        }
        waiting = left
        if let wake { turn.set(.connectGate, at: wake) }
        return granted
    }

    /// When the link's turn begins; nil: not before another room's ends.
    private func turnBegins(of backend: String?, _ link: RoomID, now: MonotonicInstant) -> MonotonicInstant? {
        guard let backend, let opening = openings[backend] else { return now }
        return opening.holder == nil || opening.holder == link ? opening.notBefore : nil
    }

    /// A link with a grant is gone: the next of its backend may open.
    package func endTurns(of link: RoomID, _ turn: inout Turn) {
        for backend in openings.keys.sorted() { endTurn(of: backend, link, &turn) }
    }

    /// The link is usable, or failed: the next of its backend may open, after `pause`.
    func endTurn(of backend: String?, _ link: RoomID, pause: Duration = .zero, _ turn: inout Turn) {
        guard let backend, openings[backend]?.holder == link else { return }
        let next = turn.now.monotonic + pause
        openings[backend] = Opening(holder: nil, notBefore: next)
        guard waiting.contains(where: { $0.backend == backend }) else { return }
        wake(at: max(next, budget.nextGrant(now: turn.now.monotonic)), &turn)
    }

    /// No later than it was to open already: others may wait for less.
    private func wake(at due: MonotonicInstant, _ turn: inout Turn) {
        turn.set(.connectGate, at: turn.due(.connectGate).map { min($0, due) } ?? due)
    }
}

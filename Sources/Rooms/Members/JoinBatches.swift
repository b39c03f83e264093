import BridgeTypes
import Dialects
import Identities
import Upstream
import WireBytes

/// Joins and departures of people that are still to be shown, and their rate.
final class JoinBatches {
    /// Joins and departures shown singly: burst, and number per second. More than happen by themselves in a busy room.
    static let singlesBurst = 50.0
    static let singlesPerSecond = 20.0
    /// Interval between portions. With half a portion queued when the next comes, there is still room for messages.
    static let interval: Duration = .milliseconds(250)
    /// People in a portion: with 100 bytes a line a fifth of the smallest default queue of a client.
    static let maxPortion = 500
    /// Lines of a portion to all clients together, so that no portion takes longer than a few hundredths of a second.
    static let maxDeliveries = 20_000
    /// The least people in a portion, in rooms of any size.
    static let minPortion = 4
    /// The time after a link came up in which joins are shown as returns.
    static let returnTime: Duration = .seconds(60)
    /// The length of an outage after which people behind the link count as gone. Most outages are shorter.
    static let splitAfter: Duration = .seconds(60)

    enum Kind {
        case arrival
        /// No longer visible.
        case split
        /// Idle for long.
        case idle
    }

    /// People waiting to be shown, oldest first; entries no longer in `kinds` are skipped.
    private var queue: [PersonID] = []
    private var head = 0
    private var kinds: [PersonID: Kind] = [:]
    private var singles = TokenBucket(rate: singlesPerSecond, burst: singlesBurst)
    /// The time at which the link last came up; people seen since are certainly present.
    private(set) var linkedAt: MonotonicInstant?

    func linkCameUp(at now: MonotonicInstant) { linkedAt = now }

    var isEmpty: Bool { kinds.isEmpty }

    func kind(of person: PersonID) -> Kind? { kinds[person] }

    /// Takes a single notice from the budget, if there is one.
    func takeSingle(now: MonotonicInstant) -> Bool { kinds.isEmpty && singles.take(now: now) }

    func append(_ person: PersonID, _ kind: Kind) {
        if kinds.updateValue(kind, forKey: person) == nil { queue.append(person) }
    }

    /// Removes a waiting person.
    func remove(_ person: PersonID) -> Kind? {
        guard let kind = kinds.removeValue(forKey: person) else { return nil }
        if kinds.isEmpty { clear() }
        return kind
    }

    /// The next portion, all of one kind.
    func takePortion(clients: Int) -> (kind: Kind, people: [PersonID])? {
        let most = max(Self.minPortion, min(Self.maxPortion, Self.maxDeliveries / max(1, clients)))
        var kind: Kind?
        var people: [PersonID] = []
        while head < queue.count, people.count < most {
            // A person that left the queue and returned is in it twice, and counts once.
            guard let next = kinds[queue[head]] else {
                head += 1
                continue
            }
            if let kind, kind != next { break }
            kind = next
            kinds[queue[head]] = nil
            people.append(queue[head])
            head += 1
        }
        if kinds.isEmpty { clear() }
        return kind.map { ($0, people) }
    }

    private func clear() {
        queue = []
        head = 0
    }
}

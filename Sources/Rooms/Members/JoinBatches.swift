import BridgeTypes
import Dialects
import Identities
import Upstream
import WireBytes

/// People of a room whose coming or going the IRC users are still to be told, and how many may be told at a time.
final class Crowds {
    /// People told of by themselves, in one go and each second. More than come and go by their own will, less than anybody
    /// minds reading.
    static let singlesBurst = 50.0
    static let singlesPerSecond = 20.0
    /// Between portions. Half a portion in a queue when the next one comes still leaves room for what is said.
    static let interval: Duration = .milliseconds(250)
    /// People in a portion: with 100 bytes a line a fifth of the smallest default queue of a client.
    static let maxPortion = 500
    /// Lines of a portion to all clients together, so that no portion takes longer than a few hundredths of a second.
    static let maxDeliveries = 20_000
    /// The least people in a portion, in rooms of whatever size.
    static let minPortion = 4
    /// How long after a link came up those who come are said to return with it.
    static let returnTime: Duration = .seconds(60)
    /// How long a link may be gone before nobody behind it is taken for present. Most are back by then.
    static let splitAfter: Duration = .seconds(60)

    enum Kind {
        case arrival
        /// They cannot be seen any more.
        case split
        /// They were silent for long.
        case idle
    }

    /// Who waits to be told of, oldest first; those who no longer wait are left out when their turn comes.
    private var queue: [PersonID] = []
    private var head = 0
    private var kinds: [PersonID: Kind] = [:]
    private var singles = TokenBucket(rate: singlesPerSecond, burst: singlesBurst)
    /// When the link came up last; those who were seen since are certainly there.
    private(set) var linkedAt: MonotonicInstant?

    func linkCameUp(at now: MonotonicInstant) { linkedAt = now }

    var isEmpty: Bool { kinds.isEmpty }

    func kind(of person: PersonID) -> Kind? { kinds[person] }

    /// Whether one more may be told of by themselves.
    func takeSingle(now: MonotonicInstant) -> Bool { kinds.isEmpty && singles.take(now: now) }

    func append(_ person: PersonID, _ kind: Kind) {
        if kinds.updateValue(kind, forKey: person) == nil { queue.append(person) }
    }

    /// The person waits no longer.
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
            // Whoever left the queue and came back stands in it twice, and counts once.
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

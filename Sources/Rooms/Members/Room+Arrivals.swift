import BridgeTypes
import Dialects
import Identities
import Upstream
import WireBytes

// Many who come or go at once.
//
// A backend that has just been linked may name thousands of people in one go. One JOIN for each and everybody at once would
// fill the queues of the room's clients and hold up all other rooms; so what is beyond a few waits here and is told in
// portions, those after a link as `netjoin` batches. Whoever says something meanwhile is told of first. Likewise those who
// cannot be seen any more because the link is gone leave as `netsplit` batches.
//
// | a person       | verb                                   | consequence                                              |
// |----------------|----------------------------------------|----------------------------------------------------------|
// | not here       | named, and the pace allows it          | a JOIN                                                   |
// | not here       | named, more came just now              | waits                                                    |
// | waits          | does what others see; the next portion | a JOIN                                                   |
// | waits          | leaves                                 | nothing: nobody was told                                 |
// | here           | leaves                                 | a PART                                                   |
// | here           | the link is gone for long              | a QUIT, or a PART where they are seen in another room    |

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

extension Room {
    // MARK: - Coming

    /// Somebody was named as present, and has neither said nor done anything that others see.
    package func arrived(_ person: PersonID, mayWait: Bool, _ context: RoomsContext) {
        if !mayWait || crowds.takeSingle(now: context.now.monotonic) { return announce(person, context) }
        crowds.append(person, .arrival)
        armCrowds(context)
    }

    /// Tells of somebody who waits to be told of, before what they do.
    func announceIfWaiting(_ person: PersonID, _ context: RoomsContext) {
        guard crowds.kind(of: person) == .arrival, crowds.remove(person) != nil else { return }
        announce(person, context)
    }

    private func announce(_ personID: PersonID, _ context: RoomsContext) {
        guard let person = context.identities[personID] else { return }
        slots.insert(personID)
        show(.entered(RoomArrival(person, upstream: personID)))
    }

    // MARK: - Going

    /// Nobody behind the link is seen any more.
    package func splitTimerFired(_ context: RoomsContext) {
        // Elsewhere nobody knows who is there even while the link stands: they leave when they were silent for long.
        guard traits.tellsOfLeaves, !link.isUp else { return }
        context.note(
            .info, "people-lost", "the link is down for long; its members are marked as absent",
            ["room": settings.name, "people": String(remotes.count)])
        for person in remotes.people { vanish(person, .split, context) }
    }

    /// Somebody goes, like many others.
    func vanish(_ person: PersonID, _ kind: Crowds.Kind, _ context: RoomsContext) {
        if kind == .idle, crowds.takeSingle(now: context.now.monotonic) {
            return remoteLeft(person, reason: "idle", context)
        }
        guard remotes.remove(person) else { return }
        context.timers.cancel(.typingIn(person, id))
        receiptNotices.forget(reader: person)
        if crowds.remove(person) == .arrival {
            context.identities.left(person, now: context.now.monotonic)
        } else {
            crowds.append(person, kind)
            armCrowds(context)
        }
    }

    /// Somebody comes who is still to be told of as gone: nothing happened.
    ///
    /// - Returns: whether it was so.
    func returnedUnnoticed(_ person: PersonID) -> Bool {
        guard let kind = crowds.kind(of: person), kind != .arrival else { return false }
        return crowds.remove(person) != nil
    }

    /// Nobody is there to be told any more.
    func forgetCrowds(_ context: RoomsContext) {
        context.timers.cancel(.crowds(id))
        context.timers.cancel(.split(id))
        while let (kind, people) = crowds.takePortion(clients: 0) {
            if kind != .arrival { for person in people { departed(person, reason: nil, context) } }
        }
    }

    // MARK: - Portions

    func armCrowds(_ context: RoomsContext) {
        guard !crowds.isEmpty, context.timers[.crowds(id)] == nil else { return }
        context.timers.set(.crowds(id), at: context.now.monotonic + Crowds.interval)
    }

    package func crowdsTimerFired(_ context: RoomsContext) {
        guard let (kind, people) = crowds.takePortion(clients: locals.count) else { return }
        switch kind {
        case .arrival:
            let isReturn = crowds.linkedAt.map { context.now.monotonic - $0 < Crowds.returnTime } ?? false
            guard isReturn else {
                for person in people { announce(person, context) }
                break
            }
            for person in people { slots.insert(person) }
            show(
                .returned(
                    people.compactMap { id in context.identities[id].map { RoomArrival($0, upstream: id) } }))
        case .idle:
            for person in people { departed(person, reason: "idle", context) }
        case .split:
            show(
                .separated(
                    people.compactMap { context.identities[$0] }.map {
                        (RoomSpeaker($0), isSeenElsewhere: $0.roomCount > 1)
                    }))
            for person in people {
                slots.remove(person)
                context.identities.left(person, now: context.now.monotonic)
            }
        }
        armCrowds(context)
    }
}

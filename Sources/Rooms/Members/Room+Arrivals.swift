import BridgeTypes
import Dialects
import Identities
import Upstream
import WireBytes

// Joins and departures in bulk.
//
// A backend may name thousands of people on connecting. A JOIN for each, sent to all clients at once, would fill their
// queues and block all other rooms; so all beyond a few wait here and are shown in portions, those after a new link as
// `netjoin` batches. A person that speaks meanwhile is shown first. Likewise people that are no longer visible after an
// outage leave as `netsplit` batches.
//
// | a person       | verb                                   | consequence                                              |
// |----------------|----------------------------------------|----------------------------------------------------------|
// | absent         | named, within the rate                 | a JOIN                                                   |
// | absent         | named, beyond the rate                 | waits                                                    |
// | waits          | acts visibly; the next portion         | a JOIN                                                   |
// | waits          | leaves                                 | none: the JOIN was not shown                             |
// | present        | leaves                                 | a PART                                                   |
// | present        | the link is down for long              | a QUIT, or a PART where another room shows them          |

extension Room {
    // MARK: - Joins

    /// A person was named as present, without a visible action.
    package func arrived(_ person: PersonID, mayWait: Bool, _ context: RoomsContext) {
        if !mayWait || joinBatches.takeSingle(now: context.now.monotonic) { return announce(person, context) }
        joinBatches.append(person, .arrival)
        armCrowds(context)
    }

    /// Shows the JOIN of a waiting person, ahead of their action.
    func announceIfWaiting(_ person: PersonID, _ context: RoomsContext) {
        guard joinBatches.kind(of: person) == .arrival, joinBatches.remove(person) != nil else { return }
        announce(person, context)
    }

    private func announce(_ personID: PersonID, _ context: RoomsContext) {
        guard let person = context.identities[personID] else { return }
        slots.insert(personID)
        show(.entered(RoomArrival(person, upstream: personID)))
    }

    // MARK: - Departures

    /// No person behind the link is visible any more.
    package func splitTimerFired(_ context: RoomsContext) {
        // Elsewhere presence is unknown even while the link is up: people leave by their idle time.
        guard traits.tellsOfLeaves, !link.isUp else { return }
        context.note(
            .info, "people-lost", "the link is down for long; its members are marked as absent",
            ["room": settings.name, "people": String(remotes.count)])
        for person in remotes.people { vanish(person, .split, context) }
    }

    /// Queues or shows a departure, one of many.
    func vanish(_ person: PersonID, _ kind: JoinBatches.Kind, _ context: RoomsContext) {
        if kind == .idle, joinBatches.takeSingle(now: context.now.monotonic) {
            return remoteLeft(person, reason: "idle", context)
        }
        guard remotes.remove(person) else { return }
        context.cancel(.typingIn(person, id))
        receiptNotices.forget(reader: person)
        if joinBatches.remove(person) == .arrival {
            context.identities.left(person, now: context.now.monotonic)
        } else {
            joinBatches.append(person, kind)
            armCrowds(context)
        }
    }

    /// Cancels a departure that is not shown yet.
    ///
    /// - Returns: whether there was one.
    func returnedUnnoticed(_ person: PersonID) -> Bool {
        guard let kind = joinBatches.kind(of: person), kind != .arrival else { return false }
        return joinBatches.remove(person) != nil
    }

    /// Drops all waiting notices: no user is left to see them.
    func dropJoinBatches(_ context: RoomsContext) {
        context.cancel(.joinBatches(id))
        context.cancel(.netsplit(id))
        while let (kind, people) = joinBatches.takePortion(clients: 0) {
            if kind != .arrival { for person in people { departed(person, reason: nil, context) } }
        }
    }

    // MARK: - Portions

    func armCrowds(_ context: RoomsContext) {
        guard !joinBatches.isEmpty, context.due(.joinBatches(id)) == nil else { return }
        context.set(.joinBatches(id), at: context.now.monotonic + JoinBatches.interval)
    }

    package func joinBatchesTimerFired(_ context: RoomsContext) {
        guard let (kind, people) = joinBatches.takePortion(clients: locals.count) else { return }
        switch kind {
        case .arrival:
            let isReturn = joinBatches.linkedAt.map { context.now.monotonic - $0 < JoinBatches.returnTime } ?? false
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

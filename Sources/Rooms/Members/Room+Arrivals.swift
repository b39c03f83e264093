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

import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

// People upstream come and go.

extension Room {
    /// A person upstream stops typing after this without another frame that says so.
    static let typingExpiry: Duration = .seconds(3)

    /// Somebody upstream is in the room.
    package func isHere(upstream person: PersonID) -> Bool { remotes.contains(person) }

    package var upstreamCount: Int { remotes.count }

    /// Somebody types, on either side.
    package func isTyping(_ id: PersonID, _ person: Person) -> Bool {
        remotes.isTypingShown(id) || person.clients.contains { locals[$0]?.typing != nil }
    }

    /// The IRC side of a frame's sender, entered into the room when new. Nil when the room has no place left for
    /// another nick.
    ///
    /// - Parameter mayWait: nothing that others see follows, so a JOIN may come later, with those of others.
    package func present(_ sender: ChatPerson, mayWait: Bool = false, _ context: RoomsContext) -> PersonID? {
        let sender = remotes.named(sender)
        if let ours = ownPerson(sender) { return ours }
        let key = IdentityMap.remoteKey(sender, backend: settings.backend)
        if let known = context.identities.known(key), remotes.contains(known) {
            remotes.seen(known, at: context.now.monotonic)
            if !mayWait, !crowds.isEmpty { announceIfWaiting(known, context) }
            if let name = sender.name, context.identities[known]?.realname != name { resolve(sender, context) }
            return known
        }
        guard remotes.count < context.settings.membersPerRoom else { return nil }
        let personID = resolve(sender, context)
        guard context.identities[personID] != nil else { return nil }
        remotes.seen(personID, at: context.now.monotonic)
        if remotes.count == 1 { scheduleIdleSweep(context) }
        if !crowds.isEmpty, returnedUnnoticed(personID) { return personID }
        context.identities.entered(personID)
        arrived(personID, mayWait: mayWait, context)
        return personID
    }

    /// Looks the sender up and tells the room when they changed their name.
    @discardableResult
    private func resolve(_ sender: ChatPerson, _ context: RoomsContext) -> PersonID {
        let resolution = context.identities.resolve(
            sender, backend: settings.backend, authenticated: traits.authenticatesSenders,
            now: context.now.monotonic)
        if let renamed = resolution.renamed {
            frontEnd.changed(resolution.id, .nick(from: renamed.from, to: renamed.to))
        }
        if resolution.realnameChanged, let person = context.identities[resolution.id] {
            frontEnd.changed(resolution.id, .realname(RoomSpeaker(person), person.realname))
        }
        return resolution.id
    }

    /// - Parameter isTold: the backend said so.
    func remoteLeft(_ personID: PersonID, reason: String?, isTold: Bool = false, _ context: RoomsContext) {
        guard remotes.remove(personID) else { return }
        context.timers.cancel(.typingIn(personID, id))
        receiptNotices.forget(reader: personID)
        if !crowds.isEmpty { _ = crowds.remove(personID) }
        departed(personID, reason: reason, isTold: isTold, context)
    }

    /// Somebody is gone; nobody is told who was not told that they came.
    func departed(_ personID: PersonID, reason: String?, isTold: Bool = false, _ context: RoomsContext) {
        if slots.contains(personID), let person = context.identities[personID] {
            show(.left(RoomSpeaker(person), reason: reason))
        }
        slots.remove(personID)
        context.identities.left(personID, isTold: isTold, now: context.now.monotonic)
    }

    private func scheduleIdleSweep(_ context: RoomsContext) {
        guard settings.memberIdle > .zero else { return }
        let pause = max(min(settings.memberIdle / 4, .seconds(60)), .seconds(1))
        context.timers.set(.idlePeople(id), at: context.now.monotonic + pause)
    }

    /// People who were silent for `memberIdle` leave, on wires that tell of no leave.
    package func sweepIdlePeople(_ context: RoomsContext) {
        let kind: Crowds.Kind = link.isUp ? .idle : .split
        for person in remotes.people {
            guard let lastSeen = remotes.lastSeen(person), context.now.monotonic - lastSeen >= settings.memberIdle
            else {
                continue
            }
            // Who went while there was no link is never told of, on whatever wire.
            guard !traits.tellsOfLeaves || crowds.linkedAt.map({ lastSeen < $0 }) ?? false else { continue }
            vanish(person, kind, context)
        }
        if let overflow = remotes.overflow, context.now.monotonic - overflow.lastSeen >= settings.memberIdle,
            let person = remotes.takeOverflow()
        {
            departed(person, reason: "idle", context)
        }
        if !remotes.isEmpty { scheduleIdleSweep(context) }
    }

    /// Nobody upstream can be seen from here any more.
    func forgetPeople(_ context: RoomsContext) {
        forgetCrowds(context)
        for person in remotes.people { remoteLeft(person, reason: nil, context) }
        if let person = remotes.takeOverflow() { departed(person, reason: nil, context) }
        context.timers.cancel(.idlePeople(id))
    }

    /// The one nick through which everybody speaks for whom the room has no place.
    package func overflow(_ context: RoomsContext) -> PersonID {
        if let known = remotes.overflow?.person {
            remotes.overflowUsed(known, at: context.now.monotonic)
            return known
        }
        // An id that nobody upstream can name.
        let resolution = context.identities.resolve(
            ChatPerson(id: context.freshChatID(), name: "others"), backend: settings.backend, authenticated: false,
            isPassing: true, now: context.now.monotonic)
        context.identities.entered(resolution.id)
        remotes.overflowUsed(resolution.id, at: context.now.monotonic)
        slots.insert(resolution.id)
        if let person = context.identities[resolution.id] {
            show(.entered(RoomArrival(person)))
        }
        context.note(
            .warn, "room-full", "more people than limits.members_per_room; the rest speak through one nick",
            ["room": settings.name])
        return resolution.id
    }
}

import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

// Joins and parts of upstream people.

extension Room {
    /// A typing notification expires after this.
    static let typingExpiry: Duration = .seconds(3)

    /// An upstream person is in the room.
    package func isHere(upstream person: PersonID) -> Bool {
        remotes.contains(person) || remotes.shared?.person == person
    }

    package var upstreamCount: Int { remotes.count }

    /// Whether a person on either side is typing.
    package func isTyping(_ id: PersonID, _ person: Person) -> Bool {
        remotes.isTypingShown(id) || person.clients.contains { locals[$0]?.typing != nil }
    }

    /// The IRC side of a frame's sender, added to the room when new. Nil when the person has no nick of their
    /// own: in relay mode, or when the room has no place for another.
    ///
    /// - Parameter mayWait: no visible action follows, so the JOIN may be batched.
    package func present(_ sender: ChatPerson, mayWait: Bool = false, _ context: RoomsContext) -> PersonID? {
        let sender = remotes.named(sender)
        if let ours = ownPerson(sender) { return ours }
        guard settings.relayNick == nil else { return nil }
        let now = context.now.monotonic
        if joinBatches.isEmpty, let known = remotes.acts(sender, at: now, context.identities.revision) { return known }
        let key = IdentityMap.remoteKey(sender, backend: settings.backend)
        if let known = context.identities.known(key), remotes.acts(known, at: now) {
            if !mayWait, !joinBatches.isEmpty { announceIfWaiting(known, context) }
            if let name = sender.name, !context.identities.isCalled(known, name) {
                resolve(sender, context)
            } else {
                remotes.recognise(sender, as: known, context.identities.revision)
            }
            return known
        }
        guard remotes.count < context.settings.membersPerRoom else { return nil }
        let personID = resolve(sender, context)
        guard context.identities[personID] != nil else { return nil }
        remotes.seen(personID, at: now)
        if remotes.count == 1 { scheduleIdleSweep(context) }
        if !joinBatches.isEmpty, returnedUnnoticed(personID) { return personID }
        context.identities.entered(personID)
        arrived(personID, mayWait: mayWait, context)
        return personID
    }

    /// Looks the sender up and shows a change of their name.
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

    /// - Parameter isTold: the backend reported it.
    func remoteLeft(_ personID: PersonID, reason: String?, isTold: Bool = false, _ context: RoomsContext) {
        guard remotes.remove(personID) else { return }
        context.cancel(.typingIn(personID, id))
        receiptNotices.forget(reader: personID)
        if !joinBatches.isEmpty { _ = joinBatches.remove(personID) }
        departed(personID, reason: reason, isTold: isTold, context)
    }

    /// Removes a person; the departure is shown only if the JOIN was.
    func departed(_ personID: PersonID, reason: String?, isTold: Bool = false, _ context: RoomsContext) {
        if slots.contains(personID), let person = context.identities[personID] {
            show(.left(RoomSpeaker(person), reason: reason))
        }
        slots.remove(personID)
        context.identities.left(personID, isReported: isTold, now: context.now.monotonic)
    }

    private func scheduleIdleSweep(_ context: RoomsContext) {
        guard settings.memberIdle > .zero else { return }
        let pause = max(min(settings.memberIdle / 4, .seconds(60)), .seconds(1))
        context.set(.idleUsers(id), at: context.now.monotonic + pause)
    }

    /// Removes people that were silent for `memberIdle`, on wires that report no leave.
    package func sweepIdlePeople(_ context: RoomsContext) {
        let kind: JoinBatches.Kind = link.isUp ? .idle : .split
        for person in remotes.people {
            guard let lastSeen = remotes.lastSeen(person), context.now.monotonic - lastSeen >= settings.memberIdle
            else {
                continue
            }
            // A departure during an outage is never reported, on any wire.
            guard !traits.tellsOfLeaves || joinBatches.linkedAt.map({ lastSeen < $0 }) ?? false else { continue }
            vanish(person, kind, context)
        }
        if let shared = remotes.shared, context.now.monotonic - shared.lastSeen >= settings.memberIdle,
            let person = remotes.takeShared()
        {
            departed(person, reason: "idle", context)
        }
        if !remotes.isEmpty { scheduleIdleSweep(context) }
    }

    /// No upstream person is visible any more.
    func removeUpstreamPeople(_ context: RoomsContext) {
        dropJoinBatches(context)
        for person in remotes.people { remoteLeft(person, reason: nil, context) }
        if let person = remotes.takeShared() { departed(person, reason: nil, context) }
        context.cancel(.idleUsers(id))
    }

    // MARK: - The shared nick

    /// The nick of people without one of their own: all of them in relay mode, else those beyond the room's limit.
    package func sharedPerson(_ context: RoomsContext) -> PersonID {
        if let known = remotes.shared?.person {
            remotes.sharedUsed(known, at: context.now.monotonic)
            return known
        }
        let resolution = context.identities.resolve(
            sharedIdentity(context), backend: settings.backend, authenticated: false, isTransient: true,
            now: context.now.monotonic)
        context.identities.entered(resolution.id)
        remotes.sharedUsed(resolution.id, at: context.now.monotonic)
        slots.insert(resolution.id)
        if let person = context.identities[resolution.id] {
            show(.entered(RoomArrival(person)))
        }
        if settings.relayNick == nil {
            context.note(
                .warn, "room-full", "more people than limits.members_per_room; the rest speak through one nick",
                ["room": settings.name])
        }
        return resolution.id
    }

    /// An id that no upstream person can use. In relay mode one for all rooms of the backend; no account has a blank in
    /// its name.
    private func sharedIdentity(_ context: RoomsContext) -> ChatPerson {
        guard let nick = settings.relayNick else { return ChatPerson(id: context.freshChatID(), name: "others") }
        let id = context.identities.puppetID(account: "relay \(nick)", backend: settings.backend)
        return ChatPerson(id: id, name: nick)
    }

    /// The name of a person without a nick.
    func sharedName(_ sender: ChatPerson) -> String {
        let sender = remotes.named(sender)
        let name = sender.name ?? sender.id?.rawValue ?? "unknown"
        return PrintableText.prefix(of: IdentityMap.realname(name), maxBytes: 60)
    }

    /// What stands in front of their text.
    func sharedPrefix(_ sender: ChatPerson) -> String { "<\(sharedName(sender))> " }

    /// A row of a history as it would be shown if it came now, without adding anyone to the room.
    func historyForm(
        _ message: ChatMessage, _ context: RoomsContext
    ) -> (nick: String, source: String, account: String?, text: String) {
        let sender = personBehind(remotes.named(message.sender))
        let isRelayed = settings.relayNick != nil && ownPerson(sender) == nil
        let speaker = context.identities.preview(
            isRelayed ? sharedIdentity(context) : sender, backend: settings.backend,
            authenticated: !isRelayed && traits.authenticatesSenders)
        return (
            speaker.nick, speaker.source, speaker.account,
            (isRelayed ? sharedPrefix(sender) : "") + message.text
        )
    }
}

import BridgeTypes
import IRCProtocol
import Rooms
import Upstream
import WireBytes

// Who waits for a room's link before they are in. The states of the room are at the head of Room+OnDemand.swift.
//
// The wait is a long answer like others: what the client sends meanwhile is handled behind it, and a label is answered
// with it. Rooms are entered in the order in which they were asked for.
//
// | state   | meaning                                    | verb → next                                                        |
// |---------|--------------------------------------------|--------------------------------------------------------------------|
// | behind  | other long answers of the client come first | they are done → waiting, or entered                                |
// | waiting | the room is opening                        | it is open, nobody reads any more, the bridge is to stop → entered |
// | entered | as by a JOIN that did not wait             |                                                                    |
//
// A client that has waited in vain for ``Room/openingPatience`` does not wait again for a while, however many rooms it asks for.

extension IRCServer {
    /// A client that waited in vain waits for no link until then.
    private static let impatience: Duration = .seconds(10)

    // MARK: - Waiting

    /// Whether the client's entrance is to wait; it has asked now.
    func joinWaits(_ room: Room, _ session: IRCSession) -> Bool {
        guard !session.hasNoReader, !pendingJoins.isAdmittingAll else { return false }
        let isBehind = session.isAwaitingJoin
        guard isBehind || isPatient(session) else { return false }
        guard room.opensForEntry(context) else { return isBehind }
        session.waitsSince = session.waitsSince ?? context.now.monotonic
        return true
    }

    /// Whether it has not waited in vain a while ago.
    private func isPatient(_ session: IRCSession) -> Bool {
        guard let since = session.waitsSince else { return true }
        let waited = context.now.monotonic - since
        guard waited >= Room.openingPatience else { return true }
        guard waited >= Self.impatience else { return false }
        session.waitsSince = nil
        return true
    }

    func awaitJoin(to room: Room, isAsked: Bool, _ session: IRCSession) {
        var label: String?
        if let response = session.response, !response.label.isEmpty, !session.caps.contains(.batch) {
            label = response.label
            session.deferResponse()
        }
        let pending = PendingJoin(room: room.id, channel: room.channel, isAsked: isAsked, at: context.now, label: label)
        session.appendLongAnswer(
            LongAnswer(
                of: pending, unread: { [unowned self, unowned session] in _ = letIn(pending, session) },
                { [unowned self, unowned session] in letIn(pending, session) ? .last(nil) : .waits }))
    }

    // MARK: - Letting in

    /// Whoever waits for the room is in it now; what they sent behind that is for later, since a link's event may be under way.
    func roomOpened(_ id: RoomID) {
        guard let clients = pendingJoins.opened(id) else { return }
        for client in clients.prefix(PendingJoins.atOnce) {
            if let session = sessions[client] { pullLongAnswers(session) }
        }
        context.timers.set(.pendingJoins, at: context.now.monotonic)
    }

    package func letNextIn() {
        for _ in 0..<PendingJoins.atOnce {
            guard let client = pendingJoins.next() else { return }
            guard let session = sessions[client] else { continue }
            goOn(session)
        }
        if pendingJoins.hasAdmitted { context.timers.set(.pendingJoins, at: context.now.monotonic) }
    }

    /// Nobody waits any longer: the bridge is about to stop, and takes what was sent before.
    package func openEverything() {
        pendingJoins.admitAll()
        for room in rooms { room.opened(context) }
        while pendingJoins.hasAdmitted { letNextIn() }
    }

    /// Lets a client in.
    ///
    /// - Returns: false: it waits on.
    private func letIn(_ pending: PendingJoin, _ session: IRCSession) -> Bool {
        if let room = room(pending.room), room.isOpening, room.missingSince == nil, !pendingJoins.isAdmittingAll,
            !session.hasNoReader
        {
            pendingJoins.wait(session.id, for: room.id)
            return false
        }
        // What it is told of this room comes before what it waits for else.
        let later = session.takeLongAnswers().filter { $0.subject !== pending }
        defer { for answer in later { session.appendLongAnswer(answer) } }
        let replies = outbound.gathering(session) { enter(pending, session) }.filter {
            $0.reduced(for: session.caps, nick: session.displayNick) != nil
        }
        // It did not wait in vain.
        if room(pending.room)?.link.isUp == true { session.waitsSince = nil }
        guard pending.isAsked || room(pending.room).map({ session.rooms.contains($0.id) }) == true else {
            return true
        }
        let label = replies.count == 1 && !session.hasLongAnswers ? pending.label : nil
        for line in replies {
            writePart(line, to: session, label: label, batch: session.longAnswerBatch)
        }
        return true
    }

    private func enter(_ pending: PendingJoin, _ session: IRCSession) {
        guard session.person != nil else { return }
        // The room may have given way to another.
        let known = room(pending.room) ?? room(channel: pending.channel)
        guard let room = known ?? templateRoom(pending.channel, session, isComingBack: !pending.isAsked),
            !session.rooms.contains(room.id)
        else { return }
        // All may be otherwise than when it asked.
        guard mayEnter(room, session) else { return noSuchChannel(pending.channel, session) }
        if let refusal = spellingRefusal(room, as: pending.channel, session) { return reply(refusal, session) }
        if let barrier = barrier(to: room, session) { return reply(barrier, session) }
        // Not pulled from here: those may wait for an entrance too, and would pull this one.
        let others = room.entering(askedAt: pending.at) { enterWithOthers(room, session) }
        for other in others where other.hasLongAnswers { emit(.notifyWhenDrained(other.id)) }
    }
}

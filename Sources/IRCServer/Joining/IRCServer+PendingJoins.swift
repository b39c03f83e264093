import BridgeTypes
import IRCProtocol
import Rooms
import Upstream
import WireBytes

// Joins that wait for a room's link. The states of the room are at the head of Room+OnDemand.swift.
//
// A pending join is a long answer: later lines of the client wait behind it, and its label is answered with it. Rooms
// are entered in the order of the requests.
//
// | state   | meaning                                        | verb → next                                          |
// |---------|------------------------------------------------|------------------------------------------------------|
// | behind  | queued behind other long answers of the client | they are done → waiting, or entered                  |
// | waiting | the room is opening                            | room open, no reader left, bridge stopping → entered |
// | entered | as by a JOIN without a wait                    |                                                      |
//
// After waiting ``Room/openingPatience`` without success, a client's joins do not wait for a while, in any room.

extension IRCServer {
    /// Time without waits after a client's unsuccessful one.
    private static let impatience: Duration = .seconds(10)

    // MARK: - Waiting

    /// Whether the client's join has to wait; starts the opening of the room and the client's wait.
    func joinWaits(_ room: Room, _ session: IRCSession) -> Bool {
        prefer(room)
        guard !session.hasNoReader, !pendingJoins.isAdmittingAll else { return false }
        let isBehind = session.isAwaitingJoin
        guard isBehind || isPatient(session) else { return false }
        guard room.opensForEntry(context) else { return isBehind }
        session.waitsSince = session.waitsSince ?? context.now.monotonic
        return true
    }

    /// The client has had no unsuccessful wait recently; an expired one is cleared.
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
            ReplyGenerator(
                of: pending, unread: { [unowned self, unowned session] in _ = letIn(pending, session) },
                { [unowned self, unowned session] in letIn(pending, session) ? .last(nil) : .waits }))
    }

    // MARK: - Admission

    /// Admits the clients waiting for the room; their later lines follow separately, since a link event may be in
    /// progress.
    func roomOpened(_ id: RoomID) {
        guard let clients = pendingJoins.opened(id) else { return }
        for client in clients.prefix(PendingJoins.atOnce) {
            if let session = sessions[client] { pullLongAnswers(session) }
        }
        context.set(.pendingJoins, at: context.now.monotonic)
    }

    package func letNextIn() {
        for _ in 0..<PendingJoins.atOnce {
            guard let client = pendingJoins.next() else { return }
            guard let session = sessions[client] else { continue }
            goOn(session)
        }
        if pendingJoins.hasAdmitted { context.set(.pendingJoins, at: context.now.monotonic) }
    }

    /// Admits all waiting clients before the bridge stops, so that their pending lines are processed.
    package func openEverything() {
        pendingJoins.admitAll()
        for room in rooms { room.opened(context) }
        while pendingJoins.hasAdmitted { letNextIn() }
    }

    /// Admits a client.
    ///
    /// - Returns: false: it still has to wait.
    private func letIn(_ pending: PendingJoin, _ session: IRCSession) -> Bool {
        if let room = room(pending.room), room.isOpening, room.missingSince == nil, !pendingJoins.isAdmittingAll,
            !session.hasNoReader
        {
            pendingJoins.wait(session.id, for: room.id)
            return false
        }
        // The replies of this room precede the client's other pending answers.
        let later = session.takeLongAnswers().filter { $0.subject !== pending }
        defer { for answer in later { session.appendLongAnswer(answer) } }
        let replies = outbound.gathering(session) { enter(pending, session) }.filter {
            $0.reduced(for: session.caps, nick: session.displayNick) != nil
        }
        // The wait was successful.
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
        // The room may have been replaced by another.
        let known = room(pending.room) ?? room(channel: pending.channel)
        guard let room = known ?? templateRoom(pending.channel, session, isComingBack: !pending.isAsked),
            !session.rooms.contains(room.id)
        else { return }
        // All conditions may have changed since the request.
        guard mayEnter(room, session) else { return noSuchChannel(pending.channel, session) }
        if let refusal = entryRefusal(room, as: pending.channel, isRequest: false, session) {
            return reply(refusal, session)
        }
        // A return to the rooms of an account is no request: the member stays, as in an outage.
        if pending.isAsked, let refusal = refuseUnknown(room, session) { return reply(refusal, session) }
        // Their answers are not pulled from here: those may be pending joins too, and would pull this one.
        let others = room.entering(askedAt: pending.at) { enterWithOthers(room, session) }
        for other in others where other.hasLongAnswers { emit(.notifyWhenDrained(other.id)) }
    }
}

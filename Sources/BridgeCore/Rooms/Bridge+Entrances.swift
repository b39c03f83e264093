import IRCProtocol
import WireBytes

// Who waits for a room's link before they are in. The states of the room are at the head of Room+Demand.swift.
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

/// A client's entrance that waits.
final class Entrance {
    let room: RoomID
    let channel: String
    /// False: it comes back to its account's rooms, and is told nothing where that cannot be.
    let isAsked: Bool
    /// When it asked.
    let at: Now
    /// Of a client that can be given no more than one line with it.
    var label: String?

    init(room: RoomID, channel: String, isAsked: Bool, at: Now) {
        self.room = room
        self.channel = channel
        self.isAsked = isAsked
        self.at = at
    }
}

extension IRCSession {
    var isAwaitingEntrance: Bool { longAnswers.contains { $0.subject is Entrance } }

    func isAwaitingEntrance(to room: RoomID) -> Bool {
        longAnswers.contains { ($0.subject as? Entrance)?.room == room }
    }
}

extension Bridge {
    /// So many are let in at a time, so that a crowd that comes back at once holds nobody up.
    private static let entrancesAtOnce = 64
    /// A client that waited in vain waits for no link until then.
    private static let impatience: Duration = .seconds(10)

    // MARK: - Waiting

    /// Whether the client's entrance is to wait; it has asked now.
    func entranceWaits(_ room: Room, _ session: IRCSession) -> Bool {
        guard !session.hasNoReader, !letsEverybodyIn else { return false }
        let isBehind = session.isAwaitingEntrance
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

    func awaitEntrance(to room: Room, isAsked: Bool, _ session: IRCSession) {
        let entrance = Entrance(room: room.id, channel: room.channel, isAsked: isAsked, at: context.now)
        if let response = session.response, !response.label.isEmpty, !session.caps.contains(.batch) {
            entrance.label = response.label
            session.response?.isDeferred = true
        }
        session.appendLongAnswer(
            LongAnswer(
                of: entrance, unread: { [unowned self, unowned session] in _ = letIn(entrance, session) },
                { [unowned self, unowned session] in letIn(entrance, session) ? .last(nil) : .waits }))
    }

    // MARK: - Letting in

    /// Whoever waits for the room is in it now; what they sent behind that is for later, since a link's event may be under way.
    func roomOpened(_ id: RoomID) {
        guard let waiting = waitingAtDoors.removeValue(forKey: id) else { return }
        let clients = waiting.sorted { $0.rawValue < $1.rawValue }
        for client in clients.prefix(Self.entrancesAtOnce) {
            if let session = sessions[client] { pullLongAnswers(session) }
        }
        nextIn += clients
        context.timers.set(.entrances, at: context.now.monotonic)
    }

    func letNextIn() {
        for _ in 0..<Self.entrancesAtOnce {
            guard let client = nextIn.popFirst() else { return nextIn = [] }
            guard let session = sessions[client] else { continue }
            pullLongAnswers(session)
            processInput(session)
        }
        if nextIn.isEmpty { return nextIn = [] }
        context.timers.set(.entrances, at: context.now.monotonic)
    }

    /// Nobody waits any longer: the bridge is about to stop, and takes what was sent before.
    func openEverything() {
        letsEverybodyIn = true
        for room in rooms { room.opened(context) }
        while !nextIn.isEmpty { letNextIn() }
    }

    /// What `body` replies to the client, put aside.
    func gathering(_ session: IRCSession, _ body: () -> Void) -> [IRCMessage] {
        let response = session.response
        session.response = IRCSession.LabeledResponse(label: "")
        body()
        defer { session.response = response }
        return session.response?.replies ?? []
    }

    /// Lets a client in.
    ///
    /// - Returns: false: it waits on.
    private func letIn(_ entrance: Entrance, _ session: IRCSession) -> Bool {
        if let room = room(entrance.room), room.isOpening, room.missingSince == nil, !letsEverybodyIn,
            !session.hasNoReader
        {
            waitingAtDoors[room.id, default: []].insert(session.id)
            return false
        }
        // What it is told of this room comes before what it waits for else.
        let later = session.takeLongAnswers().filter { $0.subject !== entrance }
        defer { for answer in later { session.appendLongAnswer(answer) } }
        let replies = gathering(session) { enter(entrance, session) }.filter {
            $0.reduced(for: session.caps, nick: session.displayNick) != nil
        }
        // It did not wait in vain.
        if room(entrance.room)?.link.isUp == true { session.waitsSince = nil }
        guard entrance.isAsked || room(entrance.room).map({ session.rooms.contains($0.id) }) == true else {
            return true
        }
        let label = replies.count == 1 && !session.hasLongAnswers ? entrance.label : nil
        for line in replies {
            session.undrainedBytes += write(line, to: session, label: label, batch: session.longAnswerBatch)
        }
        return true
    }

    private func enter(_ entrance: Entrance, _ session: IRCSession) {
        guard session.person != nil else { return }
        // The room may have given way to another.
        let known = room(entrance.room) ?? room(channel: entrance.channel)
        guard let room = known ?? templateRoom(entrance.channel, session, isComingBack: !entrance.isAsked),
            !session.rooms.contains(room.id)
        else { return }
        // All may be otherwise than when it asked.
        guard mayEnter(room, session) else { return noSuchChannel(entrance.channel, session) }
        if let refusal = spellingRefusal(room, as: entrance.channel, session) { return reply(refusal, session) }
        if let barrier = barrier(to: room, session) { return reply(barrier, session) }
        // Not pulled from here: those may wait for an entrance too, and would pull this one.
        let others = room.entering(askedAt: entrance.at) { enterWithOthers(room, session) }
        for other in others where other.hasLongAnswers { context.emit(.notifyWhenDrained(other.id)) }
    }
}

import IRCProtocol
import WireBytes

// Who waits for a room's link before they are in. The states of the room are at the head of Room+Demand.swift.
//
// The wait is a long answer like others: what the client sends meanwhile is handled behind it, and a label is answered
// with it. Rooms are entered in the order in which they were asked for.

extension Bridge {
    /// So many are let in at a time, so that a crowd that comes back at once holds nobody up.
    private static let entrancesAtOnce = 64

    func roomOpened(_ id: RoomID) {
        guard let waiting = waitingAtDoors.removeValue(forKey: id) else { return }
        nextIn += waiting.sorted { $0.rawValue < $1.rawValue }
        letNextIn()
    }

    func letNextIn() {
        for _ in 0..<Self.entrancesAtOnce {
            guard let client = nextIn.popFirst() else { return nextIn = [] }
            guard let session = sessions[client] else { continue }
            pullLongAnswers(session)
            processInput(session)
        }
        context.timers.set(.entrances, at: context.now.monotonic)
    }

    /// What `body` replies to the client, put aside.
    func gathering(_ session: IRCSession, _ body: () -> Void) -> [IRCMessage] {
        let response = session.response
        session.response = IRCSession.LabeledResponse(label: "")
        body()
        defer { session.response = response }
        return session.response?.replies ?? []
    }

    /// Lets a client in whose first long answer is this.
    ///
    /// - Returns: false: it waits on.
    func letIn(to id: RoomID, isAsked: Bool, _ session: IRCSession) -> Bool {
        let room = room(id)
        if let room, phase == .running, room.askedForEntry(context) {
            waitingAtDoors[id, default: []].insert(session.id)
            return false
        }
        // What it is told of this room comes before what it waits for else.
        let later = session.takeLongAnswers().dropFirst()
        defer { for answer in later { session.appendLongAnswer(answer) } }
        guard phase == .running, let room, session.person != nil, !session.rooms.contains(id) else { return true }
        let replies = gathering(session) {
            // All may be otherwise than when it asked.
            if !mayEnter(room, session) {
                reply(entranceRefusal(to: room, session), session)
            } else if let barrier = barrier(to: room, session) {
                reply(barrier, session)
            } else {
                // Not pulled from here: those may wait for an entrance too, and would pull this one.
                for other in enterWithOthers(room, session) where other.hasLongAnswers {
                    context.emit(.notifyWhenDrained(other.id))
                }
            }
        }
        guard isAsked || session.rooms.contains(id) else { return true }
        for line in replies {
            session.undrainedBytes += write(line, to: session, label: nil, batch: session.longAnswerBatch)
        }
        return true
    }
}

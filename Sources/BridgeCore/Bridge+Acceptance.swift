import ChatModel
import IRCProtocol

// What IRC users said is accepted when it is on disk. A client learns that by PING: the PONG comes after all that it said
// before is on disk, or was refused aloud.

extension Bridge {
    /// Answers to PINGs that a client may be owed while the disk stalls; more PINGs get no answer.
    static let maxHeldPongs = 100

    // MARK: - The store

    /// Acceptances are decided, and intentions to write are on disk.
    func storeDidSettle(refused: Set<StoreTicket>, reason: String) {
        for (room, own) in outboxesAwaitingStore() {
            room.storeSettled(own, refused: refused, reason: reason, context)
        }
        releasePongs()
        finishIfIdle()
    }

    func storeDidOverflow(_ ticket: StoreTicket, reason: String) {
        for (room, own) in outboxesAwaitingStore() { room.storeOverflowed(own, ticket, reason: reason, context) }
        releasePongs()
        finishIfIdle()
    }

    private func outboxesAwaitingStore() -> [(room: Room, own: OwnLink?)] {
        context.takeOutboxesAwaitingStore().compactMap { id in
            if let room = room(id) { return (room, nil) }
            return ownLink(id).map { ($0.room, $0.own) }
        }
    }

    // MARK: - PING and PONG

    func answerPing(_ token: String, _ session: IRCSession) {
        let pong = IRCMessage(source: settings.serverName, command: "PONG", params: [settings.serverName, token])
        guard let ticket = session.lastKept, !context.ledger.isSettled(ticket) else { return reply(pong, session) }
        guard session.heldPongs.count < Self.maxHeldPongs else { return }
        session.heldPongs.append(
            IRCSession.HeldPong(ticket: ticket, message: pong, label: session.response?.label))
        session.response?.isDeferred = true
        pongHolders.insert(session.id)
    }

    /// Answers what waited for the disk.
    func releasePongs() {
        guard !pongHolders.isEmpty else { return }
        for id in pongHolders.sorted(by: { $0.rawValue < $1.rawValue }) {
            guard let session = sessions[id] else {
                pongHolders.remove(id)
                continue
            }
            let ready = session.heldPongs.prefix { context.ledger.isSettled($0.ticket) }
            session.heldPongs.removeFirst(ready.count)
            if session.heldPongs.isEmpty { pongHolders.remove(id) }
            for held in ready { deliver(held.message, to: id, label: held.label) }
        }
    }

    // MARK: - Failures told later

    func isHere(_ client: ClientID) -> Bool { sessions[client] != nil }

    /// Has a client told, after what it is being told already, what failed of its messages in a room.
    func tellUntold(_ room: Room, _ session: IRCSession) {
        for place in room.untoldPlaces(session.id, context) { session.appendLongAnswer(.untold(place, after: 0)) }
    }

    func untoldStep(_ id: RoomID, _ after: UInt64, _ session: IRCSession) -> (IRCMessage?, LongAnswer?) {
        let place = room(id).map { ($0, nil) } ?? ownLink(id).map { ($0.room, Optional($0.own)) }
        guard let (room, own) = place,
            let (line, number) = room.tellUntold(session.id, own, after: after, context)
        else { return (nil, nil) }
        return (line, .untold(id, after: number))
    }
}

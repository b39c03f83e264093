import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms

// Durable PONG: the PONG to a client's PING is sent after all its earlier messages are on disk or were refused with a
// reply. Its other changes are on disk then too, unless the store is failing: a PONG that waited for a full disk would
// end every connection.

extension IRCServer {
    // MARK: - PING and PONG

    func pingReceived(_ token: String?, _ session: IRCSession) {
        guard let token else { return reply(.errNoOrigin, "No origin specified", to: session) }
        let pong = serverLine("PONG", [settings.serverName, token])
        let held = session.lastKept.map {
            IRCSession.HeldPong(
                ticket: $0, accepted: session.lastAccepted, message: pong, label: session.response?.label)
        }
        guard let held, !isReady(held) else { return reply(pong, session) }
        guard heldPongs.hold(held, for: session) else { return }
        session.deferResponse()
    }

    private func isReady(_ held: IRCSession.HeldPong) -> Bool {
        if context.ledger.isSettled(held.ticket) { return true }
        return context.ledger.condition != .sound && held.accepted.map { context.ledger.isDecided($0) } ?? true
    }

    /// Sends the PONGs whose writes are decided.
    package func releasePongs() {
        for (client, held) in heldPongs.release({ sessions[$0] }, where: isReady) {
            deliver(held.message, to: client, label: held.label)
        }
    }

    // MARK: - Deferred failure reports

    func isHere(_ client: ClientID) -> Bool { sessions[client] != nil }

    /// Reports a client's failed messages in a room, behind its pending long answers.
    package func tellUntold(_ room: Room, _ session: IRCSession) {
        for lane in room.untoldLanes(session.id, context) {
            var after: UInt64 = 0
            session.appendLongAnswer(
                ReplyGenerator { [unowned self, unowned session] in
                    guard let (line, number) = untoldLine(lane, after: after, session) else { return .last(nil) }
                    after = number
                    return .more(line)
                })
        }
    }

    package func tellUntold(in room: Room, to clients: [ClientID]) {
        for session in clients.compactMap({ sessions[$0] }) {
            tellUntold(room, session)
            pullLongAnswers(session)
        }
    }

    /// The next report of a failed message of the client in a room, or over an account's own link there, during its
    /// absence; nil: none is left.
    private func untoldLine(_ id: RoomID, after: UInt64, _ session: IRCSession) -> (line: IRCMessage, number: UInt64)? {
        guard let (room, lane) = roomTable.lane(id),
            let (answer, number) = room.tellUntold(session.id, lane, after: after, context)
        else { return nil }
        return (channel(of: room).line(answer, in: room), number)
    }
}

import BridgeTypes
import IRCProtocol

// What handlers say: all of it leaves by ``Outbound`` and ``LongAnswers``.

extension IRCServer {
    package var sessions: KeyedObjects<Outbound.SessionByClient> { _read { yield outbound.sessions } }
    var walk: WalkBudget { longAnswers.walk }

    func nextBatchReference() -> String { outbound.nextBatchReference() }

    func reply(_ message: IRCMessage, _ session: IRCSession) { outbound.reply(message, session) }

    func reply(_ numeric: IRCNumeric, _ params: String..., to session: IRCSession) {
        reply(session.line(numeric, params), session)
    }

    func deliver(_ message: IRCMessage, to client: ClientID, label: String? = nil) {
        outbound.deliver(message, to: client, label: label)
    }

    func deliver(_ said: IRCUtterance, to client: ClientID) { outbound.deliver(said, to: client) }

    /// Delivers a line about somebody in several rooms.
    func deliver(_ message: IRCMessage, to client: ClientID, amid rooms: some Sequence<RoomID>) {
        outbound.deliver(message, to: client, amid: rooms)
    }

    /// What a client said in private.
    func echo(_ lines: [IRCMessage], to client: ClientID, label: String?) {
        outbound.echo(lines, to: client, label: label, in: nil)
    }

    func echo(_ said: IRCUtterance, to client: ClientID, label: String?) {
        outbound.echo(said, to: client, label: label, in: nil)
    }

    /// - Returns: bytes.
    @discardableResult
    func write(_ message: IRCMessage, to session: IRCSession, label: String? = nil, batch: String? = nil) -> Int {
        outbound.write(message, to: session, label: label, batch: batch)
    }

    func endBatch(_ reference: String, _ session: IRCSession) { outbound.endBatch(reference, session) }

    func finishResponse(_ session: IRCSession) {
        outbound.finishResponse(session)
    }

    func outsideResponse(_ session: IRCSession, _ body: () -> Void) { outbound.outsideResponse(session, body) }

    func gathering(_ session: IRCSession, _ body: () -> Void) -> [IRCMessage] { outbound.gathering(session, body) }

    package func pullLongAnswers(_ session: IRCSession) { longAnswers.pull(session) }

    func setTimer(_ session: IRCSession, _ following: Following) { outbound.setTimer(session, following) }

    func stopFollowing(_ session: IRCSession) { outbound.stopFollowing(session) }
}

import BridgeTypes
import IRCProtocol

// Output of handlers, all of it through ``Outbound`` and ``ReplyGenerators``.

extension IRCServer {
    package var sessions: KeyedObjects<Outbound.SessionByClient> { _read { yield outbound.sessions } }
    var walk: ReplyBudget { longAnswers.walk }

    func nextBatchReference() -> String { outbound.nextBatchReference() }

    func reply(_ message: IRCMessage, _ session: IRCSession) { outbound.reply(message, session) }

    func reply(_ numeric: IRCNumeric, _ params: String..., to session: IRCSession) {
        reply(session.line(numeric, params), session)
    }

    func deliver(_ message: IRCMessage, to client: ClientID, label: String? = nil) {
        outbound.deliver(message, to: client, label: label)
    }

    func deliver(_ said: IRCUtterance, to client: ClientID) { outbound.deliver(said, to: client) }

    /// Delivers a line about a person in several rooms.
    func deliver(_ message: IRCMessage, to client: ClientID, amid rooms: some Sequence<RoomID>) {
        outbound.deliver(message, to: client, amid: rooms)
    }

    func write(_ message: IRCMessage, to session: IRCSession, label: String? = nil, batch: String? = nil) {
        outbound.write(message, to: session, label: label, batch: batch)
    }

    /// Writes a line of a long answer, which counts toward the limit of the client's queue.
    func writePart(_ message: IRCMessage, to session: IRCSession, label: String? = nil, batch: String? = nil) {
        session.undrainedBytes += outbound.write(message, to: session, label: label, batch: batch)
    }

    package func pullLongAnswers(_ session: IRCSession) { longAnswers.pull(session) }
}

import BridgeTypes
import IRCProtocol
import Rooms
import WireBytes

// Whether a client has what was written to it: a PING after the lines, and its PONG.

extension IRCServer {
    /// Calls `received` when the client has certainly got everything that was written to it before this; never, when it
    /// goes before that.
    ///
    /// - Returns: false: too many wait for this client already, and `received` is not called.
    @discardableResult
    func whenReceived(by session: IRCSession, _ received: @escaping () -> Void) -> Bool {
        guard session.state != .closed else { return false }
        let receipts = session.beginReceipts()
        guard receipts.add(received) else { return false }
        askNext(session, receipts)
        return true
    }

    /// Asks the client, now or as soon as it has answered, whether it has what was written to it in its rooms.
    func askForCursors(_ session: IRCSession) {
        guard session.state != .closed else { return }
        let receipts = session.beginReceipts()
        receipts.isWantedForCursors = true
        askNext(session, receipts)
    }

    /// Sends the next PING, if none is on its way and somebody wants to know. Whoever it is, the answer stands for the lines
    /// of rooms as well.
    private func askNext(_ session: IRCSession, _ receipts: LineReceipts) {
        guard receipts.isWanted else { return }
        let question = session.following.flatMap { cursorQuestion(session, $0) }
        if let token = receipts.ask(question) { sendPing(token, session) }
    }

    func pongReceived(_ token: String?, _ session: IRCSession) {
        guard let token, let receipts = session.lineReceipts else { return }
        for call in receipts.answered(token) { call() }
        askNext(session, receipts)
    }

    /// Past the exit door: a PING belongs to no answer and no batch.
    private func sendPing(_ token: String, _ session: IRCSession) {
        IRCEncoder.append(IRCMessage(command: "PING", params: [token]), to: &context.writer)
        emit(.send(session.id, context.writer.take()))
    }

    func whenReceived(by client: ClientID, _ received: @escaping () -> Void) {
        if let session = sessions[client] { whenReceived(by: session, received) }
    }
}

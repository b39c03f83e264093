import IRCProtocol
import WireBytes

// Whether a client has what was written to it: a PING after the lines, and its PONG.

/// What waits for a client's PONG. At most one PING of these is on its way.
final class LineReceipts {
    /// Waiting calls remembered for a client that does not answer; what more would wait is not called.
    static let maxWaiting = 100
    /// In front of every token, so that no other PONG is taken for an answer.
    static let prefix = "cb-"

    private var number: UInt64 = 0
    private var asked: [() -> Void] = []
    private var waiting: [() -> Void] = []
    private(set) var isAsking = false
    /// The next PING is wanted for the client's cursors. What it asks about is not known before it goes: everything that was
    /// written by then.
    var isWantedForCursors = false

    /// - Returns: false when there are too many.
    func add(_ received: @escaping () -> Void) -> Bool {
        guard waiting.count < Self.maxWaiting else { return false }
        waiting.append(received)
        return true
    }

    /// None is on its way, and somebody wants to know.
    var isWanted: Bool { !isAsking && (isWantedForCursors || !waiting.isEmpty) }

    /// The token for the next PING; nil while one is on its way, or nobody wants to know.
    ///
    /// - Parameter cursors: is called before those that wait.
    func ask(_ cursors: (() -> Void)?) -> String? {
        isWantedForCursors = false
        guard !isAsking, cursors != nil || !waiting.isEmpty else { return nil }
        isAsking = true
        number += 1
        // In front: what the others do may ask again at once, and that asks about the lines of rooms as well.
        asked = (cursors.map { [$0] } ?? []) + waiting
        waiting = []
        return token
    }

    private var token: String { Self.prefix + String(number, radix: 36) }

    /// Whom to call now that a PONG with `token` came.
    func answered(_ token: String) -> [() -> Void] {
        guard isAsking, token == self.token else { return [] }
        isAsking = false
        defer { asked = [] }
        return asked
    }
}

extension Bridge {
    /// Calls `received` when the client has certainly got everything that was written to it before this; never, when it
    /// goes before that.
    ///
    /// - Returns: false: too many wait for this client already, and `received` is not called.
    @discardableResult
    func whenReceived(by session: IRCSession, _ received: @escaping () -> Void) -> Bool {
        guard session.state != .closed else { return false }
        let receipts = lineReceipts(session)
        guard receipts.add(received) else { return false }
        askNext(session, receipts)
        return true
    }

    /// Asks the client, now or as soon as it has answered, whether it has what was written to it in its rooms.
    func askForCursors(_ session: IRCSession) {
        guard session.state != .closed else { return }
        let receipts = lineReceipts(session)
        receipts.isWantedForCursors = true
        askNext(session, receipts)
    }

    private func lineReceipts(_ session: IRCSession) -> LineReceipts {
        let receipts = session.lineReceipts ?? LineReceipts()
        session.lineReceipts = receipts
        return receipts
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
        context.emit(.send(session.id, context.writer.take()))
    }

    func whenReceived(by client: ClientID, _ received: @escaping () -> Void) {
        if let session = sessions[client] { whenReceived(by: session, received) }
    }
}

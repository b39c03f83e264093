import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms
import WireBytes

/// The clients, and the only place that serializes lines for one of them.
package final class Outbound {
    private let actions: BridgeActions
    private let context: RoomsContext
    let traffic: ClientTraffic
    private(set) var sessions = KeyedObjects<SessionByClient>()
    private var batchNumber: UInt64 = 0

    package enum SessionByClient: ObjectKeying {
        package static func key(of session: IRCSession) -> ClientID { session.id }
    }

    init(_ actions: BridgeActions, _ context: RoomsContext, _ traffic: ClientTraffic) {
        self.actions = actions
        self.traffic = traffic
        self.context = context
    }

    func emit(_ action: BridgeAction) { actions.append(action) }

    func fanOut(_ bytes: ByteSlice, to clients: [ClientID], except: ClientID?) {
        actions.fanOut(bytes, to: clients, except: except)
    }

    func insert(_ session: IRCSession) { sessions.insert(session) }
    func remove(_ client: ClientID) { sessions.remove(client) }

    func nextBatchReference() -> String {
        batchNumber += 1
        return "b" + String(batchNumber, radix: 36)
    }

    // MARK: - Lines

    func deliver(_ message: IRCMessage, to client: ClientID, label: String? = nil) {
        guard let session = sessions[client] else { return }
        if session.response != nil, label == nil {
            session.appendReply(message)
        } else {
            write(message, to: session, label: label)
        }
    }

    func reply(_ message: IRCMessage, _ session: IRCSession) { deliver(message, to: session.id) }

    func deliver(_ said: IRCUtterance, to client: ClientID) {
        guard let session = sessions[client] else { return }
        for line in said.messages(for: session.caps, reference: nextBatchReference) {
            deliver(line, to: client)
        }
    }

    /// Delivers a line about a user in several rooms: behind the backlogs of those rooms that are in progress.
    func deliver(_ message: IRCMessage, to client: ClientID, amid rooms: some Sequence<RoomID>) {
        guard let session = sessions[client],
            let backlog = session.following?.backlogs.last(where: { rooms.contains($0.room) })
        else { return deliver(message, to: client) }
        write(message, to: session, heldBy: backlog)
    }

    // MARK: - Echoes

    /// Echoes lines to their author's client.
    ///
    /// - Parameter room: the room of the message; nil: it is private.
    func echo(_ lines: [IRCMessage], to client: ClientID, label: String?, in room: RoomID? = nil) {
        guard let session = sessions[client], session.caps.contains(.echoMessage) else { return }
        let backlog = room.flatMap { session.following?.backlog(of: $0) }
        guard let label, lines.count > 1, session.caps.contains(.batch) else {
            for (index, line) in lines.enumerated() {
                let label = index == 0 ? label : nil
                if let backlog {
                    write(line, to: session, label: label, heldBy: backlog)
                } else {
                    deliver(line, to: client, label: label)
                }
            }
            return
        }
        let reference = beginBatch(label: label, session, heldBy: backlog)
        for line in lines { write(line, to: session, batch: reference, heldBy: backlog) }
        endBatch(reference, session, heldBy: backlog)
    }

    func echo(_ said: IRCUtterance, to client: ClientID, label: String?, in room: RoomID? = nil) {
        guard let session = sessions[client], session.caps.contains(.echoMessage) else { return }
        let lines = said.messages(for: session.caps, reference: nextBatchReference)
        guard lines.first?.command == "BATCH" else { return echo(lines, to: client, label: label, in: room) }
        let backlog = room.flatMap { session.following?.backlog(of: $0) }
        for (index, line) in lines.enumerated() {
            if label != nil || backlog != nil {
                write(line, to: session, label: index == 0 ? label : nil, heldBy: backlog)
            } else {
                deliver(line, to: client)
            }
        }
    }

    // MARK: - Writing

    /// Reduces, tags and queues one line. Returns its length in bytes.
    ///
    /// - Parameter backlog: the line waits until this is over.
    @discardableResult
    func write(
        _ message: IRCMessage, to session: IRCSession, label: String? = nil, batch: String? = nil,
        heldBy backlog: Backlog? = nil
    ) -> Int {
        guard !session.hasNoReader else { return 0 }
        let line = tagged(message, for: session.caps, label: label, batch: batch)
        guard
            let command = context.write({
                line.append(reducedFor: session.caps, nick: session.displayNick, to: &$0)
            })
        else { return 0 }
        traffic.sent(command)
        let slice = context.takeWritten()
        if let backlog { hold(slice, by: backlog, session) } else { emit(.send(session.id, slice)) }
        return slice.count
    }

    private func tagged(
        _ message: IRCMessage, for caps: IRCCapabilitySet, label: String?, batch: String?
    ) -> IRCMessage {
        guard label != nil || batch != nil || caps.contains(.serverTime) else { return message }
        var message = message
        if let label { message.setTag("label", label) }
        let isInner = message.tag("batch") != nil
        if let batch, !isInner { message.setTag("batch", batch) }
        // A line of a batch inside another one has its time from the other's head. Nor has a reply to CAP one: the
        // capabilities that it acknowledges apply to later lines.
        if caps.contains(.serverTime), message.tag("time") == nil, message.source != nil, !isInner,
            message.command != "CAP"
        {
            message.setTag("time", IRCServerTime.format(milliseconds: context.now.wall.milliseconds))
        }
        return message
    }

    // MARK: - Held lines

    func hold(_ line: ByteSlice, for client: ClientID, in room: RoomID) {
        guard let session = sessions[client] else { return }
        guard let backlog = session.following?.backlog(of: room) else {
            // The bridge is stopping: the client gets it after it reconnects.
            if session.following?.isStopped != true { emit(.send(client, line)) }
            return
        }
        hold(line, by: backlog, session)
    }

    func hold(_ line: ByteSlice, by backlog: Backlog, _ session: IRCSession) {
        guard let following = session.following else { return }
        // Closed from the timer: a broadcast in progress is completed first.
        if following.hold(line, by: backlog) { setTimer(session, following) }
    }

    func setTimer(_ session: IRCSession, _ following: FollowedRooms) {
        if let due = following.due(context.now.monotonic) {
            context.set(.deliveryCursor(session.id), at: due)
        } else {
            context.cancel(.deliveryCursor(session.id))
        }
    }

    /// Ends the delivery state of a disconnected client.
    func stopFollowing(_ session: IRCSession) {
        guard session.following != nil else { return }
        session.endFollowing()
        context.cancel(.deliveryCursor(session.id))
    }

    // MARK: - Answers

    /// Ends the answer to a labeled line: ACK for none, the label on one, a batch around several.
    ///
    /// Source: IRCv3 labeled-response.
    func finishResponse(_ session: IRCSession) {
        guard let response = session.response else { return }
        session.response = nil
        let replies = response.replies.filter { $0.reduced(for: session.caps, nick: session.displayNick) != nil }
        if !session.hasLongAnswers {
            switch replies.count {
            case 0 where response.isDeferred: return
            case 0:
                write(
                    IRCMessage(source: context.settings.serverName, command: "ACK"), to: session, label: response.label)
                return
            case 1:
                write(replies[0], to: session, label: response.isDeferred ? nil : response.label)
                return
            default:
                guard !response.isDeferred, Self.isOneBatch(replies) else { break }
                for (index, reply) in replies.enumerated() {
                    write(reply, to: session, label: index == 0 ? response.label : nil)
                }
                return
            }
        }
        guard session.caps.contains(.batch), !response.isDeferred else {
            for reply in replies { write(reply, to: session) }
            return
        }
        let reference = beginBatch(label: response.label, session)
        for reply in replies { write(reply, to: session, batch: reference) }
        if !session.hasLongAnswers {
            endBatch(reference, session)
        } else {
            session.longAnswerBatch = reference
        }
    }

    /// Runs `body`; its lines to the client are no part of the answer to its labeled line.
    ///
    /// Source: IRCv3 labeled-response, "When a client sends a message to itself".
    func outsideResponse(_ session: IRCSession, _ body: () -> Void) {
        let response = session.response
        session.response = nil
        body()
        session.response = response
    }

    /// The replies of `body` to the client, which are not sent.
    func gathering(_ session: IRCSession, _ body: () -> Void) -> [IRCMessage] {
        let response = session.response
        session.response = IRCSession.LabeledResponse(label: "")
        body()
        defer { session.response = response }
        return session.response?.replies ?? []
    }

    private func beginBatch(label: String, _ session: IRCSession, heldBy backlog: Backlog? = nil) -> String {
        let reference = nextBatchReference()
        write(
            IRCMessage(
                source: context.settings.serverName, command: "BATCH", params: ["+" + reference, "labeled-response"]),
            to: session, label: label, heldBy: backlog)
        return reference
    }

    func endBatch(_ reference: String, _ session: IRCSession, heldBy backlog: Backlog? = nil) {
        write(
            IRCMessage(source: context.settings.serverName, command: "BATCH", params: ["-" + reference]), to: session,
            heldBy: backlog)
    }

    /// Whether an answer is one batch from beginning to end, which can have the label itself.
    static func isOneBatch(_ lines: [IRCMessage]) -> Bool {
        guard lines.count > 1, let first = lines.first, let last = lines.last, first.command == "BATCH",
            last.command == "BATCH", let opened = first.params.first, let closed = last.params.first,
            opened.hasPrefix("+"), closed.hasPrefix("-"), opened.dropFirst() == closed.dropFirst()
        else { return false }
        let reference = String(opened.dropFirst())
        return lines.dropFirst().dropLast().allSatisfy { $0.tag("batch")?.value == reference }
    }
}

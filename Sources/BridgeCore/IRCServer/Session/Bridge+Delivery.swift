import ChatModel
import IRCProtocol
import WireBytes

// The exit door: the only place that makes bytes for one client.

extension Bridge {
    /// A room as IRC sees it.
    func channel(of room: Room) -> Channel { channels[room.id] ?? Channel(self) }

    /// Lines for the client wait, or no longer.
    func setHeld(_ client: ClientID, _ isHeld: Bool, in room: Room) {
        if let member = room.locals[client] { channels[room.id]?.setHeld(member, isHeld, in: room) }
    }

    func broadcast(_ line: IRCMessage, in room: Room, except: ClientID? = nil) {
        channels[room.id]?.broadcast(line, except: except, in: room)
    }

    func deliver(_ message: IRCMessage, to client: ClientID, label: String?) {
        guard let session = sessions[client] else { return }
        if session.response != nil, label == nil {
            session.appendReply(message)
        } else {
            write(message, to: session, label: label, batch: nil)
        }
    }

    func reply(_ message: IRCMessage, _ session: IRCSession) { deliver(message, to: session.id, label: nil) }

    func echo(_ lines: [IRCMessage], to client: ClientID, label: String?) {
        guard let session = sessions[client], session.caps.contains(.echoMessage) else { return }
        let backlog = lines.first.flatMap { runningBacklog(ofTarget: $0.params.first, session) }
        guard let label, lines.count > 1, session.caps.contains(.batch) else {
            for (index, line) in lines.enumerated() {
                let label = index == 0 ? label : nil
                if let backlog {
                    write(line, to: session, label: label, batch: nil, heldBy: backlog)
                } else {
                    deliver(line, to: client, label: label)
                }
            }
            return
        }
        let reference = beginBatch(label: label, session, heldBy: backlog)
        for line in lines { write(line, to: session, label: nil, batch: reference, heldBy: backlog) }
        endBatch(reference, session, heldBy: backlog)
    }

    /// Delivers a line about somebody in several rooms: after what was said before in those that the client waits for.
    func deliver(_ message: IRCMessage, to client: ClientID, amid rooms: some Sequence<RoomID>) {
        guard let session = sessions[client],
            let backlog = session.following?.backlogs.last(where: { rooms.contains($0.room) })
        else { return deliver(message, to: client, label: nil) }
        write(message, to: session, label: nil, batch: nil, heldBy: backlog)
    }

    func tellWatchers(of person: PersonID, _ line: IRCMessage) {
        defer { tellMonitors(of: person, line) }
        let places = rooms.filter { $0.remotes[person] != nil && $0.slots.contains(person) }
        if places.count == 1 { return broadcast(line, in: places[0]) }
        var watchers: Set<ClientID> = []
        for room in places { watchers.formUnion(room.locals.keys) }
        let ids = places.map(\.id)
        for watcher in watchers.sorted(by: { $0.rawValue < $1.rawValue }) { deliver(line, to: watcher, amid: ids) }
    }

    /// Reduces, tags and queues one line. Returns its length in bytes.
    ///
    /// - Parameter backlog: the line waits until this is over.
    @discardableResult
    func write(
        _ message: IRCMessage, to session: IRCSession, label: String?, batch: String?,
        heldBy backlog: Backlog? = nil
    ) -> Int {
        guard !session.hasNoReader else { return 0 }
        var message = message
        if let label { message.setTag("label", label) }
        let isInner = message.tag("batch") != nil
        if let batch, !isInner { message.setTag("batch", batch) }
        // A line of a batch that stands inside another has its time from that one's head.
        // Nor has a reply to CAP one: what it acknowledges holds for what follows.
        if session.caps.contains(.serverTime), message.tag("time") == nil, message.source != nil, !isInner,
            message.command != "CAP"
        {
            message.setTag("time", IRCServerTime.format(milliseconds: context.now.wall.milliseconds))
        }
        guard let reduced = message.reduced(for: session.caps, nick: session.displayNick) else { return 0 }
        IRCEncoder.append(reduced, to: &context.writer)
        let slice = context.writer.take()
        if let backlog { hold(slice, by: backlog, session) } else { context.emit(.send(session.id, slice)) }
        return slice.count
    }

    // MARK: - Labeled responses

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
                    IRCMessage(source: settings.serverName, command: "ACK"), to: session, label: response.label,
                    batch: nil)
                return
            case 1:
                write(replies[0], to: session, label: response.isDeferred ? nil : response.label, batch: nil)
                return
            default:
                guard !response.isDeferred, Self.isOneBatch(replies) else { break }
                for (index, reply) in replies.enumerated() {
                    write(reply, to: session, label: index == 0 ? response.label : nil, batch: nil)
                }
                return
            }
        }
        guard session.caps.contains(.batch), !response.isDeferred else {
            for reply in replies { write(reply, to: session, label: nil, batch: nil) }
            return
        }
        let reference = beginBatch(label: response.label, session)
        for reply in replies { write(reply, to: session, label: nil, batch: reference) }
        if !session.hasLongAnswers {
            endBatch(reference, session)
        } else {
            session.longAnswerBatch = reference
        }
    }

    /// What `body` delivers to the client is no part of the answer to its labeled line.
    ///
    /// Source: IRCv3 labeled-response, "When a client sends a message to itself".
    func outsideResponse(_ session: IRCSession, _ body: () -> Void) {
        let response = session.response
        session.response = nil
        body()
        session.response = response
    }

    private func beginBatch(label: String, _ session: IRCSession, heldBy backlog: Backlog? = nil) -> String {
        let reference = nextBatchReference()
        write(
            IRCMessage(source: settings.serverName, command: "BATCH", params: ["+" + reference, "labeled-response"]),
            to: session, label: label, batch: nil, heldBy: backlog)
        return reference
    }

    func endBatch(_ reference: String, _ session: IRCSession, heldBy backlog: Backlog? = nil) {
        write(
            IRCMessage(source: settings.serverName, command: "BATCH", params: ["-" + reference]), to: session,
            label: nil, batch: nil, heldBy: backlog)
    }

    // MARK: - Long answers

    /// Writes of a client's long answers what its queue may hold, and goes on when that has drained.
    func pullLongAnswers(_ session: IRCSession) {
        guard session.hasLongAnswers else { return }
        if session.hasNoReader { return dropLongAnswers(session) }
        walkedCount = 0
        while let answer = session.longAnswers.first {
            guard session.undrainedBytes < Self.longAnswerWindow, walkedCount < Self.longAnswerWalk else {
                context.emit(.notifyWhenDrained(session.id))
                return
            }
            let line: IRCMessage?
            switch answer.next() {
            case .waits: return
            case .more(let next): line = next
            case .last(let last):
                session.removeLongAnswer(answer)
                line = last
            }
            if let line {
                session.undrainedBytes += write(line, to: session, label: nil, batch: session.longAnswerBatch)
            }
        }
        // The next part of a backlog waits for the queue to empty, as if it had come with this one.
        if session.following?.backlogs.isEmpty ?? true { session.undrainedBytes = 0 }
        endLongAnswerBatch(session)
    }

    func endLongAnswerBatch(_ session: IRCSession) {
        guard let reference = session.longAnswerBatch else { return }
        session.longAnswerBatch = nil
        endBatch(reference, session)
    }

    func isLocal(_ person: Person) -> Bool {
        person.kind == .local
    }

    func idleSeconds(_ person: Person) -> Int64 {
        guard let spoke = person.clients.compactMap({ sessions[$0]?.lastSpokeAt.milliseconds }).max() else { return 0 }
        return max(0, (context.now.wall.milliseconds - spoke) / 1000)
    }
}

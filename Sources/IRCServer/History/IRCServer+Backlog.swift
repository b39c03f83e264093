import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms
import Upstream
import WireBytes

// Backlogs: messages from before a client's join, read from the store page by page, or from memory without a store, and
// written as the client's queue drains.

extension IRCServer {
    // MARK: - Start

    /// The backlog of a session that is about to enter: the messages behind its client's cursor, or without one the
    /// newest; nil: none.
    func backlog(of room: Room, _ session: IRCSession) -> Backlog? {
        // Clients with chathistory request it themselves: IRCv3 chathistory, "Implementation".
        guard !session.caps.contains(.chatHistory) else { return nil }
        let newest = Int64(room.lastSequence)
        guard let client = following(session)?.client, let place = place(of: client, in: room, session) else {
            return lastLines(of: room, through: newest, session)
        }
        guard settings.limits.backlog > 0, place < newest else { return nil }
        let (from, leftOut, isMore) = room.newest(settings.limits.backlog, after: Int(place))
        return Backlog(
            room: room.id, start: place, from: Int64(from), through: newest, leftOut: leftOut,
            isMoreLeftOut: isMore, startedAt: room.entry(sequence: Int(clamping: place))?.at)
    }

    /// The newest messages, except those shown to the connection during an earlier stay.
    private func lastLines(of room: Room, through newest: Int64, _ session: IRCSession) -> Backlog? {
        let shown = session.shown[room.storedKey] ?? -1
        guard room.settings.historyOnJoin > 0, shown < newest else { return nil }
        let from = room.newest(room.settings.historyOnJoin, after: Int(clamping: shown)).start
        return Backlog(
            room: room.id, kind: .lastLines, start: -1, from: Int64(from), through: newest, leftOut: nil,
            isMoreLeftOut: false)
    }

    /// The room's order is restored: members that entered earlier get their place in it now.
    package func orderIsKnown(_ room: Room) {
        for client in room.locals.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
            guard let session = sessions[client], following(session)?.rooms[room.id] == nil else { continue }
            let backlog = backlog(of: room, session)
            if let backlog {
                setHeld(client, true, in: room)
                append(backlog, session)
            }
            follow(room, session, from: Int64(room.lastSequence), backlog)
            goOn(session)
        }
    }

    // MARK: - Reading

    /// Requests the next page. The store answers once it has, or can show, every message so far; memory at once.
    ///
    /// - Returns: whether there is something to write already.
    @discardableResult
    private func read(_ backlog: Backlog, _ session: IRCSession, _ following: FollowedRooms) -> Bool {
        guard let room = room(backlog.room) else { return false }
        guard context.isDurable else {
            backlog.take(
                room.archive.messages(after: backlog.position, through: backlog.through, limit: Backlog.pageCount))
            backlog.beginWriting()
            return true
        }
        if backlog.isMoreLeftOut == nil {
            ask(backlog, .leftOut, session) {
                .readMessages($0, room.storedKey, after: backlog.start, through: backlog.position, limit: 1)
            }
        } else {
            ask(backlog, .page, session) {
                .readMessages(
                    $0, room.storedKey, after: backlog.position, through: backlog.through, limit: Backlog.pageCount)
            }
        }
        outbound.setTimer(session, following)
        return false
    }

    private func ask(
        _ backlog: Backlog, _ about: Backlog.Question, _ session: IRCSession, _ question: (StoreReadID) -> BridgeAction
    ) {
        backlog.ask(ask(as: .backlog(session.id, backlog.room), question), about, now: context.now.monotonic)
    }

    /// Handles the store's answer.
    package func backlogRead(
        _ id: StoreReadID, _ outcome: Result<[StoredMessage], StoreFailure>, of place: RoomID, for client: ClientID
    ) {
        guard let session = sessions[client],
            let following = session.following, let backlog = following.backlog(of: place),
            let question = backlog.answered(id)
        else { return }
        outbound.setTimer(session, following)
        switch (outcome, question) {
        case (.failure(let failure), _):
            note(
                .error, "backlog-failed", "what was said before cannot be read: \(failure.sentence)", of: session,
                ["room": room(place)?.settings.name ?? "", "reason": failure.sentence])
            giveUp(backlog, session)
        case (.success(let found), .leftOut):
            backlog.found(moreLeftOut: !found.isEmpty)
            read(backlog, session, following)
        case (.success(let page), .page) where backlog.mayHaveHole(before: page):
            guard let key = room(place)?.storedKey else { return giveUp(backlog, session) }
            ask(backlog, .begin(page), session) {
                .readMessages($0, key, after: .min, through: backlog.start, limit: 1)
            }
            outbound.setTimer(session, following)
        case (.success(let found), .begin(let page)):
            // Retention deletes from the front.
            if found.isEmpty { backlog.put(unkeptNotice(backlog, until: page.first?.at)) }
            backlog.take(page)
            write(backlog, session)
        case (.success(let page), .page):
            if backlog.isMoreLeftOut == true {
                backlog.found(moreLeftOut: false)
                backlog.put(leftOutNotice(backlog, before: page.first?.msgid))
            }
            backlog.take(page)
            write(backlog, session)
        }
    }

    private func leftOutNotice(_ backlog: Backlog, before msgid: String?) -> IRCMessage {
        let count = backlog.leftOut.map { "\($0) older message\($0 == 1 ? " was" : "s were")" }
        let most = min(backlog.leftOut ?? .max, settings.limits.historyLimit)
        let place = [room(backlog.room)?.channel, "\(most)"] + (msgid.map { ["before", $0] } ?? [])
        let command = place.compactMap(\.self).joined(separator: " ")
        return roomNotice(
            backlog, "\(count ?? "Older messages were") left out: /msg \(ServiceName.nick) history \(command)")
    }

    /// The notice that missed messages are no longer stored.
    ///
    /// - Parameter until: the time of the oldest stored message; nil: none is stored.
    private func unkeptNotice(_ backlog: Backlog, until: ChatTimestamp?) -> IRCMessage {
        let end = min(until ?? context.now.wall, context.now.wall)
        let span = backlog.startedAt.map { Room.span(min($0, end), end) }
        return roomNotice(
            backlog,
            "What was said \(span ?? "since you were here, before \(Room.moment(end)) UTC,") is no longer stored.")
    }

    private func roomNotice(_ backlog: Backlog, _ text: String) -> IRCMessage {
        serverLine("NOTICE", [room(backlog.room)?.channel ?? "*", "*** " + text])
    }

    /// Ends a backlog that cannot be read: the client gets the room without it. Its cursor does not move.
    func giveUp(_ backlog: Backlog, _ session: IRCSession) {
        guard backlog.fail() else { return }
        closeBatch(backlog, session)
        let promise = backlog.kind == .missed ? "; you get it when you come the next time" : ""
        backlog.put(roomNotice(backlog, "What was said before you came cannot be read now\(promise)."))
        write(backlog, session)
    }

    // MARK: - Writing

    /// Starts writing; there are lines.
    private func write(_ backlog: Backlog, _ session: IRCSession) {
        backlog.beginWriting()
        append(backlog, session)
        goOn(session)
    }

    private func closeBatch(_ backlog: Backlog, _ session: IRCSession) {
        let end = backlog.innerEnd
        guard let reference = backlog.takeBatch() else { return }
        if let end { write(end, to: session, batch: reference) }
        outbound.endBatch(reference, session)
    }

    /// Queues a backlog behind the client's other answers.
    func append(_ backlog: Backlog, _ session: IRCSession) {
        let id = backlog.room
        session.appendLongAnswer(
            ReplyGenerator(of: backlog) { [unowned self, unowned session] in
                // A backlog is no part of the answer to a labeled line.
                if session.following?.backlog(of: id)?.isAnnounced == false { longAnswers.endBatch(session) }
                return writeBacklog(of: id, session) ? .more(nil) : .last(nil)
            })
    }

    /// Takes a step. False: nothing more can be written now.
    private func writeBacklog(of id: RoomID, _ session: IRCSession) -> Bool {
        guard let following = session.following, let backlog = following.backlog(of: id), let room = room(id) else {
            return false
        }
        switch backlog.phase {
        case .announced:
            // Behind the other replies about the client's rooms, as when the store has to answer first.
            if read(backlog, session, following) { append(backlog, session) }
            return false
        case .reading: return false
        case .writing:
            if let line = backlog.nextLine({ self.lines(of: $0, for: session, backlog, room) }) {
                writePart(line, to: session, batch: backlog.batch)
                // A PING sent now covers this line, too.
                following.wrote(backlog, upTo: backlog.written)
                return true
            }
            if !backlog.hasFailed {
                following.wrote(backlog, upTo: backlog.position)
                askSoon(session, following)
                guard backlog.position >= backlog.through else { return read(backlog, session, following) }
            }
            closeBatch(backlog, session)
            backlog.beginReleasing()
            return true
        case .releasing:
            guard let line = following.release(from: backlog) else {
                backlogIsOver(backlog, room, session, following)
                return false
            }
            session.undrainedBytes += line.count
            emit(.send(session.id, line))
            return true
        }
    }

    /// The lines of one message; the batch is opened before the first of all.
    private func lines(
        of message: StoredMessage, for session: IRCSession, _ backlog: Backlog, _ room: Room
    ) -> [IRCMessage] {
        if backlog.kind == .missed, !session.caps.contains(.echoMessage), message.author != nil,
            let client = message.client,
            let account = message.account, let own = session.following?.client,
            own.account == IRCCasemapping.ascii.fold(account), NumberedClientName.isSame(own.client, client)
        {
            return []
        }
        if isMuted(message, in: room, for: session) { return [] }
        let renderer = renderer(of: room, for: session)
        let lines = renderer.lines(of: message)
        if !lines.isEmpty, backlog.batch == nil, session.caps.contains(.batch) {
            let reference = nextBatchReference()
            write(serverLine("BATCH", ["+" + reference, "chathistory", room.channel]), to: session)
            backlog.opened(batch: reference)
        }
        return lines
    }

    private func backlogIsOver(
        _ backlog: Backlog, _ room: Room, _ session: IRCSession, _ following: FollowedRooms
    ) {
        following.end(backlog)
        setHeld(session.id, false, in: room)
        // A failed backlog of missed messages leaves the cursor: the next join replays them, with later ones.
        if !backlog.hasFailed || backlog.kind == .lastLines { following.goLive(room.id) }
        if lifecycle.isHandingOver { stopShowing(session, following) }
        askSoon(session, following)
        if following.hasEverything(newestPlace) { answeredLast(session) }
        outbound.setTimer(session, following)
        forgetIdleFollowing(session)
    }

    /// Releases unused state: most clients without an account have nothing to follow most of the time.
    private func forgetIdleFollowing(_ session: IRCSession) {
        if let following = session.following, following.client == nil, following.backlogs.isEmpty {
            session.endFollowing()
        }
    }

    // MARK: - Leaving

    /// Ends a client's stay in the room; held lines are delivered to it.
    func endFollowing(_ id: RoomID, _ session: IRCSession) {
        if let room = room(id), session.rooms.contains(id) {
            let written = session.following?.written(in: id, newestPlace)
            session.noteShown(written ?? Int64(room.lastSequence), in: room.storedKey)
        }
        guard let following = session.following else { return }
        following.leave(id)
        guard let backlog = following.backlog(of: id) else { return }
        following.end(backlog)
        session.removeLongAnswers { ($0.subject as? Backlog)?.room == id }
        closeBatch(backlog, session)
        while let line = following.release(from: backlog) {
            if !session.hasNoReader { emit(.send(session.id, line)) }
        }
        if let room = room(id) { setHeld(session.id, false, in: room) }
        outbound.setTimer(session, following)
        forgetIdleFollowing(session)
    }

    /// A renderer of the room's stored messages, by the client's capabilities.
    func renderer(of room: Room, for session: IRCSession) -> BacklogRenderer {
        BacklogRenderer(
            channel: room.channel, serverName: settings.serverName, limits: settings.limits,
            files: room.fileLinks(context),
            showsTime: !session.caps.contains(.serverTime), now: context.now.wall, caps: session.caps,
            address: { room.address(ofReplyTo: $0.replyTo, by: $0.nick, $0.text) }, reference: nextBatchReference)
    }

    // MARK: - Time

    package func followingTimerFired(_ session: IRCSession) {
        guard let following = session.following else { return }
        if following.isOverfull {
            return close(session, reason: "Too much was said while you got older messages")
        }
        if let askAt = following.askAt, askAt <= context.now.monotonic { ask(session, following) }
        for backlog in following.backlogs {
            if let deadline = backlog.deadline, deadline <= context.now.monotonic { giveUp(backlog, session) }
        }
        outbound.setTimer(session, following)
    }
}

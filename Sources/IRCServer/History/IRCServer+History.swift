import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms
import WireBytes

// CHATHISTORY and SEARCH. The phases are at the head of HistoryAnswer.swift.
//
// A page comes from the store, or from memory without one; messages before the room's beginning there come from the
// backend. All three have one order: that in which the room showed its messages, preceded by that of the backend.

extension IRCServer {

    // MARK: - Requests

    func chathistoryReceived(_ params: [String], _ session: IRCSession) {
        do throws(HistoryRefusal) {
            history(try HistoryRequest(params), session)
        } catch {
            reply(error.line(from: settings.serverName), session)
        }
    }

    func searchReceived(_ params: [String], _ session: IRCSession) {
        do throws(HistoryRefusal) {
            search(try SearchRequest(params), session)
        } catch {
            reply(error.line(from: settings.serverName), session)
        }
    }

    private func history(_ request: HistoryRequest, _ session: IRCSession) {
        switch request {
        case .targets(let from, let to, let limit): targets(from: from, to: to, limit: limit, session)
        case .page(let subcommand, let target, let selection, let limit):
            guard target.hasPrefix("#") else {
                return privateHistory(subcommand, target, selection, limit: limit, session)
            }
            guard let room = room(channel: target, for: session), mayReadHistory(of: room, session) else {
                let refusal = HistoryRefusal(
                    code: "INVALID_TARGET", context: [subcommand, target], text: "Messages could not be retrieved")
                return reply(refusal.line(from: settings.serverName), session)
            }
            room.reportHeldGap(context)
            begin(
                .page(
                    room.id, subcommand: subcommand, target: target,
                    pageQuery(
                        session.lastPage(of: room.storedKey)?.goingOn(selection) ?? selection, limit: limit,
                        without: mutes(in: room, of: session), session)),
                batch: ["chathistory", room.channel], session)
        }
    }

    func pageQuery(
        _ selection: StoredPageQuery.Selection, limit: Int, without: StoredMutes = StoredMutes(), _ session: IRCSession
    ) -> StoredPageQuery {
        // These change the content of a page: an event is a line to some clients only.
        let plays = session.caps.contains(.eventPlayback)
        return StoredPageQuery(
            selection, limit: min(limit, settings.limits.historyLimit),
            withTakenBack: plays && session.caps.contains(.messageRedaction),
            withEvents: plays && session.caps.contains(.messageTags), without: without)
    }

    /// Tolerated lag of client clocks, in milliseconds.
    private static let clientClockTolerance: Int64 = 60_000

    /// Answers TARGETS. A room counts by its latest line: the last in order may be late, or timed by a slow clock.
    ///
    /// Source: IRCv3 chathistory, "TARGETS".
    private func targets(from: ChatTimestamp, to: ChatTimestamp, limit: Int, _ session: IRCSession) {
        // A new client asks up to the present, by its own clock, and expects everything until it is in its rooms.
        let (lower, last) = (min(from, to), max(from, to))
        let isUpToNow = last.milliseconds >= context.now.wall.milliseconds - Self.clientClockTolerance
        let upper = session.isArriving && isUpToNow ? ChatTimestamp(milliseconds: .max) : last
        let said = rooms.filter { mayReadHistory(of: $0, session) }
            .compactMap { room in room.latest(wall: context.now.wall).map { (at: $0, name: room.channel) } }
        let found = (said + privateTargets(session)).filter { $0.at > lower && $0.at < upper }
            .sorted { ($0.at, $0.name) < ($1.at, $1.name) }
        let limit = min(limit, settings.limits.historyLimit)
        let lines = (from <= to ? found.prefix(limit) : found.suffix(limit)).map { target in
            serverLine(
                "CHATHISTORY", ["TARGETS", target.name, IRCServerTime.format(milliseconds: target.at.milliseconds)])
        }
        begin(.lines, batch: ["draft/chathistory-targets"], lines: lines, session)
    }

    private func search(_ request: SearchRequest, _ session: IRCSession) {
        var places = rooms.filter { mayReadHistory(of: $0, session) }.map(\.id)
        var conversations = searchedConversations(with: nil, session)
        if let nick = request.channel, !nick.hasPrefix("#") {
            (places, conversations) = ([], searchedConversations(with: nick, session))
        } else if let channel = request.channel {
            guard let room = room(channel: channel, for: session), places.contains(room.id) else {
                let refusal = HistoryRefusal(
                    command: "SEARCH", code: "INVALID_PARAMS", context: ["in"], text: "You are not in that room")
                return reply(refusal.line(from: settings.serverName), session)
            }
            (places, conversations) = ([room.id], [])
        }
        var search = request.search
        search.foldsPunctuation = settings.casemapping == .rfc1459
        begin(
            .search(search), batch: ["soju.im/search"],
            places: places.map { .room($0) } + conversations.map { .conversation($0) }, session)
    }

    func begin(
        _ question: HistoryAnswer.Question, batch: [String], lines: [IRCMessage] = [],
        places: [HistoryAnswer.Place] = [], _ session: IRCSession
    ) {
        let answer = HistoryAnswer(
            session.id, question, batch: batch, label: session.response?.label, lines: lines, places: places)
        // The batch of the messages is the whole answer, and bears the label.
        session.deferResponse()
        append(answer, session)
    }

    func append(_ answer: HistoryAnswer, _ session: IRCSession) {
        session.appendLongAnswer(
            ReplyGenerator(of: answer) { [unowned self, unowned session] in historyStep(answer, session) })
    }

    // MARK: - Places

    /// Requests the positions of the page.
    func place(_ answer: HistoryAnswer) {
        if case .conversation(let view, _, _, let query) = answer.question {
            guard let archive = privateArchive(of: view) else {
                return askPlaces(answer, view.pair.storedKey, query)
            }
            if !privatePlaced(answer, archive.places(query)) { place(answer) }
            return
        }
        guard case .page(let id, _, _, let query) = answer.question, let room = room(id) else { return answer.fail() }
        let asked = room.asked(query)
        guard context.isDurable else { return placed(answer, room, asked, room.archive.places(asked)) }
        answer.ask(asked)
        askPlaces(answer, room.storedKey, asked)
    }

    private func askPlaces(_ answer: HistoryAnswer, _ key: StoredRoomKey, _ asked: StoredPageQuery) {
        answer.wait(.placing(ask(as: .history(answer)) { .findPlaces($0, key, asked) }))
        setTimer(of: answer, HistoryAnswer.patience)
    }

    package func historyPlaced(
        _ id: StoreReadID, _ outcome: Result<StoredPlaces, StoreFailure>, _ answer: HistoryAnswer
    ) {
        guard answer.phase == .placing(id), sessions[answer.client] != nil else { return }
        switch outcome {
        case .failure(let failure): storeFailed(failure, answer)
        case .success(let places):
            if case .conversation = answer.question {
                if !privatePlaced(answer, places) { place(answer) }
                break
            }
            guard case .page(let id, _, _, let query) = answer.question, let room = room(id) else {
                answer.fail()
                break
            }
            // The rows held in front of the room's beginning may have changed since the request.
            if let asked = answer.asked, asked == room.asked(query) {
                placed(answer, room, asked, places)
            } else {
                place(answer)
            }
        }
        goOn(with: answer)
    }

    /// Takes the positions of a room's page.
    ///
    /// - Parameter asked: the query that was answered.
    private func placed(_ answer: HistoryAnswer, _ room: Room, _ asked: StoredPageQuery, _ places: StoredPlaces) {
        guard case .page(_, let subcommand, let target, let query) = answer.question else { return answer.fail() }
        let older = room.olderRows(before: places.beginning.first?.sequence)
        if older.isEmpty, room.holdsOlder, !places.beginning.isEmpty || asked != query {
            // The beginning of the room has changed: the rows held in front of it are of no use.
            room.dropOlder(context)
            return place(answer)
        }
        let known = KnownOrder(older: older, asked, places)
        let (sequences, spans) = query.find(in: known)
        for (reference, span) in zip(query.references, spans) where span == nil {
            guard case .message(let msgid) = reference else { continue }
            // It was shown, but not stored.
            if let sequence = room.entry(msgid: msgid)?.sequence {
                let byPlace = query.mapReferences { $0 == reference ? .place(Int64(sequence)) : $0 }
                answer.ask(instead: .page(room.id, subcommand: subcommand, target: target, byPlace))
                return place(answer)
            }
            return answer.fail(.unknown(msgid, subcommand, target))
        }
        if known.wantsOlder(query, sequences, spans.compactMap(\.self)) {
            if fetchOlder(answer, room, places.beginning) { return }
            // An empty page would be the end of the history.
            if room.mayHaveOlder { answer.missesOlder() }
        }
        if sequences.isEmpty, answer.hasBackendFailed { return answer.fail() }
        let wanted = Set(sequences)
        let front = older.filter { wanted.contains($0.sequence) }
        answer.placed(
            front.map { HistoryAnswer.Row(place: .room(room.id), message: $0) },
            places: Array(sequences.dropFirst(front.count)))
    }

    /// Requests older messages. False: none are available.
    private func fetchOlder(_ answer: HistoryAnswer, _ room: Room, _ beginning: [StoredMessage]) -> Bool {
        guard let patience = answer.backendPatience(now: context.now.monotonic) else { return false }
        let isAsked = room.fetchOlder(beginning: beginning, context) { [weak self, weak answer] hasCome in
            guard let self, let answer, answer.phase == .fetching, self.sessions[answer.client] != nil else { return }
            answer.fetched(hasCome)
            self.place(answer)
            self.goOn(with: answer)
        }
        guard isAsked else { return false }
        answer.fetching()
        setTimer(of: answer, patience)
        return true
    }

    // MARK: - Reading

    /// Requests the next messages of a page, or the next step of a search. False: there are none.
    private func read(_ answer: HistoryAnswer) -> Bool {
        switch answer.question {
        case .lines: return false
        case .page(let id, _, _, _):
            guard let next = answer.nextRead, let room = room(id) else { return false }
            guard context.isDurable else {
                let limit = HistoryAnswer.readCount
                let found = room.archive.messages(after: next.after, through: next.through, limit: limit)
                answer.take(found, of: .room(id))
                return true
            }
            ask(answer) { read in
                .readMessages(
                    read, room.storedKey, after: next.after, through: next.through, limit: HistoryAnswer.readCount)
            }
        case .conversation(let view, _, _, _):
            guard let next = answer.nextRead else { return false }
            if let archive = privateArchive(of: view) {
                let limit = HistoryAnswer.readCount
                let found = archive.messages(after: next.after, through: next.through, limit: limit)
                answer.take(found, of: .conversation(view))
                return true
            }
            ask(answer) { read in
                .readMessages(
                    read, view.pair.storedKey, after: next.after, through: next.through,
                    limit: HistoryAnswer.readCount)
            }
        case .search(let whole):
            while let place = answer.placesLeft.last {
                let key: StoredRoomKey
                let archive: MemoryLog?
                var search = answer.searchRest ?? whole
                switch place {
                case .room(let id):
                    guard let room = room(id), let session = sessions[answer.client] else {
                        answer.skipPlace()
                        continue
                    }
                    (key, archive) = (room.storedKey, context.isDurable ? nil : room.archive)
                    // Mutes may change meanwhile. The service reports the number of messages left out.
                    if answer.reading == nil { search.without = mutes(in: room, of: session) }
                case .conversation(let view):
                    (key, archive) = (view.pair.storedKey, privateArchive(of: view))
                }
                if let archive {
                    answer.searched(whole, archive.search(search), now: context.now.monotonic)
                    // Other clients come first.
                    walk.spendAll()
                } else {
                    ask(answer) { [search] read in .searchMessages(read, key, search) }
                }
                return true
            }
            guard !answer.found.isEmpty else { return false }
            answer.takeFound()
        }
        return true
    }

    private func ask(_ answer: HistoryAnswer, _ question: (StoreReadID) -> BridgeAction) {
        answer.wait(.reading(ask(as: .history(answer), question)))
        setTimer(of: answer, HistoryAnswer.patience)
    }

    package func historyRead(
        _ id: StoreReadID, _ outcome: Result<[StoredMessage], StoreFailure>, _ answer: HistoryAnswer
    ) {
        guard sessions[answer.client] != nil, answer.answered(id) else { return }
        switch (outcome, answer.question) {
        case (.failure(let failure), _): storeFailed(failure, answer)
        case (.success(let found), .page(let room, _, _, _)): answer.take(found, of: .room(room))
        case (.success(let found), .conversation(let view, _, _, _)): answer.take(found, of: .conversation(view))
        case (.success, .search), (.success, .lines): break
        }
        goOn(with: answer)
    }

    package func historySearched(
        _ id: StoreReadID, _ outcome: Result<StoredSearchStep, StoreFailure>, _ answer: HistoryAnswer
    ) {
        // A search ends with its client: no other step is requested.
        guard sessions[answer.client] != nil, answer.answered(id) else { return }
        switch (outcome, answer.question) {
        case (.failure(let failure), _): storeFailed(failure, answer)
        case (.success(let step), .search(let search)):
            answer.searched(search, step, now: context.now.monotonic)
        case (.success, .page), (.success, .conversation), (.success, .lines): break
        }
        goOn(with: answer)
    }

    private func storeFailed(_ failure: StoreFailure, _ answer: HistoryAnswer) {
        note(
            .error, "history-unreadable", "what was said before cannot be read: \(failure.sentence)",
            of: sessions[answer.client], ["reason": failure.sentence])
        answer.fail()
    }

    // MARK: - Waiting

    private func setTimer(of answer: HistoryAnswer, _ patience: Duration) {
        context.set(.history(answer.client), at: context.now.monotonic + patience)
    }

    /// Continues an answer after a result that it waited for.
    private func goOn(with answer: HistoryAnswer) {
        switch answer.phase {
        case .placing, .fetching, .reading: return
        case .begun, .writing, .failed: break
        }
        guard let session = sessions[answer.client] else { return }
        context.cancel(.history(answer.client))
        goOn(session)
    }

    package func historyTimerFired(_ session: IRCSession) {
        let subject = session.longAnswers.first?.subject
        if let redaction = subject as? PrivateRedaction { return redactionTimedOut(redaction, session) }
        guard let answer = subject as? HistoryAnswer else { return }
        switch answer.phase {
        case .begun, .writing, .failed: return
        case .fetching:
            answer.fetched(false)
            place(answer)
        case .placing, .reading: storeFailed(StoreFailure("the disk does not answer"), answer)
        }
        goOn(with: answer)
    }

    // MARK: - Writing

    /// Takes a step.
    private func historyStep(_ answer: HistoryAnswer, _ session: IRCSession) -> ReplyGenerator.Step {
        switch answer.phase {
        case .placing, .fetching, .reading: return .waits
        case .begun:
            answer.begin(now: context.now.monotonic)
            switch answer.question {
            case .page, .conversation: place(answer)
            case .search, .lines: break
            }
            return .more(nil)
        case .failed(let refusal):
            if looksElsewhere(answer) { return .more(nil) }
            if answer.reading != nil {
                writeService(serviceLines(about: refusal, session), session)
            } else if answer.hasBegun {
                end(answer, session)
            } else {
                let line = refusal.line(from: settings.serverName)
                writePart(line, to: session, label: answer.label)
            }
            return .last(nil)
        case .writing: return writeNext(answer, session)
        }
    }

    private func writeNext(_ answer: HistoryAnswer, _ session: IRCSession) -> ReplyGenerator.Step {
        // The search is completed before results are shown.
        if case .search = answer.question, !answer.placesLeft.isEmpty {
            _ = read(answer)
            return .more(nil)
        }
        if !answer.hasBegun {
            let isBatch = answer.reading == nil && session.caps.contains(.batch)
            answer.begun(batch: isBatch ? nextBatchReference() : nil)
            if let reference = answer.batch {
                let line = serverLine("BATCH", ["+" + reference] + answer.batchParams)
                writePart(line, to: session, label: answer.label)
            }
            return .more(nil)
        }
        let line = answer.nextLine { row in
            answer.reading == nil ? lines(of: row, for: session) : serviceLines(of: row, answer, session)
        }
        if let line {
            writePart(line, to: session, batch: answer.batch ?? session.longAnswerBatch)
            return .more(nil)
        }
        if read(answer) { return .more(nil) }
        end(answer, session)
        return .last(nil)
    }

    /// The service's answer has no batch of its own; it is part of a labeled line's answer.
    private func writeService(_ lines: [IRCMessage], _ session: IRCSession) {
        for line in lines { writePart(line, to: session, batch: session.longAnswerBatch) }
    }

    private func end(_ answer: HistoryAnswer, _ session: IRCSession) {
        if answer.reading != nil {
            writeService(serviceEnd(of: answer, session), session)
            return
        }
        if answer.isSearchCut {
            let note = serverLine(
                "NOTE", ["SEARCH", "INCOMPLETE", "*", "Not everything was looked through; narrow it by in= or before="])
            writePart(note, to: session, batch: answer.batch)
        }
        let key = pageKey(of: answer)
        if let key { session.toldPage(answer.ends, of: key) }
        if let reference = answer.batch {
            outbound.endBatch(reference, session)
        } else if !answer.hasWritten, let label = answer.label {
            write(serverLine("ACK"), to: session, label: label)
        }
        if let lost = key.flatMap({ unkept.messages[$0] }), let target = answer.batchParams.last {
            let note = serverLine(
                "NOTE",
                [
                    "CHATHISTORY", "INCOMPLETE", target,
                    "What was said \(Room.span(lost.from, lost.to)) could not be stored; a line says so in its place when "
                        + "the disk takes more",
                ])
            writePart(note, to: session)
        }
    }

    /// The store's key of the page; nil: the answer is no page.
    private func pageKey(of answer: HistoryAnswer) -> StoredRoomKey? {
        switch answer.question {
        case .page(let id, _, _, _): room(id)?.storedKey
        case .conversation(let view, _, _, _): view.pair.storedKey
        case .search, .lines: nil
        }
    }

    private func lines(of row: HistoryAnswer.Row, for session: IRCSession) -> [IRCMessage] {
        let message = row.message
        let id: RoomID
        switch row.place {
        case .conversation(let view): return self.lines(of: message, in: view, for: session)
        case .room(let room): id = room
        }
        guard let room = room(id) else { return [] }
        if message.isTakenBack {
            let time = IRCTag.time(message.at)
            return [
                IRCMessage(
                    tags: [time], source: settings.serverName, command: "REDACT", params: [room.channel, message.msgid])
            ]
        }
        if message.kind == .event { return [message.eventLine(in: room.channel)] }
        let renderer = renderer(of: room, for: session)
        let lines = renderer.lines(of: message)
        guard lines.isEmpty else { return lines }
        // A page is short only at the end of the history, so each of its rows has to give a line.
        var empty = message
        empty.text = "[empty message]"
        empty.attachments = []
        return renderer.lines(of: empty)
    }

    // MARK: - Private conversations

    private func privateHistory(
        _ subcommand: String, _ nick: String, _ selection: StoredPageQuery.Selection, limit: Int, _ session: IRCSession
    ) {
        let batch = ["chathistory", nick]
        guard let view = view(session, nick: nick) else { return begin(.lines, batch: batch, session) }
        begin(
            .conversation(
                view, subcommand: subcommand, target: nick,
                pageQuery(
                    session.lastPage(of: view.pair.storedKey)?.goingOn(selection) ?? selection, limit: limit, session)),
            batch: batch, session)
    }
}

import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

// Requesting messages from before the room's beginning here. The states are at the head of OlderHistory.swift.

extension Room {
    /// The store's part of `query`: cached entries are older than all of its messages.
    package func asked(_ query: StoredPageQuery) -> StoredPageQuery {
        guard let older = older.current else { return query }
        return query.mapReferences(older.asked)
    }

    /// Cached messages from before the room's beginning, whose first message has this sequence number; none where the
    /// beginning has changed, since there is a gap between.
    package func olderRows(before border: Int64?) -> [StoredMessage] {
        guard let older = older.current, older.border == border else { return [] }
        return older.rows
    }

    /// Messages from before the room's beginning are cached.
    package var holdsOlder: Bool { older.current?.rows.isEmpty == false }

    /// The backend may have more than is cached, whether or not it can be asked now.
    package var mayHaveOlder: Bool { traits.older != .none && older.current?.isComplete != true }

    /// Requests older messages for a waiting query.
    ///
    /// - Parameters:
    ///   - beginning: the room's oldest messages.
    ///   - then: called later, once, with whether there may be more now.
    /// - Returns: false when there are none, or no way to request them; then `then` is not called.
    package func fetchOlder(
        beginning: [StoredMessage], _ context: RoomsContext, then: @escaping (Bool) -> Void
    ) -> Bool {
        guard traits.older != .none, mayAskForOlder else { return false }
        let now = context.now.monotonic
        let border = beginning.first?.sequence
        if let held = older.current, held.border != border {
            guard held.state == .idle else { return false }
            older.drop()
        }
        let older = older.current ?? older.begin(border: border, beginning: beginning, now: now)
        older.use(at: now)
        guard !older.isComplete else { return false }
        switch older.state {
        case .due, .asked: break
        case .idle:
            if let end = older.pauseEnd(now: now) {
                older.postpone(to: end)
            } else if border == nil, awaitsFirstHistory {
                // Its beginning, which is on its way, has times and sequence numbers that precede the request.
                older.postpone(to: now + OlderHistory.patience / 2)
            } else if !askForOlder(older, context) {
                setOlderTimer(context)
                return false
            }
        }
        older.wait(then)
        setOlderTimer(context)
        return true
    }

    private var awaitsFirstHistory: Bool {
        catchUp.gap == .everything && catchUp.state != .live && historySource != .none
    }

    /// The room has its beginning, or will not have it soon.
    func olderNeedNotWait(_ context: RoomsContext) {
        guard let older = older.current, case .due = older.state, older.border == nil else { return }
        let waiting = older.settle()
        setOlderTimer(context)
        for done in waiting { done(true) }
    }

    /// No other request is in flight with an answer that could be mistaken for this one's.
    private var mayAskForOlder: Bool {
        switch traits.older {
        case .none: false
        case .call: true
        case .socket: isLive && catchUp.ref == nil && catchUp.retry == nil && idLookups.isEmpty
        }
    }

    private func askForOlder(_ older: OlderHistory, _ context: RoomsContext) -> Bool {
        guard mayAskForOlder else { return false }
        let now = context.now.monotonic
        let mark = older.mark
        // Messages of the same moment may be older.
        let wall = catchUp.sendersTellTime ? context.now.wall : nil
        let before = older.until(wall: wall).map { at -> ChatTimestamp in
            let (next, over) = at.milliseconds.addingReportingOverflow(1)
            return ChatTimestamp(milliseconds: over ? .max : next)
        }
        // A page, plus the known messages that are repeated.
        let limit = OlderHistory.pageCount + StoredPlaces.beginningCount
        if traits.older == .socket {
            let ref = context.freshChatID().rawValue
            let command = ChatCommand.fetch(
                room: settings.upstreamRoom, ref: ref, limit: limit, before: before, since: nil)
            guard lane.send(command, context) else { return false }
            older.asked(ref: ref, now: now)
            return true
        }
        older.asked(ref: nil, now: now)
        let takesBefore = settings.dialect.calls?.takesBefore ?? false
        context.requestOlder(
            id,
            HistoryQuery(
                room: lane.dialectContext.announcedRoom ?? settings.upstreamRoom, before: before,
                beforeID: mark?.upstreamID,
                limit: takesBefore ? limit : nil))
        return true
    }

    /// Drops the cache.
    package func dropOlder(_ context: RoomsContext) {
        let waiting = older.current?.settle() ?? []
        older.drop()
        setOlderTimer(context)
        for done in waiting { done(false) }
    }

    // MARK: - Answers

    /// Handles a history from the socket, if it answers this request.
    func takeOlder(_ history: ChatHistory, _ context: RoomsContext) -> Bool {
        guard case .asked(let ref?, _) = older.current?.state else { return false }
        // Some servers do not repeat the reference. Then there is no other request.
        guard history.ref == ref || history.ref == nil && mayAskForOlder else { return false }
        // Some messages are undecodable: fewer than requested do not prove the end.
        olderArrived(history.messages, isComplete: false, context)
        return true
    }

    /// Handles a complaint of the backend, if it concerns this request.
    func olderRefused(ref: String, or bare: String, _ context: RoomsContext) -> Bool {
        guard case .asked(let asked?, _) = older.current?.state, asked == ref || asked == bare else { return false }
        olderArrived(nil, isComplete: false, context)
        return true
    }

    func olderLinkLost(_ context: RoomsContext) {
        if case .asked(.some, _) = older.current?.state { olderArrived(nil, isComplete: false, context) }
    }

    /// Handles the answer to `RoomsContext.requestOlder`, or one over the socket.
    ///
    /// - Parameter messages: in the backend's order; nil: there is no answer.
    package func olderArrived(_ messages: [ChatMessage]?, isComplete: Bool, _ context: RoomsContext) {
        guard let older = older.current, case .asked = older.state else { return }
        let waiting = older.settle()
        if let messages {
            let page = HistoryPage(
                messages.filter { concernsUs($0.room, context) }, sendersTellTime: catchUp.sendersTellTime, mark: nil,
                wall: context.now.wall, end: 0, wasNewestFirst: catchUp.isToldNewestFirst
            ) { _ in nil }
            // A backend that can only be asked on from a message may have given its oldest.
            let calls = traits.older == .call ? settings.dialect.calls : nil
            let news = older.news(
                in: page.told, mayBeApart: calls.map { $0.takesAfter && !$0.takesBefore } ?? false)
            older.prepend(placed(news, older, context), isComplete: isComplete)
        }
        setOlderTimer(context)
        for done in waiting { done(messages != nil) }
    }

    /// The messages in stored form, with their sequence numbers.
    private func placed(
        _ messages: ArraySlice<ChatMessage>, _ older: OlderHistory, _ context: RoomsContext
    ) -> [StoredMessage] {
        let said = messages.filter { !$0.text.isEmpty || !$0.attachments.isEmpty || $0.isEncrypted }
        var place = older.nextPlace(below: Int64(recent.nextSequence)) &- Int64(said.count)
        var msgids: [ChatID: String] = [:]
        return said.map { message in
            let message = withoutSecrets(message, context)
            place &+= 1
            remotes.learnName(of: message.sender)
            let msgid = context.messageID(
                backend: settings.backend, room: settings.upstreamRoom,
                sender: traits.messageIDOrigin == .client ? message.senderID : nil, id: message.id)
            if let id = message.id { msgids[id] = msgid }
            let form = historyForm(message, context)
            var row = stored(
                keepingFiles(message, context), sequence: place, msgid: msgid, at: shownTime(message.at, context),
                nick: form.nick, source: form.source, account: form.account, text: form.text)
            row.replyTo = row.replyTo ?? message.replyTo.flatMap { msgids[$0] }
            return row
        }
    }

    // MARK: - Time

    private func setOlderTimer(_ context: RoomsContext) {
        guard let older = older.current else { return context.cancel(.olderHistory(id)) }
        context.set(.olderHistory(id), at: older.nextStep)
    }

    package func olderTimerFired(_ context: RoomsContext) {
        guard let older = older.current, context.now.monotonic >= older.nextStep else { return setOlderTimer(context) }
        switch older.state {
        case .idle: self.older.drop()
        case .due where askForOlder(older, context): break
        case .due, .asked:
            let waiting = older.settle()
            setOlderTimer(context)
            return waiting.forEach { $0(false) }
        }
        setOlderTimer(context)
    }
}

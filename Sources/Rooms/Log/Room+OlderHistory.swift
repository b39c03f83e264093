import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

// Asking the backend for what was said before the room's beginning here. The states are at the head of OlderHistory.swift.

extension Room {
    /// What the store is asked for `query`: what stands among what is held lies in front of all that it has.
    package func asked(_ query: StoredPageQuery) -> StoredPageQuery {
        guard let older = older.current else { return query }
        return query.mapReferences(older.asked)
    }

    /// What is held of before the room's beginning, whose first message has this place; nothing where it was held in front of
    /// another beginning, since something between is gone.
    package func olderRows(before border: Int64?) -> [StoredMessage] {
        guard let older = older.current, older.border == border else { return [] }
        return older.rows
    }

    /// Something from before the room's beginning is held.
    package var holdsOlder: Bool { older.current?.rows.isEmpty == false }

    /// The backend may have more than is held of before the room's beginning, whether or not it can be asked now.
    package var mayHaveOlder: Bool { traits.older != .none && older.current?.isComplete != true }

    /// Asks for more of what is older than everything known, for somebody who waits.
    ///
    /// - Parameters:
    ///   - beginning: the room's oldest messages.
    ///   - then: called later, once, with whether there may be more now.
    /// - Returns: false when there is nothing more to be had, or no way to ask; then nothing is called.
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
                // Its beginning, which is on its way, shows times and has places that what is asked for would not have.
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

    /// No other question is on its way whose answer could be taken for this one's.
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
        // What was said in the same moment may be older.
        let wall = catchUp.sendersTellTime ? context.now.wall : nil
        let before = older.until(wall: wall).map { at -> ChatTimestamp in
            let (next, over) = at.milliseconds.addingReportingOverflow(1)
            return ChatTimestamp(milliseconds: over ? .max : next)
        }
        // So much more than a page as is known and comes again.
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

    /// What is held is of no use any more.
    package func forgetOlder(_ context: RoomsContext) {
        let waiting = older.current?.settle() ?? []
        older.drop()
        setOlderTimer(context)
        for done in waiting { done(false) }
    }

    // MARK: - Answers

    /// Whether a history over the socket answers our question; takes it then.
    func takeOlder(_ history: ChatHistory, _ context: RoomsContext) -> Bool {
        guard case .asked(let ref?, _) = older.current?.state else { return false }
        // Some servers repeat no reference. Then nothing else was asked.
        guard history.ref == ref || history.ref == nil && mayAskForOlder else { return false }
        // Of some messages nothing can be read: fewer than were asked for do not say that there are no more.
        olderArrived(history.messages, isComplete: false, context)
        return true
    }

    /// Whether a complaint of the backend is about our question.
    func olderRefused(ref: String, or bare: String, _ context: RoomsContext) -> Bool {
        guard case .asked(let asked?, _) = older.current?.state, asked == ref || asked == bare else { return false }
        olderArrived(nil, isComplete: false, context)
        return true
    }

    func olderLinkLost(_ context: RoomsContext) {
        if case .asked(.some, _) = older.current?.state { olderArrived(nil, isComplete: false, context) }
    }

    /// The answer to `RoomsContext.requestOlder`, or one over the socket.
    ///
    /// - Parameter messages: as the backend tells them; nil: there is no answer.
    package func olderArrived(_ messages: [ChatMessage]?, isComplete: Bool, _ context: RoomsContext) {
        guard let older = older.current, case .asked = older.state else { return }
        let waiting = older.settle()
        if let messages {
            let page = HistoryPage(
                messages.filter { concernsUs($0.room, context) }, sendersTellTime: catchUp.sendersTellTime, mark: nil,
                wall: context.now.wall, end: 0, wasNewestFirst: catchUp.isToldNewestFirst
            ) { _ in nil }
            let news = older.news(in: page.told)
            older.prepend(placed(news, older, context), isComplete: isComplete)
        }
        setOlderTimer(context)
        for done in waiting { done(messages != nil) }
    }

    /// Messages as if they had been kept, in their places.
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
                sender: traits.messageIDOrigin == .client ? message.sender.id : nil, id: message.id)
            if let id = message.id { msgids[id] = msgid }
            let speaker = context.identities.prospect(
                personBehind(remotes.named(message.sender)), backend: settings.backend,
                authenticated: traits.authenticatesSenders)
            var row = stored(
                keepingFiles(message, context), sequence: place, msgid: msgid, at: shownTime(message.at, context),
                nick: speaker.nick,
                source: speaker.source, account: speaker.account)
            row.replyTo = row.replyTo ?? message.replyTo.flatMap { msgids[$0] }
            return row
        }
    }

    // MARK: - Time

    private func setOlderTimer(_ context: RoomsContext) {
        guard let older = older.current else { return context.timers.cancel(.olderHistory(id)) }
        context.timers.set(.olderHistory(id), at: older.nextStep)
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

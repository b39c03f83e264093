import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

// Catching up after an outage. The states are at the head of CatchUp.swift.

extension Room {
    // MARK: - Link up and down

    func beginCatchingUp(_ context: RoomsContext) {
        catchUp.linkCameUp(
            wall: continuity.seenUntil(context.now).earliest(by: context.now), now: context.now.monotonic)
        let source = historySource
        guard source != .none, catchUp.mustAsk || settings.historyLimit > 0 else {
            if source != .none { catchUp.gaveUpOnHistory(wall: context.now.wall) }
            return goLive(context)
        }
        context.set(.catchUp(id), at: context.now.monotonic + CatchUp.patience)
        if let early = catchUp.takeEarly() { return historyReceived(early, context) }
        if source == .pushed {
            _ = catchUp.nextLimit(settings.historyLimit, isBounded: true)
        } else if !ask(context) {
            // Some wires only have a lower time bound; then the first request has none.
            guard !catchUp.mustAsk else {
                return historyFailed("the backend's format cannot ask for it", mayRetry: false, context)
            }
            catchUp.gaveUpOnHistory(wall: context.now.wall)
            goLive(context)
        }
    }

    /// The login expired and was renewed; no event came in between.
    func loginWasRenewed(_ context: RoomsContext) {
        guard catchUp.state == .live else { return }
        continuity.loginRenewed(context.now)
        guard traits.history != .none else {
            reportNoHistory(context)
            return pump(lane, context)
        }
        if catchUp.gap == nil { continuity.gapOpened(behind: recent.newest?.at) }
        catchUp.beganAgain(total: seenIDs.total)
        context.set(.catchUp(id), at: context.now.monotonic + CatchUp.patience)
        if !ask(context) { historyFailed("the backend's format cannot ask for it", mayRetry: false, context) }
    }

    /// A token was renewed ahead of its expiry: an open session that logs in on the socket presents it at once.
    package func tokenRenewed(_ credentials: UpstreamCredentials, _ context: RoomsContext) {
        handle(link.credentialsRenewed(credentials, dialectContext: lane.dialectContext, context), context)
    }

    func catchUpLinkLost(_ context: RoomsContext) {
        catchUp.linkLost(total: seenIDs.total, wasTooBig: link.wasTooBig)
        link.limitSubscription(to: catchUp.isCareful ? CatchUp.smallPage : nil)
        olderLinkLost(context)
        if catchUp.held.isEmpty {
            context.cancel(.catchUp(id))
        } else if context.due(.catchUp(id)) == nil {
            context.set(.catchUp(id), at: context.now.monotonic + CatchUp.patience)
        }
        answerIDWaiters()
    }

    /// The link is being given up: buffered events are shown, and no history is awaited.
    package func stopCatchingUp(_ context: RoomsContext) {
        decideAll(context)
        if link.isUp { loseSight(context) }
        releaseHeld(context)
        catchUpLinkLost(context)
        catchUp.dropCall()
    }

    package func catchUpTimerFired(_ context: RoomsContext) {
        switch catchUp.state {
        case .fetching: historyFailed("it did not come in time", context)
        case .closed: showHeld(context)
        case .live:
            reportHeldGap(context)
            retryHistory(context)
        }
    }

    /// Requests the history again while the gap is open on a live link.
    private func retryHistory(_ context: RoomsContext) {
        guard let retry = catchUp.retry else { return }
        if retry.isAsking { return historyFailed("it did not come in time", context) }
        catchUp.askOnceMore()
        context.set(.catchUp(id), at: context.now.monotonic + CatchUp.patience)
        if !ask(next: catchUp.pages, context) {
            catchUp.endRetries()
            context.cancel(.catchUp(id))
        }
    }

    // MARK: - Buffering

    func chatArrived(_ event: ChatEvent, byteCount: Int, _ context: RoomsContext) {
        guard concernsUs(event.room, context) else { return }
        guard catchUp.state != .live else { return chatReceived(event, context) }
        switch event {
        case .history, .ready, .auth, .account, .topic, .error, .ping, .pong: chatReceived(event, context)
        // Over before it could be shown.
        case .typing: break
        case .message, .edit, .delete, .receipt, .join, .leave, .presence, .reaction, .system:
            let hasRoom = catchUp.hold(event, byteCount: byteCount)
            if context.due(.catchUp(id)) == nil {
                context.set(.catchUp(id), at: context.now.monotonic + CatchUp.patience)
            }
            if !hasRoom { tooMuchHeld(context) }
        }
    }

    private func tooMuchHeld(_ context: RoomsContext) {
        let isFetching = catchUp.state == .fetching
        context.note(
            .warn, "history-skipped", "too much was said to wait for older messages", ["room": settings.name])
        if isFetching, takeBegun(context) { return }
        if isFetching {
            catchUp.delayIsTold()
            catchUp.gaveUpOnHistory(wall: context.now.wall)
            goLive(
                context, notice: "More is said than can be held back, so older messages may come late or not at all.")
            if case .after = catchUp.gap {
                catchUp.awaitRetry()
                context.set(.catchUp(id), at: context.now.monotonic + CatchUp.patience)
            }
        } else {
            showHeld(context)
        }
    }

    /// The link was lost again before a history came; its buffered events are shown without it.
    private func showHeld(_ context: RoomsContext) {
        if historySource != .none, let text = delayNotice() { notice(text) }
        releaseHeld(context)
    }

    private func releaseHeld(_ context: RoomsContext) {
        for event in catchUp.takeHeld() { chatReceived(event, context) }
    }

    /// - Parameter isUnfetchable: missed messages will never come.
    private func goLive(_ context: RoomsContext, notice text: String? = nil, isUnfetchable: Bool = false) {
        context.cancel(.catchUp(id))
        catchUp.becameLive()
        let isOnPurpose = report.outage?.isTold == false
        tellLinkIsBack(context)
        if let text { notice(text) }
        if isUnfetchable { reportUnfetchable(context) }
        if historySource == .none { if isOnPurpose { holdGap(context) } else { reportNoHistory(context) } }
        if catchUp.gap == nil { continuity.settled() }
        continuity.shownAgain(context.now)
        becameLive(context)
        olderNeedNotWait(context)
        releaseHeld(context)
        pump(lane, context)
    }

    // MARK: - Requests

    /// Requests the messages after the gap, on a repeat more of them, or the next page; false when there is no way to.
    private func ask(next pages: CatchUp.Pages? = nil, _ context: RoomsContext) -> Bool {
        ask(after: askingMark, next: pages, context)
            // Some wires only have a lower time bound: then at least messages missed by present users.
            || catchUp.missedSince.map { ask(after: CatchUp.Mark(id: nil, at: $0), next: pages, context) } ?? false
    }

    /// The backend can page backward, by the means used for a history.
    private var pagesBack: Bool {
        traits.history == .call ? settings.dialect.calls?.takesBefore ?? false : traits.older == .socket
    }

    /// The backend pages forward, and a page may hold the oldest messages.
    private var pagesForward: Bool { traits.history == .call && settings.dialect.calls?.takesAfter ?? false }

    /// The backend says of the pages in hand that nothing is missing between them and the message that was asked behind.
    ///
    /// - Parameter isCut: it may have left out what is older than they are, where it can page backward.
    private func beginsBehindKnown(isCut: Bool) -> Bool {
        catchUp.askedBehind != nil && settings.dialect.calls?.beginsBehind == true && !(isCut && pagesBack)
    }

    /// Whether a page has but the oldest messages of a room: it lacks several known ones that are newer than all of it. Others
    /// may have come since, and it shows none of them; of one or two it may be that they were deleted.
    private func endsTooEarly(_ told: [ChatMessage]) -> Bool {
        guard case .after = catchUp.gap, traits.history == .call, !pagesForward,
            let last = told.lazy.compactMap(\.at).max()
        else { return false }
        let ids = Set(told.compactMap(\.id))
        guard recent.newestIdentified?.upstreamID.map({ !ids.contains($0) }) ?? true else { return false }
        return recent.countOfOthers(later: last.after(clockTolerance), without: ids) >= 3
    }

    private func ask(after mark: CatchUp.Mark?, next pages: CatchUp.Pages?, _ context: RoomsContext) -> Bool {
        if let pages, pages.isForward { return ask(newerThan: pages.messages, context) }
        if pages == nil { catchUp.asks(behind: pagesForward ? mark.flatMap { place(of: $0) } : nil) }
        let base = settings.historyLimit > 0 ? settings.historyLimit : 50
        let limit = pages == nil ? catchUp.nextLimit(base, isBounded: traits.history != .call) : catchUp.limit
        let before = pages.flatMap { catchUp.nextBefore($0.messages) }
        let beforeID = pages?.messages.first?.id
        if pages != nil, before == nil, beforeID == nil || traits.history != .call { return false }
        // Less the clock tolerance, so that messages of the same moment are included.
        let since = mark.flatMap {
            catchUp.since($0, provenUntil: continuity.missingSince?.earliest(by: context.now), wall: context.now.wall)
        }.flatMap {
            at -> ChatTimestamp? in
            let early = at.milliseconds.subtractingReportingOverflow(
                catchUp.tries > 1 ? CatchUp.earlierSince : clockTolerance)
            return early.overflow || early.partialValue <= 0 ? nil : ChatTimestamp(milliseconds: early.partialValue)
        }
        if traits.history != .call {
            let ref = context.freshChatID().rawValue
            if lane.send(
                .fetch(room: settings.upstreamRoom, ref: ref, limit: limit, before: before, since: since), context)
            {
                catchUp.asked(ref, isFirst: pages == nil, now: context.now.monotonic)
                return true
            }
        }
        guard settings.dialect.calls != nil || traits.history == .call else { return false }
        return call(
            HistoryQuery(
                room: lane.dialectContext.announcedRoom ?? settings.upstreamRoom, after: mark?.id, since: since,
                before: before, beforeID: beforeID, limit: limit), isFirst: pages == nil, context)
    }

    private func ask(newerThan known: [ChatMessage], _ context: RoomsContext) -> Bool {
        guard let last = known.last, last.id != nil || last.at != nil else { return false }
        return call(
            HistoryQuery(
                room: lane.dialectContext.announcedRoom ?? settings.upstreamRoom, after: last.id,
                // Where nothing is missed, no more at a time than has been granted.
                since: catchUp.nextSince(known), limit: catchUp.mustAsk ? CatchUp.maxShown : catchUp.limit),
            isFirst: false, context)
    }

    /// One call at a time; the answer to one of an earlier link leads to the next.
    private func call(_ query: HistoryQuery, isFirst: Bool, _ context: RoomsContext) -> Bool {
        if catchUp.beginCall(isFirst: isFirst, now: context.now.monotonic) { context.requestHistory(id, query) }
        return true
    }

    // MARK: - Answers

    /// Handles a history from the socket, requested or pushed.
    func historyReceived(_ history: ChatHistory, _ context: RoomsContext) {
        if takeOlder(history, context) { return }
        if traits.history == .none { historyComesUnasked(true, context) }
        guard catchUp.state != .closed else {
            return catchUp.cameEarly(history)
        }
        // The answer to an earlier request.
        if catchUp.pages != nil, let ref = history.ref, ref != catchUp.ref { return }
        let limit = catchUp.limit ?? .max
        take(history.messages, isComplete: history.messages.count < limit, context)
    }

    /// Handles the answer to `RoomsContext.requestHistory`.
    ///
    /// - Parameter isComplete: there is nothing older in the room.
    package func historyArrived(
        _ outcome: Result<[ChatMessage], BackendCallFailure>, isComplete: Bool, _ context: RoomsContext
    ) {
        switch catchUp.callAnswered() {
        case .unasked: return
        case .stale:
            if catchUp.state == .fetching { _ = ask(context) }
            return
        case .fresh: break
        }
        switch outcome {
        case .success(let messages):
            report.historyAnswered(failure: nil)
            if !messages.isEmpty { report.historyCame() }
            take(messages, isComplete: isComplete, context)
        case .failure(let failure):
            report.historyAnswered(failure: PrintableText.of(failure.sentence))
            if failure.isFinal, let best = catchUp.best {
                context.note(
                    .warn, "history-failed",
                    "more of the past cannot be fetched: \(PrintableText.of(failure.sentence))",
                    ["room": settings.name])
                return take(best, isComplete: false, mayAskAgain: false, context)
            }
            historyFailed(failure.sentence, mayRetry: !failure.isFinal, context)
        }
    }

    /// - Parameter mayRetry: a repeated request may succeed.
    func historyFailed(_ reason: String, mayRetry: Bool = true, _ context: RoomsContext) {
        context.note(
            .warn, "history-failed", "older messages could not be fetched: \(PrintableText.of(reason))",
            ["room": settings.name])
        report.historyAnswered(failure: PrintableText.of(reason))
        if takeBegun(context) { return }
        catchUp.gaveUpOnHistory(wall: context.now.wall)
        catchUp.askedEnough()
        answerIDWaiters()
        defer { armSettling(after: Self.lookPause, context) }
        if traits.history == .none { return unaskedHistoryFailed(context) }
        // The second report of one failure, after its time-out.
        if catchUp.state == .live, let retry = catchUp.retry, !retry.isAsking { return }
        if catchUp.state == .fetching {
            goLive(context, notice: mayRetry ? delayNotice() : nil, isUnfetchable: !mayRetry)
        }
        guard mayRetry, catchUp.state == .live, case .after = catchUp.gap else {
            catchUp.endRetries()
            if !mayRetry { reportUnfetchable(context) }
            return
        }
        context.set(.catchUp(id), at: context.now.monotonic + catchUp.failed())
    }

    /// False: nothing of a first history is there to be taken.
    private func takeBegun(_ context: RoomsContext) -> Bool {
        guard catchUp.state == .fetching, let begun = catchUp.takeBegun() else { return false }
        take(begun, isComplete: false, mayAskAgain: false, context)
        return true
    }

    /// A pushed history without a promise did not come this time; treated as if there were none.
    private func unaskedHistoryFailed(_ context: RoomsContext) {
        historyComesUnasked(false, context)
        catchUp.endRetries()
        if catchUp.state == .fetching { goLive(context) } else { reportNoHistory(context) }
    }

    /// Notes it for this process and the next, which then awaits the history behind its first link.
    private func historyComesUnasked(_ comes: Bool, _ context: RoomsContext) {
        guard comes != catchUp.isHistoryUnasked else { return }
        catchUp.historyComesUnasked(comes)
        context.keep(.historyUnasked(storedKey, comes))
    }

    static let delaySentence =
        "What was said during the outage cannot be fetched at the moment, so older messages may come late."

    /// The notice about a gap that stays open; nil when it was shown already.
    private func delayNotice() -> String? {
        catchUp.tellDelay() ? Self.delaySentence : nil
    }

    /// - Parameter mayAskAgain: false: no more can be fetched.
    private func take(
        _ messages: [ChatMessage], isComplete: Bool, mayAskAgain: Bool = true, _ context: RoomsContext
    ) {
        let told = messages.filter { concernsUs($0.room, context) }
        let places = seenIDs.places()
        func held(_ told: [ChatMessage]) -> HistoryPage {
            HistoryPage(
                told, sendersTellTime: catchUp.sendersTellTime, mark: catchUp.mark?.at, wall: context.now.wall,
                end: catchUp.end(total: seenIDs.total), wasNewestFirst: catchUp.isToldNewestFirst
            ) { message in message.id.flatMap { places[duplicateKey($0, message.senderID)] } }
        }
        let isFirst = catchUp.gap == .everything
        // A short page over the socket proves nothing: servers have limits of their own.
        let isRoom = isComplete && (isFirst || traits.history == .call)
        var page = held(told)
        if catchUp.pages == nil, !isComplete, endsTooEarly(page.told) {
            let reason = "the answer ends long before the newest known message, and later ones cannot be asked for"
            return historyFailed(reason, mayRetry: false, context)
        }
        let isWhole: Bool
        var isCutShort = false
        if let pages = catchUp.pages, pages.isForward {
            let (news, isEnd) = catchUp.newer(in: page.told, than: pages.messages)
            page = held(pages.messages + news)
            isWhole = pages.isWhole
            noteReach(of: page.messages, isAll: pages.isAll, isCut: pages.isCut)
            if mayAskAgain, askOn(page.told, told.count, news, pages, context) { return }
            isCutShort = !mayAskAgain || (news.isEmpty ? !isEnd : !areBeingShown(news))
            if isCutShort, !catchUp.mustAsk {
                // One page may be of the newest.
                isCutShort = catchUp.hasSeveralPages(page.told)
                if isCutShort { return historyFailed("it begins with the oldest messages, and is too long", context) }
            }
        } else {
            let older = catchUp.pages.map { CatchUp.older(in: page.told, than: $0.messages) }
            if let newer = catchUp.pages, let older { page = held(older + newer.messages) }
            if let isNewestFirst = page.isNewestFirst, older == nil {
                catchUp.told(newestFirst: isNewestFirst)
            }
            let isLast = older.map { $0.isEmpty && catchUp.isBefore(told) } ?? told.isEmpty
            // Some give less than the limit without being complete; paging detects that.
            let isAll = isLast || isComplete && !(pagesBack && traits.history != .call)
            let isCut = older == nil ? catchUp.limit.map { page.messages.count >= $0 } ?? false : !isLast
            isWhole =
                beginsBehindKnown(isCut: isCut)
                || catchUp.reaches(page, isComplete: isAll, isCut: isCut, wall: context.now.wall) {
                    seenTexts.contains($0)
                }
            // A page that has but other rooms' messages answers no request for older ones.
            let isEnd = older != nil && isLast && (!told.isEmpty || messages.isEmpty)
            let isAllOfRoom = isRoom || isEnd
            noteReach(of: page.messages, isAll: isAllOfRoom, isCut: isCut)
            if mayAskAgain, !(isWhole && reachesOwn(page.messages, context)) {
                if mayPage(page.told, told.count, older) {
                    catchUp.gotPage(of: told.count, CatchUp.Pages(messages: page.told))
                    if ask(next: catchUp.pages, context) { return pageIsAwaited(context) }
                    catchUp.dropPages()
                }
                // A known message was reached, and only a relayed one is looked for: it may lie before the lower bound.
                let mayWiden = older == nil || isWhole && older?.isEmpty == true
                if mayWiden, catchUp.mayAskAgain {
                    catchUp.dropPages()
                    if ask(context) {
                        if catchUp.isCallOpen { catchUp.retainBest(page.told) }
                        return
                    }
                }
            }
            let begun = CatchUp.Pages(messages: [], isWhole: isWhole, isCut: isCut, isAll: isAllOfRoom)
            if mayAskAgain, askOn(page.told, told.count, page.told, begun, context) { return }
        }
        takeIn(page, isFirst: isFirst, isWhole: isWhole, isComplete: isComplete, isCutShort: isCutShort, context)
    }

    /// Processes a complete history: it is shown or logged, and the gap is closed.
    private func takeIn(
        _ page: HistoryPage, isFirst: Bool, isWhole: Bool, isComplete: Bool, isCutShort: Bool, _ context: RoomsContext
    ) {
        let messages = page.messages
        if catchUp.state == .fetching { tellLinkIsBack(context) }
        seenTexts.historyBegan()
        matchRelayedRows(messages, context)
        learnSent(messages, context)
        learnOwnSent(messages, context)
        if isFirst {
            takeFirst(page, isWhole: isWhole, isComplete: isComplete, context)
        } else {
            let isOutrun = catchUp.isOutrun(total: seenIDs.total)
            if !isWhole { noteMissing(messages, isTold: !isOutrun, context) }
            if isOutrun {
                reportOutrun(context)
                settleOutbox(with: messages, context)
                rememberQuietly(messages.suffix(SeenMessageIDs.capacity / 2))
            } else {
                showMissed(page, context)
            }
        }
        if isCutShort { reportCutShort(after: page.told.last?.at, context) }
        catchUp.ringTurned(to: seenIDs.total)
        // A missing row may be a relayed message.
        settleMissing(messages, context)
        if catchUp.newest == nil, !isComplete { catchUp.gaveUpOnHistory(wall: context.now.wall) }
        if catchUp.retry != nil { context.cancel(.catchUp(id)) }
        catchUp.closeGap()
        continuity.filled()
        catchUp.askedEnough()
        answerIDWaiters()
        if catchUp.state == .fetching { goLive(context) } else { pump(lane, context) }
    }

    /// Whether to request messages older than a page.
    ///
    /// - Parameters:
    ///   - told: the messages in hand.
    ///   - count: the number of these in the last answer.
    ///   - older: the new ones among these; nil: all.
    private func mayPage(_ told: [ChatMessage], _ count: Int, _ older: [ChatMessage]?) -> Bool {
        guard pagesBack, !told.isEmpty, told.count < max(settings.historyLimit, CatchUp.maxShown) else { return false }
        if let older { return !older.isEmpty }
        // The backend's page size, smaller than the limit.
        return catchUp.isCareful || catchUp.limit.map { count < $0 } ?? true
    }

    /// Requests messages newer than those in hand, where there may be any; false: there are none, or no way to.
    ///
    /// - Parameters:
    ///   - news: the new messages of the last answer.
    ///   - before: the pages in hand before these.
    private func askOn(
        _ told: [ChatMessage], _ count: Int, _ news: [ChatMessage], _ before: CatchUp.Pages, _ context: RoomsContext
    ) -> Bool {
        // A backend that can be asked backward begins with its newest where nothing is known.
        guard pagesForward, catchUp.gap != nil || lanes.contains(where: \.outbox.hasUnknown),
            catchUp.mustAsk || !pagesBack, told.count < CatchUp.maxForward,
            !(areBeingShown(news) && mayBeLast(news))
        else {
            return false
        }
        var pages = before
        (pages.messages, pages.isForward) = (told, true)
        catchUp.gotPage(of: count, pages)
        guard ask(next: pages, context) else {
            catchUp.dropPages()
            return false
        }
        pageIsAwaited(context)
        return true
    }

    private func pageIsAwaited(_ context: RoomsContext) {
        guard catchUp.retry != nil else { return }
        context.set(.catchUp(id), at: context.now.monotonic + CatchUp.patience)
    }

    /// All of these were shown, or came over this link too.
    private func areBeingShown(_ messages: [ChatMessage]) -> Bool {
        let ids = heldIDs
        let nameless = catchUp.held.compactMap { event in
            if case .message(let message) = event, message.id == nil { message } else { nil }
        }
        return messages.allSatisfy { message in
            guard let id = message.id else {
                return seenTexts.contains(message) || nameless.contains { SeenTexts.areAlike($0, message) }
            }
            return !isUnknown(message) || ids.contains(id)
        }
    }

    /// Whether nothing known is newer than these. A page may have but what was known already and end before the rest of it:
    /// own messages that were acknowledged, or what came live behind a gap.
    private func mayBeLast(_ messages: [ChatMessage]) -> Bool {
        guard let newest = recent.newestIdentified, !messages.isEmpty else { return true }
        let ids = heldIDs
        return messages.contains { message in
            message.id.map { $0 == newest.upstreamID || ids.contains($0) } ?? true
        }
    }

    // MARK: - Processing

    /// Ids of live messages that are buffered, or wait behind an ambiguous one: they are new, also within a history.
    private var heldIDs: Set<ChatID> {
        var ids = ambiguous.ids
        for case .message(let message) in catchUp.held { if let id = message.id { ids.insert(id) } }
        return ids
    }

    /// Processes the first history: messages from before any user joined are logged, the rest counts as missed.
    private func takeFirst(_ page: HistoryPage, isWhole: Bool, isComplete: Bool, _ context: RoomsContext) {
        guard let since = catchUp.missedSince else { return remember(page.messages, context) }
        let isMissed = catchUp.missedOfFirst(in: page, tolerance: clockTolerance, wall: context.now.wall)
        let before = page.shown.filter { !isMissed[$0] }.map { page.told[$0] }
        if isComplete || !before.isEmpty {
            remember(before, context)
        } else {
            catchUp.remembered(oldest: [since], wall: context.now.wall)
        }
        if !isWhole { noteMissing(page.messages, isTold: true, context) }
        show(missed: page.shown.filter { isMissed[$0] }.map { page.told[$0] }.filter(isUnknown), context)
    }

    /// Indices of messages without ids that are newer than this link: their live frames are buffered or on their way.
    private func newsWithoutIDs(among messages: some Collection<ChatMessage>) -> Set<Int> {
        var held = catchUp.held.compactMap { event in
            if case .message(let message) = event, message.id == nil { message } else { nil }
        }
        var news: Set<Int> = []
        for (index, message) in messages.enumerated().reversed() where message.id == nil {
            if let place = held.lastIndex(where: { SeenTexts.areAlike($0, message) }) {
                held.remove(at: place)
                news.insert(index)
            } else if catchUp.isSaidOverThisLink(message.at) {
                news.insert(index)
            }
        }
        return news
    }

    /// Logs messages for later replies, edits and reactions, without showing them.
    private func remember(_ messages: [ChatMessage], _ context: RoomsContext) {
        settleOutbox(with: messages, context)
        let held = heldIDs
        let kept = messages.suffix(settings.historyLimit)
        // Older ones become known all the same: a later history must not show them.
        for message in messages.dropLast(kept.count).suffix(SeenMessageIDs.capacity / 2) {
            guard let id = message.id, !held.contains(id) else { continue }
            let key = duplicateKey(id, message.senderID)
            if seenIDs.insert(key) { catchUp.remembered(key, at: message.at) }
        }
        // In an empty room every later message is newer.
        catchUp.remembered(
            oldest: kept.isEmpty ? CatchUp.Mark.beginning.at.map { [$0] } ?? [] : kept.compactMap(\.at),
            wall: context.now.wall)
        let news = newsWithoutIDs(among: kept)
        for (index, message) in kept.enumerated() where message.id.map({ !held.contains($0) }) ?? true {
            remotes.learnName(of: message.sender)
            if takeOwn(message, isHistory: true, context) || news.contains(index) { continue }
            guard rememberQuietly(message), !message.text.isEmpty || !message.attachments.isEmpty else { continue }
            saw(message, context)
            if let id = message.id { catchUp.remembered(duplicateKey(id, message.senderID), at: message.at) }
            let message = withoutSecrets(message, context)
            let key = IdentityMap.remoteKey(message.sender, backend: settings.backend)
            let name = message.sender.name ?? message.senderID?.rawValue ?? "unknown"
            let nick = context.identities.known(key).flatMap { context.identities[$0]?.nick }
            let quoted = ownWordsQuoted(message)
            let msgid = context.messageID(
                backend: settings.backend, room: settings.upstreamRoom,
                sender: traits.messageIDOrigin == .client ? message.senderID : nil, id: message.id)
            let at = beginLine(message.at, context)
            let form = historyForm(message, context)
            enter(
                stored(
                    keepingFiles(message, context), msgid: msgid, at: at, nick: form.nick, source: form.source,
                    account: form.account, text: form.text),
                by: nil,
                nick: quoted?.nick ?? nick ?? PrintableText.prefix(of: IdentityMap.realname(name), maxBytes: 60),
                text: quoted?.text ?? message.text, context)
        }
    }

    /// Makes messages known without showing them, but those that are held: these are shown when they are released.
    private func rememberQuietly(_ messages: some Sequence<ChatMessage>) {
        let held = heldIDs
        for message in messages where message.id.map({ !held.contains($0) }) ?? true { _ = rememberQuietly(message) }
    }

    /// False when it was known.
    private func rememberQuietly(_ message: ChatMessage) -> Bool {
        guard let id = message.id else { return !seenTexts.isKnownFromHistory(message) }
        return seenIDs.insert(duplicateKey(id, message.senderID))
    }

    private func noteMissing(_ messages: [ChatMessage], isTold: Bool, _ context: RoomsContext) {
        context.note(
            .warn, "history-short", "the backend's history does not reach back to what is known",
            ["room": settings.name, "messages": String(messages.count)])
        if isTold { reportMissing(before: messages.lazy.compactMap(\.at).first, context) }
    }

    private func showMissed(_ page: HistoryPage, _ context: RoomsContext) {
        let held = heldIDs
        let isMissed = catchUp.missed(in: page, tolerance: clockTolerance, wall: context.now.wall)
        // Before the ring takes in more.
        let missed = page.shown.filter { isMissed[$0] }.map { page.told[$0] }.filter(isUnknown)
        let known = page.shown.filter { !isMissed[$0] }.map { page.told[$0] }
        settleOutbox(with: known, context)
        // Half of the ring at most: newer messages must stay known too.
        rememberQuietly(known.suffix(SeenMessageIDs.capacity / 2))
        show(missed: missed, isLate: isLate(page, isMissed, held), context)
    }

    /// Whether newer messages of upstream people were shown before missed ones; those of IRC users are shown when sent.
    private func isLate(_ page: HistoryPage, _ isMissed: [Bool], _ held: Set<ChatID>) -> Bool {
        func isKnown(_ message: ChatMessage) -> Bool {
            message.id == nil ? seenTexts.contains(message) : !isUnknown(message)
        }
        guard let first = page.shown.firstIndex(where: { isMissed[$0] && !isKnown(page.told[$0]) }) else {
            return false
        }
        if isOvertaken(page) { return true }
        return page.shown[first...].contains { index in
            let message = page.told[index]
            guard isKnown(message), !message.isSelf else { return false }
            guard let id = message.id else { return true }
            return !held.contains(id) && recent.entry(upstreamID: id)?.puppet == nil
        }
    }

    /// Whether messages of upstream people from behind the gap were shown that the page lacks: it was made before them, and
    /// read when it was no longer awaited.
    private func isOvertaken(_ page: HistoryPage) -> Bool {
        guard catchUp.mayFillLate else { return false }
        let told = Set(page.told.compactMap(\.id))
        let end = catchUp.end(total: seenIDs.total)
        return seenIDs.places().contains { key, place in
            guard place >= end, !told.contains(key.id) else { return false }
            return recent.entry(upstreamID: key.id).map { $0.puppet == nil } ?? false
        }
    }

    private func isUnknown(_ message: ChatMessage) -> Bool {
        message.id.map { !seenIDs.contains(duplicateKey($0, message.senderID)) } ?? true
    }

    private func show(missed: [ChatMessage], isLate: Bool = false, _ context: RoomsContext) {
        // Those are shown in their order, once it is known whose the first of them is.
        let waiting = ambiguous.ids
        let missed = missed.filter { $0.id.map { !waiting.contains($0) } ?? true }
        let (unshown, shown) = (missed.dropLast(CatchUp.maxShown), missed.suffix(CatchUp.maxShown))
        settleOutbox(with: unshown, context)
        rememberQuietly(unshown.suffix(SeenMessageIDs.capacity / 2))
        if !unshown.isEmpty {
            reportLeftOut(
                unshown.count, first: unshown.lazy.compactMap(\.at).first,
                next: shown.lazy.compactMap(\.at).first, context)
        }
        if isLate { reportLate(first: shown.lazy.compactMap(\.at).first, context) }
        for message in shown { messageReceived(message, isHistory: true, context) }
    }

    // MARK: - Ids of relayed messages

    /// Finds the backend's id of a message: at once where it is known; for an unidentified relayed one, after a lookup
    /// in the history. `found` is called once; with nil when there is no such message.
    func findUpstreamID(of msgid: String, _ context: RoomsContext, found: @escaping (ChatID?) -> Void) {
        if let known = recent.entry(msgid: msgid)?.upstreamID { return found(known) }
        let isOurs =
            lanes.contains { $0.sent.contains(msgid: msgid) }
        guard isOurs, link.isUp, !idLookups.isFull else { return found(nil) }
        idLookups.append(msgid, found)
        guard isReadyToAsk else { return }
        if !askAgain(context) { answerIDWaiters() }
    }

    /// No history request is in flight.
    private var isReadyToAsk: Bool { !catchUp.isCallOpen && catchUp.ref == nil && catchUp.state == .live }

    /// Requests the newest messages, with none missing; false when that is impossible now.
    func askAgain(_ context: RoomsContext) -> Bool {
        guard isReadyToAsk else { return false }
        catchUp.askedEnough()
        catchUp.dropPages()
        return ask(context)
    }

    /// Looks up ids for an event about an unknown message, which may be an unidentified relayed one, then calls
    /// `found`, found or not. False, and `found` is not called, when there is no candidate, or after a recent attempt:
    /// upstream people must not cause a call with each reaction.
    func awaitIDs(_ context: RoomsContext, then found: @escaping () -> Void) -> Bool {
        guard let msgid = lane.sent.newestMsgid, traits.messageIDOrigin == .server, link.isUp,
            idLookups.takeTurn(at: context.now.monotonic)
        else { return false }
        findUpstreamID(of: msgid, context) { _ in found() }
        return true
    }

    /// Fails the waiting lookups.
    private func answerIDWaiters() {
        for waiter in idLookups.takeAll() { waiter.found(recent.entry(msgid: waiter.msgid)?.upstreamID) }
    }

    /// Newest first: of two messages with one text, the later id belongs to the later.
    private func learnSent(_ messages: [ChatMessage], _ context: RoomsContext) {
        guard !lane.sent.isEmpty, traits.messageIDOrigin == .server else { return }
        for message in messages.reversed() where isKnownOrPrefixedAsOurs(message) {
            guard let id = message.id, !seenIDs.contains(duplicateKey(id, nil)),
                let sent = lane.sent.takeNewest(text: message.text)
            else { continue }
            learn(id, of: sent, lane, context)
            catchUp.saw(id: id, at: message.at, wall: context.now.wall)
            if lane.sent.isEmpty { return }
        }
    }
}

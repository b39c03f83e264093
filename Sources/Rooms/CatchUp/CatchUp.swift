import ChatModel
import WireBytes

// Catching up: filling the gap of an outage from the backend's history.
//
// | state    | meaning                                | verb → next                                                              |
// |----------|----------------------------------------|---------------------------------------------------------------------------|
// | closed   | the link is not usable                 | linkCameUp → fetching, or live where the wire has no history               |
// | fetching | usable; a history is awaited           | history → live; failure, 10 s, buffer full → live, the gap stays           |
// | live     | events are shown as they come          | linkLost → closed; loginRenewed → fetching                                 |
//
// A history that does not reach back to the gap is requested again with a larger limit; where the backend has a smaller
// page size and can page backward, page by page: until a known message is reached, a page brings no older one, or as
// much is in hand as is ever shown. Where it pages forward, a page may hold the oldest messages, also the very first
// one: then the request is repeated from the last one, until no new one comes.
//
// While closed or fetching, live events are buffered, to follow the missed messages. The gap begins at the end of the
// last contiguous stretch; it closes when a history reaches back to it, and stays open through failures, so that the
// next request, over this link after a pause or over the next, begins at the same place.
//
// The very first history fills the log without being shown, as far as no user was present:
//
// | user at the first history                      | messages from before joining | messages since                      |
// |------------------------------------------------|------------------------------|-------------------------------------|
// | joined while there was no link                 | logged                       | shown, as missed                    |
// | joined over a link that was lost meanwhile     | logged                       | the same                            |
// | joined over this link                          | logged                       | also come live, and are shown as that |
// | never joined                                   | logged                       | none                                |
//
// If it fails, the messages since the first JOIN are a gap like any other. If it fails midway, and no user missed any of it,
// its only page is taken; of several, which begin with the oldest messages, none.

final class CatchUp {
    /// Longest buffering of live events.
    static let patience: Duration = .seconds(10)
    /// Longest time that the gap of a link that was opened anew on purpose is not reported.
    static let gapPatience: Duration = .seconds(60)
    /// Buffered events, and bytes of their frames. More than come in `patience` in a busy room; bounds a flood's cost.
    static let maxHeldEvents = 2000
    static let maxHeldBytes = 4 * 1024 * 1024
    /// A history that does not reach back far enough is requested again with its limit multiplied by this, …
    static let widening = 4
    /// … and after this many attempts once more in full; over the socket up to the number shown, since an answer there
    /// must fit a frame.
    static let limitedTries = 2
    /// Limit where a larger answer would exceed the frame size.
    static let smallPage = 10
    /// Pauses before a failed history is requested again.
    static let retryPauses: [Duration] = [.seconds(10), .seconds(30), .seconds(120), .seconds(300)]
    /// Missed messages shown after an outage; older ones are logged without being shown.
    static let maxShown = 1000
    /// Largest difference between the backend's message times and their order; more where senders set the times.
    static let serverClockTolerance: Int64 = 1000
    static let senderClockTolerance: Int64 = 60_000
    /// A page without a known message may begin where a deleted one was: the next request begins this much earlier.
    static let earlierSince: Int64 = 60 * 60 * 1000

    enum State: Equatable {
        case closed
        case fetching
        case live
    }

    /// The newest message of a contiguous stretch.
    struct Mark: Equatable {
        var id: ChatID?
        /// By the backend's clock where there is one, but never later than the local clock on arrival; nil: unknown.
        var at: ChatTimestamp?
        /// The room was seen from its beginning on, and has no messages yet.
        static let beginning = Mark(id: nil, at: ChatTimestamp(milliseconds: 0))
    }

    /// The unknown part of the past.
    enum Gap: Equatable {
        /// All of it: no history came since the start.
        case everything
        case after(Mark)
    }

    /// Times are from the senders' clocks, not from one clock of the backend.
    let sendersTellTime: Bool
    /// The backend's histories begin with the newest message, as far as one proved that.
    private(set) var isToldNewestFirst = false
    private(set) var state = State.closed
    private(set) var gap: Gap? = .everything
    /// The newest message seen, with or without a gap before it.
    private(set) var newest: Mark?
    /// Messages older than this are not missed: they are older than the first history, or than the ring of known ids,
    /// so that it is unknown whether they were shown.
    private(set) var horizon: ChatTimestamp?
    /// The local clock when that was set.
    private var horizonWall: ChatTimestamp?
    /// The times of the last messages seen, where senders set them.
    private var said: [ChatTimestamp] = []
    private var nextSaid = 0
    /// The newest message when the ring was half renewed, for the next half.
    private var ringMark: ChatTimestamp?
    private var nextRingMark = SeenMessageIDs.capacity / 2
    /// Retries while live with a gap: the number of failures, and whether a history is awaited.
    struct Retry: Equatable {
        var failures: Int
        var isAsking: Bool
    }

    private(set) var retry: Retry?
    /// The delay notice was shown: once for each link, and once for each outage, since messages come in between.
    private var isDelayTold = false
    /// An answer exceeded the frame size.
    private(set) var isCareful = false
    /// No message was shown before the gap, so no history can prove by its contents that it reaches back to it.
    private var isUnmarked = false
    /// The room was joined by an earlier process, and has had no messages to this day.
    private var isSilent = false
    /// The gap began in an earlier process: messages before it may be ahead of the then clock by the credible lead.
    private var isFromBefore = false
    /// The ring's total when the gap opened.
    private(set) var totalAtGap = 0
    /// No message was shown since the gap opened, so all known ones are older.
    private(set) var isGapFresh = false
    private(set) var held: [ChatEvent] = []
    private var heldBytes = 0
    /// Number of the link, for messages without ids.
    private(set) var connection = 0
    /// The time of requesting the present link, by the local clock: no message over it is older.
    private(set) var openedAt: ChatTimestamp?
    private var firstOpenedAt: ChatTimestamp?
    /// The time of the first JOIN before any history, less the clock tolerance.
    private var enteredAt: ChatTimestamp?
    /// There was no link then, or it was lost since: not all messages since came live.
    private var isPastMissed = false
    /// Messages of the first history that are newer than the link: their live frames, still on their way, are shown.
    private var quiet: Set<SeenMessageIDs.Key> = []

    /// The sequence number of the message behind which a history was last requested; nil: requested otherwise.
    private(set) var askedBehind: Int?
    /// The backend pushes its history, although its traits have none.
    private(set) var isHistoryUnasked = false
    /// End of the time in which the backend may repeat messages of an earlier link.
    private var settlesUntil: MonotonicInstant?

    init(sendersTellTime: Bool = false) { self.sendersTellTime = sendersTellTime }

    // MARK: - The link

    /// Opens a gap after the known messages, if there is none, for a request over the present link.
    func beganAgain(total: Int) {
        if gap == nil { openGap(total: total) }
        retry = nil
        askedEnough()
        state = .fetching
        pages = nil
    }

    func linkCameUp(wall: ChatTimestamp, now: MonotonicInstant) {
        askedAt = now
        openedAt = wall
        firstOpenedAt = firstOpenedAt ?? wall
        connection += 1
        settlesUntil = now + Self.patience
        state = .fetching
        isDelayTold = false
    }

    func becameLive() {
        state = .live
        isGapFresh = false
    }

    /// - Parameter wasTooBig: the last message exceeded the frame size.
    func linkLost(total: Int, wasTooBig: Bool) {
        // The same answer would exceed the frame size again.
        if wasTooBig, state != .live || ref != nil || retry?.isAsking == true { isCareful = true }
        ref = nil
        early = nil
        isCallStale = isCallOpen
        if gap == nil { openGap(total: total) }
        if gap == .everything, enteredAt != nil { isPastMissed = true }
        isDelayTold = false
        retry = nil
        quiet = []
        state = .closed
        tries = 0
        best = nil
        pages = nil
    }

    /// A user joined, for whom all messages from now on count as missed.
    func userJoined(wall: ChatTimestamp, isLinked: Bool) {
        guard gap == .everything, enteredAt == nil else { return }
        let (early, over) = wall.milliseconds.subtractingReportingOverflow(Self.serverClockTolerance)
        let at = ChatTimestamp(milliseconds: over ? wall.milliseconds : early)
        enteredAt = at
        isPastMissed = !isLinked
    }

    /// Since when messages even of the first history count as missed; nil: none do.
    var missedSince: ChatTimestamp? { gap == .everything && isPastMissed ? enteredAt : nil }

    /// A history is needed, with any limit.
    var mustAsk: Bool { gap != .everything || missedSince != nil }

    /// Messages may be missing from here on.
    func openGap(total: Int) {
        gap = .after(newest ?? .beginning)
        isUnmarked = isSilent
        isGapFresh = true
        totalAtGap = total
    }

    func closeGap() {
        gap = nil
        isFromBefore = false
        isUnmarked = false
        retry = nil
        isDelayTold = false
        isCareful = false
        best = nil
        pages = nil
    }

    /// Resumes the state of an earlier process, after its stored messages were replayed.
    ///
    /// - Parameters:
    ///   - mark: the newest message of the last stretch without a gap.
    ///   - later: the number of later ids.
    ///   - isEmpty: it showed no message, so there is none to find again.
    func resume(after mark: Mark, later: Int, total: Int, isEmpty: Bool) {
        gap = .after(mark)
        isFromBefore = true
        isSilent = isEmpty
        isUnmarked = isEmpty
        newest = newest ?? mark
        isGapFresh = later == 0
        totalAtGap = total - later
    }

    /// Missed messages will be shown behind newer ones.
    var mayFillLate: Bool {
        guard case .after = gap else { return false }
        return !isGapFresh
    }

    /// So many messages came since the gap opened that the ring no longer covers the history.
    func isOutrun(total: Int) -> Bool {
        guard case .after = gap else { return false }
        return total - totalAtGap > SeenMessageIDs.capacity
    }

    /// Messages that became known at this place in the ring, or later, came after the gap.
    func end(total: Int) -> Int {
        if case .after = gap { return totalAtGap }
        // No message was shown before the first JOIN.
        return missedSince == nil ? total : 0
    }

    /// The end of the known messages.
    var mark: Mark? {
        if case .after(let mark) = gap { return mark }
        return missedSince.map { Mark(id: nil, at: $0) } ?? newest
    }

    // MARK: - Buffering

    /// Buffers an event; false when the buffer is full.
    func hold(_ event: ChatEvent, byteCount: Int) -> Bool {
        held.append(event)
        heldBytes += byteCount
        return held.count < Self.maxHeldEvents && heldBytes < Self.maxHeldBytes
    }

    func takeHeld() -> [ChatEvent] {
        isGapFresh = isGapFresh && held.isEmpty
        defer {
            held = []
            heldBytes = 0
        }
        return held
    }

    // MARK: - Requests

    /// The reference of the `fetch` in flight over the socket.
    private(set) var ref: String?
    /// The time of requesting the next history; for a pushed one, the time at which the link became usable.
    private(set) var askedAt: MonotonicInstant?
    /// A call beside the socket is unanswered; there is one at a time.
    private(set) var isCallOpen = false
    /// The open call was made over an earlier link: its answer may lack the newest messages.
    private var isCallStale = false
    /// A history that came before the session was usable.
    private var early: ChatHistory?
    private(set) var tries = 0
    private(set) var limit: Int?
    /// The result of the last call, while one for more is in flight that may fail for good.
    private(set) var best: [ChatMessage]?
    /// The pages received so far.
    struct Pages {
        /// Oldest first.
        var messages: [ChatMessage]
        /// Paging toward newer messages; else toward older.
        var isForward = false
        /// They reach back to the gap.
        var isWhole = false
        /// Older ones may be missing in front of them.
        var isCut = false
        /// There are no older ones in the room.
        var isAll = false
    }

    /// The received pages, while another one is in flight. A failed one is requested again, as long as the link lives.
    private(set) var pages: Pages?
    /// Messages fetched forward; the rest is reported as a gap.
    static let maxForward = 10 * maxShown

    /// The limit of the next request; nil: none, which only a call can answer.
    func nextLimit(_ base: Int, isBounded: Bool) -> Int? {
        let base = max(base, 1)
        if isCareful {
            limit = min(base, Self.smallPage)
        } else if tries < Self.limitedTries {
            let most = isBounded ? max(base, Self.maxShown) : .max
            limit = min(tries == 0 ? base : base * Self.widening, most)
        } else {
            limit = isBounded ? max(base, Self.maxShown) : nil
        }
        tries += 1
        return limit
    }

    func asks(behind place: Int?) { askedBehind = place }

    func historyComesUnasked(_ comes: Bool) { isHistoryUnasked = comes }

    func isSettling(_ now: MonotonicInstant) -> Bool { settlesUntil.map { now < $0 } ?? false }

    func askedEnough() {
        tries = 0
        ref = nil
    }

    /// A request was sent over the socket, the first or for a further page.
    func asked(_ ref: String, isFirst: Bool, now: MonotonicInstant) {
        self.ref = ref
        if isFirst { askedAt = now }
    }

    /// A request over the socket with one of these references is refused; false: there is none.
    func takeRefused(_ refs: String...) -> Bool {
        guard let asked = ref, refs.contains(asked) else { return false }
        ref = nil
        return true
    }

    /// False: one is open, and leads to the next if it is stale.
    func beginCall(isFirst: Bool, now: MonotonicInstant) -> Bool {
        guard !isCallOpen else { return false }
        isCallOpen = true
        if isFirst { askedAt = now }
        return true
    }

    enum CallAnswer {
        case unasked
        /// Made over an earlier link, and to be repeated.
        case stale
        case fresh
    }

    func callAnswered() -> CallAnswer {
        guard isCallOpen else { return .unasked }
        isCallOpen = false
        guard isCallStale else { return .fresh }
        isCallStale = false
        askedEnough()
        pages = nil
        return .stale
    }

    /// Its answer is no longer awaited.
    func dropCall() { isCallOpen = false }

    /// A history came before the session was usable.
    func cameEarly(_ history: ChatHistory) { early = history }

    func takeEarly() -> ChatHistory? {
        defer { early = nil }
        return early
    }

    /// Repeats the request over the same link.
    func askOnceMore() {
        retry?.isAsking = true
        askedEnough()
    }

    /// A request is in flight; without an answer, it is repeated.
    func awaitRetry() { retry = Retry(failures: 0, isAsking: true) }

    /// A history failed. Returns the pause before the next request.
    func failed() -> Duration {
        let failures = retry?.failures ?? 0
        retry = Retry(failures: failures + 1, isAsking: false)
        return Self.retryPauses[min(failures, Self.retryPauses.count - 1)]
    }

    func endRetries() { retry = nil }

    /// Returns whether to notify the room of a gap that stays open; once.
    func tellDelay() -> Bool {
        guard case .after = gap, !isDelayTold else { return false }
        isDelayTold = true
        return true
    }

    /// The room was notified in other words.
    func delayIsTold() { isDelayTold = true }

    func told(newestFirst: Bool) { isToldNewestFirst = newestFirst }

    /// Stores the result of a call, in case the request for more fails for good.
    func retainBest(_ messages: [ChatMessage]) { best = messages }

    /// The largest number of messages in one of the ``pages``.
    private var pageSize = 0
    /// The upper time bound of the request.
    private var askedBefore: ChatTimestamp?

    /// A page of so many messages came; there are more.
    func gotPage(of count: Int, _ inHand: Pages) {
        pageSize = pages == nil ? count : max(pageSize, count)
        (pages, best) = (inHand, inHand.messages)
    }

    func dropPages() { (pages, best) = (nil, nil) }

    /// Ends a first history of which no user missed anything, and which does not go on. An answer that comes later is not
    /// wanted.
    ///
    /// - Returns: its only page. Several begin with the oldest messages, and what they leave out would be missed later: they are
    ///   dropped.
    func takeBegun() -> [ChatMessage]? {
        guard gap == .everything, missedSince == nil, let pages, pages.isForward else { return nil }
        isCallStale = isCallOpen
        guard hasSeveralPages(pages.messages) else { return pages.messages }
        dropPages()
        return nil
    }

    func hasSeveralPages(_ messages: [ChatMessage]) -> Bool { messages.count > pageSize }

    /// No backend has a smaller page size.
    private static let smallestFull = 20

    /// The time at the end of the messages in hand, by the backend's clock or the senders'; nil: they have no times.
    private func end(of messages: some Collection<ChatMessage>) -> ChatTimestamp? {
        // The clock of one sender may be wrong. But most of a page is to be new.
        let witnesses = sendersTellTime ? min(Self.witnesses, max(pageSize / 3, 1)) : 1
        let times = messages.lazy.compactMap(\.at).prefix(witnesses).sorted()
        return times.dropFirst(times.count / 2).first
    }

    /// An upper time bound of all messages older than those in hand.
    func nextBefore(_ messages: [ChatMessage]) -> ChatTimestamp? {
        // Messages of the same moment may be older.
        askedBefore = end(of: messages).map { at in
            ChatTimestamp(milliseconds: at.milliseconds < .max ? at.milliseconds + 1 : .max)
        }
        return askedBefore
    }

    /// A lower time bound of all messages newer than those in hand.
    func nextSince(_ messages: [ChatMessage]) -> ChatTimestamp? { end(of: messages.reversed()) }

    /// Whether a page without a new message answers the request for older ones, rather than ignoring its bound.
    func isBefore(_ page: [ChatMessage]) -> Bool {
        page.allSatisfy { message in message.at.map { at in askedBefore.map { at < $0 } ?? false } ?? false }
    }

    /// Marks the messages of a page that are among others.
    private static func areKnown(_ page: [ChatMessage], among others: [ChatMessage]) -> [Bool] {
        struct Key: Hashable {
            var id: ChatID?
            var sender: ChatID?
        }
        let keys = Set(others.lazy.filter { $0.id != nil }.map { Key(id: $0.id, sender: $0.sender.id) })
        let nameless = SeenTexts.Group(others.lazy.filter { $0.id == nil })
        return page.map { message in
            message.id == nil
                ? nameless.contains(message)
                : keys.contains(Key(id: message.id, sender: message.senderID))
        }
    }

    /// The messages of a forward page that are new, and whether it proves the end of the history.
    func newer(in page: [ChatMessage], than known: [ChatMessage]) -> (messages: [ChatMessage], isEnd: Bool) {
        let isKnown = Self.areKnown(page, among: known)
        let news = page.indices.filter { !isKnown[$0] }.map { page[$0] }
        guard news.isEmpty, let first = known.first, let last = known.last, !page.isEmpty else {
            return (news, news.isEmpty)
        }
        // A single moment may have more messages than a page.
        let isFull = pageSize >= Self.smallestFull && page.count >= pageSize
        let ends = Self.areKnown([first, last], among: page)
        return ([], ends[1] && (!isFull || ends[0]))
    }

    /// The new and older messages of a backward page. None, where the backend has no older ones, or ignores the bound.
    ///
    /// - Parameters:
    ///   - page: oldest first.
    ///   - known: the messages in hand, oldest first.
    static func older(in page: [ChatMessage], than known: [ChatMessage]) -> [ChatMessage] {
        guard let oldest = known.first else { return page }
        let isKnown = areKnown(page, among: known)
        func isOlder(_ message: ChatMessage) -> Bool {
            guard let at = message.at, let oldestAt = oldest.at else { return false }
            return at <= oldestAt
        }
        // Without a known message, the page is either older than all, or unrelated.
        guard let border = isKnown.firstIndex(of: true) ?? (page.first.map(isOlder) ?? false ? page.count : nil) else {
            return []
        }
        return page.indices.filter { !isKnown[$0] && ($0 < border || isOlder(page[$0])) }.map { page[$0] }
    }

    var mayAskAgain: Bool { tries <= Self.limitedTries && !isCareful }

    /// Whether a page reaches back to the gap.
    ///
    /// A short page proves nothing: servers have limits of their own. It must contain a message that was shown before
    /// the gap, or be empty, since the request began there.
    ///
    /// By times alone, containing the newest known message is not enough: a backend that orders by whole seconds cuts
    /// the oldest second anywhere, and may include a known message and leave out later ones. With an older one in hand,
    /// that second is complete.
    ///
    /// - Parameters:
    ///   - isCut: the backend may have older messages.
    ///   - isKnownText: a message without id was shown.
    func reaches(
        _ page: HistoryPage, isComplete: Bool, isCut: Bool, wall: ChatTimestamp,
        isKnownText: (ChatMessage) -> Bool
    ) -> Bool {
        guard gap == .everything ? missedSince != nil : gap != nil, let mark, !page.told.isEmpty else { return true }
        if mark == .beginning || (isUnmarked || missedSince != nil) && isComplete { return isComplete }
        if page.isByArrival, page.firstPrior != nil { return true }
        let messages = page.messages
        if let id = mark.id, let known = messages.first(where: { $0.id == id }),
            known.at.map(page.isCredible) ?? true
        {
            guard isCut, let at = known.at, let oldest = messages.first?.at else { return true }
            return oldest < at
        }
        guard let markAt = mark.at.map({ page.past($0, wall: wall) }) else { return false }
        if isCut, let oldest = messages.first?.at, oldest >= markAt { return false }
        let horizon = horizon(for: page, wall: wall)
        return page.told.indices.contains { index in
            let message = page.told[index]
            guard let said = message.at else { return false }
            let isPrior = message.id == nil ? isGapFresh && isKnownText(message) : page.isPrior(index)
            if isPrior, page.isCredible(said) { return true }
            return said <= markAt && (message.id == nil || horizon.map { said < $0 } ?? false)
        }
    }

    // MARK: - Seen messages

    /// Advances the mark by a message of the backend. One without a time of the backend's moves it by id alone; a time
    /// in the future counts as now, so that a wrong clock does not put all later messages before it; and a mark set
    /// while the local clock was ahead counts as now at the latest.
    func saw(id: ChatID?, at: ChatTimestamp?, wall: ChatTimestamp) {
        guard id != nil || at != nil else { return }
        isSilent = false
        if let known = newest?.at, known > wall { newest?.at = wall }
        let at = at.map { min($0, wall) }
        if let at, sendersTellTime {
            if said.count < Self.witnesses { said.append(at) } else { said[nextSaid] = at }
            nextSaid = (nextSaid + 1) % Self.witnesses
        }
        if let at, let known = newest?.at, at < known {
            // It is newer, whatever its sender's clock shows.
            if sendersTellTime, let id { newest?.id = id }
            return
        }
        newest = Mark(id: id ?? newest?.id, at: at ?? newest?.at)
    }

    /// The lower time bound of a history request: before the times of the last messages, of which one may have a
    /// correct clock, even where the local one is wrong.
    ///
    /// - Parameter provenUntil: all messages until then have come. A time of a sender's clock proves nothing of that:
    ///   read late, it counts as past, and others may have written before it.
    func since(_ mark: Mark, provenUntil: ChatTimestamp?, wall: ChatTimestamp) -> ChatTimestamp? {
        guard let at = mark.at else { return nil }
        var since = min(said.min() ?? at, at, wall)
        if sendersTellTime, let provenUntil { since = min(since, provenUntil) }
        return isFromBefore && sendersTellTime ? HistoryPage.withoutLead(since) : since
    }

    /// As many of the oldest as yield a bound in spite of a few wrong clocks.
    private static let witnesses = 15

    /// A time ahead of the local clock then and now is wrong; one that was ahead of it only then was right.
    private func horizon(for page: HistoryPage, wall: ChatTimestamp) -> ChatTimestamp? {
        if let missedSince { return missedSince }
        guard let horizon, let horizonWall, horizon > wall, !page.isOurClockBehind else { return horizon }
        return min(horizon, horizonWall, wall)
    }

    /// Sets the horizon by messages that were logged without being shown.
    ///
    /// - Parameter oldest: the times of the oldest, in the order of the room; the first few count.
    func remembered(oldest: [ChatTimestamp], wall: ChatTimestamp) {
        let times = oldest.prefix(Self.witnesses).sorted()
        guard !times.isEmpty else { return horizon = nil }
        let middle = times[(times.count - 1) / 2]
        horizon = middle
        horizonWall = wall
    }

    /// The same for an earlier process: its time of logging is unknown, but the lead of shown times is bounded.
    func remembered(before oldest: [ChatTimestamp], wall: ChatTimestamp) {
        remembered(oldest: oldest, wall: wall)
        if sendersTellTime, let horizon { horizonWall = min(wall, HistoryPage.withoutLead(horizon)) }
    }

    /// Moves the horizon with the ring: messages that it has dropped count as shown.
    func ringTurned(to total: Int) {
        while total >= nextRingMark {
            if let ringMark { horizon = horizon.map { max($0, ringMark) } ?? ringMark }
            ringMark = newest?.at ?? ringMark
            nextRingMark += SeenMessageIDs.capacity / 2
        }
    }

    /// Messages at the opening of the link may bear times before it by this much: some clocks count whole seconds.
    private static let openingTolerance: Int64 = 2000

    /// A message of the first history was logged and not shown.
    func remembered(_ key: SeenMessageIDs.Key, at: ChatTimestamp?) {
        guard let at, let openedAt else { return }
        let age = openedAt.milliseconds.subtractingReportingOverflow(at.milliseconds)
        if !age.overflow, age.partialValue <= Self.openingTolerance { quiet.insert(key) }
    }

    /// Whether a message of the first history bears a time since the link opened, within the clock tolerance.
    func isSaidOverThisLink(_ at: ChatTimestamp?) -> Bool {
        guard let at, let openedAt else { return false }
        let age = openedAt.milliseconds.subtractingReportingOverflow(at.milliseconds)
        return !age.overflow && age.partialValue <= Self.serverClockTolerance
    }

    /// Whether a live frame is the first to show a message of the first history.
    func takeQuiet(_ key: SeenMessageIDs.Key) -> Bool { !quiet.isEmpty && quiet.remove(key) != nil }

    /// Gives up on the history: present users missed messages before now.
    func gaveUpOnHistory(wall: ChatTimestamp) {
        guard gap == .everything else { return }
        if let since = missedSince {
            gap = .after(Mark(id: nil, at: since))
            isUnmarked = true
            newest = newest ?? Mark(id: nil, at: since)
            horizon = since
            return
        }
        let known = newest ?? Mark(id: nil, at: firstOpenedAt ?? wall)
        // Users were present over an earlier link: messages since then were missed.
        gap = newest != nil || connection > 1 ? .after(known) : nil
        newest = known
        horizon = horizon ?? firstOpenedAt ?? known.at
    }

    /// Marks the missed messages of a page; known ids are for the caller to exclude.
    ///
    /// With an id, a message is missed if the backend puts it behind one that was shown before the gap; none is that
    /// the backend puts before all of those. Where only times determine the order, messages newer than the horizon are
    /// missed too. Without an id, and for relayed ones on wires that do not return ids, those newer than the newest
    /// known message.
    func missed(in page: HistoryPage, tolerance: Int64, wall: ChatTimestamp) -> [Bool] {
        let mark = mark.map { Mark(id: $0.id, at: $0.at.map { page.past($0, wall: wall) }) }
        let horizon = horizon(for: page, wall: wall)
        let sorted = Self.order(of: page.told)
        let first = firstMissed(
            in: sorted.map { page.told[$0] }, after: mark, horizon: horizon, tolerance: tolerance)
        var isLate = [Bool](repeating: false, count: page.told.count)
        for (rank, index) in sorted.enumerated() { isLate[index] = rank >= first }
        return page.told.indices.map { index in
            let message = page.told[index]
            guard message.id != nil else { return isLate[index] }
            let rank = page.rank(index)
            let isBefore = page.firstPrior.map { rank < $0 } ?? false
            if message.isSelf, !sendersTellTime { return isLate[index] && !(isBefore && page.isByArrival) }
            if page.isByArrival, page.firstPrior != nil { return !isBefore }
            if page.lastPrior.map({ rank > $0 }) ?? false { return true }
            if isLate[index], !isBefore { return true }
            guard let horizon, let said = message.at else { return false }
            return said > horizon
        }
    }

    /// The same for the first history. A time ahead of the local clock proves nothing; such a message is dated by its
    /// neighbours in the backend's order.
    func missedOfFirst(in page: HistoryPage, tolerance: Int64, wall: ChatTimestamp) -> [Bool] {
        var isMissed = missed(in: page, tolerance: tolerance, wall: wall)
        guard !page.isOurClockBehind else { return isMissed }
        let latest = HistoryPage.credible(wall)
        var wasMissed = false
        for (index, message) in page.told.enumerated() {
            if let at = message.at, at > latest {
                isMissed[index] = wasMissed
            } else if message.at != nil {
                wasMissed = isMissed[index]
            }
        }
        return isMissed
    }

    /// The index of the first missed message, oldest first, by times.
    func firstMissed(
        in messages: [ChatMessage], after mark: Mark?, horizon: ChatTimestamp?, tolerance: Int64
    ) -> Int {
        guard let mark else { return messages.count }
        func earliest(in messages: ArraySlice<ChatMessage>, after at: ChatTimestamp) -> Int? {
            messages.firstIndex { message in
                guard let said = message.at else { return false }
                if let horizon, said <= horizon { return false }
                let (sum, over) = said.milliseconds.addingReportingOverflow(tolerance)
                return over || sum >= at.milliseconds
            }
        }
        if let id = mark.id, let index = messages.lastIndex(where: { $0.id == id }) {
            guard let at = mark.at ?? messages[index].at else { return index + 1 }
            return earliest(in: messages[..<index], after: at) ?? index + 1
        }
        guard let at = mark.at else { return 0 }
        return earliest(in: messages[...], after: at) ?? messages.count
    }

    /// By time, then by number where ids are numbers; a message without a time stays behind its predecessor.
    static func order(of messages: [ChatMessage]) -> [Int] {
        var last = ChatTimestamp(milliseconds: .min)
        let keyed = messages.enumerated().map { offset, message in
            last = message.at ?? last
            return (at: last, offset: offset, id: message.id)
        }
        return keyed.sorted { a, b in
            if a.at != b.at { return a.at < b.at }
            return precedes(a.id, b.id) ?? (a.offset < b.offset)
        }.map(\.offset)
    }

    /// Nil where the ids are not different numbers.
    private static func precedes(_ a: ChatID?, _ b: ChatID?) -> Bool? {
        guard let a = a?.rawValue, let b = b?.rawValue, isNumber(a), isNumber(b), a != b else { return nil }
        return a.utf8.count == b.utf8.count ? a < b : a.utf8.count < b.utf8.count
    }

    private static func isNumber(_ text: String) -> Bool {
        let bytes = text.utf8
        return !bytes.isEmpty && bytes.allSatisfy { $0 &- UInt8(ascii: "0") < 10 }
            && (bytes.count == 1 || bytes.first != UInt8(ascii: "0"))
    }
}

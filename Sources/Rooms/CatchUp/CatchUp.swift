import ChatModel
import WireBytes

// How a room catches up with what was said while it had no link.
//
// | state    | meaning                                | verb → next                                                              |
// |----------|----------------------------------------|---------------------------------------------------------------------------|
// | closed   | the link is not usable                 | linkCameUp → fetching, or live where the wire has no history               |
// | fetching | usable; messages from before awaited   | history → live; failure, 10 s, too much to hold → live, the gap stays       |
// | live     | what comes is shown as it comes        | linkLost → closed; loginRenewed → fetching                                 |
//
// A history that does not reach back to the gap is asked for with a larger limit; where the backend gives fewer than that at a
// time, and can be asked for what is older than a message, page by page: until something known is reached, a page brings
// nothing older, or as much is in hand as is ever shown. Where it is asked for what is newer than a message, it may give the
// oldest of that: then it is asked on from the last one, until nothing new comes.
//
// While closed or fetching, what comes is held, so that it follows what was said before it. The gap is where the last
// contiguous stretch ended; it closes when a history reaches back to it, and stays open through failures, so that the next
// question, over this link after a pause or over the next, begins at the same place.
//
// The very first history is for the memory only, as far as nobody was there:
//
// | when the first history comes, somebody         | what it has from before that | what it has from since then         |
// |------------------------------------------------|------------------------------|-------------------------------------|
// | entered while there was no link                | is remembered                | is shown, as what was missed        |
// | entered over a link that was lost meanwhile    | is remembered                | the same                            |
// | entered over this link                         | is remembered                | comes live too, and is shown as that |
// | never entered                                  | is remembered                | there is none                       |
//
// Does it not come, what was said since somebody entered is a gap like any other.

final class CatchUp {
    /// Longest time that what comes live is held.
    static let patience: Duration = .seconds(10)
    /// Events held, and so many bytes of their frames. More than comes in `patience` in a busy room; bounds what a flood costs.
    static let maxHeldEvents = 2000
    static let maxHeldBytes = 4 * 1024 * 1024
    /// A history that does not reach back far enough is asked for again with so many times its limit, …
    static let widening = 4
    /// … and after so many tries once more for all; over the socket for no more than are shown, since an answer there must
    /// fit a frame.
    static let limitedTries = 2
    /// Asked for where a larger answer was more than a frame can be.
    static let smallPage = 10
    /// A history that failed is asked for again after so long, each time the next of these.
    static let retryPauses: [Duration] = [.seconds(10), .seconds(30), .seconds(120), .seconds(300)]
    /// Missed messages shown after an outage; older ones are remembered silently.
    static let maxShown = 1000
    /// Times of the backend's messages differ from their order by this at most; wires on which senders tell the time, more.
    static let serverClockTolerance: Int64 = 1000
    static let senderClockTolerance: Int64 = 60_000
    /// A page that reaches no known message may begin where one was that is gone: the next question begins so much earlier.
    static let earlierSince: Int64 = 60 * 60 * 1000

    enum State: Equatable {
        case closed
        case fetching
        case live
    }

    /// The newest message of a contiguous stretch.
    struct Mark: Equatable {
        var id: ChatID?
        /// By the backend's clock where it tells one, but never later than ours when it came; nil: unknown.
        var at: ChatTimestamp?
        /// The room was seen from its beginning on, and nothing was said yet.
        static let beginning = Mark(id: nil, at: ChatTimestamp(milliseconds: 0))
    }

    /// What is not known of the past.
    enum Gap: Equatable {
        /// Everything: no history came since the start.
        case everything
        case after(Mark)
    }

    /// Times are those of the senders' clocks, and not of one clock of the backend's.
    let sendersTellTime: Bool
    /// The backend's histories begin with the newest message, as far as one said so for certain.
    private(set) var isToldNewestFirst = false
    private(set) var state = State.closed
    private(set) var gap: Gap? = .everything
    /// The newest message seen, whether or not there is a gap before it.
    private(set) var newest: Mark?
    /// What is older than the first history was never anybody's to miss, and of what is older than the ring of known ids
    /// nobody knows whether it was shown.
    private(set) var horizon: ChatTimestamp?
    /// Our clock when that was noted.
    private var horizonWall: ChatTimestamp?
    /// The times of the last ones seen, where senders tell them.
    private var said: [ChatTimestamp] = []
    private var nextSaid = 0
    /// The newest message when the ring had taken in half of itself, for the next half.
    private var ringMark: ChatTimestamp?
    private var nextRingMark = DuplicateRing.capacity / 2
    /// While live with a gap: how often a history failed, and whether one is awaited.
    struct Retry: Equatable {
        var failures: Int
        var isAsking: Bool
    }

    private(set) var retry: Retry?
    /// The room was told that older messages may come late: once for each link, and once for each time without one, since more
    /// is said in between.
    private var isDelayTold = false
    /// An answer was more than a frame can be.
    private(set) var isCareful = false
    /// Nothing was shown before the gap, so no history can prove by what it has that it reaches back to it.
    private var isUnmarked = false
    /// The room was heard by an earlier process, and nothing was said in it to this day.
    private var isSilent = false
    /// The gap began in an earlier process: the times of what was before it may have been ahead of our clock then, by as much
    /// as is believed.
    private var isFromBefore = false
    /// How many ids the ring had taken when the gap opened.
    private(set) var totalAtGap = 0
    /// Nothing was shown since the gap opened, so whatever is known was said before it.
    private(set) var isGapFresh = false
    private(set) var held: [ChatEvent] = []
    private var heldBytes = 0
    /// Counts links, for messages without ids.
    private(set) var connection = 0
    /// When the present link was asked for, by our own clock: nothing was said before that over it.
    private(set) var openedAt: ChatTimestamp?
    private var firstOpenedAt: ChatTimestamp?
    /// When somebody first entered, while no history had come; earlier by what clocks differ.
    private var enteredAt: ChatTimestamp?
    /// There was no link then, or it was lost since: not all that was said since came over one.
    private var isPastMissed = false
    /// Messages of the first history that were said after the link had opened: their own frames are still on their way,
    /// and are news.
    private var quiet: Set<DuplicateRing.Key> = []

    /// The place of the message behind which a history was asked for last; nil: it was not asked for like that.
    private(set) var askedBehind: Int?
    /// The backend sends its history by itself, which by its traits it would not.
    private(set) var isHistoryUnasked = false
    /// Until when the backend may repeat what it said over an earlier link.
    private var settlesUntil: MonotonicInstant?

    init(sendersTellTime: Bool = false) { self.sendersTellTime = sendersTellTime }

    // MARK: - The link

    /// What is missing behind the gap, or behind this if there was none, is asked for over the present link.
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

    /// - Parameter wasTooBig: what came last was more than a frame can be.
    func linkLost(total: Int, wasTooBig: Bool) {
        // An answer that is too large for a frame would be so again.
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

    /// Somebody entered, and is to have all that is said from now on.
    func somebodyEntered(wall: ChatTimestamp, isLinked: Bool) {
        guard gap == .everything, enteredAt == nil else { return }
        let (early, over) = wall.milliseconds.subtractingReportingOverflow(Self.serverClockTolerance)
        let at = ChatTimestamp(milliseconds: over ? wall.milliseconds : early)
        enteredAt = at
        isPastMissed = !isLinked
    }

    /// From when on even the first history is for those who are here; nil: nobody missed anything of it.
    var missedSince: ChatTimestamp? { gap == .everything && isPastMissed ? enteredAt : nil }

    /// The past must be asked for, however little of it is wanted.
    var mustAsk: Bool { gap != .everything || missedSince != nil }

    /// From here on something may be missing.
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

    /// An earlier process ended here, and what it showed was seen again.
    ///
    /// - Parameters:
    ///   - mark: the newest message of the last stretch in which nothing is missing.
    ///   - later: how many ids of those came after `mark`.
    ///   - isEmpty: it showed nothing at all, so there is nothing to find again.
    func resume(after mark: Mark, later: Int, total: Int, isEmpty: Bool) {
        gap = .after(mark)
        isFromBefore = true
        isSilent = isEmpty
        isUnmarked = isEmpty
        newest = newest ?? mark
        isGapFresh = later == 0
        totalAtGap = total - later
    }

    /// What is missing will stand behind what was shown since.
    var mayFillLate: Bool {
        guard case .after = gap else { return false }
        return !isGapFresh
    }

    /// So much was said since the gap opened that the ring no longer tells what of a history was shown.
    func isOutrun(total: Int) -> Bool {
        guard case .after = gap else { return false }
        return total - totalAtGap > DuplicateRing.capacity
    }

    /// What became known at this place, or later, came after the gap.
    func end(total: Int) -> Int {
        if case .after = gap { return totalAtGap }
        // Nothing was shown before somebody came.
        return missedSince == nil ? total : 0
    }

    /// What is known is up to here.
    var mark: Mark? {
        if case .after(let mark) = gap { return mark }
        return missedSince.map { Mark(id: nil, at: $0) } ?? newest
    }

    // MARK: - Holding

    /// Keeps an event for later; false when there is no room for more.
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

    // MARK: - Asking

    /// The reference of the `fetch` that is on its way over the socket.
    private(set) var ref: String?
    /// When the history that comes next was asked for; one that comes unasked, when the link was usable.
    private(set) var askedAt: MonotonicInstant?
    /// A call beside the socket has not been answered yet; there is one at a time.
    private(set) var isCallOpen = false
    /// The open call was asked for over an earlier link: its answer may miss the newest.
    private var isCallStale = false
    /// A history that came before the session was usable.
    private var early: ChatHistory?
    private(set) var tries = 0
    private(set) var limit: Int?
    /// What the last call brought, while one for more is on its way that may fail for good.
    private(set) var best: [ChatMessage]?
    /// What pages brought so far.
    struct Pages {
        /// Oldest first.
        var messages: [ChatMessage]
        /// What is newer is asked for; else what is older.
        var isForward = false
        /// They reach back to the gap.
        var isWhole = false
        /// Older ones may be missing in front of them.
        var isCut = false
    }

    /// The pages that came, while another one is on its way. One that fails is asked for again, as long as the link lives.
    private(set) var pages: Pages?
    /// Fetched of what is newer; then the rest is told to be missing.
    static let maxForward = 10 * maxShown

    /// How many messages to ask for now; nil: all, which only a call can answer.
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

    /// A question went over the socket, the first of those for several pages or another one.
    func asked(_ ref: String, isFirst: Bool, now: MonotonicInstant) {
        self.ref = ref
        if isFirst { askedAt = now }
    }

    /// The backend refuses what was asked over the socket under one of these references; false: it was not asked so.
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
        /// It was asked for over an earlier link, and is to be asked for again.
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

    /// Its answer is not awaited any more.
    func dropCall() { isCallOpen = false }

    /// A history came before the session was usable.
    func cameEarly(_ history: ChatHistory) { early = history }

    func takeEarly() -> ChatHistory? {
        defer { early = nil }
        return early
    }

    /// It is asked for again, over the same link.
    func askOnceMore() {
        retry?.isAsking = true
        askedEnough()
    }

    /// The answer is on its way; should it not come, it is asked for again.
    func awaitRetry() { retry = Retry(failures: 0, isAsking: true) }

    /// A history failed once more. Returns after what it is asked for again.
    func failed() -> Duration {
        let failures = retry?.failures ?? 0
        retry = Retry(failures: failures + 1, isAsking: false)
        return Self.retryPauses[min(failures, Self.retryPauses.count - 1)]
    }

    func endRetries() { retry = nil }

    /// Whether the room is to be told of a gap that stays open; not a second time.
    func tellDelay() -> Bool {
        guard case .after = gap, !isDelayTold else { return false }
        isDelayTold = true
        return true
    }

    /// The room was told in other words.
    func delayIsTold() { isDelayTold = true }

    func told(newestFirst: Bool) { isToldNewestFirst = newestFirst }

    /// More is asked for; should that fail for good, this is what there is.
    func keepBest(_ messages: [ChatMessage]) { best = messages }

    /// The most messages that came at a time, of those in ``pages``.
    private var pageSize = 0
    /// What was asked for was said before this.
    private var askedBefore: ChatTimestamp?

    /// So many messages came, which are not all.
    func gotPage(of count: Int, _ inHand: Pages) {
        pageSize = pages == nil ? count : max(pageSize, count)
        (pages, best) = (inHand, inHand.messages)
    }

    func dropPages() { pages = nil }

    /// No backend gives fewer at a time.
    private static let smallestFull = 20

    /// When the end of what is in hand was said, by the backend's clock or those of senders; nil: it has no times.
    private func end(of messages: some Collection<ChatMessage>) -> ChatTimestamp? {
        // The clock of one sender may be wrong. But most of a page is to be new.
        let witnesses = sendersTellTime ? min(Self.witnesses, max(pageSize / 3, 1)) : 1
        let times = messages.lazy.compactMap(\.at).prefix(witnesses).sorted()
        return times.dropFirst(times.count / 2).first
    }

    /// By when all that is older than what is in hand was said.
    func nextBefore(_ messages: [ChatMessage]) -> ChatTimestamp? {
        // What was said in the same moment may be older.
        askedBefore = end(of: messages).map { at in
            ChatTimestamp(milliseconds: at.milliseconds < .max ? at.milliseconds + 1 : .max)
        }
        return askedBefore
    }

    /// Since when all that is newer than what is in hand was said.
    func nextSince(_ messages: [ChatMessage]) -> ChatTimestamp? { end(of: messages.reversed()) }

    /// Whether a page in which there is nothing new is what the backend has before what was asked for, and not what it has
    /// whatever is asked.
    func isBefore(_ page: [ChatMessage]) -> Bool {
        page.allSatisfy { message in message.at.map { at in askedBefore.map { at < $0 } ?? false } ?? false }
    }

    /// Which of a page are among others.
    private static func areKnown(_ page: [ChatMessage], among others: [ChatMessage]) -> [Bool] {
        struct Key: Hashable {
            var id: ChatID?
            var sender: ChatID?
        }
        let keys = Set(others.lazy.filter { $0.id != nil }.map { Key(id: $0.id, sender: $0.sender.id) })
        let nameless = others.filter { $0.id == nil }
        return page.map { message in
            message.id == nil
                ? nameless.contains { TextDuplicates.areAlike($0, message) }
                : keys.contains(Key(id: message.id, sender: message.sender.id))
        }
    }

    /// Of a page that was asked for as newer than others: what is not in them, and whether it shows that there is no more.
    func newer(in page: [ChatMessage], than known: [ChatMessage]) -> (messages: [ChatMessage], isEnd: Bool) {
        let isKnown = Self.areKnown(page, among: known)
        let news = page.indices.filter { !isKnown[$0] }.map { page[$0] }
        guard news.isEmpty, let first = known.first, let last = known.last, !page.isEmpty else {
            return (news, news.isEmpty)
        }
        // Of one moment there may be more than the backend gives at a time.
        let isFull = pageSize >= Self.smallestFull && page.count >= pageSize
        let ends = Self.areKnown([first, last], among: page)
        return ([], ends[1] && (!isFull || ends[0]))
    }

    /// Of a page that was asked for as older than others: what is not in them, and older. Nothing, where the backend has
    /// nothing older, and where it does not go by what it is asked.
    ///
    /// - Parameters:
    ///   - page: oldest first.
    ///   - known: the others, oldest first.
    static func older(in page: [ChatMessage], than known: [ChatMessage]) -> [ChatMessage] {
        guard let oldest = known.first else { return page }
        let isKnown = areKnown(page, among: known)
        func isOlder(_ message: ChatMessage) -> Bool {
            guard let at = message.at, let oldestAt = oldest.at else { return false }
            return at <= oldestAt
        }
        // Where nothing is known of it, it lies in front of all that is, or has nothing to do with it.
        guard let border = isKnown.firstIndex(of: true) ?? (page.first.map(isOlder) ?? false ? page.count : nil) else {
            return []
        }
        return page.indices.filter { !isKnown[$0] && ($0 < border || isOlder(page[$0])) }.map { page[$0] }
    }

    var mayAskAgain: Bool { tries <= Self.limitedTries && !isCareful }

    /// Whether a page reaches back to the gap.
    ///
    /// A short page proves nothing: servers have limits of their own. It must have something that was shown before the gap,
    /// or be empty, since the question began there.
    ///
    /// By times alone the newest known message being among them is not enough: a backend that orders by whole seconds cuts
    /// the oldest of them anywhere, and may keep what is known of it and leave out what came after. With something older
    /// in hand, that second is whole.
    ///
    /// - Parameters:
    ///   - isCut: the backend may have more that is older.
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

    // MARK: - What was seen

    /// A message of the backend was seen. One without a time of the backend's moves the mark by its id alone; one from the
    /// future was said now, so that a wrong clock does not put all that follows before it; and what was noted while our own
    /// clock was ahead was said no later than now.
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
            // It came later, whatever its sender's clock says.
            if sendersTellTime, let id { newest?.id = id }
            return
        }
        newest = Mark(id: id ?? newest?.id, at: at ?? newest?.at)
    }

    /// From when on a history is asked for: before what the last ones said of the time, of whom one may have a clock that is
    /// right, even where ours is not.
    ///
    /// - Parameter provenUntil: what was said before that has come. A time that a sender's clock tells says nothing of it:
    ///   read late, it counts as past, and others may have spoken before it.
    func since(_ mark: Mark, provenUntil: ChatTimestamp?, wall: ChatTimestamp) -> ChatTimestamp? {
        guard let at = mark.at else { return nil }
        var since = min(said.min() ?? at, at, wall)
        if sendersTellTime, let provenUntil { since = min(since, provenUntil) }
        return isFromBefore && sendersTellTime ? HistoryPage.withoutLead(since) : since
    }

    /// As many of the oldest as tell what is older, whatever a few wrong clocks say.
    private static let witnesses = 15

    /// A time ahead of our clock then and now is a wrong one; one ahead of it then was right if it no longer is.
    private func horizon(for page: HistoryPage, wall: ChatTimestamp) -> ChatTimestamp? {
        if let missedSince { return missedSince }
        guard let horizon, let horizonWall, horizon > wall, !page.isOurClockBehind else { return horizon }
        return min(horizon, horizonWall, wall)
    }

    /// The oldest of what was taken in without being shown.
    ///
    /// - Parameter oldest: the times of the oldest, in the order of the room; the first few count.
    func remembered(oldest: [ChatTimestamp], wall: ChatTimestamp) {
        let times = oldest.prefix(Self.witnesses).sorted()
        guard !times.isEmpty else { return horizon = nil }
        let middle = times[(times.count - 1) / 2]
        horizon = middle
        horizonWall = wall
    }

    /// The same of what an earlier process took in: when it did is not known, only by how much a time that was shown can be
    /// ahead of that.
    func remembered(before oldest: [ChatTimestamp], wall: ChatTimestamp) {
        remembered(oldest: oldest, wall: wall)
        if sendersTellTime, let horizon { horizonWall = min(wall, HistoryPage.withoutLead(horizon)) }
    }

    /// So many ids have gone through the ring: what it has forgotten counts as shown.
    func ringTurned(to total: Int) {
        while total >= nextRingMark {
            if let ringMark { horizon = horizon.map { max($0, ringMark) } ?? ringMark }
            ringMark = newest?.at ?? ringMark
            nextRingMark += DuplicateRing.capacity / 2
        }
    }

    /// Times of what was said as the link opened may lie before that by this much: some count whole seconds.
    private static let openingTolerance: Int64 = 2000

    /// A message of the first history was remembered and not shown.
    func remembered(_ key: DuplicateRing.Key, at: ChatTimestamp?) {
        guard let at, let openedAt else { return }
        let age = openedAt.milliseconds.subtractingReportingOverflow(at.milliseconds)
        if !age.overflow, age.partialValue <= Self.openingTolerance { quiet.insert(key) }
    }

    /// Whether a message of the first history bears a time since the link opened, as far as clocks agree.
    func isSaidOverThisLink(_ at: ChatTimestamp?) -> Bool {
        guard let at, let openedAt else { return false }
        let age = openedAt.milliseconds.subtractingReportingOverflow(at.milliseconds)
        return !age.overflow && age.partialValue <= Self.serverClockTolerance
    }

    /// Whether a frame that came live is the first to show a message of the first history.
    func takeQuiet(_ key: DuplicateRing.Key) -> Bool { !quiet.isEmpty && quiet.remove(key) != nil }

    /// There is no knowing what was said before now. Whoever was here before missed it.
    func gaveUpOnThePast(wall: ChatTimestamp) {
        guard gap == .everything else { return }
        if let since = missedSince {
            gap = .after(Mark(id: nil, at: since))
            isUnmarked = true
            newest = newest ?? Mark(id: nil, at: since)
            horizon = since
            return
        }
        let known = newest ?? Mark(id: nil, at: firstOpenedAt ?? wall)
        // People were there over an earlier link: what came since was missed.
        gap = newest != nil || connection > 1 ? .after(known) : nil
        newest = known
        horizon = horizon ?? firstOpenedAt ?? known.at
    }

    /// Which of a page were missed, by their places in what is told; which ids are known is for the caller to say.
    ///
    /// With an id, that is what the backend puts behind something that was shown before the gap; nothing that it puts before
    /// all of that. Where only times tell the order, it is also what is newer than the horizon. Without an id, and of our own
    /// where nobody tells us their ids, it is what is newer than the newest known message.
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

    /// The same of the first history. A time that lies ahead of us says nothing; such a message was said when its neighbours
    /// in the backend's order were.
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

    /// The messages, oldest first, from which on they were missed, by their times.
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

    /// By time, then by number where ids are numbers; what has no time stays behind what the backend put before it.
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

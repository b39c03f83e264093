import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms
import WireBytes

/// A history answer on its way to a client.
///
/// | phase    | meaning                                   | leaves by                                               |
/// |----------|-------------------------------------------|---------------------------------------------------------|
/// | begun    | queued behind other answers               | its turn → placing (a page), writing                    |
/// | placing  | the page's positions are being read       | done → fetching, writing; failure, time-out → failed    |
/// | fetching | older messages are being requested        | answer → placing; none, time-out → placing, a last time |
/// | reading  | messages are being read, or searched      | done → writing, reading; failure, time-out → failed     |
/// | writing  | lines go out as the client's queue drains | all read ones are written → reading, over               |
/// | failed   | a refusal goes out                        | over                                                    |
///
/// While it waits the client's later lines wait too, so that answers come in the order of the requests; other clients
/// are not delayed.
package final class HistoryAnswer {
    /// Messages in one read of the store, as many as of a backlog: they may be large.
    static let readCount = Backlog.pageCount
    /// Time limit of one read, and of all steps of a search.
    static let patience: Duration = .seconds(10)
    /// Bytes of text examined by one search: about a second of work.
    static let maxSearchedBytes = 256 << 20
    /// Bytes, about, of the matches of a search, which are held until it is complete.
    static let maxFoundBytes = 16 << 20
    /// Time limit of the backend; then the page consists of the messages at hand.
    static let backendPatience: Duration = .seconds(10)
    /// Requests to the backend for one page.
    static let maxFetches = 10

    enum Phase: Equatable {
        case begun
        case placing(StoreReadID)
        case fetching
        case reading(StoreReadID)
        case writing
        case failed(HistoryRefusal)
    }

    /// The request that is answered.
    enum Question {
        case page(RoomID, subcommand: String, target: String, StoredPageQuery)
        /// Of a private conversation.
        case conversation(PrivateView, subcommand: String, target: String, StoredPageQuery)
        case search(StoredSearch)
        /// Lines that are known.
        case lines
    }

    /// The room or the conversation of a message.
    enum Place {
        case room(RoomID)
        case conversation(PrivateView)
    }

    struct Row {
        var place: Place
        var message: StoredMessage
    }

    let client: ClientID
    private(set) var question: Question
    /// The answer's form as text of the service; nil: the form of CHATHISTORY and SEARCH.
    private(set) var reading: ServiceReading?
    /// Parameters of the BATCH, behind its reference.
    let batchParams: [String]
    let label: String?
    private(set) var phase = Phase.begun
    /// The query sent to the store for a page.
    private(set) var asked: StoredPageQuery?
    /// The deadline of the room's backend; nil: it was not asked.
    private var backendDeadline: MonotonicInstant?
    private var fetchCount = 0
    /// The backend has nothing more.
    private var takesNoOlder = false
    /// The backend was asked, and did not answer.
    private(set) var hasBackendFailed = false
    /// The page's positions, in order; those before `readUpTo` are read.
    private var places: [Int64] = []
    private var readUpTo = 0
    /// Rooms and conversations still to be searched, the next one last.
    private(set) var placesLeft: [Place]
    /// The next step in the place being searched; nil: the first one.
    private(set) var searchRest: StoredSearch?
    /// The deadline of the search.
    private var searchUntil = MonotonicInstant(nanoseconds: .max)
    private var searchedBytes = 0
    /// There may be more matches than those found.
    private(set) var isSearchCut = false
    /// Matches, oldest first.
    private(set) var found: [Row] = []
    /// The messages of a page from which a client requests the next page.
    private(set) var ends = PageBoundaries()
    /// Rows that are not rendered yet, the last one first.
    private var rows: [Row] = []
    /// Lines to write, the last one first.
    private var lines: [IRCMessage]
    private(set) var batch: String?
    private(set) var hasBegun = false
    private(set) var hasWritten = false

    init(
        _ client: ClientID, _ question: Question, as reading: ServiceReading? = nil, batch batchParams: [String] = [],
        label: String? = nil, lines: [IRCMessage] = [], places: [Place] = []
    ) {
        self.client = client
        self.question = question
        self.batchParams = batchParams
        self.label = label
        self.reading = reading
        self.lines = lines.reversed()
        placesLeft = places.reversed()
    }

    // MARK: - Phases

    /// Starts the answer.
    func begin(now: MonotonicInstant) {
        phase = .writing
        if isSearch { searchUntil = now + Self.patience }
    }

    /// Waits for the store or the backend.
    func wait(_ phase: Phase) { self.phase = phase }

    /// Notes the query sent to the store for a page of a room.
    func ask(_ query: StoredPageQuery) { asked = query }

    /// Replaces the request: other references, or another place.
    func ask(instead question: Question) { self.question = question }

    /// Takes an answer of the store; false: it is no longer expected.
    func answered(_ id: StoreReadID) -> Bool {
        guard phase == .reading(id) else { return false }
        phase = .writing
        return true
    }

    /// Fails: written lines stay, an answer that has not begun is refused.
    ///
    /// - Parameter refusal: nil: the store or the backend failed.
    func fail(_ refusal: HistoryRefusal? = nil) { phase = .failed(refusal ?? failure) }

    // MARK: - Older messages

    /// Time left for older messages of the backend; nil: it is not asked any more.
    func backendPatience(now: MonotonicInstant) -> Duration? {
        guard !takesNoOlder, fetchCount < Self.maxFetches else { return nil }
        let deadline = backendDeadline ?? now + Self.backendPatience
        backendDeadline = deadline
        return deadline - now
    }

    /// Notes a request to the backend.
    func fetching() {
        fetchCount += 1
        phase = .fetching
    }

    /// Notes the backend's answer: older messages, or none.
    func fetched(_ hasCome: Bool) {
        takesNoOlder = !hasCome
        hasBackendFailed = !hasCome
    }

    /// Notes that older messages exist, but are not available.
    func missesOlder() { hasBackendFailed = true }

    // MARK: - Pages

    /// Sets the content of the page.
    ///
    /// - Parameters:
    ///   - front: messages at hand, oldest first.
    ///   - places: positions of the messages behind them.
    func placed(_ front: [Row], places: [Int64]) {
        rows = front.reversed()
        self.places = places
        readUpTo = 0
        phase = .writing
    }

    /// The next positions to read; nil: all are read.
    var nextRead: (after: Int64, through: Int64)? {
        guard readUpTo < places.count else { return nil }
        let last = min(readUpTo + Self.readCount, places.count) - 1
        return (places[readUpTo] &- 1, places[last])
    }

    /// Takes the store's answer to ``nextRead``. Rows that are not in the page are left out.
    func take(_ read: [StoredMessage], of place: Place) {
        guard let (after, through) = nextRead else { return }
        let end = min(readUpTo + Self.readCount, places.count)
        let wanted = Set(places[readUpTo..<end])
        rows = read.filter { $0.sequence > after && $0.sequence <= through && wanted.contains($0.sequence) }
            .sorted { $0.sequence > $1.sequence }.map { Row(place: place, message: $0) }
        // A read has a limit, and there may be other rows between the page's.
        let reached = read.count < Self.readCount ? through : read.last?.sequence ?? through
        while readUpTo < end, places[readUpTo] <= reached { readUpTo += 1 }
    }

    // MARK: - Searches

    /// Skips the next place, which cannot be searched.
    func skipPlace() { placesLeft.removeLast() }

    /// Takes a step's result. Of all matches, the newest are shown, or the oldest in a search from a time on.
    func searched(_ search: StoredSearch, _ step: StoredSearchStep, now: MonotonicInstant) {
        guard let place = placesLeft.last else { return }
        searchRest = step.rest
        if step.rest == nil { placesLeft.removeLast() }
        if step.isCut { isSearchCut = true }
        searchedBytes += step.byteCount
        if !step.found.isEmpty { keep(step.found, of: place, search) }
        guard !placesLeft.isEmpty else { return }
        if searchedBytes >= Self.maxSearchedBytes || searchUntil <= now {
            isSearchCut = true
            placesLeft = []
        }
    }

    /// Retains matches up to the limits.
    private func keep(_ more: [StoredMessage], of place: Place, _ search: StoredSearch) {
        let all = (found + more.map { Row(place: place, message: $0) }).enumerated()
            .sorted { ($0.element.message.at, $0.offset) < ($1.element.message.at, $1.offset) }.map(\.element)
        var byteCount = 0
        func hasRoom(_ row: Row) -> Bool {
            byteCount += row.message.memoryByteCount
            return byteCount <= Self.maxFoundBytes
        }
        let best = search.isForwards ? Array(all.prefix(search.limit)) : all.suffix(search.limit).reversed()
        let kept = best.prefix(while: hasRoom)
        if kept.count < best.count { isSearchCut = true }
        found = search.isForwards ? Array(kept) : kept.reversed()
    }

    /// Takes the matches of the completed search as rows.
    func takeFound() {
        rows = found.reversed()
        found = []
    }

    // MARK: - Lines

    /// - Parameter batch: the reference of its batch; nil: it has none.
    func begun(batch reference: String?) {
        hasBegun = true
        batch = reference
    }

    /// The next line; nil at the end of the rows read.
    func nextLine(_ render: (Row) -> [IRCMessage]) -> IRCMessage? {
        while lines.isEmpty, let row = rows.popLast() {
            lines = render(row).reversed()
            ends.told(row.message)
        }
        guard let line = lines.popLast() else { return nil }
        hasWritten = true
        return line
    }

    // MARK: - Text of the service

    /// Counts a message shown by the service.
    ///
    /// - Parameter isInList: it is one of several.
    func told(_ msgid: String, isInList: Bool) { reading?.told(msgid, isInList: isInList) }

    /// Counts a message left out, of a muted user.
    func leftOut() { reading?.leftOut() }

    /// The next room to search for a message; nil: there is none.
    func nextRoom() -> RoomID? { reading?.nextRoom() }

    /// Starts again in another place.
    func beginAgain(_ question: Question) {
        self.question = question
        phase = .begun
    }

    var isSearch: Bool { if case .search = question { true } else { false } }

    /// The FAIL for a failure of the store or the backend.
    private var failure: HistoryRefusal {
        switch question {
        case .page(_, let subcommand, let target, _), .conversation(_, let subcommand, let target, _):
            HistoryRefusal(
                code: "MESSAGE_ERROR", context: [subcommand, target], text: "Messages could not be retrieved")
        case .search, .lines:
            HistoryRefusal(
                command: "SEARCH", code: "INTERNAL_ERROR", context: ["*"], text: "The search could not be run")
        }
    }
}

/// The messages that a page may consist of: those of the backend before the room's beginning, as far as they are at
/// hand, and those of the store.
struct KnownOrder: StoredOrder {
    let older: [StoredMessage]
    let kept: StoredPlaces
    let query: StoredPageQuery

    /// - Parameter asked: the query that the store answered.
    init(older: [StoredMessage], _ asked: StoredPageQuery, _ kept: StoredPlaces) {
        self.older = older
        self.kept = kept
        query = asked
    }

    func span(of reference: StoredReference, index: Int) -> StoredSpan? {
        let span = kept.spans.indices.contains(index) ? kept.spans[index] : nil
        switch reference {
        case .beginning, .timeOrBeginning, .place: return span
        case .message(let msgid), .messageOrTime(let msgid, _):
            guard let row = older.first(where: { $0.msgid == msgid }) else { return span }
            return StoredSpan(start: row.sequence, end: row.sequence &+ 1)
        case .time(let at):
            // Any message with exactly this time matches, here or there.
            let isKept = query.references.indices.contains(index) && query.references[index] == .timeOrBeginning(at)
            if isKept, span != .beginning { return span }
            guard let first = older.first(where: { $0.at >= at }) else { return span }
            guard older.contains(where: { $0.at == at }) else {
                return StoredSpan(start: first.sequence, end: first.sequence)
            }
            return StoredRows(older, for: query).span(of: reference, index: index)
        }
    }

    private func places(from lower: Int64, before upper: Int64) -> [Int64] {
        let front = older.lazy.filter(query.shows).map(\.sequence)
        return (Array(front) + kept.sequences).filter { $0 >= lower && $0 < upper }
    }

    func oldest(_ limit: Int, from lower: Int64, before upper: Int64) -> [Int64] {
        Array(places(from: lower, before: upper).prefix(limit))
    }

    func newest(_ limit: Int, from lower: Int64, before upper: Int64) -> [Int64] {
        Array(places(from: lower, before: upper).suffix(limit))
    }

    /// Whether the page could be different, if there were messages older than all of these.
    func wantsOlder(_ query: StoredPageQuery, _ found: [Int64], _ spans: [StoredSpan]) -> Bool {
        // The store omits the beginning where a page does not reach it.
        guard query.limit > 0, spans.count == query.references.count,
            !older.isEmpty || !kept.beginning.isEmpty || kept.sequences.isEmpty
        else { return false }
        let first = older.first?.sequence ?? kept.beginning.first?.sequence ?? .max
        /// A time before all known messages may be among older ones; the time of a known message is settled.
        func isOpen(_ reference: StoredReference, _ span: StoredSpan) -> Bool {
            if reference.time != nil { span.start <= first && span.start == span.end } else { false }
        }
        switch query.selection {
        case .newest(let after, _):
            return found.count < query.limit && (after.map { isOpen($0, spans[0]) } ?? true)
        case .oldest(let after): return isOpen(after, spans[0])
        case .around(let place):
            return found.count { $0 < spans[0].start } < query.limit / 2 || isOpen(place, spans[0])
        case .between(let from, let to):
            if query.isForwards(spans) { return isOpen(from, spans[0]) }
            return found.count < query.limit && isOpen(to, spans[1])
        }
    }
}

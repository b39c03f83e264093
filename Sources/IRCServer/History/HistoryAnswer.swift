import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms
import WireBytes

/// What a client asked to see of the past, on its way to it.
///
/// | phase    | meaning                                                   | leaves by                                             |
/// |----------|-----------------------------------------------------------|--------------------------------------------------------|
/// | begun    | waits behind other answers                                | its turn → placing, searching, writing                 |
/// | placing  | the store was asked where the page lies                   | answer → fetching, writing; failure, time-out → failed |
/// | fetching | the room's backend was asked for older messages           | answer → placing; none, time-out → placing, for the last time |
/// | reading  | the store was asked for some messages of the page, or to look for some | answer → writing, reading; failure, time-out → failed |
/// | writing  | lines go out as the client's queue drains                 | all read are written → reading, over                   |
/// | failed   | a refusal goes out                                        | over                                                   |
///
/// While it waits the client's later lines wait too, so that answers come in the order of the questions; nobody else's do.
package final class HistoryAnswer {
    /// Messages in one answer of the store, as many as a backlog reads: they may be large.
    static let readCount = Backlog.pageCount
    /// How long the disk may take for one question, and for all steps of a search.
    static let patience: Duration = .seconds(10)
    /// Bytes of texts that one search looks at: about a second of work.
    static let maxSearchedBytes = 256 << 20
    /// Bytes, about, of the messages that a search found and that wait until all was searched.
    static let maxFoundBytes = 16 << 20
    /// How long older messages are waited for: then there is what there is.
    static let backendPatience: Duration = .seconds(10)
    /// Questions to the backend for one page.
    static let maxFetches = 10

    enum Phase: Equatable {
        case begun
        case placing(StoreReadID)
        case fetching
        case reading(StoreReadID)
        case writing
        case failed(HistoryRefusal)
    }

    /// What is answered.
    enum Question {
        case page(RoomID, subcommand: String, target: String, StoredPageQuery)
        /// Of a private conversation.
        case conversation(PrivateView, subcommand: String, target: String, StoredPageQuery)
        case search(StoredSearch)
        /// Lines that are known.
        case lines
    }

    /// Where something was said.
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
    /// How the service tells it; nil: as CHATHISTORY and SEARCH do.
    private(set) var reading: ServiceReading?
    /// Of the BATCH, behind its reference.
    let batchParams: [String]
    let label: String?
    private(set) var phase = Phase.begun
    /// What the store was asked for a page.
    private(set) var asked: StoredPageQuery?
    /// The room's backend has time until then; nil: it was not asked.
    private var backendDeadline: MonotonicInstant?
    private var fetchCount = 0
    /// The backend gives nothing more.
    private var takesNoOlder = false
    /// It was asked, and did not answer.
    private(set) var hasBackendFailed = false
    /// Places in the page that are not read yet, in order; those before `readUpTo` are.
    private var places: [Int64] = []
    private var readUpTo = 0
    /// What is to be searched, the next one last.
    private(set) var placesLeft: [Place]
    /// The next step in the place that is searched now; nil: the first one.
    private(set) var searchRest: StoredSearch?
    /// No step of the search is taken later than this.
    private var searchUntil = MonotonicInstant(nanoseconds: .max)
    private var searchedBytes = 0
    /// There may be more that matches than what was found.
    private(set) var isSearchCut = false
    /// What was found, oldest first.
    private(set) var found: [Row] = []
    /// Of a page, the messages to which somebody goes back who asks for the next one.
    private(set) var ends = PageEnds()
    /// What is not rendered yet, the last one first.
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

    /// Its turn has come.
    func begin(now: MonotonicInstant) {
        phase = .writing
        if isSearch { searchUntil = now + Self.patience }
    }

    /// The store or the backend was asked.
    func wait(_ phase: Phase) { self.phase = phase }

    /// The store is to be asked this about a page of a room.
    func ask(_ query: StoredPageQuery) { asked = query }

    /// The page is to be found by other references, or in another place.
    func ask(instead question: Question) { self.question = question }

    /// The store answers; false: that is waited for no longer.
    func answered(_ id: StoreReadID) -> Bool {
        guard phase == .reading(id) else { return false }
        phase = .writing
        return true
    }

    /// What is written stays written; what is not begun is refused.
    ///
    /// - Parameter refusal: nil: the store or the backend does not do its part.
    func fail(_ refusal: HistoryRefusal? = nil) { phase = .failed(refusal ?? failure) }

    // MARK: - Older messages

    /// How long the backend may take for older messages; nil: it is not asked any more.
    func backendPatience(now: MonotonicInstant) -> Duration? {
        guard !takesNoOlder, fetchCount < Self.maxFetches else { return nil }
        let deadline = backendDeadline ?? now + Self.backendPatience
        backendDeadline = deadline
        return deadline - now
    }

    /// The backend was asked.
    func fetching() {
        fetchCount += 1
        phase = .fetching
    }

    /// The backend gave something, or nothing.
    func fetched(_ hasCome: Bool) {
        takesNoOlder = !hasCome
        hasBackendFailed = !hasCome
    }

    /// There would be something older, and it is not to be had.
    func missesOlder() { hasBackendFailed = true }

    // MARK: - Pages

    /// The page is known.
    ///
    /// - Parameters:
    ///   - front: messages that are here already, oldest first.
    ///   - places: of those that come behind them.
    func placed(_ front: [Row], places: [Int64]) {
        rows = front.reversed()
        self.places = places
        readUpTo = 0
        phase = .writing
    }

    /// The next places to read; nil: all are.
    var nextRead: (after: Int64, through: Int64)? {
        guard readUpTo < places.count else { return nil }
        let last = min(readUpTo + Self.readCount, places.count) - 1
        return (places[readUpTo] &- 1, places[last])
    }

    /// An answer of the store to ``nextRead``. What is not in the page is left out.
    func take(_ read: [StoredMessage], of place: Place) {
        guard let (after, through) = nextRead else { return }
        let end = min(readUpTo + Self.readCount, places.count)
        let wanted = Set(places[readUpTo..<end])
        rows = read.filter { $0.sequence > after && $0.sequence <= through && wanted.contains($0.sequence) }
            .sorted { $0.sequence > $1.sequence }.map { Row(place: place, message: $0) }
        // The store reads so many at a time, and between the page's messages there may be others.
        let reached = read.count < Self.readCount ? through : read.last?.sequence ?? through
        while readUpTo < end, places[readUpTo] <= reached { readUpTo += 1 }
    }

    // MARK: - Searches

    /// The place that is next cannot be searched.
    func skipPlace() { placesLeft.removeLast() }

    /// One more step was taken. Of all that was found, the newest are shown, or the oldest where they are looked for from a
    /// time on.
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

    /// Of all that was found, as much as is shown.
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

    /// Everything was searched.
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

    /// The next line; nil at the end of what was read.
    func nextLine(_ render: (Row) -> [IRCMessage]) -> IRCMessage? {
        while lines.isEmpty, let row = rows.popLast() {
            lines = render(row).reversed()
            ends.told(row.message)
        }
        guard let line = lines.popLast() else { return nil }
        hasWritten = true
        return line
    }

    // MARK: - The service's words

    /// The service told a message.
    ///
    /// - Parameter isInList: among others.
    func told(_ msgid: String, isInList: Bool) { reading?.told(msgid, isInList: isInList) }

    /// A message of somebody muted is left out.
    func leftOut() { reading?.leftOut() }

    /// A message that the last room did not have is looked for in this one; nil: in none.
    func nextRoom() -> RoomID? { reading?.nextRoom() }

    /// The same is looked for elsewhere.
    func beginAgain(_ question: Question) {
        self.question = question
        phase = .begun
    }

    var isSearch: Bool { if case .search = question { true } else { false } }

    /// The FAIL when the store or the backend does not do its part.
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

/// The messages that a page may consist of: what the backend has of before the room's beginning, as far as it is here, and
/// what the store said of its own.
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
            // Whoever bears this very time is meant, here or there.
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

    /// Whether the page may be another one if there were messages older than all of these.
    func wantsOlder(_ query: StoredPageQuery, _ found: [Int64], _ spans: [StoredSpan]) -> Bool {
        // What does not reach the room's beginning comes without it.
        guard query.limit > 0, spans.count == query.references.count,
            !older.isEmpty || !kept.beginning.isEmpty || kept.sequences.isEmpty
        else { return false }
        let first = older.first?.sequence ?? kept.beginning.first?.sequence ?? .max
        /// A time in front of everything known may be among what is older; one that something known bears is there.
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

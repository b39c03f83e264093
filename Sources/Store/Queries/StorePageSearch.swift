import ChatModel

/// The progress of reading a page from which some senders are left out.
///
/// The distance to enough messages of other senders is unknown: a user who mutes the most active senders has a whole
/// room read. So it is done in steps, between which other questions are answered. Each step finds the page's place anew
/// and goes on where the step before it stopped; if the place has moved by then, the results for it are dropped.
struct StorePageSearch: Sendable {
    /// Messages read in one step: a few milliseconds, in which others wait.
    static let stepCount = 2000
    /// Messages read for one page. Beyond that the client has given up waiting, and the query fails.
    static let maxReadCount = 1_000_000

    struct Range: Equatable, Sendable {
        var isForwards: Bool
        var limit: Int
        var lower: Int64
        var upper: Int64
    }

    struct Part: Sendable {
        var range: Range
        /// In the order of reading.
        var found: [Int64] = []
        /// The rest of the range; nil: all was read, or enough was found.
        var rest: Range?
    }

    /// In the order of the questions.
    var parts: [Part] = []
    var lookedCount = 0
    /// The places of times that no message has: finding one reads the times of all messages since.
    fileprivate var firstPlaces: [ChatTimestamp: Int64?] = [:]
}

/// One step of a search. It is within one question, so it stays on one thread.
final class StorePageStep {
    private(set) var search: StorePageSearch
    private var nextPart = 0
    private var left: Int
    /// Whether the step ended before the search was complete.
    private(set) var isPaused = false

    init(_ search: StorePageSearch, count: Int) {
        (self.search, left) = (search, count)
    }

    /// The place of a time, as an earlier step found it; nil: none did.
    func firstPlace(of at: ChatTimestamp) -> Int64?? { search.firstPlaces[at] }

    func remember(firstPlace place: Int64?, of at: ChatTimestamp) { search.firstPlaces[at] = .some(place) }

    /// The results in a range, as far as this step goes.
    ///
    /// - Parameter look: reads at most so many messages of a range, until so many are found: returns those found, how
    ///   many were read, and the last of these.
    func find(
        _ range: StorePageSearch.Range,
        _ look: (StorePageSearch.Range, _ most: Int, _ wanted: Int) throws(SQLiteError) -> (
            found: [Int64], count: Int, last: Int64?
        )
    ) throws(SQLiteError) -> [Int64] {
        guard !isPaused else { return [] }
        if nextPart < search.parts.count, search.parts[nextPart].range != range {
            search.parts.removeSubrange(nextPart...)
        }
        if nextPart == search.parts.count { search.parts.append(StorePageSearch.Part(range: range, rest: range)) }
        var part = search.parts[nextPart]
        while let rest = part.rest {
            guard left > 0 else {
                isPaused = true
                break
            }
            let asked = left
            let (found, count, last) = try look(rest, asked, range.limit - part.found.count)
            search.lookedCount += count
            left -= count
            part.found += found
            part.rest = nil
            if part.found.count < range.limit, count >= asked, let last {
                part.rest = rest
                if range.isForwards { part.rest?.lower = last &+ 1 } else { part.rest?.upper = last }
            }
        }
        search.parts[nextPart] = part
        nextPart += 1
        return part.found
    }
}

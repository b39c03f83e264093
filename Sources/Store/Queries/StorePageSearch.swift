import ChatModel

/// What was looked at for a page from which some people are left out.
///
/// How far away enough others spoke nobody knows: whoever mutes those who speak most has a whole room looked through. So it is
/// done in steps, between which others are answered. Each step asks anew where the page lies, and goes on where the step before
/// it stopped; should the page lie elsewhere by then, what was found for it counts no more.
struct StorePageSearch: Sendable {
    /// Messages looked at in one step: a few milliseconds, in which others wait.
    static let stepCount = 2000
    /// Messages looked at for one page. Beyond that nobody waits for the answer any more, and it fails.
    static let maxLooked = 1_000_000

    struct Range: Equatable, Sendable {
        var isForwards: Bool
        var limit: Int
        var lower: Int64
        var upper: Int64
    }

    struct Part: Sendable {
        var range: Range
        /// In the order in which they were come by.
        var found: [Int64] = []
        /// Where it goes on; nil: all was looked at, or enough was found.
        var rest: Range?
    }

    /// In the order in which they are asked for.
    var parts: [Part] = []
    var lookedCount = 0
    /// Where times stand that no message bears: finding that looks at the times of all that was said since.
    fileprivate var firstPlaces: [ChatTimestamp: Int64?] = [:]
}

/// One step of it. It is within one question, so it stays on one thread.
final class StorePageStep {
    private(set) var search: StorePageSearch
    private var nextPart = 0
    private var left: Int
    /// What was answered in this step is not all.
    private(set) var isPaused = false

    init(_ search: StorePageSearch, count: Int) {
        (self.search, left) = (search, count)
    }

    /// Where a time stands, as an earlier step found; nil: none did.
    func firstPlace(of at: ChatTimestamp) -> Int64?? { search.firstPlaces[at] }

    func remember(firstPlace place: Int64?, of at: ChatTimestamp) { search.firstPlaces[at] = .some(place) }

    /// What is found in a range, as far as this step comes.
    ///
    /// - Parameter look: looks at so many messages of a range at most, until so many are found: those found, how many were
    ///   looked at, and the last of these.
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

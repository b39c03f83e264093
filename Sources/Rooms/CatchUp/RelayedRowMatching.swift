import ChatModel

/// Matching of history rows with relayed messages, on wires with server-made ids.
///
/// Both sides are in order, oldest first, and so are the pairs of one author: as many as possible, and of several ways
/// those with the nearest times. Authors are written in turn, so between them there is no order. Another device of the
/// account may have sent the same text; each row is matched once.
///
/// A row in front of one that was known when the message was accepted is not the message. Only without such a row do
/// times decide which rows are older: no two clocks agree, and the local one may be wrong by hours.
enum RelayedRowMatching {
    struct Text {
        /// The hash of the text; see ``UnidentifiedMessages/key(_:)``.
        var key: Int
        /// Its time; nil: unknown.
        var at: ChatTimestamp?
        /// Of a message: its author.
        var author: ChatID?
        /// Of a message: the newest sequence number in the room when it was accepted; nil: unknown.
        var saidAfter: Int?
        /// Of a row: the first place of the rows behind it that the room knows.
        var firstBehind = Int.max
    }

    /// A row older than the message by more than this is another one, with any clocks.
    static let clockTolerance = HistoryPage.credibleLead
    /// One pair more outweighs any difference of times.
    private static let pairWorth: Int64 = 1 << 40
    private static let longestDistance: Int64 = 24 * 60 * 60 * 1000

    /// Matches `sent` with `rows`, as pairs of indices.
    ///
    /// - Parameter firstKnown: the first known sequence number among all rows of the page.
    static func pairs(_ sent: [Text], _ rows: [Text], firstKnown: Int = .max) -> [(sent: Int, row: Int)] {
        var groups: [ChatID?: [Int]] = [:]
        for (index, text) in sent.enumerated() { groups[text.author, default: []].append(index) }
        var free = Array(rows.indices)
        var pairs: [(sent: Int, row: Int)] = []
        for group in groups.values.sorted(by: { $0[0] < $1[0] }) {
            let found = aligned(group.map { sent[$0] }, free.map { rows[$0] }, firstKnown).map {
                (sent: group[$0.sent], row: free[$0.row])
            }
            let taken = Set(found.map(\.row))
            free.removeAll { taken.contains($0) }
            pairs += found
        }
        return pairs.sorted { $0.row < $1.row }
    }

    /// The same for one author.
    private static func aligned(_ sent: [Text], _ rows: [Text], _ firstKnown: Int) -> [(sent: Int, row: Int)] {
        let keys = Set(rows.map(\.key))
        let said = sent.indices.filter { keys.contains(sent[$0].key) }
        let wanted = Set(said.map { sent[$0].key })
        let candidates = rows.indices.filter { wanted.contains(rows[$0].key) }
        guard !said.isEmpty, !candidates.isEmpty else { return [] }
        // worth[i][j]: of the best pairs among said[i...] and candidates[j...].
        let width = candidates.count + 1
        var worth = [Int64](repeating: 0, count: (said.count + 1) * width)
        for i in said.indices.reversed() {
            for j in candidates.indices.reversed() {
                var best = max(worth[(i + 1) * width + j], worth[i * width + j + 1])
                if let pair = pairWorth(sent[said[i]], rows[candidates[j]], firstKnown) {
                    best = max(best, pair + worth[(i + 1) * width + j + 1])
                }
                worth[i * width + j] = best
            }
        }
        var pairs: [(sent: Int, row: Int)] = []
        var (i, j) = (0, 0)
        while i < said.count, j < candidates.count {
            let here = worth[i * width + j]
            if let pair = pairWorth(sent[said[i]], rows[candidates[j]], firstKnown),
                here == pair + worth[(i + 1) * width + j + 1]
            {
                pairs.append((said[i], candidates[j]))
                (i, j) = (i + 1, j + 1)
            } else if here == worth[(i + 1) * width + j] {
                i += 1
            } else {
                j += 1
            }
        }
        return pairs
    }

    private static func pairWorth(_ sent: Text, _ row: Text, _ firstKnown: Int) -> Int64? {
        guard sent.key == row.key else { return nil }
        let isPlaced = sent.saidAfter.map { firstKnown <= $0 } ?? false
        if let place = sent.saidAfter, row.firstBehind <= place { return nil }
        guard let said = sent.at, let stored = row.at else { return pairWorth - longestDistance }
        let (later, over) = stored.milliseconds.subtractingReportingOverflow(said.milliseconds)
        guard !over, later > .min else { return isPlaced ? pairWorth - longestDistance : nil }
        guard isPlaced || later >= -clockTolerance else { return nil }
        return pairWorth - min(abs(later), longestDistance)
    }
}

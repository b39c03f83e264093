import BridgeTestSupport
import ChatModel
import Testing

@testable import Rooms

@Suite("RelayedRowMatching")
struct RelayedRowMatchingTests {
    struct Row: CustomTestStringConvertible {
        var name: String
        /// `text@second`, oldest first.
        var sent: [String]
        var rows: [String]
        /// For each of `sent`: its index in `rows`.
        var places: [Int?]
        var testDescription: String { name }
    }

    static let rows = [
        Row(name: "nothing", sent: [], rows: ["a@1"], places: []),
        Row(name: "one", sent: ["a@1"], rows: ["a@2"], places: [0]),
        Row(name: "the last is missing", sent: ["a@1", "b@2"], rows: ["a@1"], places: [0, nil]),
        Row(name: "the first is missing", sent: ["a@1", "b@2"], rows: ["b@2"], places: [nil, 0]),
        Row(name: "others between", sent: ["a@1", "b@2"], rows: ["x@0", "a@1", "y@1", "b@2", "z@3"], places: [1, 3]),
        Row(name: "said twice, there twice", sent: ["a@1", "a@5"], rows: ["a@1", "a@5"], places: [0, 1]),
        Row(name: "said twice, the first is there", sent: ["a@1", "a@50"], rows: ["a@1"], places: [0, nil]),
        Row(name: "said twice, the second is there", sent: ["a@1", "a@50"], rows: ["a@50"], places: [nil, 0]),
        Row(name: "each row once", sent: ["a@1", "a@2", "a@3"], rows: ["a@2"], places: [nil, 0, nil]),
        Row(name: "in order, never crossed", sent: ["a@1", "b@2"], rows: ["b@1", "a@2"], places: [nil, 0]),
        Row(name: "long before it was said", sent: ["a@1000"], rows: ["a@10"], places: [nil]),
        Row(name: "within what clocks differ", sent: ["a@300"], rows: ["a@10"], places: [0]),
        Row(name: "no times", sent: ["a", "b"], rows: ["a", "b"], places: [0, 1]),
    ]

    private static func text(_ words: String) -> RelayedRowMatching.Text {
        let parts = words.split(separator: "@")
        return RelayedRowMatching.Text(
            key: UnidentifiedMessages.key(String(parts[0])),
            at: parts.count > 1 ? Int64(parts[1]).map { ChatTimestamp(milliseconds: $0 * 1000) } : nil)
    }

    @Test("rows are matched in order, each once, the nearest in time", arguments: rows)
    func table(_ row: Row) {
        let pairs = RelayedRowMatching.pairs(row.sent.map(Self.text), row.rows.map(Self.text))
        let places = row.sent.indices.map { index in pairs.first { $0.sent == index }?.row }
        if row.name == "in order, never crossed" {
            #expect(places.compactMap(\.self).count == 1)
        } else {
            #expect(places == row.places)
        }
    }

    @Test("sequence numbers determine older rows, with any clocks")
    func placed() {
        typealias Text = RelayedRowMatching.Text
        func at(_ seconds: Int64) -> ChatTimestamp { ChatTimestamp(milliseconds: seconds * 1000) }
        // The local clock is a day ahead.
        let sent = [Text(key: 1, at: at(86_400), saidAfter: 7)]
        let rows = [Text(key: 1, at: at(10), firstBehind: 7), Text(key: 1, at: at(11))]
        #expect(RelayedRowMatching.pairs(sent, rows, firstKnown: 7).map(\.row) == [1])
        #expect(RelayedRowMatching.pairs(sent, [rows[0]], firstKnown: 7).isEmpty)
        #expect(RelayedRowMatching.pairs(sent, rows, firstKnown: 8).isEmpty, "nothing in the page is older")
    }

    @Test("authors take turns, so rows of different authors may be out of order; each row is matched once")
    func authors() {
        typealias Text = RelayedRowMatching.Text
        func said(_ key: Int, _ author: String) -> Text { Text(key: key, at: nil, author: ChatID(author)) }
        let sent = [said(1, "ann"), said(2, "ann"), said(3, "bob"), said(4, "ann"), said(5, "bob")]
        let rows = [3, 1, 5, 2, 4].map { Text(key: $0, at: nil) }
        let pairs = RelayedRowMatching.pairs(sent, rows)
        #expect(pairs.map(\.row) == [0, 1, 2, 3, 4])
        #expect(pairs.map { sent[$0.sent].key } == [3, 1, 5, 2, 4])
        #expect(RelayedRowMatching.pairs([said(1, "ann"), said(1, "bob")], [Text(key: 1, at: nil)]).count == 1)
    }

    @Test("pairs never cross, have equal texts, and are as many as possible", arguments: LawSeeds.seeds(200))
    func properties(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        func draw() -> [RelayedRowMatching.Text] {
            (0..<Int.random(in: 0...8, using: &random)).map { place in
                RelayedRowMatching.Text(
                    key: Int.random(in: 0...2, using: &random), at: ChatTimestamp(milliseconds: Int64(place) * 1000))
            }
        }
        let (sent, rows) = (draw(), draw())
        let pairs = RelayedRowMatching.pairs(sent, rows)
        #expect(pairs.allSatisfy { sent[$0.sent].key == rows[$0.row].key })
        #expect(zip(pairs, pairs.dropFirst()).allSatisfy { $0.sent < $1.sent && $0.row < $1.row })
        #expect(pairs.count == Self.most(sent.map(\.key)[...], rows.map(\.key)[...]))
    }

    /// The longest common subsequence, by trying everything.
    private static func most(_ a: ArraySlice<Int>, _ b: ArraySlice<Int>) -> Int {
        guard let first = a.first, let other = b.first else { return 0 }
        if first == other { return 1 + most(a.dropFirst(), b.dropFirst()) }
        return max(most(a.dropFirst(), b), most(a, b.dropFirst()))
    }

    @Test("leading and trailing blanks are ignored")
    func space() {
        #expect(UnidentifiedMessages.key(" hi \n") == UnidentifiedMessages.key("hi"))
        #expect(UnidentifiedMessages.key("  ") == UnidentifiedMessages.key(""))
        #expect(UnidentifiedMessages.key("h i") != UnidentifiedMessages.key("hi"))
    }
}

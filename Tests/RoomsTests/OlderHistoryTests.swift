import ChatModel
import Testing
import WireBytes

@testable import Rooms

@Suite("Older history")
struct OlderHistoryTests {
    private static func row(_ number: Int) -> ChatMessage {
        ChatMessage(
            id: ChatID("p\(number)"), sender: ChatPerson(name: "ann"), text: "old \(number)",
            at: ChatTimestamp(milliseconds: Int64(number) * 1000))
    }

    private static func known(_ number: Int) -> StoredMessage {
        StoredMessage(
            sequence: Int64(number), msgid: "m\(number)", upstreamID: ChatID("p\(number)"),
            at: ChatTimestamp(milliseconds: Int64(number) * 1000), nick: "ann", source: "ann!u@h", text: "old \(number)"
        )
    }

    /// What the room has, what the backend answers, and what is taken of that, where the answer ends in front of it and where
    /// it need not.
    private static let rows:
        [(known: [Int], answer: ClosedRange<Int>, taken: ClosedRange<Int>?, whereApart: ClosedRange<Int>?)] = [
            ([137, 138], 100...140, 100...136, 100...136), ([137, 138], 100...136, 100...136, nil),
            ([137, 138], 1...50, 1...50, nil), ([137], 137...150, nil, nil), ([], 1...50, 1...50, nil),
        ]

    @Test(
        "what a backend gives that can only be asked on from a message counts where it meets what is known",
        arguments: rows)
    func meets(_ known: [Int], _ answer: ClosedRange<Int>, _ taken: ClosedRange<Int>?, _ whereApart: ClosedRange<Int>?)
    {
        let older = OlderHistory(
            border: known.first.map(Int64.init), beginning: known.map(Self.known), now: MonotonicInstant(nanoseconds: 0)
        )
        for (mayBeApart, expected) in [(false, taken), (true, whereApart)] {
            let news = older.news(in: answer.map(Self.row), mayBeApart: mayBeApart)
            #expect(news.compactMap(\.id) == (expected.map(Array.init) ?? []).map { ChatID("p\($0)") }, "\(mayBeApart)")
        }
    }

    @Test("the newest fit, by number and by bytes, and with the last that fits it is complete")
    func bounds() {
        func older() -> OlderHistory {
            OlderHistory(border: 0, beginning: [], now: MonotonicInstant(nanoseconds: 0))
        }
        let many = older()
        many.prepend((1..<OlderHistory.maxRows).map(Self.known), isComplete: false)
        #expect(!many.isComplete)
        many.prepend([-1, 0].map(Self.known), isComplete: false)
        #expect(many.rows.map(\.sequence) == (0..<Int64(OlderHistory.maxRows)).map { $0 })
        #expect(many.isComplete)

        let long = older()
        let rows = (1...10).map { number in
            var row = Self.known(number)
            row.text = String(repeating: "x", count: OlderHistory.maxBytes / 4)
            return row
        }
        long.prepend(rows, isComplete: false)
        #expect(long.rows.map(\.sequence) == [7, 8, 9, 10])
        #expect(long.isComplete)
    }
}

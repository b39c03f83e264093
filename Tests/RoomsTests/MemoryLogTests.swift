import ChatModel
import Testing

@testable import Rooms

@Suite("MemoryLog")
struct MemoryLogTests {
    private func message(_ sequence: Int64, _ bytes: Int) -> StoredMessage {
        StoredMessage(
            sequence: sequence, msgid: "m\(sequence)", at: ChatTimestamp(milliseconds: sequence), nick: "n",
            source: "n!u@h", text: String(repeating: "x", count: bytes))
    }

    private func sequences(_ history: MemoryLog) -> [Int64] {
        history.messages(after: -1, through: .max, limit: .max).map(\.sequence)
    }

    @Test("edits make room as new messages do")
    func edits() {
        let history = MemoryLog()
        for sequence in 0..<8 as Range<Int64> { history.append(message(sequence, 10)) }
        let long = String(repeating: "y", count: 1024 * 1024)
        for sequence in 0..<8 {
            history.edit(msgid: "m\(sequence)", text: long)
            #expect(history.byteCount <= MemoryLog.maxBytes)
        }
        #expect(sequences(history) == [5, 6, 7])
        history.edit(msgid: "m7", text: String(repeating: long, count: 5))
        #expect(history.isEmpty && history.byteCount == 0)
    }

    @Test("actions on a message are removed and restored with it")
    func changes() {
        let history = MemoryLog()
        history.append(message(0, 10))
        var change = message(1, 10)
        change.kind = .change
        change.clientTags = [StoredTag(name: StoredMessage.replyTag, value: "m0")]
        history.append(change)
        let query = StoredPageQuery(.newest(after: nil, before: nil), limit: 9, withTakenBack: true)
        #expect(history.places(query).sequences == [0, 1])
        #expect(history.search(StoredSearch(text: "xx", limit: 9)).found.count == 2)
        let before = history.takeBack(msgid: "m0")
        #expect(history.places(query).sequences == [0] && history.message("m1")?.text == "")
        #expect(history.search(StoredSearch(text: "xx", limit: 9)).found == [])
        history.restore(before)
        #expect(history.message("m1") == change && history.places(query).sequences == [0, 1])
    }

    @Test("a restored message makes room too")
    func restored() {
        let history = MemoryLog()
        history.append(message(0, 3 * 1024 * 1024))
        let before = history.takeBack(msgid: "m0")
        history.append(message(1, 3 * 1024 * 1024))
        history.restore(before)
        #expect(history.byteCount <= MemoryLog.maxBytes && sequences(history) == [1])
    }
}

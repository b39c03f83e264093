import ChatModel
import Testing

@testable import Dialects

@Suite("Large answers")
struct LargeAnswerTests {
    @Test("an answer that its caller let in is read, whatever a frame may be")
    func elements() {
        let item = "\"" + String(repeating: "x", count: 1024 * 1024) + "\""
        let body = "[" + Array(repeating: item, count: 5).joined(separator: ",") + "]"
        let answer = BackendAnswer(status: 200, body: Array(body.utf8))
        #expect(CallAnswer.forEachElement(of: answer) { _ in } == .success(5))
    }
}

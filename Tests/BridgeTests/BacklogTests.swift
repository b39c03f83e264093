import BridgeTestSupport
import ChatModel
import Testing

@testable import BridgeCore

@Suite("Backlog")
struct BacklogTests {
    private func numbers(_ range: Range<Int>) -> [String] { range.map { "m\($0)" } }
    private func said(_ range: Range<Int>) -> [String] { range.map { "ann: m\($0)" } }

    @Test("who returns gets what was said meanwhile, once")
    func returns() throws {
        let stage = try BacklogStage()
        stage.enter(1, "alice@phone", caps: BacklogStage.caps)
        stage.say(numbers(0..<2))
        #expect(stage.heard(1) == said(0..<2))
        stage.harness.advance(by: .seconds(3))
        stage.leave(1)
        stage.say(numbers(2..<5))
        stage.enter(2, "alice@phone", caps: BacklogStage.caps)
        #expect(stage.heard(2) == said(2..<5))
    }
}

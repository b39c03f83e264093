import BridgeTestSupport
import ChatModel
import Dialects
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// alice speaks and acts over a link of her own, and the backend refuses some of it there.
@Suite("Refusals over an account's own link")
struct OwnLinkRefusalTests {
    private typealias S = OwnLinkStage

    /// alice has said `mine` as message 5.
    private static func stage(
        _ change: (inout DialectTraits) -> Void = { _ in }
    ) throws -> (stage: OwnLinkStage, msgid: String) {
        let stage = try OwnLinkStage(
            StubDialect { traits in
                traits.identity = .single
                traits.messageIDOrigin = .server
                traits.confirmation = .receipt
                change(&traits)
            })
        stage.enterBoth()
        stage.harness.send(1, "PRIVMSG #lobby :mine")
        answer(stage, stage.newestSentID(), "5")
        #expect(stage.said(2) == ["alice: mine"])
        _ = (stage.heard(1), stage.sent())
        return (stage, stage.room.recent.newest?.msgid ?? "none")
    }

    private static func answer(_ stage: OwnLinkStage, _ ref: String, _ id: String) {
        stage.backend("{\"kind\":\"receipt\",\"state\":\"sent\",\"ref\":\"\(ref)\",\"ids\":[\"\(id)\"]}", over: S.own)
    }

    @Test("what she takes back and the backend does not comes back", arguments: [true, false])
    func takenBack(isAnswered: Bool) throws {
        let (stage, msgid) = try Self.stage { $0.answersDeletes = isAnswered }
        stage.harness.send(1, "REDACT #lobby \(msgid)")
        #expect(stage.sent().map { $0.hasPrefix("\(S.own) delete") } == [true])
        #expect(stage.heard(2).isEmpty == isAnswered)
        stage.backend(#"{"kind":"error","ref":"d:5","text":"no"}"#)
        #expect(stage.room.recent.entry(msgid: msgid)?.isTakenBack == !isAnswered, "a complaint over another link")
        stage.backend(#"{"kind":"error","ref":"d:5","text":"no"}"#, over: S.own)
        #expect(stage.heard(1).contains { $0.contains("FAIL REDACT REDACT_FORBIDDEN") })
        #expect(stage.heard(2).isEmpty == isAnswered)
        #expect(stage.room.recent.entry(msgid: msgid)?.isTakenBack == false)
    }

    @Test("her deletion is shown when her link has the answer")
    func answered() throws {
        let (stage, msgid) = try Self.stage { $0.answersDeletes = true }
        stage.harness.send(1, "REDACT #lobby \(msgid)")
        Self.answer(stage, "d:5", "5")
        #expect(stage.heard(2) == [":alice REDACT #lobby \(msgid)"])
        stage.backend(#"{"kind":"delete","ids":["5"]}"#)
        #expect(stage.heard(2) == [])
    }

    @Test("a row of hers with other words waits for the answer over her link")
    func changedRow() throws {
        let (stage, _) = try Self.stage()
        stage.harness.send(1, "PRIVMSG #lobby :one")
        stage.echo("6", "ONE", by: "7", over: 0)
        stage.relay("8", "after it", by: "ann")
        #expect(stage.said(2) == [])
        Self.answer(stage, stage.newestSentID(), "6")
        #expect(stage.said(2) == ["alice: one", "ann: after it"])
    }

    @Test("too much over her link holds that alone, and goes again in order")
    func putOff() throws {
        let (stage, _) = try Self.stage()
        stage.harness.send(1, "PRIVMSG #lobby :one")
        stage.harness.send(1, "PRIVMSG #lobby :two")
        stage.backend(#"{"kind":"error","code":"REQUESTS_EXCEEDED","retryAfter":500}"#, over: S.own)
        _ = stage.sent()
        stage.harness.send(1, "PRIVMSG #lobby :three")
        stage.harness.send(2, "PRIVMSG #lobby :from bob")
        #expect(stage.takeMessages().map(\.link) == [0])
        stage.harness.advance(by: .milliseconds(501))
        #expect(stage.takeMessages().map(\.text) == ["two", "three"])
        #expect(!stage.heard(1).contains { $0.contains("FAIL") })
    }
}

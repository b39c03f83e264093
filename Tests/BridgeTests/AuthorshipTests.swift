import Accounts
import BridgeTestSupport
import ChatModel
import Dialects
import Digests
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Frames name anybody as who edits or deletes a message, and some name nobody. Nobody's words change under their name but by
/// themselves, and what names an IRC user who did not do it here is the backend's word.
@Suite("Who changed a message")
struct AuthorshipTests {
    private static let caps = ActionsStage.modern + " account-tag"

    /// alice has logged in, bob has not; carol's client knows no tags. Remy upstream has said "soup".
    private func stage(_ dialect: ActionsStubDialect = ActionsStubDialect()) throws -> ActionsStage {
        let alice = AccountSettings(
            name: "alice",
            password: SCRAMVerifier(password: SecretBytes("secret".utf8), salt: Array("salt".utf8), iterations: 1))
        let stage = try ActionsStage(dialect, accounts: [alice], echoes: true)
        stage.enter(1, "alice", caps: Self.caps, login: "alice")
        stage.enter(2, "bob", caps: Self.caps)
        stage.enter(3, "carol", caps: "")
        stage.backend("message|id=m1|from=s1|name=Remy|text=soup")
        _ = stage.happened()
        return stage
    }

    private func text(_ stage: ActionsStage, _ msgid: String) -> String? {
        stage.harness.bridge.rooms[0].recent.text(of: msgid)
    }

    /// As whom the backend knows the IRC user who wrote the newest message.
    private func author(_ stage: ActionsStage) -> String {
        stage.harness.bridge.rooms[0].recent.newest?.puppet?.rawValue ?? "none"
    }

    /// Lines to bob and carol, without those that tell who came, and without their own ids.
    private func told(_ stage: ActionsStage) -> [String] {
        stage.happened().filter { ($0.hasPrefix("C2") || $0.hasPrefix("C3")) && !$0.contains(" JOIN ") }
            .map { $0.replacing(#/@msgid=[^; ]+;/#, with: "@") }
    }

    struct Edit: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Fields that say who edits.
        var by: String
        /// Who is named as who changed it; nil: the author edits.
        var changedBy: String?
    }

    static let edits = [
        Edit(testDescription: "the author", by: "|from=s1|name=Remy"),
        Edit(testDescription: "the author by the id alone", by: "|from=s1"),
        Edit(testDescription: "the author's name alone", by: "|name=Remy", changedBy: "Remy2"),
        Edit(testDescription: "nobody", by: "", changedBy: "the backend"),
        Edit(testDescription: "somebody else upstream", by: "|from=s2|name=Mallory", changedBy: "Mallory"),
        Edit(testDescription: "somebody of the author's name", by: "|from=s2|name=Remy", changedBy: "Remy2"),
        Edit(testDescription: "an IRC user", by: "|from=[bob]|name=bob", changedBy: "the backend"),
    ]

    @Test("an edit is its author's where it names the author, and changes the message only then", arguments: edits)
    func edited(_ row: Edit) throws {
        let stage = try stage()
        let msgid = stage.newestMsgid()
        stage.backend("edit|id=m1\(row.by)|text=broth")
        let tags = "@+reply=\(msgid);+draft/reply=\(msgid) "
        let line =
            row.changedBy.map {
                ":bridge NOTICE #lobby :*** A message of Remy's from 1 s ago was changed by \($0): broth"
            }
            ?? ":Remy!chat@chat.example PRIVMSG #lobby :* broth"
        #expect(told(stage) == ["C2< \(tags)\(line)", "C3< \(line)"])
        #expect(text(stage, msgid) == (row.changedBy == nil ? "broth" : "soup"))
        stage.backend("edit|id=m1\(row.by)|text=broth")
        #expect(told(stage) == [], "the same again is no news")
    }

    @Test(
        "an IRC user's words are never changed, whoever the frame names; the others hear that the backend did",
        arguments: [
            ("", "the backend"), ("|from=[author]|name=alice", "the backend"),
            ("|from=[bob]|name=bob", "the backend"),
            ("|from=s2|name=Mallory", "Mallory"),
        ])
    func ofIRCUsers(_ by: String, _ changedBy: String) throws {
        let stage = try stage()
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        let (msgid, id) = (stage.newestMsgid(), stage.newestUpstreamID())
        _ = stage.happened()
        stage.backend("edit|id=\(id)\(by.replacing("[author]", with: author(stage)))|text=I resign")
        let lines = told(stage)
        #expect(lines.count == 2 && lines.allSatisfy { $0.contains(":bridge NOTICE #lobby :") }, "\(lines)")
        #expect(
            lines.last
                == "C3< :bridge NOTICE #lobby :*** A message of alice's from 1 s ago was changed by \(changedBy): I resign"
        )
        #expect(!lines.contains { $0.contains("account=") })
        #expect(text(stage, msgid) == "hello")
        stage.harness.send(2, "@+reply=\(msgid) PRIVMSG #lobby :why?")
        #expect(stage.happened().first?.hasSuffix("|text=<alice> hello\nwhy?") == true, "quoted as it was said")
    }

    @Test("nor is what is kept of them")
    func kept() throws {
        let stage = try stage()
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        let id = stage.newestUpstreamID()
        stage.backend("edit|id=\(id)|text=I resign")
        stage.harness.send(1, "CAP REQ :draft/chathistory batch server-time")
        _ = stage.happened()
        stage.harness.send(1, "CHATHISTORY LATEST #lobby * 10")
        let page = stage.happened().filter { $0.contains(" PRIVMSG ") }
        #expect(page.contains { $0.hasSuffix(":hello") } && !page.contains { $0.contains("resign") }, "\(page)")
    }

    @Test(
        "where the wire lets authors alone edit, an edit that names nobody is theirs; of IRC users' words it is the backend's"
    )
    func authorsAlone() throws {
        let stage = try stage(ActionsStubDialect { $0.authorsAloneEdit = true })
        stage.backend("edit|id=m1|text=broth")
        #expect(told(stage).last == "C3< :Remy!chat@chat.example PRIVMSG #lobby :* broth")
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        let id = stage.newestUpstreamID()
        _ = stage.happened()
        stage.backend("edit|id=\(id)|text=I resign")
        #expect(told(stage).last?.contains("was changed by the backend: I resign") == true)
    }

    @Test("a deletion in an IRC user's name is the backend's", arguments: ["[author]", "[bob]"])
    func deletions(_ by: String) throws {
        let stage = try stage()
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        let (msgid, id) = (stage.newestMsgid(), stage.newestUpstreamID())
        _ = stage.happened()
        stage.backend("delete|ids=\(id)|from=\(by.replacing("[author]", with: author(stage)))|name=x")
        #expect(
            told(stage) == [
                "C2< :bridge REDACT #lobby \(msgid)",
                "C3< :bridge NOTICE #lobby :*** chat.example took back a message from 1 s ago by alice.",
            ])
    }

    @Test("what an account's own person does at another device is the backend's too")
    func ownLink() throws {
        let stage = try OwnLinkStage(OwnLinkStage.silent())
        stage.enterBoth()
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        stage.relay("57", "hello", by: "Alice B")
        let msgid = try #require(stage.room.recent.newest?.msgid)
        _ = stage.heard(2)
        stage.backend(#"{"kind":"edit","id":"57","text":"I resign","sender":{"name":"Alice B"}}"#)
        stage.backend(#"{"kind":"delete","ids":["57"],"sender":{"name":"Alice B"}}"#)
        let lines = stage.heard(2)
        #expect(lines.count == 2 && lines.allSatisfy { $0.hasPrefix(":bridge ") }, "\(lines)")
        #expect(lines.first?.contains("was changed by the backend: I resign") == true)
        #expect(stage.room.recent.entry(msgid: msgid)?.isTakenBack == true)
    }
}

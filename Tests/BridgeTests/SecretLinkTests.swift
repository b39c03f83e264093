import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import JSONText
import Media
import Testing
import Upstream

@testable import BridgeCore
@testable import IRCServer
@testable import Media
@testable import Rooms

/// What we show to a backend comes back in addresses of files and in people's words.
@Suite("Secrets in links and messages")
struct SecretLinkTests {
    private static let secret = "PLANTED-token/with+more=12"

    struct LinkRow: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var url: String
        var isShown = false
    }

    static let links = [
        LinkRow(testDescription: "none", url: "http://chat.example/f/cat.png?v=1", isShown: true),
        LinkRow(testDescription: "in a parameter of any name", url: "http://chat.example/f/cat.png?t=\(secret)"),
        LinkRow(testDescription: "in the path", url: "http://chat.example/\(secret)/cat.png"),
        LinkRow(testDescription: "in the fragment", url: "http://chat.example/cat.png#\(secret)"),
        LinkRow(testDescription: "before the host", url: "http://u:\(secret)@chat.example/cat.png"),
        LinkRow(testDescription: "in the host", url: "http://\(secret).example/cat.png"),
        LinkRow(testDescription: "on another host", url: "http://other.example/cat.png?t=\(secret)"),
        LinkRow(
            testDescription: "percent-encoded",
            url: "http://chat.example/cat.png?t=PLANTED-token%2Fwith%2Bmore%3D12"),
        LinkRow(
            testDescription: "percent-encoded more than it need be",
            url: "http://chat.example/cat.png?t=PL%41NTED-token%2fwith%2bmore%3d12"),
        LinkRow(
            testDescription: "percent-encoded twice",
            url: "http://chat.example/cat.png?t=PLANTED-token%252Fwith%252Bmore%253D12"),
        LinkRow(
            testDescription: "percent-encoded once and a half",
            url: "http://chat.example/cat.png?t=PLANTED-token%252Fwith%2Bmore=12"),
        LinkRow(
            testDescription: "its beginning alone", url: "http://chat.example/cat.png?t=PLANTED-token", isShown: true),
    ]

    private func stage(_ shown: UpstreamCredentials? = nil) throws -> SessionStage {
        let stage = try SessionStage(StubDialect { $0.history = .socket }) { $0.authenticates = true }
        stage.harness.credentials[0] = .success(
            shown ?? UpstreamCredentials(query: [.init(name: "token", value: Self.secret)]))
        stage.harness.start()
        stage.enter("bob", caps: "message-tags batch draft/chathistory echo-message")
        return stage
    }

    private static func file(_ url: String, name: String = "cat.png") -> String {
        #""attachments":[{"type":"image","url":"\#(url)","name":"\#(name)"}],"#
    }

    @Test("a link that holds what we show is not told, in whichever form", arguments: links)
    func live(_ row: LinkRow) throws {
        let stage = try stage()
        stage.backend(SessionStage.history([]))
        stage.backend(SessionStage.message("1", "", more: Self.file(row.url)))
        let told = row.isShown ? row.url : "not available through a link"
        #expect(stage.said() == ["ann: [image] cat.png" + (row.isShown ? " " : ", ") + told])
    }

    @Test("neither is one in a history, in an edit, or in what is asked for later", arguments: links)
    func later(_ row: LinkRow) throws {
        let stage = try stage()
        stage.backend(
            SessionStage.history([
                SessionStage.message("1", "", at: -9, more: Self.file(row.url)),
                SessionStage.message("2", "two", at: -8),
            ]))
        stage.backend(
            #"{"kind":"edit","id":"2","sender":{"id":"u-ann","name":"ann"},\#(Self.file(row.url))"text":"new"}"#)
        stage.harness.send(1, "CHATHISTORY LATEST #lobby * 10")
        let lines = stage.heard().filter { $0.contains("[image]") }
        #expect(lines.count == 2, "\(lines)")
        #expect(lines.allSatisfy { $0.contains(row.url) == row.isShown }, "\(lines)")
    }

    @Test("words that repeat it are told without it, live, in a history and in an edit")
    func words() throws {
        let stage = try stage()
        stage.backend(
            SessionStage.history([SessionStage.message("1", "old \(Self.secret)", at: -9)]))
        stage.backend(SessionStage.message("2", "the token is \(Self.secret)!"))
        stage.backend(
            #"{"kind":"edit","id":"2","sender":{"id":"u-ann","name":"ann"},"text":"it was \#(Self.secret)"}"#)
        stage.backend(SessionStage.message("3", "", more: Self.file("http://chat.example/x", name: Self.secret)))
        stage.harness.send(1, "CHATHISTORY LATEST #lobby * 10")
        let lines = stage.heard()
        #expect(lines.contains("ann: the token is ***!"))
        #expect(lines.contains { $0.hasSuffix("] old ***") }, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("ann: [image] *** ") }, "\(lines)")
        #expect(!lines.contains { $0.contains("PLANTED") })
        #expect(!stage.harness.notes.contains { $0.text.contains("PLANTED") })
    }

    @Test("an annotation that repeats it is told without it")
    func annotations() throws {
        let stage = try stage()
        stage.harness.send(1, "CAP REQ message-tags")
        stage.backend(SessionStage.history([]))
        _ = stage.harness.takeOutputs()
        stage.backend(
            SessionStage.message("4", "noted", more: #""annotations":{"+example.com/note":"is \#(Self.secret)"},"#))
        let lines = stage.harness.takeOutputs().compactMap { output in
            if case .line(1, let bytes) = output { String(decoding: bytes, as: UTF8.self) } else { nil }
        }
        #expect(lines.contains { $0.contains(#"+example.com/note=is\s*** "#) }, "\(lines)")
    }

    @Test("what was shown before is not told either, and what is shown from then on neither")
    func renewed() throws {
        let stage = try stage()
        let next = UpstreamCredentials(headers: [.init(name: "Authorization", value: "Bearer SECOND-token-too")])
        stage.harness.perform { _, _ in stage.room.tokenRenewed(next, stage.harness.bridge.context) }
        stage.backend(SessionStage.history([]))
        stage.backend(SessionStage.message("1", "\(Self.secret) SECOND-token-too hello"))
        #expect(stage.said() == ["ann: *** *** hello"])
    }

    @Test(
        "a password that a person chose is found by no link and by no words: the answer would tell who guesses",
        arguments: [
            UpstreamCredentials(socket: .password(email: "bridge", password: "correct horse battery")),
            UpstreamCredentials(
                headers: [.init(name: "Authorization", value: "Basic YnJpZGdlOmNvcnJlY3QgaG9yc2UgYmF0dGVyeQ==")]),
        ])
    func passwords(_ shown: UpstreamCredentials) throws {
        let stage = try stage(shown)
        if shown.socket != nil { stage.backend(#"{"kind":"auth","state":"ok"}"#) }
        stage.backend(SessionStage.history([]))
        stage.backend(SessionStage.message("1", "correct horse battery"))
        stage.backend(SessionStage.message("2", "YnJpZGdlOmNvcnJlY3QgaG9yc2UgYmF0dGVyeQ=="))
        for (id, guess) in [("3", "correct%20horse%20battery"), ("4", "YnJpZGdlOmNvcnJlY3QgaG9yc2UgYmF0dGVyeQ==")] {
            stage.backend(SessionStage.message(id, "", more: Self.file("http://chat.example/x/\(guess)")))
        }
        #expect(
            stage.said() == [
                "ann: correct horse battery", "ann: YnJpZGdlOmNvcnJlY3QgaG9yc2UgYmF0dGVyeQ==",
                "ann: [image] cat.png http://chat.example/x/correct%20horse%20battery",
                "ann: [image] cat.png http://chat.example/x/YnJpZGdlOmNvcnJlY3QgaG9yc2UgYmF0dGVyeQ==",
            ])
    }

    @Test("an IRC user who writes such words is still recognised in the echo")
    func echo() throws {
        let stage = try SessionStage(
            StubDialect {
                $0.messageIDOrigin = .server
                $0.confirmation = .echoByText
                $0.echoesOwnMessages = true
            }
        ) { $0.authenticates = true }
        stage.harness.credentials[0] = .success(
            UpstreamCredentials(query: [.init(name: "token", value: Self.secret)]))
        stage.harness.start()
        stage.enter("bob")
        stage.harness.send(1, "PRIVMSG #lobby :is it \(Self.secret)?")
        let sender = try #require(stage.sent().first?["sender"]?["id"]?.string)
        stage.backend(
            #"{"kind":"message","id":"9","sender":{"id":"\#(sender)","name":"bob"},"text":"is it \#(Self.secret)?"}"#)
        #expect(stage.room.lane.outbox.isEmpty)
        #expect(stage.said().count == 1)
    }

    // MARK: - The finder

    @Test(
        "parameters with a secret are left out where the rest is enough",
        arguments: [
            ("https://c.example/a?t=12345678", "https://c.example/a"),
            ("https://c.example/a?w=1&t=12345678&h=2#12345678", "https://c.example/a?w=1&h=2"),
            ("https://c.example/12345678/a?t=1", nil), ("https://c.example/a?t=%31%32345678", "https://c.example/a"),
            ("https://c.example/1234?5678", "https://c.example/1234?5678"),
        ] as [(String, String?)])
    func parameters(_ link: String, _ left: String?) {
        #expect(SecretFinder(["12345678", "short"]).withoutParameters(link) == left)
    }

    @Test("odd percent signs are looked at as they are", arguments: ["%", "%1", "%zz", "%%%31", "a%2", "%2"])
    func odd(_ end: String) {
        let finder = SecretFinder(["12345678"])
        #expect(!finder.isIn(link: "https://c.example/" + end))
        #expect(finder.isIn(link: "https://c.example/12345678" + end))
        #expect(!SecretFinder([]).isIn(link: end))
    }

    @Test("a link through the bridge has no secret in it either")
    func relayed() throws {
        let files = RoomFileLinks(
            links: KnownLinks.links, room: "lobby", guarded: try HTTPURL(parsing: "https://cms.example"),
            now: KnownLinks.now)
        func url(_ address: String) -> String? { files.url(of: ChatAttachment(kind: .image, url: address)) }
        #expect(url("https://cms.example/assets/1?width=9") != nil)
        #expect(url("https://cms.example/assets/1?access_token=somebodys") == nil)
        #expect(url("/assets/1?access_token=somebodys") == nil)
    }

    struct TextRow: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var text: String
        var scrubbed: String
    }

    private static let secrets = [
        "sunshine", "eyJhbGciOi.one.AAAAAAAA", "eyJhbGciOi.two.AAAAAAAA", "prefix eyJhbGciOi.one.AAAAAAAA",
    ]
    static let texts = [
        TextRow(testDescription: "none", text: "nothing of the kind", scrubbed: "nothing of the kind"),
        TextRow(testDescription: "a word that is a password", text: "sunshine all day", scrubbed: "sunshine all day"),
        TextRow(testDescription: "whole", text: "eyJhbGciOi.two.AAAAAAAA", scrubbed: "***"),
        TextRow(
            testDescription: "two of them", text: "<eyJhbGciOi.one.AAAAAAAA|eyJhbGciOi.two.AAAAAAAA>",
            scrubbed: "<***|***>"),
        TextRow(testDescription: "the longer one", text: "a prefix eyJhbGciOi.one.AAAAAAAA", scrubbed: "a ***"),
        TextRow(testDescription: "another's", text: "eyJhbGciOi.six.AAAAAAAA", scrubbed: "eyJhbGciOi.six.AAAAAAAA"),
        TextRow(testDescription: "the end of one", text: "i.two.AAAAAAAA", scrubbed: "i.two.AAAAAAAA"),
        TextRow(testDescription: "too short for any", text: "AAAAAAA", scrubbed: "AAAAAAA"),
    ]

    @Test("tokens are taken out of texts, passwords that may be words are not", arguments: texts)
    func text(_ row: TextRow) {
        #expect(SecretFinder(Self.secrets).scrubbed(row.text) == row.scrubbed)
    }

    @Test("what the finder finds is what a plain search finds")
    func law() {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<2000 {
            let letters = ["a", "b", "%"]
            func word(_ count: Int) -> String { (0..<count).map { _ in letters[Int(random.next() % 3)] }.joined() }
            let secrets = (0..<3).map { _ in word(16 + Int(random.next() % 2)) }
            var text = word(Int(random.next() % 40))
            if random.next() % 2 == 0 { text += secrets[Int(random.next() % 3)] + word(Int(random.next() % 3)) }
            let known = secrets + secrets.map { HTTPURL.percentEncoded($0) }
            let isThere = known.contains { text.utf8.count >= $0.utf8.count && text.contains($0) }
            #expect(SecretFinder(secrets).isIn(text) == isThere, "\(secrets) \(text)")
        }
    }
}

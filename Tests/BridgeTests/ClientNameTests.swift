import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import IRCProtocol
import Identities
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Names of clients")
struct ClientNameTests {
    @Test(
        "a name is printable, small and short",
        arguments: [
            ("phone", "phone"), ("Phone", "phone"), ("my phone\t", "myphone"), ("télé", "télé"), ("", nil),
            (" \r\n", nil),
            (String(repeating: "x", count: 40), String(repeating: "x", count: 32)), ("a@b", "a@b"), ("\u{7F}", nil),
        ] as [(String, String?)])
    func clean(_ text: String, _ name: String?) { #expect(ClientName.clean(text) == name) }

    @Test("a long name is never cut inside a character")
    func cut() throws {
        let name = try #require(ClientName.clean(String(repeating: "é", count: 31)))
        #expect(name == String(repeating: "é", count: 16))
    }

    @Test(
        "what stands after the first @ is the client's",
        arguments: [
            ("alice", "alice", nil), ("alice@phone", "alice", "phone"), ("alice@", "alice", nil),
            ("@phone", "", "phone"),
            ("alice@a@b", "alice", "a@b"),
        ] as [(String, String, String?)])
    func split(_ login: String, _ account: String, _ client: String?) {
        let parts = ClientName.split(login)
        #expect(parts.account == account && parts.client == client)
    }

    struct Login: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var lines: [String]
        var sasl: String?
        var client: String?
        var ident: String
    }

    @Test(
        "the name is what the login says, else what USER says",
        arguments: [
            Login(
                testDescription: "PASS names it", lines: ["PASS alice@phone:pw", "USER me 0 * :r"], client: "phone",
                ident: "~me"),
            Login(
                testDescription: "USER names it", lines: ["PASS alice:pw", "USER alice@Phone 0 * :r"], client: "phone",
                ident: "~alice"),
            Login(
                testDescription: "PASS before USER", lines: ["PASS alice@a:pw", "USER alice@b 0 * :r"], client: "a",
                ident: "~alice"),
            Login(
                testDescription: "the ident stands for it", lines: ["PASS alice:pw", "USER WeeChat 0 * :r"],
                client: "weechat", ident: "~WeeChat"),
            Login(
                testDescription: "an empty name is none", lines: ["PASS alice@:pw", "USER me 0 * :r"], client: "me",
                ident: "~me"),
            Login(
                testDescription: "nobody without an account", lines: ["USER alice@phone 0 * :r"], client: nil,
                ident: "~alice"),
            Login(
                testDescription: "USER with nothing in front", lines: ["USER @phone 0 * :r"], client: nil,
                ident: "~user"),
            Login(
                testDescription: "SASL", lines: ["USER me 0 * :r"], sasl: "\0alice@phone\0pw", client: "phone",
                ident: "~me"),
            Login(
                testDescription: "SASL with both identities", lines: ["USER me 0 * :r"],
                sasl: "alice@phone\0alice@phone\0pw", client: "phone", ident: "~me"),
            Login(
                testDescription: "SASL with the name in the one acted for", lines: ["USER me 0 * :r"],
                sasl: "Alice@tablet\0alice\0pw", client: "tablet", ident: "~me"),
        ])
    func names(_ login: Login) throws {
        let stage = try BacklogStage()
        stage.harness.connect(1)
        stage.harness.send(1, "CAP REQ :sasl")
        if let sasl = login.sasl {
            stage.harness.send(1, "AUTHENTICATE PLAIN")
            stage.harness.send(1, "AUTHENTICATE " + IRCSASLExchange.chunks(of: Array(sasl.utf8))[0])
        }
        stage.harness.send(1, "NICK al")
        for line in login.lines { stage.harness.send(1, line) }
        stage.harness.send(1, "CAP END")
        let session = try #require(stage.session(1))
        #expect(session.person != nil)
        #expect(session.clientName == login.client)
        #expect(session.person.flatMap { stage.harness.bridge.context.identities[$0] }?.ident == login.ident)
        #expect((session.account?.name == "alice") == (login.client != nil))
    }

    @Test("one may not act for another, whatever the clients are called")
    func authorization() throws {
        let stage = try BacklogStage()
        stage.harness.connect(1)
        stage.harness.send(1, "CAP REQ :sasl")
        stage.harness.send(1, "AUTHENTICATE PLAIN")
        stage.harness.send(
            1, "AUTHENTICATE " + IRCSASLExchange.chunks(of: Array("bob@phone\0alice@phone\0pw".utf8))[0])
        #expect(stage.raw(1).contains { $0.contains(" 904 ") })
        #expect(stage.session(1)?.account == nil)
    }

    @Test("the author's client goes with the message")
    func origin() throws {
        let stage = try BacklogStage { $0.confirmation = .echoByID }
        stage.enter(1, "alice@phone")
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        #expect(stage.room.lane.outbox.entries.first?.origin.clientName == "phone")
    }

    @Test("who logs in later has a name from then on")
    func later() throws {
        let stage = try BacklogStage { $0.confirmation = .echoByID }
        stage.harness.connect(1)
        for line in ["CAP REQ :sasl", "NICK al", "USER me 0 * :r", "CAP END", "JOIN #lobby"] {
            stage.harness.send(1, line)
        }
        #expect(stage.cursor("alice", "phone") == nil)
        stage.harness.send(1, "AUTHENTICATE PLAIN")
        stage.harness.send(1, "AUTHENTICATE " + IRCSASLExchange.chunks(of: Array("\0alice@phone\0pw".utf8))[0])
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        #expect(stage.room.lane.outbox.entries.first?.origin.clientName == "phone")
        #expect(stage.cursor("alice", "phone") == -1)
    }
}

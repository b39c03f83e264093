import Accounts
import BridgeCore
import BridgeTestSupport
import BridgeTypes
import ChatModel
import HTTPProtocol
import IRCServer
import Rooms
import Testing
import Upstream

@testable import ChatBridge
@testable import Configuration

@Suite("Accounts' own logins in the configuration")
struct OwnLoginConfigurationTests {
    /// Two rooms, and an account whose `upstream` is on line 8.
    private static func account(_ upstream: String, more: String = "", dialect: String = "jwt-rooms") -> String {
        """
        rooms = [
          { name = "lobby", url = "ws://127.0.0.1:8080/chat", dialect = "\(dialect)" },
          { name = "cert", url = "wss://localhost/x", auth = { type = "client-cert" }, tls = { client_cert = "c", client_key = "k" } },
        ]
        [[accounts]]
        name = "Al[ice"
        password = "\(examplePasswordHash)"
        upstream = \(upstream)
        \(more)
        """
    }

    private static let files = ["token": "t1\n", "c": "", "k": ""]

    struct ProblemRow: CustomTestStringConvertible {
        var name: String
        var upstream: String
        var problem: String
        var dialect = "jwt-rooms"
        var more = ""
        var testDescription: String { name }

        init(_ name: String, _ upstream: String, _ problem: String, dialect: String = "jwt-rooms", more: String = "") {
            (self.name, self.upstream, self.problem, self.dialect, self.more) = (name, upstream, problem, dialect, more)
        }
    }

    private static let problemRows = [
        ProblemRow(
            "a room that is none", "{ loby = { type = \"bearer\", token = \"x\" } }",
            "chatbridge.toml:8:21: account \"Al[ice\" has an upstream room \"loby\" that is not in [[rooms]] "
                + "(did you mean \"lobby\"?)"),
        ProblemRow(
            "the template", "{ \"*\" = { type = \"bearer\", token = \"x\" } }",
            "chatbridge.toml:8:20: the room \"*\" stands for many; a login of an account's own is for one room"),
        ProblemRow(
            "a room that the account may not enter", "{ lobby = { type = \"bearer\", token = \"x\" } }",
            "chatbridge.toml:8:22: account \"Al[ice\" may not enter the room \"lobby\"", more: "rooms = [\"cert\"]"),
        ProblemRow(
            "no type", "{ lobby = {} }",
            "chatbridge.toml:8:22: an account's own login needs a type: bearer, basic, query, header, message or login"),
        ProblemRow(
            "a certificate", "{ lobby = { type = \"client-cert\" } }",
            "chatbridge.toml:8:31: a certificate belongs to the room's connections and cannot be an account's own login"
        ),
        ProblemRow(
            "a room that is its certificate", "{ cert = { type = \"bearer\", token = \"x\" } }",
            "chatbridge.toml:8:21: room \"cert\" is proven by its certificate, so an account cannot be somebody else "
                + "there"),
        ProblemRow(
            "no secret", "{ lobby = { type = \"bearer\" } }",
            "chatbridge.toml:8:22: auth of type \"bearer\" needs token, token_file or token_credential"),
        ProblemRow(
            "a file that is not there", "{ lobby = { type = \"bearer\", token_file = \"nope\" } }",
            "chatbridge.toml:8:54: there is no file \"nope\""),
        ProblemRow(
            "a key of another type", "{ lobby = { type = \"bearer\", token = \"x\", user = \"u\" } }",
            "chatbridge.toml:8:61: user means nothing for type = \"bearer\""),
        ProblemRow(
            "a frame that the wire has not", "{ lobby = { type = \"message\", token = \"x\" } }",
            "chatbridge.toml:8:31: the dialect jwt-rooms has no frame for a token; use bearer, query or header"),
        ProblemRow(
            "a login that nobody knows how to do", "{ lobby = { type = \"login\", user = \"u\", password = \"p\" } }",
            "chatbridge.toml:8:22: the dialect envelope does not know how to log in; login_url and login_body say how",
            dialect: "envelope"),
        ProblemRow(
            "no table", "{ lobby = 3 }", "chatbridge.toml:8:22: expected a table, found an integer"),
        ProblemRow(
            "two accounts that are one person", "{ lobby = { type = \"bearer\", token = \"x\", as = \"A\" } }",
            "chatbridge.toml:12:59: the accounts \"Al[ice\" and \"bob\" cannot both be \"A\"",
            more: "[[accounts]]\nname = \"bob\"\npassword = \"\(examplePasswordHash)\"\n"
                + "upstream = { lobby = { type = \"bearer\", token = \"x\", as = \"A\" } }"),
    ]

    @Test("what does not fit is told with its place", arguments: problemRows)
    func refused(row: ProblemRow) {
        let found = problems(
            Self.account(row.upstream, more: row.more, dialect: row.dialect), files: Self.files
        ).filter { !$0.contains("PEM") }
        #expect(found == [row.problem])
    }

    @Test("one fault hides no other: each is told with its place, and with the name that is near")
    func together() {
        let toml = """
            [dialects.mine]
            decode = [{ event = "message", fields = { text = "/t", id = "/id" } }]
            encode = { message = { t = "{{text}}" } }
            echo = "by-text"
            [backends.chat]
            dialect = "mine"
            url = "ws://h/"
            [[rooms]]
            name = "ops"
            backend = "chat"
            [[accounts]]
            name = "ada"
            password = "\(examplePasswordHash)"
            rooms = ["osp"]
            [accounts.upstream.NAME]
            type = "bearer"
            tokn = "x"
            """
        let tail = [
            "chatbridge.toml:15:1: auth of type \"bearer\" needs token, token_file or token_credential",
            "chatbridge.toml:15:1: nobody can be asked as whom \"ops\" shows this account; write it: as = \"the id, or the "
                + "name\"", "chatbridge.toml:17:1: unknown key \"tokn\" (did you mean \"token\"?)",
        ]
        let room =
            "chatbridge.toml:14:9: account \"ada\" has a room \"osp\" that is not in [[rooms]] (did you mean \"ops\"?)"
        let of = "chatbridge.toml:15:1: account \"ada\""
        #expect(problems(toml.replacing("NAME", with: "ops")) == [room, of + " may not enter the room \"ops\""] + tail)
        #expect(
            problems(toml.replacing("NAME", with: "opps"))
                == [room, of + " has an upstream room \"opps\" that is not in [[rooms]] (did you mean \"ops\"?)"] + tail
        )
        #expect(
            problems(toml.replacing("NAME", with: "chat")) == [
                room,
                of + " has an upstream room \"chat\" that is not in [[rooms]], but a backend; its rooms are: \"ops\"",
                tail[2],
            ])
        let high = toml.replacing("rooms = [\"osp\"]\n", with: "").replacing(".NAME", with: "").replacing(
            "tokn = \"x\"", with: "")
        #expect(
            problems(high) == [
                "chatbridge.toml:15:8: expected a table, found a string",
                "chatbridge.toml:15:8: upstream names rooms; \"type\" stands in [accounts.upstream.ROOM]",
            ])
        #expect(
            problems(withRoom("[dialects.mine]\nfiel = \"mine.json\"")).contains(
                "chatbridge.toml:3:1: unknown key \"fiel\" (did you mean \"file\"?)"))
    }

    @Test(
        "who an account is has to be written where one speaks for all and the ids are the backend's",
        arguments: [
            ("by-text", "id = '/id'", "", true), ("by-id", "id = '/id'", "{{id}}", false),
            ("by-id", "id = '/id', ref = '/c'", "{{id}}", true), ("none", "id = '/id'", "{{id}}", false),
            ("none", "id = '/id'", "", true), ("by-text", "id = '/id'", "{{sender.id}}", false),
        ])
    func unknownOwner(_ echo: String, _ fields: String, _ written: String, _ isWanted: Bool) {
        let found = problems(
            """
            [dialects.mine]
            decode = [{ event = "message", fields = { text = "/t", \(fields) } }]
            encode = { message = { t = "{{text}}", i = "\(written)" } }
            echo = "\(echo)"
            [[rooms]]
            name = "ops"
            dialect = "mine"
            url = "ws://127.0.0.1/"
            [[accounts]]
            name = "ada"
            password = "\(examplePasswordHash)"
            upstream = { ops = { type = "bearer", token = "x" } }
            """)
        #expect(
            found.map { $0.contains("nobody can be asked as whom \"ops\" shows this account") }
                == (isWanted ? [true] : []), "\(found)")
    }

    @Test("check --print blanks the secrets and loads again")
    func prints() throws {
        let written = Self.account(
            "{ lobby = { type = \"query\", param = \"token\", token = \"hunter2\", as = \"A B\" } }"
        )
        .replacing(#/.*client-cert.*\n/#, with: "")
        let loaded = try load(written, files: Self.files)
        let printed = ConfigurationPrinter.text(loaded)
        #expect(!printed.contains("hunter2"))
        #expect(
            printed.contains(
                "upstream = { lobby = { type = \"query\", token = \"***\", param = \"token\", as = \"A B\" } }"))
        #expect(
            try load(
                printed.replacing("password = \"***\"", with: "password = \"\(examplePasswordHash)\""),
                files: Self.files
            ).accounts[0].upstream[0].person == "A B")
    }

    @Test("what is shown is read for each attempt; another room or account shows nothing, and never the room's")
    func secrets() throws {
        let loaded = try load(
            Self.account("{ lobby = { type = \"query\", param = \"token\", token_file = \"token\" } }")
                .replacing(#/.*client-cert.*\n/#, with: ""), files: Self.files)
        let settings = try BridgeSettings(loaded, instanceID: "t")
        func read(_ account: String, _ room: String, _ files: [String: String]) -> Result<
            UpstreamCredentials, UpstreamCredentialsFailure
        > {
            UpstreamSecrets(loaded, environment: testEnvironment(files))
                .read(account: account, in: room)
        }
        let shown = UpstreamCredentials(query: [.init(name: "token", value: "t1")])
        #expect(read("Al[ice", "lobby", Self.files) == .success(shown))
        let plans = BackendPlan.plans(loaded, environmentProxies: .direct)
        let sources = Dictionary(plans.map { ($0.settings.name, $0.source) }, uniquingKeysWith: { $1 })
        let called = UpstreamCredentials(headers: [.init(name: "Authorization", value: "Bearer t1")])
        #expect(
            AccountSecrets(sources: sources, environment: testEnvironment(Self.files)).read("OWN-al_5bice-lobby")
                == .success(.fixed(called)))
        #expect(throws: UpstreamCredentialsFailure.self) { try read("Al[ice", "lobby", [:]).get() }
        #expect(throws: UpstreamCredentialsFailure.self) { try read("bob", "lobby", Self.files).get() }
        #expect(throws: UpstreamCredentialsFailure.self) { try read("Al[ice", "other", Self.files).get() }
        #expect(settings.accounts[0].ownLogins == ["lobby": OwnLoginSettings(backend: "OWN-al_5bice-lobby")])
        #expect(settings.backends.map(\.name) == ["lobby", "OWN-al_5bice-lobby"])
        #expect(settings.backends.map(\.isOnDemand) == [false, true])
        #expect(TokenStore(stateDirectory: "s").path("OWN-al_5bice-lobby") != nil)
    }

    @Test("a login of an account's own has its own name, password and tokens")
    func login() throws {
        let loaded = try load(
            Self.account("{ lobby = { type = \"login\", user = \"alice.b\", password = \"p\" } }")
                .replacing(#/.*client-cert.*\n/#, with: ""), files: Self.files)
        let plans = BackendPlan.plans(loaded, environmentProxies: .direct)
        let own = try #require(plans.last)
        #expect(own.settings.login != nil)
        #expect(own.settings.user == "alice.b")
        #expect(own.source.user == "alice.b")
        #expect(plans.first?.settings.login == nil)
    }
}

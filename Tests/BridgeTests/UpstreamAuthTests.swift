import BridgeCore
import BridgeTestSupport
import BridgeTypes
import HTTPProtocol
import IRCServer
import Rooms
import Testing
import Upstream

@testable import ChatBridge
@testable import Configuration

@Suite("How a room shows who it is")
struct UpstreamAuthTests {
    /// A room with `text` in it, behind line 3.
    private static func room(_ text: String) -> String {
        "[[rooms]]\nname = \"a\"\nurl = \"ws://chat.example/x\"\n" + text
    }

    private static let files = [
        "/run/token": "hunter2\n", "/run/c/token": "hunter2", "/empty": "\n", "/two": "one\ntwo\n", "/blank": " x",
    ]
    private static let variables = ["TOKEN": "hunter2", "CREDENTIALS_DIRECTORY": "/run/c"]

    // MARK: - What is sent

    struct AuthRow: CustomTestStringConvertible {
        var testDescription: String
        var toml: String
        var headers: [String] = []
        var query: [String] = []
    }

    static let rows: [AuthRow] = [
        AuthRow(testDescription: "nothing", toml: "auth = { type = \"none\" }"),
        AuthRow(
            testDescription: "bearer", toml: "auth = { type = \"bearer\", token = \"hunter2\" }",
            headers: ["Authorization=Bearer hunter2"]),
        AuthRow(
            testDescription: "bearer from the environment", toml: "auth = { type = \"bearer\", token = \"${TOKEN}\" }",
            headers: ["Authorization=Bearer hunter2"]),
        AuthRow(
            testDescription: "bearer from a file, as a section",
            toml: "[rooms.auth]\ntype = \"bearer\"\ntoken_file = \"/run/token\"",
            headers: ["Authorization=Bearer hunter2"]),
        AuthRow(
            testDescription: "bearer from a credential",
            toml: "auth = { type = \"bearer\", token_credential = \"token\" }",
            headers: ["Authorization=Bearer hunter2"]),
        // Source: RFC 7617 §2, its example.
        AuthRow(
            testDescription: "basic",
            toml: "auth = { type = \"basic\", user = \"Aladdin\", password = \"open sesame\" }",
            headers: ["Authorization=Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]),
        AuthRow(
            testDescription: "basic with a file",
            toml: "auth = { type = \"basic\", user = \"u\", password_file = \"/run/token\" }",
            headers: ["Authorization=Basic dTpodW50ZXIy"]),
        AuthRow(
            testDescription: "query", toml: "auth = { type = \"query\", token = \"hunter2\" }",
            query: ["access_token=hunter2"]),
        AuthRow(
            testDescription: "query of another name",
            toml: "auth = { type = \"query\", param = \"key\", token_file = \"/run/token\" }", query: ["key=hunter2"]),
        AuthRow(
            testDescription: "header",
            toml: "auth = { type = \"header\", name = \"X-Key\", format = \"k={token};\", token = \"hunter2\" }",
            headers: ["X-Key=k=hunter2;"]),
        AuthRow(
            testDescription: "the defaults of all rooms",
            toml: "[room_defaults]\nauth = { type = \"bearer\", token = \"hunter2\" }",
            headers: ["Authorization=Bearer hunter2"]),
        AuthRow(
            testDescription: "a room's own token over the defaults' file",
            toml: "auth = { token = \"mine\" }\n"
                + "[room_defaults]\nauth = { type = \"bearer\", token_file = \"/run/token\" }",
            headers: ["Authorization=Bearer mine"]),
    ]

    @Test("each type sends what it says", arguments: rows)
    func sends(row: AuthRow) throws {
        let loaded = try load(Self.room(row.toml), variables: Self.variables, files: Self.files)
        let auth = try #require(loaded.rooms.first?.auth)
        let credentials = try UpstreamSecrets.credentials(auth, testEnvironment(Self.files, variables: Self.variables))
        #expect(credentials.headers.map { "\($0.name)=\($0.value)" } == row.headers)
        #expect(credentials.query.map { "\($0.name)=\($0.value)" } == row.query)

        let printed = ConfigurationPrinter.text(loaded)
        var dumped = ""
        dump(loaded, to: &dumped)
        dump(credentials, to: &dumped)
        for shown in [
            printed, "\(loaded)", String(reflecting: loaded), dumped, "\(credentials)", "\(credentials.headers)",
        ] {
            #expect(!shown.contains("hunter2") && !shown.contains("sesame"), "\(shown)")
        }
        let again = try load(printed, variables: Self.variables, files: Self.files)
        #expect(again.rooms.first?.auth.type == auth.type)
    }

    // MARK: - What is refused

    static let problemCases = [
        ProblemCase(
            "a type that is none", "auth = { type = \"logon\" }",
            "chatbridge.toml:4:17: expected \"none\" or \"bearer\" or \"basic\" or \"query\" or \"header\" or "
                + "\"message\" or \"login\" or \"client-cert\", found \"logon\" (did you mean \"login\"?)"),
        ProblemCase(
            "a login that nobody knows", "auth = { type = \"login\", user = \"u\", password = \"hunter2\" }",
            "chatbridge.toml:4:8: the dialect envelope does not know how to log in; login_url and login_body say how"),
        ProblemCase(
            "a login without a body", "auth = { type = \"login\", login_url = \"/login\" }",
            "chatbridge.toml:4:8: login_url needs a login_body"),
        ProblemCase(
            "a login to a place that is none",
            "auth = { type = \"login\", login_url = \"ftp://x\", login_body = { p = \"hunter2\" } }",
            "chatbridge.toml:4:38: the scheme ftp is not supported"),
        ProblemCase(
            "a password in plain text beside an encrypted room",
            "auth = { type = \"login\", login_url = \"http://x/l\", login_body = { p = \"hunter2\" } }\n"
                + "[[rooms]]\nname = \"b\"\nurl = \"wss://x/b\"\n"
                + "auth = { type = \"login\", login_url = \"http://x/l\", login_body = { p = \"hunter2\" } }",
            "chatbridge.toml:8:38: login_url is plain http:// while the room's url is encrypted; "
                + "what it carries could be read"),
        ProblemCase(
            "a renewal without a body",
            "auth = { type = \"login\", login_url = \"/l\", login_body = { p = \"hunter2\" }, refresh_url = \"/r\" }",
            "chatbridge.toml:4:8: refresh_url needs a refresh_body"),
        ProblemCase(
            "a pointer that is none",
            "auth = { type = \"login\", login_url = \"/l\", login_body = { p = \"x\" }, access_token_at = \"jwt\" }",
            "chatbridge.toml:4:88: \"jwt\" is not a JSON pointer such as \"/access_token\""),
        ProblemCase(
            "a code that is none",
            "auth = { type = \"login\", login_url = \"/l\", login_body = { p = \"x\" }, reauth_on = [200] }",
            "chatbridge.toml:4:83: expected a list of statuses (400 to 599) and close codes (1000 to 4999), "
                + "such as [401, 4001], found 200"),
        ProblemCase(
            "a token in a frame that does not exist", "auth = { type = \"message\", token = \"hunter2\" }",
            "chatbridge.toml:4:17: the dialect envelope has no frame for a token; use bearer, query or header"),
        ProblemCase(
            "a token of a login in a frame that does not exist",
            "auth = { type = \"login\", login_url = \"/l\", login_body = { p = \"x\" }, send_as = { in = \"message\" } }",
            "chatbridge.toml:4:80: the dialect envelope has no frame for a token; use bearer, query or header"),
        ProblemCase(
            "a token of a login in a header of the handshake",
            "auth = { type = \"login\", login_url = \"/l\", login_body = { p = \"x\" }, "
                + "send_as = { in = \"header\", name = \"Host\" } }",
            "chatbridge.toml:4:104: \"Host\" belongs to the WebSocket handshake and cannot carry a token"),
        ProblemCase(
            "a certificate that is not there", "auth = { type = \"client-cert\" }",
            "chatbridge.toml:4:8: auth of type \"client-cert\" needs client_cert and client_key in tls"),
        ProblemCase(
            "a token without a type", "auth = { token = \"hunter2\" }",
            "chatbridge.toml:4:18: auth.token means nothing without a type: "
                + "bearer, basic, query, header, message, login or client-cert"),
        ProblemCase(
            "a type without a token", "auth = { type = \"bearer\" }",
            "chatbridge.toml:4:8: auth of type \"bearer\" needs token, token_file or token_credential"),
        ProblemCase(
            "a key of another type", "auth = { type = \"bearer\", token = \"x\", param = \"p\" }",
            "chatbridge.toml:4:48: auth.param means nothing for type = \"bearer\""),
        ProblemCase(
            "two sources", "auth = { type = \"bearer\", token = \"x\", token_file = \"/run/token\" }",
            "chatbridge.toml:4:40: \"token_file\" and \"token\" exclude each other; keep one of them"),
        ProblemCase(
            "basic without a user", "auth = { type = \"basic\", password = \"x\" }",
            "chatbridge.toml:4:8: auth of type \"basic\" needs a user"),
        ProblemCase(
            "basic without a password", "auth = { type = \"basic\", user = \"x\" }",
            "chatbridge.toml:4:8: auth of type \"basic\" needs password, password_file or password_credential"),
        ProblemCase(
            "a file that is not there", "auth = { type = \"bearer\", token_file = \"/nowhere\" }",
            "chatbridge.toml:4:40: there is no file \"/nowhere\""),
        ProblemCase(
            "an empty file", "auth = { type = \"bearer\", token_file = \"/empty\" }",
            "chatbridge.toml:4:40: \"/empty\" is empty"),
        ProblemCase(
            "a file of two lines", "auth = { type = \"bearer\", token_file = \"/two\" }",
            "chatbridge.toml:4:40: \"/two\" has a line break or another control character"),
        ProblemCase(
            "a file with a blank", "auth = { type = \"bearer\", token_file = \"/blank\" }",
            "chatbridge.toml:4:40: \"/blank\" begins or ends with a space"),
        ProblemCase(
            "a line break in a token", "auth = { type = \"bearer\", token = \"hunter2\\r\\nX: y\" }",
            "chatbridge.toml:4:35: this secret has a line break or another control character"),
        ProblemCase(
            "a path for a credential", "auth = { type = \"bearer\", token_credential = \"../x\" }",
            "chatbridge.toml:4:46: a credential has a name, not a path; "
                + "there is a key that ends in _file for \"../x\""),
        ProblemCase(
            "a handshake's header",
            "auth = { type = \"header\", name = \"Sec-WebSocket-Key\", token = \"x\" }",
            "chatbridge.toml:4:34: \"Sec-WebSocket-Key\" belongs to the WebSocket handshake and cannot carry a token"),
        ProblemCase(
            "a format without a token", "auth = { type = \"header\", format = \"x\", token = \"x\" }",
            "chatbridge.toml:4:36: format has no {token} in it"),
        ProblemCase(
            "the same header twice",
            "headers = { authorization = \"x\" }\nauth = { type = \"bearer\", token = \"x\" }",
            "chatbridge.toml:4:29: authorization is set in headers and by auth; keep one of them"),
        ProblemCase(
            "a subprotocol that is required and not offered", "require_subprotocol = true",
            "chatbridge.toml:4:23: require_subprotocol needs a subprotocol to offer"),
        ProblemCase(
            "a proxy of another kind", "proxy = \"socks5://u:hunter2@p:1\"",
            "chatbridge.toml:4:9: a proxy of the kind socks5:// is not supported; "
                + "only http://USER:PASSWORD@HOST:PORT is"),
        ProblemCase(
            "a proxy without a host", "proxy = \"http://u:hunter2@\"",
            "chatbridge.toml:4:9: the proxy is written as http://USER:PASSWORD@HOST:PORT: it has no host"),
    ]

    @Test("what does not fit is told with its place, never with a secret", arguments: problemCases)
    func refused(row: ProblemCase) {
        let said = problems(Self.room(row.toml), variables: Self.variables, files: Self.files)
        #expect(said == [row.expected])
        #expect(!row.expected.contains("hunter2"))
    }

    @Test("calls show what all rooms of a backend show, where the backend itself says nothing; of several none")
    func authOfRooms() throws {
        func authenticates(_ tokens: String..., backend: String = "") throws -> Bool? {
            let rooms = tokens.enumerated().map { number, token in
                """
                [[rooms]]
                name = "r\(number)"
                backend = "chat"
                auth = { type = "bearer", token = "\(token)" }

                """
            }.joined()
            let toml = """
                [backends.chat]
                dialect = "jwt-rooms"
                url = "ws://chat.example/{room}"
                \(backend)

                """
            let settings = try BridgeSettings(try load(toml + rooms), instanceID: "x")
            return settings.backends.first { $0.name == "chat" }?.authenticates
        }
        #expect(try authenticates("one") == true)
        #expect(try authenticates("one", "one") == true)
        #expect(try authenticates("one", "two") == false)
        #expect(try authenticates("one", "two", backend: #"auth = { type = "bearer", token = "b" }"#) == true)
    }

    // MARK: - Files that change

    @Test("a token's file is read for each attempt, and why it cannot be is a sentence without contents")
    func reread() throws {
        let loaded = try load(
            Self.room("auth = { type = \"bearer\", token_file = \"/run/token\" }"), files: Self.files)
        let rooms = try BridgeSettings(loaded, instanceID: "x").rooms
        func read(_ text: String?) -> Result<UpstreamCredentials, UpstreamCredentialsFailure> {
            UpstreamSecrets(loaded, environment: testEnvironment(text.map { ["/run/token": $0] } ?? [:]))
                .read("a")
        }
        func bearer(_ token: String) -> UpstreamCredentials {
            UpstreamCredentials(headers: [.init(name: "Authorization", value: "Bearer \(token)")])
        }
        #expect(rooms.first?.authenticates == true)
        #expect(read("one\n") == .success(bearer("one")))
        #expect(read("two\r\n") == .success(bearer("two")))
        #expect(read(nil) == .failure(UpstreamCredentialsFailure("there is no file \"/run/token\"")))
        #expect(read("") == .failure(UpstreamCredentialsFailure("\"/run/token\" is empty")))
        #expect(
            read("hunter2\nX: y")
                == .failure(
                    UpstreamCredentialsFailure("\"/run/token\" has a line break or another control character")))
    }

    // MARK: - Proxies and socket files

    struct ProxyRow: CustomTestStringConvertible {
        var testDescription: String
        var toml: String
        var variables: [String: String] = [:]
        /// The proxy's place, or `direct`.
        var route: String
    }

    static let proxyRows: [ProxyRow] = [
        ProxyRow(testDescription: "nothing", toml: "", route: "direct"),
        ProxyRow(
            testDescription: "the room's own", toml: "proxy = \"http://u:hunter2@own:1\"",
            variables: ["HTTP_PROXY": "http://env:1"], route: "own:1"),
        ProxyRow(
            testDescription: "the environment's", toml: "", variables: ["http_proxy": "http://env:1"], route: "env:1"),
        ProxyRow(
            testDescription: "off", toml: "proxy = \"off\"", variables: ["HTTP_PROXY": "http://env:1"], route: "direct"),
        ProxyRow(
            testDescription: "the environment's again, over the defaults",
            toml: "proxy = \"\"\n[room_defaults]\nproxy = \"off\"", variables: ["HTTP_PROXY": "http://env:1"],
            route: "env:1"),
        ProxyRow(
            testDescription: "an exception", toml: "",
            variables: ["ALL_PROXY": "http://env:1", "NO_PROXY": ".example"], route: "direct"),
    ]

    @Test("a room's connection takes the way that is written", arguments: proxyRows)
    func proxies(row: ProxyRow) throws {
        let loaded = try load(Self.room(row.toml), variables: row.variables)
        let settings = try BridgeSettings(
            loaded, instanceID: "x", environmentProxies: HTTPProxyRules(environment: row.variables))
        let room = try #require(settings.rooms.first)
        switch room.proxies.route(to: room.url) {
        case .direct: #expect(row.route == "direct")
        case .proxy(let proxy): #expect(proxy.description == row.route)
        case .unusable(let sentence): Issue.record("\(sentence)")
        }
        let printed = ConfigurationPrinter.text(loaded)
        #expect(!printed.contains("hunter2"))
        #expect(try BridgeSettings(load(printed), instanceID: "x").rooms.count == 1)
    }

    @Test("a proxy of the environment that cannot be used is told at the room that would use it")
    func unusableProxy() {
        let variables = ["ALL_PROXY": "socks5://u:hunter2@p:1"]
        #expect(
            problems(Self.room(""), variables: variables) == [
                "chatbridge.toml:3:7: ALL_PROXY: a proxy of the kind socks5:// is not supported; "
                    + "only http://USER:PASSWORD@HOST:PORT is (proxy = \"off\" does without)"
            ])
        #expect(problems(Self.room("proxy = \"off\""), variables: variables) == [])
        #expect(problems(withRoom(""), variables: variables) == [])
    }

    @Test("a backend may be a socket file")
    func unixUpstream() throws {
        let loaded = try load(
            "[[rooms]]\nname = \"a\"\nurl = \"ws+unix:///run/chat.sock:/rooms/{room}?v=hunter2\"\nupstream_room = \"x y\""
        )
        let url = try #require(loaded.rooms.first?.url)
        #expect(url.text == "ws+unix:///run/chat.sock:/rooms/x%20y?v=hunter2")
        #expect(url.description == "ws+unix:///run/chat.sock:/rooms/x%20y?v=***")
        let settings = try BridgeSettings(loaded, instanceID: "x")
        #expect(settings.rooms.first?.url.isUnixSocket == true)
        #expect(settings.rooms.first?.url.host == "/run/chat.sock")
        #expect(try load(ConfigurationPrinter.text(loaded)).rooms.first?.url?.isUnixSocket == true)
    }

    static let socketCases = [
        ProblemCase(
            "a relative socket", "[[listeners]]\nbind = \"irc+unix://run/x.sock\"",
            "chatbridge.toml:3:8: a socket is written with three slashes and an absolute path, "
                + "as in irc+unix:///run/x.sock"),
        ProblemCase(
            "a mode without a socket", "[[listeners]]\nbind = \"irc://127.0.0.1:1\"\nmode = \"0600\"",
            "chatbridge.toml:4:8: mode is for a socket file: bind = \"irc+unix:///PATH\""),
        ProblemCase(
            "a mode that is none", "[[listeners]]\nbind = \"irc+unix:///run/x.sock\"\nmode = \"rw\"",
            "chatbridge.toml:4:8: expected permissions in octal, such as \"0660\", found \"rw\""),
        ProblemCase(
            "one socket twice",
            "[[listeners]]\nbind = \"irc+unix:///run/x\"\n[[listeners]]\nbind = \"irc+unix:///run/x\"",
            "chatbridge.toml:5:8: /run/x is bound twice (first at chatbridge.toml:3:8)"),
        ProblemCase(
            "a long path", "[[listeners]]\nbind = \"irc+unix:///" + String(repeating: "x", count: 107) + "\"",
            "chatbridge.toml:3:8: the socket's path is longer than 107 bytes"),
    ]

    @Test("a listener on a socket file is checked", arguments: socketCases)
    func socketProblems(row: ProblemCase) {
        #expect(problems(withRoom(row.toml)) == [row.expected])
    }

    @Test("a listener on a socket file needs no password and prints as it was written")
    func socketListener() throws {
        let loaded = try load(
            withRoom("[[listeners]]\nbind = \"irc+unix:///run/chat/irc.sock\"\nmode = \"0600\"\ngroup = \"chat\""))
        let listener = try #require(loaded.listeners.first)
        #expect(listener.bind.description == "irc+unix:///run/chat/irc.sock")
        #expect(listener.mode == 0o600)
        #expect(listener.bind.isLoopback)
        #expect(try load(ConfigurationPrinter.text(loaded)) == loaded)
    }
}

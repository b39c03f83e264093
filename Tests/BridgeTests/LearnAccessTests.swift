import BridgeTestSupport
import Configuration
import Learning
import Testing

@testable import ChatBridge

@Suite("How learn logs in")
struct LearnAccessTests {
    private static let token = #"s3cret "1"/é"#

    private static func access(
        _ change: (inout LearnOptions) -> Void, variables: [String: String] = [:]
    ) throws -> LearnAccess {
        var options = LearnOptions(url: "wss://h/ws")
        change(&options)
        let machine = ConfigurationEnvironment(variables: variables, hostName: "here") { path in
            path == "/run/token" ? .success(Array("\(token)\n".utf8)) : .failure(.notFound)
        }
        return try LearnAccess(options, environment: machine)
    }

    @Test("without a token nothing is shown")
    func nothing() throws {
        let access = try Self.access { $0.sends = [#"{"op":"sub"}"#] }
        #expect(access.headers.isEmpty)
        #expect(access.sends == [LearnAccess.Text(recorded: #"{"op":"sub"}"#, sent: #"{"op":"sub"}"#)])
        #expect(access.withoutToken("401 Unauthorized") == "401 Unauthorized")
    }

    @Test(
        "a token without a place of its own is a bearer token: of the option, else of the environment",
        arguments: [
            ("/run/token", [:], token), ("/run/token", ["CHATBRIDGE_TOKEN": "another"], token),
            (nil, ["CHATBRIDGE_TOKEN_FILE": "/run/token"], token), (nil, ["CHATBRIDGE_TOKEN": "t0ken-2"], "t0ken-2"),
        ] as [(String?, [String: String], String)])
    func bearer(_ file: String?, _ variables: [String: String], _ expected: String) throws {
        let access = try Self.access({ $0.tokenFile = file }, variables: variables)
        #expect(access.headers.map(\.name) == ["Authorization"])
        #expect(
            access.headers.map(\.value) == [
                LearnAccess.Text(recorded: "Bearer {token}", sent: "Bearer \(expected)")
            ])
    }

    @Test("the token stands where {token} does, in the form of the place, and is not recorded")
    func places() throws {
        let access = try Self.access {
            $0.tokenFile = "/run/token"
            $0.url = "wss://h/ws?t={token}"
            $0.headers = [LearnHeader(name: "X-Key", value: "Key {token}"), LearnHeader(name: "X-Org", value: "7")]
            $0.sends = [#"{"op":"auth","key":"{token}"}"#]
        }
        #expect(access.url.recorded == "wss://h/ws?t={token}")
        #expect(access.url.sent == "wss://h/ws?t=s3cret%20%221%22%2F%C3%A9")
        #expect(access.headers.map(\.name) == ["X-Key", "X-Org"])
        #expect(access.headers.map(\.value.recorded) == ["Key {token}", "7"])
        #expect(access.headers.map(\.value.sent) == ["Key \(Self.token)", "7"])
        #expect(access.sends.map(\.recorded) == [#"{"op":"auth","key":"{token}"}"#])
        #expect(access.sends.map(\.sent) == [#"{"op":"auth","key":"s3cret \"1\"/é"}"#])
        #expect(access.withoutToken("no \(Self.token), at ?t=s3cret%20%221%22%2F%C3%A9") == "no ***, at ?t=***")
    }

    @Test("a token that is missing is told, and where to put it")
    func missing() {
        let noToken = #expect(throws: StartError.self) { try Self.access { $0.url = "wss://h/ws?t={token}" } }
        #expect(
            noToken?.description
                == "{token} wants a token: --token-file, CHATBRIDGE_TOKEN or CHATBRIDGE_TOKEN_FILE")
        let noFile = #expect(throws: StartError.self) { try Self.access { $0.tokenFile = "/run/other" } }
        #expect(noFile?.description == #"there is no file "/run/other""#)
    }

    @Test("the proposed configuration reads the same file, and has the other headers")
    func configuration() throws {
        var recording = Recording()
        recording.open("wss://h/ws?x=1", headers: [("X-Key", "Key {token}"), ("X-Org", "7")])
        recording.add(RecordedFrame(isSent: false, text: #"{"op":"hi"}"#))
        let proposal = try #require(Learner.propose(recording))
        var options = LearnOptions(name: "mine", directory: "learnt")
        options.tokenFile = "/run/token"
        options.headers = [LearnHeader(name: "X-Key", value: "Key {token}"), LearnHeader(name: "X-Org", value: "7")]
        let toml = LearnedFiles(options).toml(proposal)
        #expect(toml.contains("\nheaders = { \"X-Org\" = \"7\" }\n"))
        #expect(
            toml.contains(
                #"auth = { type = "header", name = "X-Key", format = "Key {token}", token_file = "/run/token" }"#))
        _ = try load(toml, files: ["/run/token": "t0ken", "mine.json": proposal.text])
    }
}

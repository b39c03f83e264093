import BridgeTestSupport
import BridgeTypes
import Dialects
import Digests
import HTTPProtocol
import Media
import Testing
import Upstream
import WireBytes

@testable import Accounts
@testable import BridgeCore
@testable import IRCServer
@testable import Media
@testable import Rooms

@Suite("Uploads with a token of the backend's")
struct UploadTokenTests {
    private let harness: BridgeHarness

    init() throws { harness = try Self.harness() }

    private static func harness(bearer: String? = "main") throws -> BridgeHarness {
        let dialect = AccountDialect()
        var room = RoomSettings(
            name: "lobby", backend: "main", dialect: dialect, url: try HTTPURL(parsing: "ws://chat.example/lobby"))
        room.ping = .zero
        let verifier = SCRAMVerifier(quickly: "secret")
        var settings = BridgeSettings(
            serverName: "bridge", instanceID: "tests",
            accounts: [AccountSettings(name: "remy", password: verifier, rooms: ["attic"], tokenOwners: ["1"])],
            limits: LimitSettings { $0.messagesPerSecond = nil }, rooms: [room],
            backends: [
                BackendSettings(name: "main", dialect: dialect, httpBase: try HTTPURL(parsing: "http://chat.example"))
            ])
        settings.bearerBackend = bearer
        settings.media = MediaSettings(links: KnownLinks.links)
        let harness = BridgeHarness(settings: settings)
        harness.accounts.server = { call in
            if call.path == "/files" { return TokenServer.answer(200, "{}") }
            return switch call.token {
            case "token-of-remy": TokenServer.answer(200, #"{"id":"1","name":"Remy"}"#)
            case "token-of-ann": TokenServer.answer(200, #"{"id":"7","name":"Ann"}"#)
            case "token-of-a-look-alike": TokenServer.answer(200, #"{"id":"ann@x.org","name":"Ann"}"#)
            case "token-in-trouble": TokenServer.answer(503, "token-in-trouble is too much for me")
            case "token-open": nil
            default: TokenServer.answer(401, #"{"detail":"bad token"}"#)
            }
        }
        harness.start()
        return harness
    }

    /// The verdict on `token`; nil: none is given.
    private func verdict(_ token: String, from visitor: String = "192.0.2.1") -> UploadTokenVerdict? {
        guard case .begun(let attempt) = check(token, from: visitor) else { return nil }
        return harness.uploadTokenVerdicts.last { $0.attempt == attempt }?.verdict
    }

    private func check(_ token: String, from visitor: String = "192.0.2.1") -> UploadTokenCheck {
        var check = UploadTokenCheck.impossible
        harness.perform { check = $0.uploadTokenCheck(token, at: $0.uploadTokenSource(from: visitor), now: $1) }
        return check
    }

    @Test(
        "the backend says whose upload it is",
        arguments: [
            ("token-of-remy", "remy"), ("token-of-ann", "7@main"), ("token-of-nobody", nil),
            ("token-of-a-look-alike", nil), ("token-in-trouble", nil),
        ] as [(String, String?)])
    func whose(_ token: String, _ name: String?) {
        let verdict = verdict(token)
        if let name {
            guard case .belongs(let uploader)? = verdict else {
                Issue.record("\(String(describing: verdict))")
                return
            }
            #expect(uploader.name == name)
        } else {
            #expect(verdict == (token == "token-in-trouble" ? .unknown : .refused(wait: .zero)))
        }
        #expect(!harness.notes.contains { "\($0)".contains(token) })
    }

    @Test("what they may is what they may on IRC")
    func rooms() throws {
        for (token, outcome) in [
            ("token-of-ann", Result<String, UploadFailure>.success("http://chat.example/files/1")),
            ("token-of-remy", .failure(.notAllowed)),
        ] {
            guard case .belongs(let uploader)? = verdict(token) else {
                Issue.record("nobody's")
                return
            }
            let file = UploadedFile(name: "a.png", mime: "image/png", bytes: [1])
            harness.perform { $0.upload(UploadID(rawValue: 1), file, by: uploader, room: nil, now: $1) }
            #expect(harness.uploads.last?.outcome == outcome)
        }
    }

    @Test("refusals wait longer and longer, and a good token ends that")
    func waits() {
        let waits = (1...3).map { _ in verdict("token-of-nobody") }
        #expect(waits == [.refused(wait: .zero), .refused(wait: .seconds(1)), .refused(wait: .seconds(2))])
        _ = verdict("token-of-ann")
        #expect(verdict("token-of-nobody") == .refused(wait: .zero))
    }

    @Test("what is no token is shown to nobody", arguments: ["", " ", "a b", "=a", "a\r\nX: y", "é", "a,b", "===="])
    func noTokens(_ token: String) {
        _ = harness.accounts.takeCalls()
        #expect(check(token) == .impossible && harness.accounts.takeCalls().isEmpty)
    }

    @Test("only so many are asked about at a time, and that is nothing that a token could be blamed for")
    func bounded() {
        for _ in 0..<TokenQuery.maxUnderway {
            guard case .begun = check("token-open") else {
                Issue.record("not asked about")
                return
            }
        }
        #expect(check("token-of-ann") == .busy && check("no token") == .impossible)
    }

    @Test("made-up tokens of a visitor are failures of one, and those of another visitor are not theirs")
    func places() {
        let waits = (1...4).map { verdict("made-up-\($0)", from: "behind 127.0.0.1") }
        #expect(
            waits == [
                .refused(wait: .zero), .refused(wait: .seconds(1)), .refused(wait: .seconds(2)),
                .refused(wait: .seconds(4)),
            ])
        #expect(verdict("made-up-5", from: "198.51.100.1") == .refused(wait: .zero))
        #expect(harness.bridge.irc.logins.throttle.count == 0, "nobody is kept waiting on IRC for that")
    }

    @Test("where no backend is asked, a token is none")
    func notAsked() throws {
        #expect(harness.bridge.takesUploadTokens)
        let without = try Self.harness(bearer: nil)
        var check = UploadTokenCheck.busy
        without.perform {
            check = $0.uploadTokenCheck("token-of-ann", at: $0.uploadTokenSource(from: "192.0.2.1"), now: $1)
        }
        #expect(!without.bridge.takesUploadTokens && check == .impossible)
    }
}

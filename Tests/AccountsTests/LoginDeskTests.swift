import BridgeTypes
import Digests
import Testing
import Upstream
import WireBytes

@testable import Accounts

/// What clients show, and what is done about it; the passwords are checked here at once.
@Suite("LoginDesk")
struct LoginDeskTests {
    private static func verifier(_ password: String) -> SCRAMVerifier {
        SCRAMVerifier(password: SecretBytes(password.utf8), salt: Array("salt".utf8), iterations: 1)
    }

    private static func desk(
        serverPassword: ServerPassword? = nil, gateways: [ServerPassword] = []
    ) -> LoginDesk {
        let book = AccountBook(
            [
                AccountSettings(name: "ann", password: verifier("ann's"), certificates: ["c0ffee"]),
                AccountSettings(name: "bob", password: verifier("bob's")),
            ], least: nil)
        return LoginDesk(
            book, serverPassword: serverPassword, gateways: gateways, instanceID: "tests", tokenBackend: nil,
            UpstreamShared(connectsPerSecond: nil, backends: []))
    }

    private let client = ClientID(rawValue: 1)
    private let address = "198.51.100.7"

    private func at(_ seconds: Int64) -> MonotonicInstant { MonotonicInstant(nanoseconds: seconds * 1_000_000_000) }

    /// What is said of a step, in a word.
    private func word(_ step: LoginStep?) -> String {
        switch step {
        case nil: "nothing"
        case .check: "check"
        case .ask: "ask"
        case .answer(let wait, let failed): "\(failed == nil ? "right" : "wrong") in \(wait)"
        case .challenge: "challenge"
        case .right(let login):
            [login.account?.name ?? "in", login.clientName].compactMap(\.self).joined(separator: "@")
        case .refused(let why, _): "\(why)"
        case .abandoned(let isFailure): isFailure ? "given up, failed" : "given up"
        }
    }

    private func show(_ name: String, _ password: String, _ desk: LoginDesk, _ purpose: LoginPurpose = .sasl)
        -> LoginStep
    {
        desk.check(SecretBytes(password.utf8), of: name, client: nil, purpose, client, from: address)
    }

    /// Has passwords checked until there is something else to do.
    private func settled(_ step: LoginStep?, _ desk: LoginDesk, at seconds: Int64 = 0) -> LoginStep? {
        var step = step
        while case .check(let check) = step {
            step = desk.checked(
                check.client, attempt: check.attempt, check.isCorrect() ? .correct : .wrong, now: at(seconds))
        }
        return step
    }

    @Test("a try is underway until its answer was told, and there is one a client")
    func oneTry() {
        let desk = Self.desk()
        #expect(!desk.isBusy(with: client))
        let first = show("ann", "guess", desk, .oper)
        #expect(
            desk.isBusy(with: client) && desk.isChecking(client, for: .oper) && !desk.isChecking(client, for: .sasl))
        #expect(word(settled(first, desk)) == "wrong in 0.0 seconds")
        #expect(desk.isBusy(with: client) && !desk.isChecking(client, for: .oper))
        #expect(word(desk.answerIsDue(client)) == "wrongPassword")
        #expect(!desk.isBusy(with: client))
        #expect(word(desk.answerIsDue(client)) == "nothing")
    }

    @Test("a verdict that nobody waits for, or that came already, changes nothing")
    func lateVerdicts() throws {
        let desk = Self.desk()
        guard case .check(let check) = show("ann", "guess", desk) else { throw Unexpected() }
        #expect(word(desk.checked(client, attempt: check.attempt + 1, .correct, now: at(0))) == "nothing")
        #expect(word(desk.checked(client, attempt: check.attempt, .wrong, now: at(0))) == "wrong in 0.0 seconds")
        #expect(word(desk.checked(client, attempt: check.attempt, .correct, now: at(0))) == "nothing")
        desk.forget(client)
        #expect(!desk.isBusy(with: client))
        #expect(word(desk.checked(client, attempt: check.attempt, .correct, now: at(0))) == "nothing")
    }

    private struct Unexpected: Error {}

    @Test("what is right waits for the answers to what was wrong, and is told all the same")
    func rightLater() {
        let desk = Self.desk()
        for _ in 0..<3 {
            _ = settled(show("ann", "guess", desk), desk)
            _ = desk.answerIsDue(client)
        }
        #expect(word(settled(show("ann", "ann's", desk), desk, at: 1)) == "right in 1.0 seconds")
        #expect(desk.isBusy(with: client))
        #expect(word(desk.answerIsDue(client)) == "ann")
        #expect(word(settled(show("ann", "ann's", desk), desk, at: 3)) == "ann")
    }

    @Test(
        "who gives up is told nothing, and a failure it was",
        arguments: [("guess", "given up, failed"), ("ann's", "given up")])
    func abandoned(_ password: String, _ end: String) {
        let desk = Self.desk()
        let step = show("ann", password, desk)
        desk.abandon(client)
        let next = settled(step, desk)
        if password == "guess" {
            #expect(word(next) == "wrong in 0.0 seconds" && word(desk.answerIsDue(client)) == end)
        } else {
            #expect(word(next) == end)
        }
        #expect(!desk.isBusy(with: client))
    }

    static let passes: [(server: String?, isHashed: Bool, given: String, end: String)] = [
        (nil, false, "ann:ann's", "ann"), (nil, false, "ann@phone:ann's", "ann@phone"),
        (nil, false, "ann:guess", "wrong in 0.0 seconds"), (nil, false, "open", "nothing"),
        ("open", false, "open", "in"), ("open", true, "open", "in"), ("open", false, "shut", "wrong in 0.0 seconds"),
        ("ann:x", false, "ann:x", "in"), ("ann:x", true, "ann:x", "in"), ("open", true, "ann:ann's", "ann"),
        (":open", false, ":open", "in"),
    ]

    @Test("what a client gives to come in is an account's password, else the server's", arguments: passes)
    func pass(_ row: (server: String?, isHashed: Bool, given: String, end: String)) {
        let password = row.server.map { text -> ServerPassword in
            row.isHashed ? .hashed(Self.verifier(text)) : .plain(SecretBytes(text.utf8))
        }
        let desk = Self.desk(serverPassword: password)
        let step = desk.checkPass(row.given, canBeAccount: true, client, from: address, now: at(0))
        #expect(word(settled(step, desk)) == row.end)
        let clear = desk.checkPass(row.given, canBeAccount: false, client, from: "192.0.2.1", now: at(0))
        let isServers = row.server == row.given
        #expect(
            word(settled(clear, desk)) == (row.server == nil ? "nothing" : isServers ? "in" : "wrong in 0.0 seconds"))
    }

    @Test("a gateway's password is hashed once, and known from then on")
    func gateway() {
        let desk = Self.desk(gateways: [.plain(SecretBytes("a".utf8)), .hashed(Self.verifier("b"))])
        func show(_ password: String) -> LoginStep {
            desk.checkGateway(
                SecretBytes(password.utf8), candidates: [0, 1], client, from: address, now: at(0))
        }
        #expect(word(show("a")) == "in")
        let first = show("b")
        #expect(word(first) == "check" && word(settled(first, desk)) == "in")
        #expect(word(show("b")) == "in")
        #expect(word(settled(show("c"), desk)) == "wrong in 0.0 seconds")
    }

    @Test(
        "a certificate is its account's, and nobody acts as another",
        arguments: [
            ("c0ffee", "", "ann"), ("c0ffee", "ANN@Desk", "ann@desk"), ("c0ffee", "bob", "notThemselves"),
            ("decaf", "", "noCertificate"), (nil, "ann", "noCertificate"),
        ] as [(String?, String, String)])
    func certificate(_ certificate: String?, _ name: String, _ end: String) {
        #expect(word(Self.desk().showCertificate(certificate, as: name, from: address)) == end)
    }

    @Test("where no backend can be asked, tokens are refused at once")
    func noBackend() {
        let desk = Self.desk()
        #expect(!desk.asksForTokens)
        #expect(word(desk.showToken("t", as: "", client, from: address)) == "busy")
        guard case .impossible = desk.checkUploadToken("t", at: LoginDesk.uploadTokenPlace(from: "v")) else {
            Issue.record("somebody was asked")
            return
        }
    }
}

import BridgeTypes
import Digests
import Testing
import Upstream
import WireBytes

@testable import Accounts

/// Log-ins with passwords that are checked at once.
@Suite("LoginMachine")
struct LoginMachineTests {
    private static func verifier(_ password: String) -> SCRAMVerifier {
        SCRAMVerifier(password: SecretBytes(password.utf8), salt: Array("salt".utf8), iterations: 1)
    }

    private static func machine(
        serverPassword: ServerPassword? = nil, gateways: [ServerPassword] = []
    ) -> LoginMachine {
        let accounts = AccountTable(
            [
                AccountSettings(name: "ann", password: verifier("ann's"), certificates: ["c0ffee"]),
                AccountSettings(name: "bob", password: verifier("bob's")),
            ], minIterations: nil)
        return LoginMachine(
            accounts, serverPassword: serverPassword, gateways: gateways, instanceID: "tests", tokenBackend: nil,
            UpstreamShared(connectsPerSecond: nil, backends: []))
    }

    private let client = ClientID(rawValue: 1)
    private let address = "198.51.100.7"

    private func at(_ seconds: Int64) -> MonotonicInstant { MonotonicInstant(nanoseconds: seconds * 1_000_000_000) }

    /// A step as a word.
    private func word(_ step: LoginStep?) -> String {
        switch step {
        case nil: "nothing"
        case .check: "check"
        case .ask: "ask"
        case .answer(let wait, let failed): "\(failed == nil ? "right" : "wrong") in \(wait)"
        case .challenge: "challenge"
        case .succeeded(let login):
            [login.account?.name ?? "in", login.clientName].compactMap(\.self).joined(separator: "@")
        case .refused(let why, _): "\(why)"
        case .abandoned(let isFailure): isFailure ? "given up, failed" : "given up"
        }
    }

    private func show(_ name: String, _ password: String, _ machine: LoginMachine, _ purpose: LoginPurpose = .sasl)
        -> LoginStep
    {
        machine.check(SecretBytes(password.utf8), of: name, client: nil, purpose, client, from: address)
    }

    /// Checks passwords until another step follows.
    private func settled(_ step: LoginStep?, _ machine: LoginMachine, at seconds: Int64 = 0) -> LoginStep? {
        var step = step
        while case .check(let check) = step {
            step = machine.checked(
                check.client, attempt: check.attempt, check.isCorrect() ? .correct : .wrong, now: at(seconds))
        }
        return step
    }

    @Test("an attempt lasts until its answer was sent, and a client has one")
    func oneTry() {
        let machine = Self.machine()
        #expect(!machine.isBusy(with: client))
        let first = show("ann", "guess", machine, .oper)
        #expect(
            machine.isBusy(with: client) && machine.isChecking(client, for: .oper)
                && !machine.isChecking(client, for: .sasl))
        #expect(word(settled(first, machine)) == "wrong in 0.0 seconds")
        #expect(machine.isBusy(with: client) && !machine.isChecking(client, for: .oper))
        #expect(word(machine.takeDelayedAnswer(client)) == "wrongPassword")
        #expect(!machine.isBusy(with: client))
        #expect(word(machine.takeDelayedAnswer(client)) == "nothing")
    }

    @Test("late and repeated verdicts change nothing")
    func lateVerdicts() throws {
        let machine = Self.machine()
        guard case .check(let check) = show("ann", "guess", machine) else { throw Unexpected() }
        #expect(word(machine.checked(client, attempt: check.attempt + 1, .correct, now: at(0))) == "nothing")
        #expect(word(machine.checked(client, attempt: check.attempt, .wrong, now: at(0))) == "wrong in 0.0 seconds")
        #expect(word(machine.checked(client, attempt: check.attempt, .correct, now: at(0))) == "nothing")
        machine.remove(client)
        #expect(!machine.isBusy(with: client))
        #expect(word(machine.checked(client, attempt: check.attempt, .correct, now: at(0))) == "nothing")
    }

    private struct Unexpected: Error {}

    @Test("a success after failures is delayed and then answered")
    func rightLater() {
        let machine = Self.machine()
        for _ in 0..<3 {
            _ = settled(show("ann", "guess", machine), machine)
            _ = machine.takeDelayedAnswer(client)
        }
        #expect(word(settled(show("ann", "ann's", machine), machine, at: 1)) == "right in 1.0 seconds")
        #expect(machine.isBusy(with: client))
        #expect(word(machine.takeDelayedAnswer(client)) == "ann")
        #expect(word(settled(show("ann", "ann's", machine), machine, at: 3)) == "ann")
    }

    @Test(
        "an aborted attempt gets no answer, and counts",
        arguments: [("guess", "given up, failed"), ("ann's", "given up")])
    func abandoned(_ password: String, _ end: String) {
        let machine = Self.machine()
        let step = show("ann", password, machine)
        machine.abandon(client)
        let next = settled(step, machine)
        if password == "guess" {
            #expect(word(next) == "wrong in 0.0 seconds" && word(machine.takeDelayedAnswer(client)) == end)
        } else {
            #expect(word(next) == end)
        }
        #expect(!machine.isBusy(with: client))
    }

    static let passes: [(server: String?, isHashed: Bool, given: String, end: String)] = [
        (nil, false, "ann:ann's", "ann"), (nil, false, "ann@phone:ann's", "ann@phone"),
        (nil, false, "ann:guess", "wrong in 0.0 seconds"), (nil, false, "open", "nothing"),
        ("open", false, "open", "in"), ("open", true, "open", "in"), ("open", false, "shut", "wrong in 0.0 seconds"),
        ("ann:x", false, "ann:x", "in"), ("ann:x", true, "ann:x", "in"), ("open", true, "ann:ann's", "ann"),
        (":open", false, ":open", "in"),
    ]

    @Test("PASS has an account's password, else the server's", arguments: passes)
    func pass(_ row: (server: String?, isHashed: Bool, given: String, end: String)) {
        let password = row.server.map { text -> ServerPassword in
            row.isHashed ? .hashed(Self.verifier(text)) : .plain(SecretBytes(text.utf8))
        }
        let machine = Self.machine(serverPassword: password)
        let step = machine.checkPass(row.given, canBeAccount: true, client, from: address, now: at(0))
        #expect(word(settled(step, machine)) == row.end)
        let clear = machine.checkPass(row.given, canBeAccount: false, client, from: "192.0.2.1", now: at(0))
        let isServers = row.server == row.given
        #expect(
            word(settled(clear, machine)) == (row.server == nil ? "nothing" : isServers ? "in" : "wrong in 0.0 seconds")
        )
    }

    @Test("a gateway's password is hashed once, then cached")
    func gateway() {
        let machine = Self.machine(gateways: [.plain(SecretBytes("a".utf8)), .hashed(Self.verifier("b"))])
        func show(_ password: String) -> LoginStep {
            machine.checkGateway(
                SecretBytes(password.utf8), candidates: [0, 1], client, from: address, now: at(0))
        }
        #expect(word(show("a")) == "in")
        let first = show("b")
        #expect(word(first) == "check" && word(settled(first, machine)) == "in")
        #expect(word(show("b")) == "in")
        #expect(word(settled(show("c"), machine)) == "wrong in 0.0 seconds")
    }

    @Test(
        "a certificate logs in to its account only",
        arguments: [
            ("c0ffee", "", "ann"), ("c0ffee", "ANN@Desk", "ann@desk"), ("c0ffee", "bob", "authzidMismatch"),
            ("decaf", "", "noCertificate"), (nil, "ann", "noCertificate"),
        ] as [(String?, String, String)])
    func certificate(_ certificate: String?, _ name: String, _ end: String) {
        #expect(word(Self.machine().showCertificate(certificate, as: name, from: address)) == end)
    }

    @Test("without a backend tokens are refused at once")
    func noBackend() {
        let machine = Self.machine()
        #expect(!machine.acceptsTokens)
        #expect(word(machine.showToken("t", as: "", client, from: address)) == "busy")
        guard case .impossible = machine.checkUploadToken("t", at: LoginMachine.uploadTokenSource(from: "v")) else {
            Issue.record("a backend was asked")
            return
        }
    }
}

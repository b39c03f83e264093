import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Digests
import IRCProtocol
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// What wrong passwords cost, and whom: the address that they came from, and the account that was meant.
@Suite("Waits after wrong passwords")
struct LoginFairnessTests {
    private let harness: BridgeHarness
    private let next = Counter()

    private final class Counter { var value: UInt64 = 0 }

    init() {
        harness = Self.harness(["alice": 1, "mallory": 1])
    }

    private static func harness(_ iterations: KeyValuePairs<String, Int>, serverPassword: String? = nil)
        -> BridgeHarness
    {
        var limits = LimitSettings()
        limits.messagesPerSecond = nil
        limits.maxClientsPerAddress = 1000
        limits.acceptsPerSecondPerAddress = nil
        return BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "tests",
                password: serverPassword.map {
                    .hashed(SCRAMVerifier(password: SecretBytes($0.utf8), salt: Array("salt".utf8), iterations: 1))
                },
                accounts: iterations.map { name, count in
                    AccountSettings(
                        name: name,
                        password: SCRAMVerifier(
                            password: SecretBytes("\(name)'s".utf8), salt: Array("salt".utf8), iterations: count))
                }, limits: limits, rooms: []))
    }

    /// How long the answer to a password waited; nil: it was right.
    private func wait(_ name: String, _ password: String, from address: String = "198.51.100.7") -> Duration? {
        next.value += 1
        let client = next.value
        harness.connect(client, address: address, isLocal: false)
        harness.send(client, "CAP REQ sasl")
        harness.send(client, "AUTHENTICATE PLAIN")
        _ = harness.takeOutputs()
        harness.send(client, "AUTHENTICATE " + Base64.encode(Array("\0\(name)\0\(password)".utf8)))
        defer { harness.disconnect(client) }
        let begin = harness.clock.now.monotonic
        for _ in 0..<100 {
            let lines = harness.takeLines(client)
            if lines.contains(where: { $0.contains(" 903 ") }) { return nil }
            if lines.contains(where: { $0.contains(" 904 ") }) { return harness.clock.now.monotonic - begin }
            harness.advance(by: .seconds(1))
        }
        Issue.record("no answer")
        return nil
    }

    @Test("a right password of one's own does not forgive guesses at another's")
    func alternating() {
        var waits: [Duration?] = []
        for number in 0..<5 {
            waits.append(wait("alice", "guess \(number)"))
            #expect(wait("mallory", "mallory's") == nil)
        }
        #expect(waits == [.zero, .seconds(1), .seconds(2), .seconds(4), .seconds(8)])
    }

    @Test("a right password forgives one's own slips, and no others")
    func slips() {
        for number in 0..<3 { _ = wait("mallory", "slip \(number)") }
        #expect(wait("mallory", "mallory's") == nil)
        #expect(wait("mallory", "another slip") == .zero)
        _ = wait("alice", "guess")
        #expect(wait("mallory", "mallory's") == nil)
        #expect(wait("alice", "guess") == .seconds(1))
    }

    @Test("guesses at one account from many addresses wait for each other, and no longer than from one")
    func distributed() {
        let waits = (1...10).map { wait("alice", "guess", from: "198.51.100.\($0)") }
        #expect(waits.prefix(4) == [.zero, .seconds(1), .seconds(2), .seconds(4)])
        #expect(waits.last == LoginThrottle.maxDelay)
        #expect(wait("mallory", "guess", from: "203.0.113.1") == .zero, "another account")
    }

    @Test(
        "who hangs up instead of waiting for the answer guesses no faster",
        arguments: ["PLAIN", "SCRAM-SHA-256", "PASS"])
    func hangingUp(mechanism: String) {
        let harness = Self.harness(["alice": 1], serverPassword: "open")
        /// After how long it is let in.
        func enter(_ client: UInt64, _ password: String, upTo seconds: Int) -> Int? {
            harness.connect(client, address: "198.51.100.7", isLocal: false)
            defer { harness.disconnect(client) }
            if mechanism == "PASS" {
                for line in ["PASS \(password)", "NICK n\(client)", "USER u 0 * :r"] { harness.send(client, line) }
            } else {
                harness.send(client, "CAP REQ sasl")
                harness.send(client, "AUTHENTICATE \(mechanism)")
            }
            if mechanism == "PLAIN" {
                harness.send(client, "AUTHENTICATE " + Base64.encode(Array("\0alice\0\(password)".utf8)))
            }
            var exchange = mechanism.hasPrefix("SCRAM") ? SCRAMClient(name: "alice", password: password) : nil
            for second in 0..<seconds {
                var lines = harness.takeLines(client)
                while !lines.isEmpty {
                    let line = lines.removeFirst()
                    if line.contains(" 903 ") || line.contains(" 001 ") { return second }
                    guard line.hasPrefix("AUTHENTICATE "), var side = exchange else { continue }
                    let said = Base64.decode(String(line.dropFirst("AUTHENTICATE ".count))) ?? []
                    let answer = said.isEmpty ? side.first : side.proof(said) ?? []
                    exchange = side
                    harness.send(client, "AUTHENTICATE " + (answer.isEmpty ? "+" : Base64.encode(answer)))
                    lines += harness.takeLines(client)
                }
                harness.advance(by: .seconds(1))
            }
            return nil
        }
        for client in 1...8 as ClosedRange<UInt64> { #expect(enter(client, "guess", upTo: 2) == nil) }
        let right = mechanism == "PASS" ? "open" : "alice's"
        #expect(enter(9, right, upTo: 5) == nil, "it is too early")
        let waited = enter(10, right, upTo: 60)
        #expect(waited.map { (3...10).contains($0) } == true, "\(waited ?? -1)")
        #expect(enter(11, right, upTo: 60) == 0)
    }

    @Test(
        "nobody is locked out by a stranger: what is right waits a little at most, and not where the account was before"
    )
    func lockedOut() {
        let home = "203.0.113.1"
        #expect(wait("alice", "alice's", from: home) == nil)
        for number in 1...20 { _ = wait("alice", "guess", from: "198.51.100.\(number)") }
        #expect(wait("alice", "slip", from: home) == .zero)
        #expect(wait("alice", "another", from: home) == .seconds(1), "its own count there")
        let begin = harness.clock.now.monotonic
        #expect(wait("alice", "alice's", from: home) == nil)
        #expect(harness.clock.now.monotonic == begin)
        #expect(wait("alice", "guess", from: "198.51.100.21") != nil)
        harness.advance(by: .seconds(1))
        let later = harness.clock.now.monotonic
        #expect(wait("alice", "alice's", from: "203.0.113.2") == nil, "a place where it never was")
        #expect(harness.clock.now.monotonic - later <= LoginThrottle.maxSuccessDelay)
    }

    @Test("names that are none are the address's own failures, and no success forgives them")
    func unknownNames() {
        let waits = (0..<3).map { number in
            defer { _ = wait("mallory", "mallory's") }
            return wait("nobody\(number)", "guess")
        }
        #expect(waits == [.zero, .seconds(1), .seconds(2)])
    }

    @Test("the password of the server, tried in the same breath, forgives no guess at an account's")
    func serverPassword() {
        let harness = Self.harness(["alice": 1], serverPassword: "open")
        var waits: [Duration] = []
        for client in stride(from: UInt64(1), to: 9, by: 2) {
            for (id, password) in [(client, "alice:guess"), (client + 1, "open")] {
                harness.connect(id, address: "198.51.100.7", isLocal: false)
                harness.send(id, "PASS \(password)")
                harness.send(id, "NICK n\(id)")
                harness.send(id, "USER u 0 * :r")
                let begin = harness.clock.now.monotonic
                while password != "open", harness.isConnected(id), harness.clock.now.monotonic - begin < .seconds(60) {
                    harness.advance(by: .seconds(1))
                }
                if password != "open" { waits.append(harness.clock.now.monotonic - begin) }
                harness.disconnect(id)
            }
        }
        #expect(waits == [.zero, .seconds(1), .seconds(2), .seconds(4)])
    }

    // MARK: - Names that are none

    /// The iterations that SCRAM is told for a name.
    private func iterations(_ name: String, _ harness: BridgeHarness, _ client: UInt64) throws -> Int {
        harness.connect(client)
        harness.send(client, "CAP REQ sasl")
        harness.send(client, "AUTHENTICATE SCRAM-SHA-256")
        _ = harness.takeOutputs()
        harness.send(client, "AUTHENTICATE " + Base64.encode(Array("n,,n=\(name),r=abcdef".utf8)))
        let line = try #require(harness.takeLines(client).first { $0.hasPrefix("AUTHENTICATE ") })
        let text = String(
            decoding: try #require(Base64.decode(String(line.dropFirst("AUTHENTICATE ".count)))), as: UTF8.self)
        harness.disconnect(client)
        return try #require(text.firstMatch(of: /i=([0-9]+)/).flatMap { Int($0.1) })
    }

    @Test("names that are none are asked with the iterations that accounts have, each name always with the same")
    func decoys() throws {
        let harness = Self.harness(["alice": 4096, "bob": 8192, "carol": 8192])
        var found: [Int: Int] = [:]
        for number in 0..<60 {
            let (first, again) = (
                try iterations("eve\(number)", harness, UInt64(2 * number + 1)),
                try iterations("EVE\(number)", harness, UInt64(2 * number + 2))
            )
            #expect(first == again)
            found[first, default: 0] += 1
        }
        #expect(Set(found.keys) == [4096, 8192] && found.values.allSatisfy { $0 >= 10 }, "\(found)")
    }

    @Test(
        "while the answer to OPER waits, the next lines do not tell what it will be", arguments: ["guess", "alice's"])
    func operWaits(password: String) {
        for client in 1...4 as ClosedRange<UInt64> {
            harness.connect(client, address: "198.51.100.7", isLocal: false)
            harness.send(client, "PASS alice:guess")
            harness.send(client, "NICK n\(client)")
            harness.send(client, "USER u 0 * :r")
        }
        harness.connect(100, address: "198.51.100.7", isLocal: false)
        harness.send(100, "NICK n")
        harness.send(100, "USER u 0 * :r")
        _ = harness.takeOutputs()
        harness.receive(100, Array("OPER alice \(password)\r\nPING next\r\n".utf8))
        #expect(harness.takeLines(100).map { $0.contains(" PONG ") } == [true])
        harness.advance(by: .seconds(30))
        #expect(harness.takeLines(100).count == 1)
    }
}

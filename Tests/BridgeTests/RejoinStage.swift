import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Digests
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// A bridge with rooms `#lobby`, `#kitchen` and `#attic`, accounts `remy`, `lin` and `colette` (an administrator), and a disk
/// where it has one; crashes are restarts.
final class RejoinStage {
    let isDurable: Bool
    private(set) var settings: BridgeSettings
    private(set) var harness: BridgeHarness
    private var lines: [UInt64: [String]] = [:]
    private var restarts: UInt64 = 0

    init(_ isDurable: Bool = true, rooms: [String]? = nil, _ change: (inout BridgeSettings) -> Void = { _ in }) throws {
        self.isDurable = isDurable
        let accounts = ["remy", "lin", "colette"].map { name in
            var account = AccountSettings(name: name, password: SCRAMVerifier(quickly: "pw"))
            account.isAdmin = name == "colette"
            return account
        }
        settings = BridgeSettings(
            serverName: "bridge", instanceID: "t", accounts: accounts, registration: .everybody,
            passwordIterations: 4096,
            limits: LimitSettings {
                $0.acceptsPerSecondPerAddress = nil
                $0.messagesPerSecond = nil
            },
            rooms: try (rooms ?? ["lobby", "kitchen", "attic"]).map { try .stub($0) })
        change(&settings)
        harness = BridgeHarness(settings: settings, store: isDurable ? StoreStage() : nil)
        harness.start()
    }

    /// The process dies, and another goes on over the same disk, with other settings perhaps.
    func restart(_ change: (inout BridgeSettings) -> Void = { _ in }) {
        restarts += 1
        change(&settings)
        harness = BridgeHarness(
            settings: settings, seed: 1 + restarts, store: isDurable ? harness.store.afterCrash : nil,
            startingAt: harness.clock)
        lines = [:]
        harness.start()
    }

    // MARK: - Clients

    /// Logs in as `remy@phone`, and gives what the client is told behind the message of the day.
    @discardableResult
    func logIn(_ client: UInt64, _ login: String, caps: String = "") -> [String] {
        connect(client, String(login.prefix { $0 != "@" }), password: "\(login):pw", caps: caps)
    }

    /// Somebody without an account.
    @discardableResult
    func visit(_ client: UInt64, _ nick: String) -> [String] { connect(client, nick, password: nil, caps: "") }

    private func connect(_ client: UInt64, _ nick: String, password: String?, caps: String) -> [String] {
        harness.connect(client)
        if !caps.isEmpty { harness.send(client, "CAP REQ :" + caps) }
        if let password { harness.send(client, "PASS " + password) }
        for line in ["NICK " + nick, "USER u 0 * :r", "CAP END"] { harness.send(client, line) }
        let told = heard(client)
        guard let end = told.firstIndex(where: { $0.contains(" 422 ") }) else { return told }
        return Array(told[(end + 1)...])
    }

    func send(_ client: UInt64, _ line: String) -> [String] {
        look()
        lines = [:]
        harness.send(client, line)
        return heard(client)
    }

    /// What the client was told since the last look.
    func heard(_ client: UInt64) -> [String] {
        look()
        return lines.removeValue(forKey: client) ?? []
    }

    private func look() {
        for case .line(let client, let bytes) in harness.takeOutputs() {
            lines[client, default: []].append(String(decoding: bytes, as: UTF8.self))
        }
    }

    func session(_ client: UInt64) -> IRCSession? { harness.bridge.irc.sessions[ClientID(rawValue: client)] }

    /// The channels in which the client is, in the order in which it entered them.
    func rooms(of client: UInt64) -> [String] {
        (session(client)?.rooms ?? []).compactMap { harness.bridge.room($0)?.channel }
    }

    /// The channels of an account, as they are on disk.
    func kept(_ account: String) -> [String] {
        harness.store.disk.memberships.filter { $0.account == account }.map(\.channel)
    }
}

/// The lines without those that tell of what a backend without a history may have said while no process was there.
func withoutGaps(_ lines: [String]) -> [String] {
    lines.filter { !$0.contains("is missing: the backend keeps no history") }
}

/// The channels that lines of JOIN tell of, in order.
func joined(_ lines: [String]) -> [String] {
    lines.compactMap { $0.firstMatch(of: #/^(?:@\S+ )?:\S+ JOIN (#\S+)/#).map { String($0.1) } }
}

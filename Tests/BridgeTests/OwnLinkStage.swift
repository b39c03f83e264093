import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import JSONText
import Testing
import Upstream

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// One room, an account `alice` with a login of its own there, and `bob` who has none. The room's link is 0, the account's
/// own -1.
final class OwnLinkStage {
    static let own = -1

    let harness: BridgeHarness
    private var lines: [UInt64: [String]] = [:]
    private var frames: [(link: Int, frame: JSONValue)] = []
    private var ends: [String] = []
    private(set) var hasStopped = false
    /// What the backend answers when it is asked as whom it sees alice; nil: nothing.
    var me: String? = #"{"id":"7","name":"Alice B"}"#

    init(
        _ dialect: StubDialect, person: String? = nil, asks: Bool = true, hasOwnLogin: Bool = true,
        store: StoreStage? = nil,
        startingAt clock: ManualClock = ManualClock(), rooms change: (inout RoomSettings) -> Void = { _ in }
    ) throws {
        var dialect = dialect
        dialect.calls = StubCalls()
        var room = RoomSettings(
            name: "lobby", backend: "b", dialect: dialect, url: try HTTPURL(parsing: "ws://chat.example/0"))
        room.ping = .zero
        room.historyLimit = 0
        change(&room)
        let base = try HTTPURL(parsing: "http://chat.example")
        let alice = AccountSettings(
            name: "alice",
            password: SCRAMVerifier(quickly: "pw"),
            ownLogins: hasOwnLogin ? ["lobby": OwnLoginSettings(backend: asks ? "own" : nil, person: person)] : [:])
        harness = BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "t", accounts: [alice],
                limits: LimitSettings {
                    $0.messagesPerSecond = nil
                    $0.upstreamMessagesPerSecond = nil
                }, rooms: [room],
                backends: [
                    BackendSettings(name: "b", dialect: dialect, httpBase: base),
                    BackendSettings(
                        name: "own", dialect: dialect, httpBase: base, authenticates: true, isOnDemand: true),
                ]), store: store, startingAt: clock)
        harness.accounts.secrets[1] = .success(.fixed(UpstreamCredentials()))
        harness.accounts.server = { [weak self] call in
            guard call.path == "/me" else { return nil }
            guard let me = self?.me else { return .success(BackendCallResponse(BackendAnswer(status: 404, body: []))) }
            return .success(BackendCallResponse(BackendAnswer(status: 200, body: Array(me.utf8))))
        }
        harness.start()
    }

    /// The wire of rooms with names instead of ids, on which nothing confirms a message.
    static func silent(_ change: (inout DialectTraits) -> Void = { _ in }) -> StubDialect {
        StubDialect { traits in
            traits.identity = .single
            traits.messageIDOrigin = .server
            traits.confirmation = .none
            traits.readReport = .call
            change(&traits)
        }
    }

    /// The wire on which senders are named, and everybody hears everything.
    static func echoing(_ change: (inout DialectTraits) -> Void = { _ in }) -> StubDialect {
        StubDialect { traits in
            traits.confirmation = .echoByID
            traits.echoesOwnMessages = true
            traits.readReport = .eachMessage
            change(&traits)
        }
    }

    var room: Room { harness.bridge.rooms[0] }
    var own: OwnLink? { room.own["alice"] }

    static let caps = "message-tags echo-message standard-replies draft/message-redaction draft/read-marker"

    /// Returns what came of it.
    @discardableResult
    func enter(_ nick: String, _ client: UInt64, account: String? = nil) -> [String] {
        harness.connect(client)
        harness.send(client, "CAP REQ :" + Self.caps)
        if let account { harness.send(client, "PASS \(account):pw") }
        harness.send(client, "NICK " + nick)
        harness.send(client, "USER u 0 * :r")
        harness.send(client, "CAP END")
        harness.send(client, "JOIN #lobby")
        return heard(client)
    }

    /// Both are there, and what came of that is forgotten.
    func enterBoth() {
        enter("bob", 2)
        enter("alice", 1, account: "alice")
        harness.advance(by: .seconds(1))
        _ = heard(1)
        _ = heard(2)
        _ = sent()
    }

    private func look() {
        for output in harness.takeOutputs() {
            switch output {
            case .line(let client, let bytes): lines[client, default: []].append(String(decoding: bytes, as: UTF8.self))
            case .upstream(let link, .frame(let bytes, _)):
                frames.append((link, (try? JSONValue(parsing: bytes)) ?? .null))
            case .upstream(let link, .connected): ends.append("\(link) connected")
            case .upstream(let link, .close): ends.append("\(link) closed")
            case .stopped: hasStopped = true
            default: break
            }
        }
    }

    /// What went up since the last look: the link, the kind, and what says most of it.
    func sent() -> [String] {
        look()
        defer { frames = [] }
        return frames.map { link, frame in
            let sender = frame["sender"]?["name"]?.string.map { " \($0):" } ?? ""
            let what =
                frame["text"]?.string ?? frame["emoji"]?.string ?? frame["state"]?.string
                ?? frame["ids"]?.array?.compactMap(\.string).joined(separator: ",") ?? ""
            return "\(link) \(frame["kind"]?.string ?? "?")\(sender) \(what)"
        }
    }

    /// The messages that went up since the last look, and nothing else.
    func takeMessages() -> [(link: Int, id: String, sender: String, text: String)] {
        look()
        defer { frames = [] }
        return frames.compactMap { link, frame in
            guard frame["kind"]?.string == "message", let id = frame["id"]?.string, let text = frame["text"]?.string
            else { return nil }
            return (link, id, frame["sender"]?["id"]?.string ?? "", text)
        }
    }

    /// The id that went up with the newest message, which stays to be seen.
    func newestSentID() -> String {
        look()
        return frames.last { $0.frame["kind"]?.string == "message" }?.frame["id"]?.string ?? "none"
    }

    func newestSenderID() -> String {
        look()
        return frames.last { $0.frame["kind"]?.string == "message" }?.frame["sender"]?["id"]?.string ?? "none"
    }

    func linkEvents() -> [String] {
        look()
        defer { ends = [] }
        return ends
    }

    /// Every line that a client got since the last look, without its tags and the part behind the nick.
    func heard(_ client: UInt64) -> [String] {
        look()
        defer { lines[client] = [] }
        return (lines[client] ?? []).map { line in
            line.replacing(#/^@\S+ /#, with: "").replacing(#/^:([^! ]+)!\S+/#) { ":" + $0.1 }
        }
    }

    /// What is said, by whom.
    func said(_ client: UInt64) -> [String] {
        heard(client).compactMap { line in
            line.wholeMatch(of: #/:(\S+) PRIVMSG #lobby :(.*)/#).map { "\($0.1): \($0.2)" }
        }
    }

    func backend(_ json: String, over link: Int = 0) { harness.sendFrame(link, json) }

    /// A message by the name alone, as on wires without ids of people.
    func relay(_ id: String, _ text: String, by name: String, over link: Int = 0) {
        backend(#"{"kind":"message","id":"\#(id)","sender":{"name":"\#(name)"},"text":"\#(text)"}"#, over: link)
    }

    /// A message of a sender with an id.
    func echo(_ id: String, _ text: String, by sender: String, over link: Int) {
        backend(
            #"{"kind":"message","id":"\#(id)","sender":{"id":"\#(sender)","name":"Alice B"},"text":"\#(text)"}"#,
            over: link)
    }

    func loseOwn() { harness.endTransport(Self.own, reason: "the connection was reset") }
}

import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import JSONText
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// A wire, as far as it matters to messages on their way up.
struct DurableKind: CustomStringConvertible {
    var description: String
    var confirmation: DialectTraits.Confirmation
    var origin: DialectTraits.MessageIDOrigin
    var identity: DialectTraits.Identity
    var history: DialectTraits.HistorySource

    static let all = [
        DurableKind("client ids, echo", .echoByID, .client, .puppet, .none),
        DurableKind("client ids, receipts, history", .receipt, .client, .puppet, .socket),
        DurableKind("server ids, echo by text", .echoByText, .server, .puppet, .none),
        DurableKind("server ids, receipts, history", .receipt, .server, .single, .socket),
        DurableKind("server ids, nothing confirms, history", .none, .server, .single, .socket),
        DurableKind("client ids, nothing confirms", .none, .client, .puppet, .none),
    ]

    init(
        _ name: String, _ confirmation: DialectTraits.Confirmation, _ origin: DialectTraits.MessageIDOrigin,
        _ identity: DialectTraits.Identity, _ history: DialectTraits.HistorySource
    ) {
        description = name
        self.confirmation = confirmation
        self.origin = origin
        self.identity = identity
        self.history = history
    }

    /// Where nothing confirms, what was handed to the socket has arrived as far as anybody can know.
    var isWrittenTheEnd: Bool { confirmation == .none }

    func dialect(maxFrameBytes: Int) -> StubDialect {
        StubDialect {
            ($0.confirmation, $0.messageIDOrigin, $0.identity) = (confirmation, origin, identity)
            $0.history = history
            $0.maxFrameBytes = maxFrameBytes
        }
    }
}

/// A bridge on a disk, a backend with a log and a few IRC users; the process may end at any moment and begin again.
final class DurableStage {
    struct Said {
        var id: String
        var text: String
        var json: String
    }

    let kind: DurableKind
    private(set) var harness: BridgeHarness
    let settings: BridgeSettings
    private var seed: UInt64 = 1
    /// What the backend has, in its order.
    private(set) var log: [Said] = []
    /// Ids that came again.
    private(set) var repeated: [String] = []
    /// Frames on their way up, and answers on their way down.
    private(set) var wire: [JSONValue] = []
    private var answers: [String] = []
    /// Everything that clients heard, by client.
    private(set) var heard: [UInt64: [String]] = [:]
    private var nextClient: UInt64 = 0
    /// Who wanted a nick that was taken.
    private var shutOut: [String] = []

    init(
        _ kind: DurableKind, maxAge: Duration = .seconds(60), maxFrameBytes: Int = 1024 * 1024, maxMessages: Int = 1000
    )
        throws
    {
        self.kind = kind
        var room = RoomSettings(
            name: "lobby", backend: "b", dialect: kind.dialect(maxFrameBytes: maxFrameBytes),
            url: try HTTPURL(parsing: "ws://chat.example/0"))
        room.ping = .zero
        room.queueMaxAge = maxAge
        room.queueMaxMessages = maxMessages
        room.singlePrefix = ""
        settings = BridgeSettings(
            serverName: "bridge", instanceID: "t",
            limits: LimitSettings {
                $0.messagesPerSecond = nil
                $0.upstreamMessagesPerSecond = nil
            }, rooms: [room])
        harness = BridgeHarness(settings: settings, seed: seed, store: StoreStage())
        harness.start()
        answerQuestions()
    }

    var room: Room { harness.bridge.rooms[0] }
    var isLinked: Bool { harness.upstreams[0].state == .open }
    var kept: [StoredOutboxEntry] { harness.store.disk.rooms[room.storedKey]?.outbox ?? [] }
    /// Texts that were on disk at any time.
    private(set) var everKept: Set<String> = []
    /// The backend's messages by their texts, each id once.
    var texts: [String] { log.map(\.text) }

    // MARK: - IRC

    /// An IRC user enters. Each connection has a number of its own.
    func enter(_ nick: String, caps: String = "echo-message") -> UInt64 {
        nextClient += 1
        let client = nextClient
        harness.connect(client)
        for line in ["CAP REQ :" + caps, "NICK " + nick, "USER u 0 * :r", "CAP END", "JOIN #lobby"] {
            harness.send(client, line)
        }
        look()
        // What a client says that was not let in is nobody's message.
        if !lines(client, with: " 433 ").isEmpty { shutOut.append(nick) }
        return client
    }

    func say(_ text: String, _ client: UInt64) {
        harness.send(client, "PRIVMSG #lobby :" + text)
        look()
    }

    func ping(_ token: String, _ client: UInt64) {
        harness.send(client, "PING " + token)
        look()
    }

    func hasPong(_ token: String, _ client: UInt64) -> Bool {
        (heard[client] ?? []).contains { $0.hasSuffix("PONG bridge " + token) }
    }

    /// Lines that a client heard with these words.
    func lines(_ client: UInt64, with words: String) -> [String] {
        look()
        return (heard[client] ?? []).filter { $0.contains(words) }
    }

    /// Whether anybody was told that a message with this text failed.
    func isTold(_ text: String) -> Bool {
        look()
        return heard.values.joined().contains { $0.contains(" CANNOT_") && $0.hasSuffix(": " + text) }
    }

    // MARK: - The disk and the clock

    func commit(_ count: Int = .max) {
        harness.store.commit(count)
        let waiting = harness.store.waiting.prefix(count).flatMap(\.changes)
        for case .accept(let entry) in waiting { everKept.insert(entry.text) }
        harness.perform { _, _ in }
        look()
    }

    func advance(_ duration: Duration) {
        harness.advance(by: duration)
        look()
    }

    /// The process dies, and another begins.
    ///
    /// - Parameter arrives: whether what was handed to the socket reaches the backend.
    func restart(arrives: Bool = true, commits: Bool = true, down: Duration = .zero, on disk: StoredState? = nil) {
        look()
        while arrives || kind.isWrittenTheEnd, !wire.isEmpty { _ = takeFrame() }
        wire = []
        answers = []
        seed += 1
        var clock = harness.clock
        clock.move(to: clock.now.monotonic + down)
        harness = BridgeHarness(
            settings: settings, seed: seed, store: disk.map { StoreStage($0) } ?? harness.store.afterCrash,
            startingAt: clock)
        harness.store.commits = commits
        harness.start()
        look()
        answerQuestions()
    }

    // MARK: - The backend

    func look() {
        for output in harness.takeOutputs() {
            switch output {
            case .line(let client, let bytes): heard[client, default: []].append(String(decoding: bytes, as: UTF8.self))
            case .upstream(_, .frame(let bytes, _)): wire.append((try? JSONValue(parsing: bytes)) ?? .null)
            default: break
            }
        }
    }

    /// Answers what is no message; messages stay on the wire.
    func answerQuestions() {
        look()
        let questions = wire.filter { $0["kind"]?.string != "message" }
        wire.removeAll { $0["kind"]?.string != "message" }
        for question in questions where question["kind"]?.string == "fetch" {
            let messages = log.map(\.json).joined(separator: ",")
            harness.sendFrame(
                0, "{\"kind\":\"history\",\"ref\":\"\(question["ref"]?.string ?? "")\",\"messages\":[\(messages)]}")
        }
        look()
    }

    /// Questions for messages that the test answers itself.
    func takeQuestions() -> [JSONValue] {
        look()
        defer { wire.removeAll { $0["kind"]?.string == "fetch" } }
        return wire.filter { $0["kind"]?.string == "fetch" }
    }

    /// The backend takes one message off the wire. False when there is none.
    func takeFrame() -> Bool {
        guard !wire.isEmpty else { return false }
        let frame = wire.removeFirst()
        guard frame["kind"]?.string == "message", let ours = frame["id"]?.string, let text = frame["text"]?.string
        else {
            return true
        }
        let isOurID = kind.origin == .client
        if isOurID, let known = log.first(where: { $0.id == ours }) {
            repeated.append(ours)
            answers += kind.confirmation == .receipt ? [receipt(ours, known.id)] : [known.json]
            return true
        }
        let id = isOurID ? ours : "m\(log.count + 1)"
        let own = kind.identity == .single ? "\"self\":true," : ""
        let said = Said(
            id: id, text: text,
            json: "{\"kind\":\"message\",\(own)\"id\":\"\(id)\",\"at\":\(harness.clock.rightTime),"
                + "\"sender\":\(frame["sender"]?.text ?? "{}"),\"text\":\"\(text)\"}")
        log.append(said)
        switch kind.confirmation {
        case .echoByID, .echoByText: answers.append(said.json)
        case .receipt: answers.append(receipt(ours, id))
        case .none: break
        }
        return true
    }

    private func receipt(_ ours: String, _ id: String) -> String {
        kind.origin == .client
            ? "{\"kind\":\"receipt\",\"state\":\"sent\",\"ids\":[\"\(ours)\"]}"
            : "{\"kind\":\"receipt\",\"state\":\"sent\",\"ref\":\"\(ours)\",\"ids\":[\"\(id)\"]}"
    }

    /// One answer reaches the bridge. False when there is none.
    func answerOne() -> Bool {
        guard !answers.isEmpty else { return false }
        let answer = answers.removeFirst()
        if isLinked { harness.sendFrame(0, answer) }
        look()
        return true
    }

    /// The backend's connection has read what is on the wire, and it comes to nothing.
    func drop() {
        look()
        wire = []
    }

    func loseLink(arrives: Bool = true) {
        look()
        while arrives || kind.isWrittenTheEnd, !wire.isEmpty { _ = takeFrame() }
        wire = []
        answers = []
        harness.endTransport(0, reason: "the connection was reset")
        look()
    }

    func refuse(_ text: String) {
        harness.sendFrame(0, "{\"kind\":\"error\",\"code\":\"no\",\"text\":\"\(text)\"}")
        look()
    }

    /// Everything takes its course until nothing is under way.
    func run() {
        var isBusy = true
        while isBusy {
            commit()
            answerQuestions()
            isBusy = false
            while takeFrame() { isBusy = true }
            while answerOne() { isBusy = true }
            look()
            isBusy = isBusy || !wire.isEmpty || !harness.store.waiting.isEmpty
        }
    }

    /// What is wrong in the end, where `accepted` are the texts that the bridge said it had.
    func problems(accepted: [String], order: [String]) -> [String] {
        look()
        var problems = harness.violations + shutOut.map { "\($0) was not let in" }
        for text in accepted where !texts.contains(text) && !isTold(text) { problems.append("\(text) is lost") }
        for text in Set(texts) where texts.filter({ $0 == text }).count > 1 { problems.append("\(text) is doubled") }
        let ranks = texts.compactMap { order.firstIndex(of: $0) }
        if ranks != ranks.sorted() { problems.append("the order is \(texts)") }
        let open = kept.filter { $0.state != .told }
        if !open.isEmpty { problems.append("the disk still has \(open.map { "\($0.text) \($0.state)" })") }
        return problems
    }
}

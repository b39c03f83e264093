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
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Where what is asked for comes from.
struct HistoryPlace: CustomTestStringConvertible, Sendable {
    var isDurable: Bool
    var older: DialectTraits.OlderSource = .none
    /// The call can say before when.
    var takesBefore = false

    var testDescription: String {
        (isDurable ? "a store" : "memory")
            + (older == .none ? "" : " and the backend by \(older.rawValue)\(takesBefore ? " with a time" : "")")
    }

    static let memory = HistoryPlace(isDurable: false)
    static let store = HistoryPlace(isDurable: true)
    static let own = [memory, store]
    static let withBackend = [true, false].flatMap { isDurable in
        [
            HistoryPlace(isDurable: isDurable, older: .socket), HistoryPlace(isDurable: isDurable, older: .call),
            HistoryPlace(isDurable: isDurable, older: .call, takesBefore: true),
        ]
    }
    static let all = own + withBackend
}

/// Rooms with a past, here and at a backend that keeps everything, and clients that ask for it.
final class HistoryStage {
    struct Said: Equatable {
        var id: String
        var text: String
        var at: Int64
    }

    let place: HistoryPlace
    private let settings: BridgeSettings
    private(set) var harness: BridgeHarness
    /// Everything that the backend has of the first room, oldest first.
    private(set) var log: [Said] = []
    /// The backend answers no question about the past.
    var keepsSilent = false
    /// The backend tells the newest first.
    var tellsNewestFirst = false
    /// The backend refuses to answer.
    var refuses = false
    /// Questions about the past that the backend got.
    private(set) var questionCount = 0
    private var lines: [UInt64: [String]] = [:]
    private var restarts: UInt64 = 0

    static let caps = "message-tags server-time batch labeled-response account-tag standard-replies draft/chathistory"

    init(
        _ place: HistoryPlace, rooms: Int = 1, limit: Int = 500, older: [(text: String, age: Int64)] = [],
        store: StoreStage = StoreStage(), rejoins: Bool = true
    ) throws {
        self.place = place
        var dialect = StubDialect { $0.older = place.older }
        if place.older == .call { dialect.calls = StubCalls(takesBefore: place.takesBefore) }
        let made = dialect
        let rooms = try (0..<rooms).map { index in
            var room = RoomSettings(
                name: index == 0 ? "lobby" : "room\(index)", backend: "b", dialect: made,
                url: try HTTPURL(parsing: "ws://chat.example/\(index)"))
            room.ping = .zero
            return room
        }
        let accounts = ["ann", "bob"].map { name in
            AccountSettings(
                name: name,
                password: SCRAMVerifier(quickly: "pw"),
                rooms: name == "bob" ? ["lobby"] : nil)
        }
        var settings = BridgeSettings(
            serverName: "bridge", instanceID: "t", accounts: accounts,
            limits: LimitSettings {
                $0.acceptsPerSecondPerAddress = nil
                $0.messagesPerSecond = nil
                $0.upstreamMessagesPerSecond = nil
                $0.historyLimit = limit
            },
            rooms: rooms,
            backends: [BackendSettings(name: "b", dialect: made, httpBase: try HTTPURL(parsing: "http://chat.example"))]
        )
        settings.rejoins = rejoins
        self.settings = settings
        harness = BridgeHarness(settings: settings, store: place.isDurable ? store : nil)
        for (text, age) in older {
            log.append(Said(id: "m\(log.count)", text: text, at: harness.clock.now.wall.milliseconds - age))
        }
        harness.start()
    }

    var room: Room { harness.bridge.rooms[0] }

    /// The process dies, and another goes on over the same disk.
    func restart() {
        restarts += 1
        harness = BridgeHarness(
            settings: settings, seed: 1 + restarts, store: place.isDurable ? harness.store.afterCrash : nil,
            startingAt: harness.clock)
        lines = [:]
        harness.start()
    }

    // MARK: - Clients

    func enter(
        _ client: UInt64 = 1, _ nick: String = "remy", caps: String = HistoryStage.caps, join: String? = "#lobby"
    ) {
        harness.connect(client)
        harness.send(client, "CAP REQ :" + caps)
        if nick.contains("@") { harness.send(client, "PASS \(nick):pw") }
        harness.send(client, "NICK " + String(nick.prefix { $0 != "@" }))
        harness.send(client, "USER u 0 * :r")
        harness.send(client, "CAP END")
        if let join { harness.send(client, "JOIN " + join) }
        _ = raw(client)
    }

    private func look() {
        for output in harness.takeOutputs() {
            switch output {
            case .line(let client, let bytes): lines[client, default: []].append(String(decoding: bytes, as: UTF8.self))
            case .upstream(let room, .frame(let bytes, _)):
                if let frame = try? JSONValue(parsing: bytes), frame["kind"]?.string == "fetch" {
                    fetches.append((room, frame))
                }
            default: break
            }
        }
    }

    /// The lines since the last look.
    func raw(_ client: UInt64 = 1) -> [String] {
        look()
        defer { lines[client] = [] }
        return lines[client] ?? []
    }

    /// Sends a line and gives the answer, when the backend has had its time too.
    func ask(_ line: String, _ client: UInt64 = 1) -> [String] {
        harness.send(client, line)
        serve()
        return raw(client)
    }

    /// The words of a page, in order.
    func page(_ line: String, _ client: UInt64 = 1) -> [String] { ask(line, client).compactMap(Self.words) }

    static func words(_ line: String) -> String? {
        line.firstMatch(of: #/ (?:PRIVMSG|NOTICE) #\S+ :(.*)$/#).map { String($0.1) }
    }

    static func tag(_ name: String, _ line: String) -> String? {
        guard line.hasPrefix("@") else { return nil }
        return line.dropFirst().prefix { $0 != " " }.split(separator: ";")
            .first { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
    }

    // MARK: - Talk

    /// Somebody upstream says something; by their clock, which may be wrong.
    @discardableResult
    func say(_ text: String, room: Int = 0, clock: Int64 = 0, more: String = "") -> String {
        let at = harness.clock.now.wall.milliseconds + clock
        let id = room == 0 ? "m\(log.count)" : "r\(room)-\(at)-\(text)"
        if room == 0 { log.append(Said(id: id, text: text, at: at)) }
        harness.sendFrame(
            room,
            #"{"kind":"message","id":"\#(id)","at":\#(at),"sender":{"id":"u-lin","name":"linguini"},"#
                + #"\#(more)"text":"\#(text)"}"#)
        return id
    }

    func say(_ texts: [String], each pause: Duration = .seconds(1)) {
        for text in texts {
            say(text)
            harness.advance(by: pause)
        }
    }

    /// The bridge's id of the message with these words, of the first room.
    func msgid(_ text: String) -> String {
        let id = log.last { $0.text == text }?.id ?? ""
        return harness.bridge.context.messageID(
            backend: "b", room: "lobby", sender: ChatID("u-lin"), id: ChatID(id))
    }

    func time(_ text: String) -> String { time(log.last { $0.text == text }?.at ?? 0) }

    func time(_ at: Int64) -> String { "timestamp=" + IRCTime.text(at) }

    // MARK: - The backend

    private var fetches: [(room: Int, frame: JSONValue)] = []

    private func messages(before: Int64?, limit: Int?) -> ArraySlice<Said> {
        log.filter { $0.at < before ?? .max }.suffix(limit ?? .max)
    }

    private func inOrder(_ found: ArraySlice<Said>) -> [Said] { tellsNewestFirst ? found.reversed() : Array(found) }

    /// Answers what was asked of the past, as long as something is asked.
    func serve() {
        for _ in 0..<50 {
            answerQuestions()
            // A question may wait for its turn.
            guard !keepsSilent, case .due = room.older.current?.state else { return }
            harness.advance(by: OlderHistory.pause)
        }
    }

    /// Answers what was asked of the past until now.
    func answerQuestions() {
        for _ in 0..<50 {
            look()
            guard !keepsSilent else { return }
            if !fetches.isEmpty {
                let (room, frame) = fetches.removeFirst()
                questionCount += 1
                let ref = frame["ref"]?.string ?? ""
                guard !refuses else {
                    harness.sendFrame(room, #"{"kind":"error","code":"no","text":"no","ref":"\#(ref)"}"#)
                    continue
                }
                let found = messages(before: frame["before"]?.integer, limit: frame["limit"]?.integer.map { Int($0) })
                let items = inOrder(found).map { said in
                    #"{"kind":"message","id":"\#(said.id)","at":\#(said.at),"#
                        + #""sender":{"id":"u-lin","name":"linguini"},"text":"\#(said.text)"}"#
                }
                harness.sendFrame(
                    room, #"{"kind":"history","ref":"\#(ref)","messages":[\#(items.joined(separator: ","))]}"#)
                continue
            }
            let queries = harness.takeHistoryQueries()
            for query in queries {
                questionCount += 1
                guard !refuses else {
                    harness.answerHistory(.failure(BackendCallFailure(sentence: "no", status: 404)))
                    continue
                }
                let found = messages(before: query.before?.milliseconds, limit: query.limit)
                let all = messages(before: query.before?.milliseconds, limit: nil)
                harness.answerHistory(
                    .success(
                        inOrder(found).map {
                            ChatMessage(
                                id: ChatID($0.id), sender: ChatPerson(id: ChatID("u-lin"), name: "linguini"),
                                text: $0.text, at: ChatTimestamp(milliseconds: $0.at))
                        }), isComplete: found.count == all.count)
            }
            if queries.isEmpty { return }
        }
    }
}

/// Messages by their numbers.
func numbers(_ range: Range<Int>) -> [String] { range.map { "m\($0)" } }

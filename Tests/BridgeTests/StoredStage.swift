import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import JSONText
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// A wire on which a room outlasts the process, as tests name it.
struct StoredWire: CustomTestStringConvertible, Sendable {
    var name: String
    var history: DialectTraits.HistorySource
    var origin: DialectTraits.MessageIDOrigin
    /// Messages bear ids at all.
    var hasIDs = true
    /// The backend gives so many messages at a time at most; nil: as many as are asked for.
    var page: Int?
    /// It gives the oldest of what is newer than what it is asked for; else it can be asked for what is older than some.
    var givesOldest = false
    /// It goes by the id of the message that it is asked behind, and leaves that one out.
    var leavesOutKnown = false
    /// The dialect says so.
    var saysSo = false
    /// There is no way to say from or until when: it gives its oldest messages.
    var takesNoPlace = false

    var testDescription: String { name }

    static let withHistory = [
        StoredWire(name: "ids of clients, history over the socket", history: .socket, origin: .client),
        StoredWire(name: "ids of the server, history over the socket", history: .socket, origin: .server),
        StoredWire(name: "ids of the server, history by call", history: .call, origin: .server),
        StoredWire(name: "ids of the server, history pushed", history: .pushed, origin: .server),
        StoredWire(name: "no ids, history over the socket", history: .socket, origin: .server, hasIDs: false),
    ]
    /// Those that are asked page by page.
    static func paged(_ page: Int) -> [StoredWire] {
        [
            StoredWire(
                name: "ids of clients, pages of \(page) over the socket", history: .socket, origin: .client, page: page),
            StoredWire(
                name: "ids of the server, pages of \(page) by call", history: .call, origin: .server, page: page),
            StoredWire(
                name: "ids of the server, pages of \(page) by call, the oldest first", history: .call, origin: .server,
                page: page, givesOldest: true),
        ]
    }
    /// Asked behind a message, it begins with the next.
    static func exclusive(_ page: Int, saysSo: Bool) -> StoredWire {
        StoredWire(
            name: "ids of the server, pages of \(page) by call, behind an id", history: .call, origin: .server,
            page: page, givesOldest: true, leavesOutKnown: true, saysSo: saysSo)
    }
    /// It gives its oldest messages in each answer.
    static func oldestAlone(_ page: Int) -> StoredWire {
        StoredWire(
            name: "ids of the server, the oldest \(page) by call", history: .call, origin: .server, page: page,
            givesOldest: true, takesNoPlace: true)
    }
    static let withoutHistory = [
        StoredWire(name: "ids of clients, no history", history: .none, origin: .client),
        StoredWire(name: "ids of the server, no history", history: .none, origin: .server),
        StoredWire(name: "no ids, no history", history: .none, origin: .server, hasIDs: false),
    ]
}

/// A backend with a log of its own, a bridge that dies and starts again over one disk, and IRC users.
final class StoredStage {
    struct Said {
        var id: String
        var sender: String
        var senderID: String?
        var text: String
        /// What the message says.
        var at: Int64
        /// When the backend took it.
        var tookAt: Int64
    }

    /// A line of the room, as a client with tags saw it.
    struct Line: Equatable {
        var msgid: String?
        var from: String
        var text: String
        var gap: String?
    }

    let wire: StoredWire
    private let settings: BridgeSettings
    private(set) var harness: BridgeHarness
    /// Everything that was said upstream.
    private(set) var log: [Said] = []
    /// The backend answers no question about the past.
    var keepsSilent = false
    /// It answers so many, and no more; nil: all.
    var answersLeft: Int?
    /// It does not go by what it is asked to give only what is older than.
    var ignoresBefore = false
    /// The backend gives its oldest messages also where nothing says from when on; only for a wire that `givesOldest`.
    var beginsWithOldest = false
    /// Questions about the past that it answered.
    private(set) var answerCount = 0
    private var lines: [UInt64: [String]] = [:]
    private var fetches: [JSONValue] = []
    private var wasUp = false

    init(
        _ wire: StoredWire, limit: Int = 1000, template: Bool = false, disk: StoredState = StoredState(),
        _ change: (inout DialectTraits) -> Void = { _ in }, room adjust: (inout RoomSettings) -> Void = { _ in }
    ) throws {
        self.wire = wire
        var dialect = StubDialect {
            $0.history = wire.history
            $0.messageIDOrigin = wire.origin
            if wire.page != nil, !wire.givesOldest { $0.older = wire.history == .call ? .call : .socket }
            change(&$0)
        }
        // Such a backend says what it says, and is asked nothing.
        if wire.history == .pushed { dialect.unsupported.insert("fetch") }
        if wire.history == .call {
            dialect.calls = StubCalls(
                takesBefore: wire.page != nil && !wire.givesOldest, takesAfter: wire.givesOldest && !wire.takesNoPlace,
                beginsBehind: wire.saysSo)
        }
        let url = try HTTPURL(parsing: "ws://chat.example/0")
        var lobby = RoomSettings(name: "lobby", backend: "b", dialect: dialect, url: url)
        lobby.ping = .zero
        lobby.historyLimit = limit
        adjust(&lobby)
        let made = lobby
        settings = BridgeSettings(
            serverName: "bridge", instanceID: "t",
            limits: LimitSettings {
                $0.messagesPerSecond = nil
                $0.upstreamMessagesPerSecond = nil
            },
            rooms: template ? [] : [lobby],
            backends: [
                BackendSettings(name: "b", dialect: dialect, httpBase: try HTTPURL(parsing: "http://chat.example"))
            ],
            template: template
                ? RoomTemplate(backend: "b") { name in
                    var room = made
                    room.name = name
                    room.upstreamRoom = name
                    return room
                } : nil)
        harness = BridgeHarness(settings: settings, store: StoreStage(disk))
    }

    var room: Room { harness.bridge.rooms[0] }
    /// Where its link is. A room that is opened again has another number.
    private var link: Int { harness.bridge.rooms.first?.id.index ?? 0 }
    var wall: Int64 { harness.clock.now.wall.milliseconds }
    /// What the clock of whoever says something next is ahead by, where senders tell the time.
    var senderLead: Int64 = 0
    let key = StoredRoomKey(backend: "b", room: "lobby")

    /// What is on disk of the room's order.
    var kept: [StoredMessage] {
        (harness.store.disk.rooms[key]?.messages ?? []).sorted { $0.sequence < $1.sequence }
    }

    /// The backend's end of the link.
    var upstream: ScriptedUpstream { harness.upstream(link) }

    // MARK: - The bridge

    func start() {
        harness.start()
        serve()
    }

    /// The bridge dies, and another starts over what was on disk.
    ///
    /// - Parameter lead: by how much the clock of the other is ahead; nil: by as much as before.
    func crash(
        down: Duration = .seconds(30), saying texts: [String] = [], lead: Duration? = nil, seed: UInt64 = 2
    ) {
        harness.advance(by: down / 2)
        let commits = harness.store.commits
        var clock = harness.clock
        for text in texts {
            clock.move(to: clock.now.monotonic + .seconds(1))
            append(text, at: clock.rightTime)
        }
        clock.move(to: clock.now.monotonic + down / 2)
        if let lead { clock.lead = lead }
        harness = BridgeHarness(settings: settings, seed: seed, store: harness.store.afterCrash, startingAt: clock)
        harness.store.commits = commits
        fetches = []
        lines = [:]
        wasUp = false
    }

    func restart(down: Duration = .seconds(30), saying texts: [String] = []) {
        crash(down: down, saying: texts)
        start()
    }

    func loseLink(saying texts: [String] = [], for pause: Duration = .seconds(10)) {
        harness.acceptsConnections = false
        harness.endTransport(link, reason: "the connection was reset")
        look()
        fetches = []
        wasUp = false
        for text in texts {
            harness.advance(by: .seconds(1))
            append(text, at: harness.clock.rightTime)
        }
        harness.advance(by: pause)
    }

    /// Nothing gets through for a while, since the relay's process is stopped or a proxy holds everything back. The backend says
    /// `late` over the link and dies; to others it says `lost`. Then everything that waited is read at once, and the link's end.
    func standStill(
        saying late: [String], losing lost: [String] = [], isStopped: Bool, for pause: Duration = .seconds(1)
    ) {
        func pass(_ duration: Duration = .seconds(1)) {
            let then = harness.clock.now.monotonic + duration
            if isStopped { harness.clock.move(to: then) } else { harness.advance(to: then) }
        }
        harness.upstream(link).isSilent = true
        var waiting: [String] = []
        for text in late {
            pass()
            append(text, at: harness.clock.rightTime)
            waiting.append(frame(log[log.count - 1]))
        }
        for text in lost {
            pass()
            append(text, at: harness.clock.rightTime)
        }
        pass(pause)
        harness.acceptsConnections = false
        if upstream.state == .open { for frame in waiting { harness.sendFrame(link, frame) } }
        harness.upstream(link).isSilent = false
        harness.endTransport(link, reason: "the connection was reset")
        look()
        fetches = []
        wasUp = false
    }

    /// The configuration is read again, and the link is opened anew.
    func replaceLink(isAccepted: Bool = true) {
        harness.acceptsConnections = isAccepted
        look()
        fetches = []
        wasUp = false
        let settings = settings
        harness.perform { $0.reload(settings, reconnecting: ["lobby"], backends: [], now: $1) }
        serve()
    }

    func regainLink() {
        harness.acceptsConnections = true
        if upstream.state == .connecting {
            harness.accept(link)
        } else {
            harness.advance(by: .seconds(35))
        }
        serve()
    }

    // MARK: - The backend

    private func append(_ text: String, at: Int64, from sender: String = "ann") {
        let told = wire.origin == .client ? at + senderLead : at
        log.append(Said(id: "m\(log.count + 1)", sender: sender, text: text, at: told, tookAt: at))
    }

    /// Takes what IRC users said, and confirms it; `tells` is for messages that are on the way while the answer is lost.
    func take(tells: Bool = true) {
        for frame in sent("message") {
            guard let id = frame["id"]?.string, let text = frame["text"]?.string else { continue }
            if !log.contains(where: { $0.id == id }) {
                log.append(
                    Said(
                        id: id, sender: frame["sender"]?["name"]?.string ?? "",
                        senderID: frame["sender"]?["id"]?.string,
                        text: text,
                        at: frame["at"]?.integer ?? 0, tookAt: harness.clock.rightTime))
            }
            if tells, upstream.state == .open {
                harness.sendFrame(link, "{\"kind\":\"receipt\",\"state\":\"sent\",\"ids\":[\"\(id)\"]}")
            }
        }
    }

    /// Somebody upstream says something while the link is up.
    ///
    /// - Parameter at: what it is stamped with; nil: the right time.
    func say(_ text: String, from sender: String = "ann", at: Int64? = nil) {
        append(text, at: at ?? harness.clock.rightTime, from: sender)
        if upstream.state == .open { harness.sendFrame(link, frame(log[log.count - 1])) }
    }

    func frame(_ said: Said) -> String {
        let id = wire.hasIDs ? "\"id\":\"\(said.id)\"," : ""
        return "{\"kind\":\"message\",\(id)\"at\":\(said.at),"
            + "\"sender\":{\"id\":\"\(said.senderID ?? "u-" + said.sender)\",\"name\":\"\(said.sender)\"},\"text\":\"\(said.text)\"}"
    }

    /// The backend sends all that was said, whether or not it was asked.
    func sendHistory() {
        let messages = log.map(frame).joined(separator: ",")
        harness.sendFrame(link, "{\"kind\":\"history\",\"messages\":[\(messages)]}")
    }

    private func chat(_ said: Said) -> ChatMessage {
        ChatMessage(
            id: wire.hasIDs ? ChatID(said.id) : nil,
            sender: ChatPerson(id: ChatID(said.senderID ?? "u-" + said.sender), name: said.sender), text: said.text,
            at: ChatTimestamp(milliseconds: said.at))
    }

    private func page(since: Int64?, after: ChatID? = nil, before: Int64?, limit: Int?) -> [Said] {
        let since = wire.takesNoPlace ? nil : since
        let before = ignoresBefore || wire.takesNoPlace ? nil : before
        answersLeft = answersLeft.map { $0 - 1 }
        answerCount += 1
        var found = log.filter { $0.tookAt >= since ?? .min && $0.tookAt < before ?? .max }
        if wire.leavesOutKnown, let after, let place = log.firstIndex(where: { $0.id == after.rawValue }) {
            found = Array(log[(place + 1)...])
        }
        let limit = min(limit ?? .max, wire.page ?? .max)
        let isOldest = wire.givesOldest && (since != nil || beginsWithOldest || wire.takesNoPlace)
        return Array(isOldest ? found.prefix(limit) : found.suffix(limit))
    }

    /// Answers what was asked of the past.
    func serve() {
        look()
        guard !keepsSilent else { return }
        for _ in 0..<1000 where answersLeft != 0 {
            switch wire.history {
            case .none: return
            case .socket:
                guard !fetches.isEmpty else { return }
                let fetch = fetches.removeFirst()
                let page = page(
                    since: fetch["since"]?.integer, before: fetch["before"]?.integer,
                    limit: fetch["limit"]?.integer.map { Int($0) })
                harness.sendFrame(
                    link,
                    "{\"kind\":\"history\",\"ref\":\"\(fetch["ref"]?.string ?? "")\",\"messages\":["
                        + page.map(frame).joined(separator: ",") + "]}")
            case .call:
                let queries = harness.takeHistoryQueries()
                guard let query = queries.last else { return }
                let page = page(
                    since: query.since?.milliseconds, after: query.after, before: query.before?.milliseconds,
                    limit: query.limit)
                harness.answerHistory(.success(page.map(chat)), isComplete: page.count == log.count)
            case .pushed:
                guard !wasUp, upstream.state == .open else { return }
                wasUp = true
                harness.sendFrame(
                    link,
                    "{\"kind\":\"history\",\"messages\":["
                        + log.suffix(1000).map(frame).joined(separator: ",") + "]}")
            }
            look()
        }
    }

    // MARK: - IRC users

    func enter(_ nick: String, _ client: UInt64 = 1, caps: String = "message-tags server-time echo-message") {
        harness.connect(client)
        harness.send(client, "CAP REQ :" + caps)
        harness.send(client, "NICK " + nick)
        harness.send(client, "USER u 0 * :r")
        harness.send(client, "CAP END")
        harness.send(client, "JOIN #lobby")
        _ = heard(client)
    }

    private func look() {
        for output in harness.takeOutputs() {
            switch output {
            case .line(let client, let bytes):
                lines[client, default: []].append(String(decoding: bytes, as: UTF8.self))
            case .upstream(_, .frame(let bytes, _)):
                if let json = try? JSONValue(parsing: bytes) {
                    frames.append(json)
                    if json["kind"]?.string == "fetch" { fetches.append(json) }
                }
            default: break
            }
        }
    }

    private var frames: [JSONValue] = []

    /// What went to the backend since the last look, by kind.
    func sent(_ kind: String) -> [JSONValue] {
        look()
        defer { frames = [] }
        return frames.filter { $0["kind"]?.string == kind }
    }

    func raw(_ client: UInt64 = 1) -> [String] {
        look()
        defer { lines[client] = [] }
        return lines[client] ?? []
    }

    /// What was said and told in the room since the last look.
    func heard(_ client: UInt64 = 1) -> [Line] {
        raw(client).compactMap { line in
            guard
                let match = line.wholeMatch(of: #/(?:@(\S+) )?:([^! ]+)(?:!\S+)? (PRIVMSG|NOTICE) #\S+ :(.*)/#)
            else { return nil }
            var line = Line(msgid: nil, from: String(match.2), text: String(match.4), gap: nil)
            for tag in (match.1 ?? "").split(separator: ";") {
                if tag.hasPrefix("msgid=") { line.msgid = String(tag.dropFirst(6)) }
                if tag.hasPrefix("chatbridge/gap=") { line.gap = String(tag.dropFirst(15)) }
            }
            return line
        }
    }

    func said(_ client: UInt64 = 1) -> [String] { heard(client).filter { $0.from != "bridge" }.map(\.text) }
    func gaps(_ client: UInt64 = 1) -> [String] { heard(client).filter { $0.gap != nil }.map(\.text) }
}

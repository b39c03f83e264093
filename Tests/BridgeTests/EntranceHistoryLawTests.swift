import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import IRCProtocol
import JSONText
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Rooms whose links come and go, a backend with a log of its own, a bridge that dies and starts again over a disk that lags, and
/// clients of accounts that enter, leave and come again.
private final class RandomEntrances {
    private static let channels = ["#always", "#some", "#made"]
    private static let logins = ["remy@phone", "remy@desk", "lin@home", "guest"]
    private static let patience: Duration = .seconds(3)
    /// A disk that takes longer is one that cannot be read: the bridge goes on without the past.
    private static let diskPatience: Duration = .seconds(8)

    private struct Said {
        var number: Int
        var text: String
        var at: Int64
    }

    /// A client's time in a room, from the JOIN that it saw to its PART, over all its connections.
    private struct Stay {
        /// The connection that entered first.
        var connection: UInt64
        /// Numbers of what was said since.
        var expected: [Int] = []
        /// Numbers of what was shown, each msgid once.
        var shown: [Int] = []
        var known: [String: String] = [:]
        var acknowledged: Set<String> = []
        /// What was shown by a process that is gone, where nothing names a message: it may have another msgid since.
        var renamed: Set<Int> = []
        var gaps: [(from: String, to: String)] = []
        /// The client knows that the disk has its place in the room.
        var isKept = false
    }

    private struct Connection {
        var login: String
        var nick: String
        var rooms: Set<String> = []
        /// Msgids by room, since it is in there.
        var lines: [String: Set<String>] = [:]
        var labels = 0
        var openLabels: Set<String> = []
        var answers = true
        var pings: [String] = []
        /// What was shown before each of these.
        var shownBefore: [String: [String: Set<String>]] = [:]
        /// Where it was in when it sent each PING that is not answered yet.
        var roomsAtPing: [Set<String>] = []
        /// Rooms that it wants to leave, and has not seen that it did.
        var leaving: Set<String> = []
        var isEnded = false
    }

    private struct Question {
        var room: String
        var since: Int64?
        var limit: Int?
        var ref: String
        var answer: [Said]?
    }

    private let wire: StoredWire
    private let seed: UInt64
    private let settings: BridgeSettings
    private var random: SeededGenerator
    private var harness: BridgeHarness
    private var crashes: UInt64 = 0
    private var said = 0
    /// By the upstream name of the room.
    private var logs: [String: [Said]] = [:]
    private var questions: [Question] = []
    private var unpushed: Set<Int> = []
    private var keepsSilent = false
    /// The backend never takes so long that the bridge goes on without an answer.
    private let isPrompt: Bool
    /// Late answers have what was there when they were asked for.
    private let answersAsAsked: Bool
    private var silentFor: Duration = .zero
    private var stalledFor: Duration = .zero
    private var connections: [UInt64: Connection] = [:]
    private var lastConnection: UInt64 = 0
    /// By login and channel.
    private var stays: [String: [String: Stay]] = [:]
    private(set) var trouble: [String] = []
    private(set) var journal: [String] = []

    init(_ wire: StoredWire, seed: UInt64) throws {
        self.wire = wire
        self.seed = seed
        random = SeededGenerator(seed: seed)
        isPrompt = Bool.random(using: &random)
        answersAsAsked = Bool.random(using: &random)
        var dialect = StubDialect {
            $0.history = wire.history
            $0.messageIDOrigin = wire.origin
        }
        if wire.history == .pushed { dialect.unsupported.insert("fetch") }
        if wire.history == .call { dialect.calls = StubCalls() }
        let made = dialect
        @Sendable func room(_ name: String, _ connect: ConnectPolicy) throws -> RoomSettings {
            var room = try RoomSettings.stub(name, dialect: made, connect: connect)
            room.historyLimit = 1000
            return room
        }
        settings = BridgeSettings(
            serverName: "bridge", instanceID: "t",
            accounts: ["remy", "lin"].map { name in
                AccountSettings(name: name, password: SCRAMVerifier(quickly: "pw"))
            },
            limits: LimitSettings {
                $0.acceptsPerSecondPerAddress = nil
                $0.messagesPerSecond = nil
                $0.upstreamMessagesPerSecond = nil
            },
            rooms: [try room("always", .always), try room("some", .whileJoined)],
            backends: [
                BackendSettings(name: "b", dialect: made, httpBase: try HTTPURL(parsing: "http://chat.example"))
            ],
            template: RoomTemplate(backend: "b") { try? room($0, .whileJoined) })
        harness = BridgeHarness(settings: settings, seed: seed, store: StoreStage())
        harness.answersPings = false
        harness.acceptsConnections = Bool.random(using: &random)
        harness.start()
        look()
    }

    private func pick<Element>(_ elements: [Element]) -> Element? { elements.randomElement(using: &random) }
    private func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    private func note(_ text: @autoclosure () -> String) {
        journal.append("\(ManualClock.text(harness.clock.elapsed)) \(text())")
    }

    // MARK: - Steps

    func run(steps: Int) {
        for _ in 0..<steps {
            step()
            look()
        }
        settle()
    }

    private func step() {
        let channel = pick(Self.channels) ?? ""
        let client = pick(connections.keys.filter { connections[$0]?.isEnded == false }.sorted())
        switch (Int.random(in: 0..<34, using: &random), client) {
        case (0..<4, _): if connections.count < 6 { arrive(pick(Self.logins) ?? "") }
        case (4, let client?): leave(client)
        case (5..<10, let client?):
            let more = (0..<Int.random(in: 0..<3, using: &random)).compactMap { _ in pick(Self.channels) }
            send(client, "JOIN " + ([channel] + more).joined(separator: ","))
        case (10, let client?):
            connections[client]?.leaving.insert(channel)
            send(client, "PART " + channel)
        case (11, let client?):
            // Where the disk is still asked for what is kept of a room, there is no place in it yet.
            let rooms = (connections[client]?.rooms ?? []).filter { room($0)?.isLoading == false }
            connections[client]?.roomsAtPing.append(rooms)
            send(client, "PING x")
        case (12..<17, _): say(channel)
        case (17..<20, _): accept(channel)
        case (20, _): loseLink(channel)
        case (21, _): refuse(channel)
        case (22, _):
            harness.acceptsConnections = Bool.random(using: &random)
            note("accepts: \(harness.acceptsConnections)")
        case (23, let client?):
            connections[client]?.answers.toggle()
            note("\(client) answers: \(connections[client]?.answers == true)")
        case (24, _):
            keepsSilent.toggle()
            note("keeps silent: \(keepsSilent)")
            serve()
        case (25, _):
            harness.store.commits = chance(50)
            note("commits: \(harness.store.commits)")
        case (26, _):
            let count = Int.random(in: 1...4, using: &random)
            note("commits \(count)")
            harness.perform { _, _ in harness.store.commit(count) }
        case (27, _):
            harness.store.answersQuestions = chance(70)
            note("disk answers: \(harness.store.answersQuestions)")
        case (28, _): if chance(60) { crash() }
        default:
            pass(
                .milliseconds(chance(50) ? .random(in: 1...300, using: &random) : .random(in: 1...5000, using: &random))
            )
        }
        serve()
    }

    /// Somebody waits for the disk to tell what is kept.
    private var isStalled: Bool { !harness.store.answersQuestions || harness.bridge.rooms.contains(where: \.isLoading) }

    private func pass(_ time: Duration) {
        note("time \(time)")
        var left = time
        while left > .zero {
            var part = left
            if isPrompt, keepsSilent { part = min(part, Self.patience - silentFor) }
            if isStalled { part = min(part, Self.diskPatience - stalledFor) }
            harness.advance(by: part)
            left -= part
            silentFor = keepsSilent ? silentFor + part : .zero
            stalledFor = isStalled ? stalledFor + part : .zero
            if stalledFor >= Self.diskPatience {
                harness.store.answersQuestions = true
                harness.perform { _, _ in harness.store.commit() }
                stalledFor = .zero
            }
            look()
            if isPrompt, silentFor >= Self.patience { keepsSilent = false }
            serve()
        }
    }

    private func arrive(_ login: String) {
        guard login == "guest" || !connections.values.contains(where: { $0.login == login }) else { return }
        lastConnection += 1
        let client = lastConnection
        let nick = login == "guest" ? "g\(client)" : String(login.prefix { $0 != "@" })
        note("\(client) comes as \(login)")
        connections[client] = Connection(login: login == "guest" ? nick : login, nick: nick, answers: chance(80))
        harness.connect(client)
        harness.send(client, "CAP REQ :message-tags batch labeled-response server-time")
        if login != "guest" { harness.send(client, "PASS \(login):pw") }
        for line in ["NICK " + nick, "USER u 0 * :r", "CAP END"] { harness.send(client, line) }
    }

    private func leave(_ client: UInt64) {
        look()
        if chance(30) {
            note("\(client) ends its sending side")
            connections[client]?.isEnded = true
            if !harness.endSending(client) { forget(client) }
        } else {
            note("\(client) is gone")
            forget(client)
            harness.disconnect(client)
        }
    }

    private func forget(_ client: UInt64) {
        look()
        guard let connection = connections.removeValue(forKey: client) else { return }
        for channel in connection.leaving { stays[connection.login]?[channel] = nil }
        // It has no place yet in a room whose past the disk was asked for: its next JOIN is the first.
        for channel in connection.rooms where room(channel)?.isLoading == true {
            stays[connection.login]?[channel] = nil
        }
    }

    private func send(_ client: UInt64, _ line: String) {
        note("\(client): \(line)")
        guard chance(50), let label = connections[client].map({ "l\($0.labels)" }) else {
            return harness.send(client, line)
        }
        connections[client]?.labels += 1
        connections[client]?.openLabels.insert(label)
        harness.send(client, "@label=\(label) " + line)
    }

    private func room(_ channel: String) -> Room? { harness.bridge.rooms.first { $0.channel == channel } }

    private func accept(_ channel: String) {
        guard let room = room(channel), harness.upstream(room.id.index).state == .connecting else { return }
        note("\(channel) is accepted")
        harness.accept(room.id.index)
    }

    private func refuse(_ channel: String) {
        guard let room = room(channel), harness.upstream(room.id.index).state == .connecting else { return }
        note("\(channel) is refused")
        harness.refuse(room.id.index, status: 503)
    }

    private func loseLink(_ channel: String) {
        guard let room = room(channel) else { return }
        // What waits for a history longer than that is shown without it.
        if isPrompt {
            keepsSilent = false
            serve()
        }
        note("\(channel) loses its link")
        harness.endTransport(room.id.index, reason: "reset")
    }

    /// The process is killed. What was said meanwhile nobody heard.
    private func crash() {
        look()
        note("killed")
        for client in connections.keys { forget(client) }
        questions = []
        unpushed = []
        crashes += 1
        for (login, rooms) in stays {
            for (channel, stay) in rooms {
                stays[login]?[channel]?.acknowledged = []
                if !wire.hasIDs { stays[login]?[channel]?.renamed.formUnion(stay.shown) }
                let isKept = harness.store.disk.cursors.contains {
                    $0.account + "@" + NumberedClientName($0.client).base == login && "#" + $0.room.room == channel
                }
                if isKept { continue }
                if stay.isKept { trouble.append("\(login) was told that its place in \(channel) is kept") }
                // As if it had never been there: its next JOIN is the first.
                stays[login]?[channel] = nil
            }
        }
        let (accepts, commits) = (harness.acceptsConnections, harness.store.commits)
        trouble += harness.violations
        var clock = harness.clock
        for _ in 0..<Int.random(in: 0...2, using: &random) {
            clock.move(to: clock.now.monotonic + .milliseconds(.random(in: 1...3000, using: &random)))
            append(pick(Self.channels) ?? "", at: clock.rightTime)
        }
        clock.move(to: clock.now.monotonic + .milliseconds(.random(in: 1...3000, using: &random)))
        harness = BridgeHarness(
            settings: settings, seed: seed &* 1000 &+ crashes, store: harness.store.afterCrash, startingAt: clock)
        harness.acceptsConnections = accepts
        harness.store.commits = commits
        harness.answersPings = false
        note("started")
        harness.start()
    }

    // MARK: - The backend

    @discardableResult
    private func append(_ channel: String, at: Int64) -> Said {
        let one = Said(number: said, text: "t\(said)", at: at)
        said += 1
        note("said in \(channel): \(one.text)")
        logs[String(channel.dropFirst()), default: []].append(one)
        for login in stays.keys { stays[login]?[channel]?.expected.append(one.number) }
        return one
    }

    private func say(_ channel: String) {
        harness.advance(by: .milliseconds(1))
        look()
        let one = append(channel, at: harness.clock.rightTime)
        guard let room = room(channel), harness.upstream(room.id.index).state == .open else { return }
        harness.sendFrame(room.id.index, frame(one))
    }

    private func frame(_ one: Said) -> String {
        let id = wire.hasIDs ? "\"id\":\"m\(one.number)\"," : ""
        return "{\"kind\":\"message\",\(id)\"at\":\(one.at),\"sender\":{\"id\":\"u\",\"name\":\"ann\"},"
            + "\"text\":\"\(one.text)\"}"
    }

    private func history(_ messages: [Said], ref: String? = nil) -> String {
        "{\"kind\":\"history\"," + (ref.map { "\"ref\":\"\($0)\"," } ?? "") + "\"messages\":["
            + messages.map(frame).joined(separator: ",") + "]}"
    }

    private func page(_ question: Question) -> [Said] {
        question.answer
            ?? Array(
                logs[question.room, default: []].filter { $0.at >= question.since ?? .min }
                    .suffix(question.limit ?? .max))
    }

    private func asked(_ question: Question) {
        var question = question
        if answersAsAsked { question.answer = page(question) }
        questions.append(question)
    }

    /// Answers what was asked of the past.
    private func serve() {
        look()
        if !keepsSilent { silentFor = .zero }
        while !keepsSilent, !questions.isEmpty {
            let question = questions.removeFirst()
            let page = page(question)
            if wire.history == .call {
                let isComplete = page.count == logs[question.room, default: []].count
                harness.answerHistory(
                    .success(
                        page.map {
                            ChatMessage(
                                id: wire.hasIDs ? ChatID("m\($0.number)") : nil,
                                sender: ChatPerson(id: ChatID("u"), name: "ann"), text: $0.text,
                                at: ChatTimestamp(milliseconds: $0.at))
                        }), isComplete: isComplete)
            } else if let room = room("#" + question.room), harness.upstream(room.id.index).state == .open {
                harness.sendFrame(room.id.index, history(page, ref: question.ref))
            }
            look()
        }
        guard wire.history == .pushed, !keepsSilent else { return }
        for index in unpushed.sorted() {
            guard harness.upstream(index).state == .open,
                let room = harness.bridge.rooms.first(where: { $0.id.index == index })
            else { continue }
            unpushed.remove(index)
            harness.sendFrame(index, history(logs[room.settings.upstreamRoom, default: []]))
        }
        look()
    }

    // MARK: - What was told

    private func look() {
        while true {
            var ended: [UInt64] = []
            defer { for client in ended { forget(client) } }
            for output in harness.takeOutputs() {
                switch output {
                case .line(let client, let bytes): took(bytes, client)
                case .clientClosed(let client):
                    note("\(client) is closed")
                    ended.append(client)
                case .upstream(let room, .connected):
                    if let name = harness.bridge.rooms.first(where: { $0.id.index == room })?.settings.upstreamRoom,
                        wire.history == .socket
                    {
                        questions.removeAll { $0.room == name }
                    }
                    unpushed.insert(room)
                case .upstream(let index, .frame(let bytes, _)):
                    guard let json = try? JSONValue(parsing: bytes), json["kind"]?.string == "fetch",
                        let room = harness.bridge.rooms.first(where: { $0.id.index == index })
                    else { continue }
                    asked(
                        Question(
                            room: room.settings.upstreamRoom, since: json["since"]?.integer,
                            limit: json["limit"]?.integer.map { Int($0) }, ref: json["ref"]?.string ?? ""))
                default: break
                }
            }
            for query in harness.takeHistoryQueries() {
                asked(
                    Question(room: query.room, since: query.since?.milliseconds, limit: query.limit, ref: ""))
            }
            guard answerPing() else { return }
        }
    }

    private func answerPing() -> Bool {
        let ready = connections.keys.sorted().first {
            connections[$0].map { $0.answers && !$0.isEnded && !$0.pings.isEmpty } == true
        }
        guard let ready, var connection = connections[ready] else { return false }
        let token = connection.pings.removeFirst()
        for (channel, lines) in connection.shownBefore.removeValue(forKey: token) ?? [:] {
            stays[connection.login]?[channel]?.acknowledged.formUnion(lines)
        }
        connections[ready] = connection
        harness.send(ready, "PONG bridge " + token)
        return true
    }

    private func took(_ bytes: [UInt8], _ client: UInt64) {
        guard let line = try? bytes.withUnsafeBytes({ try IRCParse.parse($0) }), var connection = connections[client]
        else { return }
        note("    \(client)< \(String(decoding: bytes, as: UTF8.self))")
        take(line, client, &connection)
        connections[client] = connection
    }

    private func take(_ line: IRCMessage, _ client: UInt64, _ connection: inout Connection) {
        let login = connection.login
        if let label = line.tag("label")?.value, connection.openLabels.remove(label) == nil {
            trouble.append("\(client) got the label \(label) once too often")
        }
        if line.command == "PING", let token = line.params.first {
            connection.pings.append(token)
            connection.shownBefore[token] = connection.lines
        }
        if line.command == "PONG", line.params.last == "x" {
            for channel in connection.roomsAtPing.isEmpty ? [] : connection.roomsAtPing.removeFirst()
            where stays[login]?[channel]?.connection == client {
                stays[login]?[channel]?.isKept = true
            }
        }
        if line.command == "442" || line.command == "403", let channel = line.params.dropFirst().first {
            connection.leaving.remove(channel)
        }
        let isOwn = line.source.map { $0.prefix { $0 != "!" } == connection.nick } ?? false
        guard let channel = line.params.first, channel.hasPrefix("#") else { return }
        switch line.command {
        case "JOIN" where isOwn:
            if !connection.rooms.insert(channel).inserted { trouble.append("\(client) entered \(channel) twice") }
            if stays[login]?[channel] == nil, login.contains("@") {
                stays[login, default: [:]][channel] = Stay(connection: client)
            }
        case "PART" where isOwn:
            if connection.rooms.remove(channel) == nil { trouble.append("\(client) left \(channel) twice") }
            connection.leaving.remove(channel)
            for index in connection.roomsAtPing.indices { connection.roomsAtPing[index].remove(channel) }
            connection.lines[channel] = nil
            for token in connection.shownBefore.keys { connection.shownBefore[token]?[channel] = nil }
            stays[login]?[channel] = nil
        case "PRIVMSG", "NOTICE":
            if !connection.rooms.contains(channel) {
                trouble.append("\(client) was told \(line.params.last ?? "") of \(channel) before it was in")
            }
            if let gap = line.tag("chatbridge/gap")?.value?.split(separator: ",").map(String.init), gap.count == 2 {
                stays[login]?[channel]?.gaps.append((gap[0], gap[1]))
            }
            guard line.command == "PRIVMSG", let words = line.params.last, let msgid = line.tag("msgid")?.value else {
                return
            }
            if !connection.lines[channel, default: []].insert(msgid).inserted {
                trouble.append("\(client) got \(words) twice")
            }
            show(words, msgid, channel, login)
        default: break
        }
    }

    private func show(_ words: String, _ msgid: String, _ channel: String, _ login: String) {
        guard var stay = stays[login]?[channel], let number = Int(words.dropFirst()) else { return }
        if stay.acknowledged.contains(msgid) { trouble.append("\(login) got \(words) again, which it had") }
        if let before = stay.known.updateValue(words, forKey: msgid) {
            if before != words { trouble.append("\(msgid) was \(before) and is \(words)") }
        } else if stay.renamed.remove(number) == nil {
            if stay.shown.contains(number) { trouble.append("\(login) got \(words) under two names") }
            stay.shown.append(number)
        }
        stays[login]?[channel] = stay
    }

    // MARK: - The end

    private func settle() {
        note("settles")
        harness.acceptsConnections = true
        harness.store.commits = true
        harness.store.answersQuestions = true
        harness.perform { _, _ in }
        keepsSilent = false
        for client in connections.keys { connections[client]?.answers = true }
        wait(5)
        for login in stays.keys.sorted() { arrive(login) }
        wait(5)
        for (client, connection) in connections.sorted(by: { $0.key < $1.key }) {
            let missing = stays[connection.login]?.keys.filter { !connection.rooms.contains($0) }.sorted() ?? []
            if !missing.isEmpty { send(client, "JOIN " + missing.joined(separator: ",")) }
        }
        wait(5)
        for channel in Self.channels { loseLink(channel) }
        wait(60)
        for channel in Self.channels { say(channel) }
        wait(10)
        check()
    }

    private func wait(_ seconds: Int) {
        for _ in 0..<seconds {
            for channel in Self.channels { accept(channel) }
            serve()
            harness.advance(by: .seconds(1))
            serve()
        }
    }

    private func check() {
        for client in connections.keys.sorted() {
            harness.send(client, "PING end")
            look()
            guard let connection = connections[client] else { continue }
            if !connection.openLabels.isEmpty {
                trouble.append("\(client) waits for \(connection.openLabels.sorted())")
            }
            if harness.bridge.irc.sessions[ClientID(rawValue: client)]?.hasLongAnswers != false {
                trouble.append("\(client) is stuck")
            }
            for channel in stays[connection.login]?.keys.sorted() ?? [] where !connection.rooms.contains(channel) {
                trouble.append("\(connection.login) is not let into \(channel)")
            }
        }
        for (login, rooms) in stays.sorted(by: { $0.key < $1.key }) {
            for (channel, stay) in rooms.sorted(by: { $0.key < $1.key }) { check(stay, login, channel) }
        }
        if !harness.bridge.irc.pendingJoins.isEmpty {
            trouble.append("somebody waits at a door")
        }
        trouble += harness.violations
    }

    private func check(_ stay: Stay, _ login: String, _ channel: String) {
        let log = logs[String(channel.dropFirst()), default: []]
        for one in log where stay.expected.contains(one.number) && !stay.shown.contains(one.number) {
            let at = IRCServerTime.format(milliseconds: one.at)
            let isTold = stay.gaps.contains { $0.from <= at && at <= $0.to }
            if !isTold || wire.history != .none { trouble.append("\(login) missed \(one.text) of \(at) in \(channel)") }
        }
        // A history that came too late is shown behind what was said meanwhile, and that was said.
        guard isPrompt || wire.history == .none else { return }
        let shown = stay.shown.filter(stay.expected.contains)
        if shown != shown.sorted() { trouble.append("\(login) was shown \(shown) in \(channel)") }
    }
}

/// Whenever links, disks, histories and processes come and go: who entered a room with an account has all that is said from then on.
@Suite("Entrances and histories, as a law")
struct EntranceHistoryLawTests {
    @Test(
        "what is said after a JOIN is shown once and in order, over all connections and processes, or lies in a gap",
        arguments: StoredWire.withHistory + StoredWire.withoutHistory, LawSeeds.seeds(10))
    func law(wire: StoredWire, seed: UInt64) throws {
        let run = try RandomEntrances(wire, seed: seed)
        run.run(steps: 100)
        #expect(run.trouble == [], "seed \(seed):\n\(run.journal.joined(separator: "\n"))")
    }
}

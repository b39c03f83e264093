import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import IRCProtocol
import Identities
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// What every line to a client keeps, whoever made it.
enum LineLaw {
    static func problem(_ line: [UInt8]) -> String? {
        var content = line[...]
        if content.first == UInt8(ascii: "@") {
            guard let space = content.firstIndex(of: UInt8(ascii: " ")) else { return "tags without a command" }
            if space + 1 > 8191 { return "\(space + 1) bytes of tags" }
            content = content[(space + 1)...]
        }
        if content.isEmpty { return "an empty line" }
        if content.count > 510 { return "\(content.count) bytes" }
        if line.contains(where: { $0 == 0 || $0 == 0x0D || $0 == 0x0A }) { return "a line end or NUL inside" }
        if String(validating: line, as: UTF8.self) == nil { return "not UTF-8" }
        return nil
    }
}

/// What one client believes about the rooms it is in, from nothing but its lines.
struct ClientView {
    private var nick = ""
    private(set) var members: [String: Set<String>] = [:]
    /// Rooms whose list of names is not complete yet.
    private(set) var loading: Set<String> = []

    /// Takes in a line. Returns what is wrong with it, if anything.
    mutating func see(_ line: String) -> String? {
        var words = line.split(separator: " ").map(String.init)
        if words.first?.hasPrefix("@") == true { words.removeFirst() }
        guard let prefix = words.first, prefix.hasPrefix(":"), words.count > 2 || words.dropFirst().first == "QUIT"
        else {
            return nil
        }
        let source = prefix.dropFirst().split(separator: "!").first.map(String.init) ?? ""
        let channel = words.count > 2 ? words[2] : ""
        switch words[1] {
        case "001": nick = words[2]
        case "JOIN": return joined(source, channel)
        case "PART":
            if source == nick { return members.removeValue(forKey: channel) == nil ? "PART without JOIN" : nil }
            return members[channel]?.remove(source) == nil ? "\(source) parts from where they are not" : nil
        case "QUIT":
            let places = members.keys.filter { members[$0]?.contains(source) == true }
            for place in places { members[place]?.remove(source) }
            return places.isEmpty ? "\(source) quits unseen" : nil
        case "NICK": return renamed(source, words[2].hasPrefix(":") ? String(words[2].dropFirst()) : words[2])
        case "353":
            let names = line[(line.lastRange(" :") ?? line.endIndex)...].split(separator: " ")
            // NAMES also answers about rooms that one is not in.
            for name in names {
                members[words[4]]?.insert(String(name.drop { "@+".contains($0) }.split(separator: "!")[0]))
            }
        case "366": loading.remove(words[3])
        case "PRIVMSG", "TAGMSG", "NOTICE":
            // What an IRC user said last may be confirmed after they left.
            guard prefix.hasSuffix("@chat"), channel.hasPrefix("#"), !loading.contains(channel) else { return nil }
            return members[channel]?.contains(source) == true ? nil : "\(source) speaks without being there"
        default: break
        }
        return nil
    }

    private mutating func joined(_ source: String, _ channel: String) -> String? {
        if source == nick {
            loading.insert(channel)
            members[channel] = [nick]
            return nil
        }
        guard members[channel] != nil else { return "JOIN of \(source) in a room we are not in" }
        let isNew = members[channel]?.insert(source).inserted == true
        return isNew || loading.contains(channel) ? nil : "\(source) joins twice"
    }

    private mutating func renamed(_ old: String, _ new: String) -> String? {
        var isKnown = old == nick
        for channel in members.keys where members[channel]?.remove(old) != nil {
            isKnown = true
            members[channel]?.insert(new)
        }
        if old == nick { nick = new }
        return isKnown || !loading.isEmpty ? nil : "\(old) is renamed unseen"
    }
}

extension String {
    /// Where the text after the last ` :` begins.
    fileprivate func lastRange(_ mark: String) -> String.Index? { ranges(of: mark).last?.upperBound }
}

/// A random conversation of clients and a backend with one bridge, and what everybody should have seen of it.
private final class RandomConversation {
    let harness: BridgeHarness
    private var random: SeededGenerator
    private var messageNumber = 0
    /// Bodies of upstream messages that each client must see, in order.
    private var expected: [UInt64: [String]] = [:]
    private var seen: [UInt64: [String]] = [:]
    /// How often each client saw each message of an IRC user.
    private var local: [UInt64: [String: Int]] = [:]
    private(set) var problems: [String] = []
    private var nextClient: UInt64 = 1
    private var live: [UInt64] = []
    private var views: [UInt64: ClientView] = [:]
    private var openBatches: [UInt64: Set<String>] = [:]
    /// Who said which message of an IRC user, and under which id the backend got it.
    private var author: [String: UInt64] = [:]
    private var upstreamID: [String: String] = [:]
    private var lastUpstream: [UInt64: Int] = [:]

    init(seed: UInt64) throws {
        random = SeededGenerator(seed: seed)
        let rooms = try ["lobby", "kitchen"].map { name in
            var room = RoomSettings(
                name: name, topic: "t", backend: "chat", dialect: EnvelopeDialect(),
                url: try HTTPURL(parsing: "ws://chat.example/"))
            room.memberIdle = .seconds(120)
            return room
        }
        let limits = LimitSettings {
            $0.multilineMaxLines = 4
            $0.membersPerRoom = 20
        }
        harness = BridgeHarness(
            settings: BridgeSettings(
                serverName: "bridge", instanceID: "laws", accounts: Self.accounts, limits: limits, rooms: rooms),
            seed: seed)
        harness.echoes = true
        harness.start()
    }

    private static let accounts = ["alice", "bob"].map {
        AccountSettings(
            name: $0,
            password: SCRAMVerifier(quickly: "secret"),
            rooms: $0 == "bob" ? ["lobby"] : nil)
    }
    private static let responses = ["\0alice\0secret", "\0bob\0secret", "\0bob\0wrong"].map {
        IRCSASLExchange.chunks(of: Array($0.utf8))[0]
    }

    private func pick<T>(_ values: [T]) -> T { values[Int(random.next() % UInt64(values.count))] }
    private func chance(_ percent: UInt64) -> Bool { random.next() % 100 < percent }

    /// Takes so many steps, and where few messages came through, more.
    func run(steps: Int) {
        var number = 0
        while number < steps || (seenCount < 15 && number < 10 * steps) {
            step()
            look()
            if number % 20 == 0 { compareViews() }
            number += 1
        }
    }

    private func step() {
        switch random.next() % 20 {
        case 0, 1: connect()
        case 2: if let client = live.randomElement(using: &random) { disconnect(client) }
        case 3...9: if let client = live.randomElement(using: &random) { say(client) }
        case 10...14: upstreamMessage()
        case 15: upstreamNoise()
        case 16: linkTrouble()
        case 17: if let client = live.randomElement(using: &random) { harness.setSlow(client, chance(50)) }
        default: harness.advance(by: .milliseconds(Int64(random.next() % 4000)))
        }
    }

    private func connect() {
        guard live.count < 6 else { return }
        let client = nextClient
        nextClient += 1
        live.append(client)
        views[client] = ClientView()
        harness.connect(client)
        if chance(80) {
            if chance(30) { harness.send(client, pick(["PASS alice:secret", "PASS bob:secret", "PASS alice:wrong"])) }
            if chance(70) {
                harness.send(client, "CAP LS 302")
                let caps = [
                    "message-tags", "server-time", "echo-message", "labeled-response", "batch", "extended-join",
                    "standard-replies", "away-notify", "setname", "draft/read-marker", "userhost-in-names",
                    "sasl", "account-notify", "account-tag", "znc.in/self-message", "draft/multiline",
                ]
                harness.send(client, "CAP REQ :" + caps.filter { _ in chance(60) }.joined(separator: " "))
                harness.send(client, "CAP END")
            }
            harness.send(
                client,
                "NICK "
                    + (chance(20)
                        ? pick(["alice", "bob"]) : pick(["al", "bo", "cy", "dee", "eve", "zoë"]) + String(client)))
            harness.send(client, "USER u 0 * :r")
            harness.send(client, "JOIN #lobby")
        }
    }

    private func disconnect(_ client: UInt64) {
        live.removeAll { $0 == client }
        harness.disconnect(client)
    }

    private func say(_ client: UInt64) {
        messageNumber += 1
        let label = chance(30) ? "@label=l\(messageNumber) " : ""
        let lines = [
            "PRIVMSG #lobby :i\(messageNumber)", "PRIVMSG #lobby :i\(messageNumber)", "NOTICE #lobby :n",
            "JOIN #lobby", "JOIN #kitchen,#lobby", "PART #lobby :bye", "PART #kitchen", "NICK n\(messageNumber)",
            "NAMES #lobby", "WHO #lobby", "LIST",
            "WHOIS R1", "AWAY :gone", "AWAY", "SETNAME :x", "MARKREAD #lobby timestamp=2026-11-21T12:10:00.000Z",
            "CAP REQ :-echo-message", "CAP REQ :message-tags", "PRIVMSG R1 :x", "PRIVMSG n\(messageNumber - 1) :x",
            "PRIVMSG #lobby :" + String(repeating: "long é ", count: 60), "QUIT :x", "MODE #lobby +b", "WHOWAS n1",
            "BATCH +m draft/multiline #lobby", "@batch=m PRIVMSG #lobby :m", "@batch=m PRIVMSG #lobby :",
            "@batch=m;draft/multiline-concat PRIVMSG #lobby :é", "BATCH -m", "CAP REQ :-draft/multiline",
            "BATCH +m draft/multiline #lobby\r\n@batch=m PRIVMSG #lobby :one\r\n@batch=m PRIVMSG #lobby :two\r\nBATCH -m",
            "PRIVMSG #lobby :\u{1}ACTION " + String(repeating: "wa ves ", count: 60) + "\u{1}",
        ]
        var bytes: [UInt8]
        if chance(8) {
            let lines = [
                "CAP REQ sasl\r\nAUTHENTICATE PLAIN\r\nAUTHENTICATE " + pick(Self.responses), "AUTHENTICATE *",
                "NICK alice",
            ]
            bytes = Array((pick(lines) + "\r\n").utf8)
        } else if chance(15) {
            bytes = Array("@+typing=active TAGMSG #lobby\r\n".utf8)
        } else {
            bytes = Array((label + pick(lines) + "\r\n").utf8)
        }
        author["i\(messageNumber)"] = client
        if chance(8) { garble(&bytes) }
        if chance(10) {
            let cut = Int(random.next() % UInt64(bytes.count))
            harness.receive(client, Array(bytes[..<cut]))
            harness.receive(client, Array(bytes[cut...]))
        } else {
            harness.receive(client, bytes)
        }
    }

    /// Spoils a few bytes. What is left of a message is not counted: its number may have become that of another.
    private func garble(_ bytes: inout [UInt8]) {
        let letter = bytes.lastIndex(of: UInt8(ascii: "i"))
        if let letter { bytes[letter] = UInt8(ascii: "g") }
        for _ in 0..<3 where !bytes.isEmpty {
            let index = Int(random.next() % UInt64(bytes.count))
            let byte = UInt8(truncatingIfNeeded: random.next())
            if index != letter { bytes[index] = byte }
        }
    }

    private func frame(_ body: String, id: String, sender: UInt64, name: String) -> String {
        """
        {"event":"message","message_id":"\(id)","sender_id":"S-\(sender)","sender_name":"\(name)","body":"\(body)",\
        "sent_at":1795262400}
        """
    }

    private func upstreamMessage() {
        guard harness.upstreams[0].state == .open else { return }
        messageNumber += 1
        let body = "u\(messageNumber)"
        let sender = random.next() % 30
        for client in harness.bridge.rooms[0].locals.keys { expected[client.rawValue, default: []].append(body) }
        let text = frame(
            body, id: "id-\(messageNumber)", sender: sender, name: pick(["R1", "Remy", "é", "al1", "R\(sender)"]))
        harness.sendFrame(0, text)
        if chance(30), harness.upstreams[1].state == .open { harness.sendFrame(1, text) }
        // The same frame again must change nothing.
        if chance(20) { harness.sendFrame(0, text) }
    }

    private func upstreamNoise() {
        guard harness.upstreams[0].state == .open else { return }
        var bytes: [UInt8]
        switch random.next() % 4 {
        case 0: bytes = random.bytes(Int(random.next() % 200))
        case 1:
            bytes = Array(
                #"{"event":"typing","message_id":"t","sender_id":"S-3","sender_name":"R3","body":"","sent_at":1}"#.utf8)
        case 2:
            bytes = Array(frame("x\\r\\ny\\u0000", id: "x\(random.next())", sender: 99, name: "a\\r\\nb c").utf8)
        default:
            bytes = Array(frame("x", id: "y\(random.next())", sender: random.next() % 60, name: "Noise").utf8)
            for _ in 0..<4 {
                bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
            }
        }
        // Ill-formed UTF-8 in a text frame ends the connection; as binary it is only a bad frame.
        harness.sendFrame(0, bytes, isBinary: chance(70))
    }

    private func linkTrouble() {
        switch random.next() % 4 {
        case 0: harness.endTransport(0, reason: "reset")
        case 1: if harness.upstreams[0].state == .open { harness.closeUpstream(0, code: 1001) }
        case 2: harness.upstreams[0].isSilent.toggle()
        default:
            // Half a frame swallows what comes after it, so nothing does.
            harness.deliver(0, random.bytes(5))
            harness.endTransport(0, reason: "reset")
        }
    }

    private static func isNumbered(_ body: String, _ letter: Character) -> Bool {
        body.first == letter && body.count > 1 && body.utf8.dropFirst().allSatisfy { (0x30...0x39).contains($0) }
    }

    private func look() {
        for output in harness.takeOutputs() {
            if case .upstream(0, .frame(let bytes, _)) = output { seeFrame(String(decoding: bytes, as: UTF8.self)) }
            guard case .line(let client, let line) = output else { continue }
            if let problem = LineLaw.problem(line) {
                problems.append("\(problem): \(String(decoding: line, as: UTF8.self))")
            }
            let text = String(decoding: line, as: UTF8.self)
            if let problem = batchProblem(text, client) { problems.append("client \(client): \(problem): \(text)") }
            if let problem = views[client]?.see(text) { problems.append("client \(client): \(problem): \(text)") }
            guard let start = text.firstRange(of: " PRIVMSG #lobby :") else { continue }
            // Beyond the members limit, people speak as `<name> text`.
            let body = text[start.upperBound...].split(separator: " ").last.map(String.init) ?? ""
            if Self.isNumbered(body, "u") { seen[client, default: []].append(body) }
            if Self.isNumbered(body, "i") { local[client, default: [:]][body, default: 0] += 1 }
        }
        for client in live where !harness.isConnected(client) { live.removeAll { $0 == client } }
    }

    /// A line of a batch stands between the line that begins it and the one that ends it.
    private func batchProblem(_ line: String, _ client: UInt64) -> String? {
        let tags = line.hasPrefix("@") ? line.prefix { $0 != " " }.dropFirst().split(separator: ";") : []
        if let tag = tags.first(where: { $0.hasPrefix("batch=") }),
            !openBatches[client, default: []].contains(String(tag.dropFirst("batch=".count)))
        {
            return "its batch is not open"
        }
        guard let match = line.firstMatch(of: #/^(?:@\S+ )?:\S+ BATCH ([+-])(\S+)/#) else { return nil }
        let reference = String(match.2)
        guard match.1 == "+" else {
            return openBatches[client, default: []].remove(reference) == nil ? "no such batch is open" : nil
        }
        return openBatches[client, default: []].insert(reference).inserted ? nil : "that batch is open"
    }

    /// A message of an IRC user has one id however often it is sent, and an author's messages keep their order.
    private func seeFrame(_ text: String) {
        guard text.utf8.starts(with: #"{"event":"message""#.utf8),
            let match = text.firstMatch(of: /"message_id":"([^"]+)".*"body":"(i([0-9]+))"/),
            let number = Int(match.3), let client = author[String(match.2)]
        else { return }
        let body = String(match.2)
        let id = String(match.1)
        if let known = upstreamID[body] {
            if known != id { problems.append("\(body) went up under two ids") }
        } else {
            upstreamID[body] = id
            if number < lastUpstream[client] ?? 0 { problems.append("\(body) went up after a later one") }
            lastUpstream[client] = number
        }
    }

    /// What clients believe about who is in a room is what the bridge knows.
    private func compareViews() {
        let bridge = harness.bridge
        for client in live {
            guard let session = bridge.irc.sessions[ClientID(rawValue: client)], session.longAnswers.isEmpty,
                let view = views[client]
            else { continue }
            let rooms = session.rooms.compactMap { bridge.room($0) }
            let wrong = Set(rooms.map(\.channel)) != Set(view.members.keys)
            if wrong { problems.append("client \(client) believes to be in \(view.members.keys)") }
            for room in rooms where !session.caps.contains(.noImplicitNames) {
                var cursor = 0
                var names: Set<String> = []
                while let person = room.slots.next(&cursor) {
                    names.insert(bridge.context.identities[person]?.nick ?? "?")
                }
                let seen = view.members[room.channel] ?? []
                if seen != names {
                    problems.append(
                        "client \(client) in \(room.channel) misses \(names.subtracting(seen)) and believes in "
                            + "\(seen.subtracting(names))")
                }
            }
        }
    }

    /// Messages from upstream that arrived at clients.
    var seenCount: Int { seen.values.reduce(0) { $0 + $1.count } }

    /// Everybody leaves, time passes, the bridge stops. Everything that was wrong.
    func finish() -> [String] {
        for client in live { disconnect(client) }
        harness.acceptsConnections = true
        harness.upstreams[0].isSilent = false
        compareViews()
        harness.advance(by: .seconds(3600))
        look()
        let bridge = harness.bridge
        if !bridge.irc.sessions.isEmpty { problems.append("\(bridge.irc.sessions.count) sessions are left") }
        if bridge.irc.channel(of: bridge.rooms[0]).audience.count > 0 {
            problems.append("somebody is left in the audience")
        }
        if !bridge.rooms[0].lane.outbox.isEmpty { problems.append("messages are left in the outbox") }
        if !bridge.rooms[0].remotes.isEmpty {
            problems.append("\(bridge.rooms[0].remotes.count) silent people are left")
        }
        if bridge.rooms.contains(where: { $0.memberCount > 0 }) { problems.append("somebody is still listed") }
        if bridge.irc.counts.clients != 0 {
            problems.append("\(bridge.irc.counts.clients) registered clients are counted")
        }
        if bridge.rooms[0].receiptNotices.count > 0 { problems.append("receipts are left") }
        harness.shutdown()
        harness.advance(by: .seconds(15))
        if !harness.takeOutputs().contains(.stopped) { problems.append("the bridge did not stop") }
        if let deadline = bridge.nextDeadline() { problems.append("a deadline is left at \(deadline)") }
        for (client, bodies) in expected where seen[client, default: []] != bodies {
            problems.append("client \(client) saw \(seen[client, default: []].suffix(8)), not \(bodies.suffix(8))")
        }
        for (client, counts) in local {
            for (body, count) in counts where count > 1 {
                problems.append("client \(client) saw \(body) \(count) times")
            }
        }
        if harness.bareNewlineCount > 0 { problems.append("lines without CR") }
        return problems + harness.violations
    }
}

@Suite("Laws of the bridge")
struct BridgeLawTests {
    @Test("random conversations keep every law", arguments: LawSeeds.seeds(10))
    func randomConversations(batch: UInt64) throws {
        var seenCount = 0
        for seed in batch * 4..<batch * 4 + 4 {
            let conversation = try RandomConversation(seed: seed)
            conversation.run(steps: 300)
            let problems = conversation.finish()
            #expect(problems == [], "seed \(seed)")
            seenCount += conversation.seenCount
        }
        #expect(seenCount > 50, "the conversations were too quiet to prove anything")
    }
}

import Accounts
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Digests
import IRCProtocol
import Testing
import Upstream

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Links come and go in whatever order while people enter and leave: nobody is stuck, and nothing is missed unsaid.
@Suite("Entrances, as a law")
struct EntranceLawTests {
    private static let channels = ["#always", "#some", "#other", "#made", "#more"]

    private struct Said {
        var channel: String
        var text: String
        var at: ChatTimestamp
        /// The clients that were in the room.
        var audience: Set<UInt64>
    }

    /// What one connection was told.
    private struct Record {
        var rooms: Set<String> = []
        var texts: [String: Int] = [:]
        /// By channel.
        var gaps: [String: [(from: String, to: String)]] = [:]
        var openLabels: Set<String> = []
        var labels = 0
        var nick: String
    }

    private final class Run {
        let seed: UInt64
        let harness: BridgeHarness
        var random: SeededGenerator
        var records: [UInt64: Record] = [:]
        var said: [Said] = []
        var trouble: [String] = []
        private var connections: UInt64 = 0

        init(seed: UInt64) throws {
            self.seed = seed
            random = SeededGenerator(seed: seed)
            let accounts = ["remy", "lin"].map { name in
                AccountSettings(name: name, password: SCRAMVerifier(quickly: "pw"))
            }
            harness = BridgeHarness(
                settings: BridgeSettings(
                    serverName: "bridge", instanceID: "t", accounts: accounts,
                    limits: LimitSettings {
                        $0.acceptsPerSecondPerAddress = nil
                        $0.messagesPerSecond = nil
                    },
                    rooms: [
                        try .stub("always"), try .stub("some", connect: .whileJoined),
                        try .stub("other", connect: .whileJoined),
                    ],
                    backends: [BackendSettings(name: "b", dialect: StubDialect { _ in })],
                    template: RoomTemplate(backend: "b") { try? .stub($0, connect: .whileJoined) }),
                seed: seed, store: StoreStage())
            harness.acceptsConnections = Bool.random(using: &random)
            harness.start()
        }

        func pick<Element>(_ elements: [Element]) -> Element? { elements.randomElement(using: &random) }

        // MARK: - Steps

        func arrive() {
            connections += 1
            let client = connections
            let name = pick(["remy", "lin", "guest"]) ?? ""
            harness.connect(client)
            harness.send(client, "CAP REQ :message-tags batch labeled-response server-time")
            if name != "guest" { harness.send(client, "PASS \(name)@c\(client):pw") }
            records[client] = Record(nick: name == "guest" ? "g\(client)" : name)
            for line in ["NICK " + (records[client]?.nick ?? ""), "USER u 0 * :r", "CAP END"] {
                harness.send(client, line)
            }
        }

        func leave(_ client: UInt64) {
            harness.disconnect(client)
            records[client] = nil
        }

        func send(_ client: UInt64, _ line: String) {
            guard Bool.random(using: &random), var record = records[client] else { return harness.send(client, line) }
            record.labels += 1
            let label = "l\(record.labels)"
            record.openLabels.insert(label)
            records[client] = record
            harness.send(client, "@label=\(label) " + line)
        }

        func say(_ channel: String) {
            harness.advance(by: .milliseconds(1))
            look()
            let text = "said-\(said.count)"
            let audience = records.filter { $0.value.rooms.contains(channel) }.map(\.key)
            said.append(Said(channel: channel, text: text, at: harness.clock.now.wall, audience: Set(audience)))
            if let room = room(channel), room.link.isUp {
                harness.sendFrame(
                    room.id.index,
                    #"{"kind":"message","id":"\#(text)","sender":{"id":"s","name":"ann"},"text":"\#(text)"}"#)
            }
        }

        func room(_ channel: String) -> Room? { harness.bridge.rooms.first { $0.channel == channel } }

        func link(_ channel: String, _ change: (Int) -> Void) {
            guard let room = room(channel) else { return }
            change(room.id.index)
        }

        func accept(_ channel: String) {
            link(channel) { if harness.upstream($0).state == .connecting { harness.accept($0) } }
        }

        // MARK: - What was told

        func look() {
            for case .line(let client, let bytes) in harness.takeOutputs() {
                guard var record = records[client],
                    let line = try? bytes.withUnsafeBytes({ try IRCParse.parse($0) })
                else { continue }
                take(line, client, &record)
                records[client] = record
            }
        }

        private func take(_ line: IRCMessage, _ client: UInt64, _ record: inout Record) {
            if let label = line.tag("label")?.value, record.openLabels.remove(label) == nil {
                trouble.append("client \(client) got the label \(label) once too often")
            }
            let nick = line.source?.prefix { $0 != "!" }
            guard let channel = line.params.first else { return }
            switch line.command {
            case "JOIN" where nick.map(String.init) == record.nick:
                if !record.rooms.insert(channel).inserted {
                    trouble.append("client \(client) entered \(channel) twice")
                }
            case "PART" where nick.map(String.init) == record.nick:
                if record.rooms.remove(channel) == nil { trouble.append("client \(client) left \(channel) twice") }
                // What is told of the time before it is for nobody any more.
                for index in said.indices where said[index].channel == channel { said[index].audience.remove(client) }
            case "PRIVMSG", "NOTICE":
                guard channel.hasPrefix("#") else { return }
                if !record.rooms.contains(channel) {
                    trouble.append("client \(client) was told \(line.params.last ?? "") of \(channel) before it was in")
                }
                if let gap = line.tag("chatbridge/gap")?.value {
                    let ends = gap.split(separator: ",").map(String.init)
                    if ends.count == 2 { record.gaps[channel, default: []].append((ends[0], ends[1])) }
                } else if line.command == "PRIVMSG" {
                    record.texts[line.params.last ?? "", default: 0] += 1
                }
            default: break
            }
        }

        // MARK: - The end

        func settle() {
            look()
            harness.acceptsConnections = true
            for channel in EntranceLawTests.channels { accept(channel) }
            harness.advance(by: .seconds(120))
            look()
            for client in records.keys.sorted() {
                harness.send(client, "PING end")
                look()
                guard let record = records[client] else { continue }
                if !record.openLabels.isEmpty {
                    trouble.append("client \(client) waits for \(record.openLabels.sorted())")
                }
                if harness.bridge.irc.sessions[ClientID(rawValue: client)]?.hasLongAnswers != false {
                    trouble.append("client \(client) is stuck")
                }
                for (text, count) in record.texts where count > 1 {
                    trouble.append("client \(client) got \(text) twice")
                }
                for one in said where one.audience.contains(client) && record.rooms.contains(one.channel) {
                    let at = IRCServerTime.format(milliseconds: one.at.milliseconds)
                    let isTold = record.gaps[one.channel, default: []].contains { $0.from <= at && at <= $0.to }
                    if record.texts[one.text] == nil, !isTold {
                        trouble.append("client \(client) missed \(one.text) of \(at) in \(one.channel)")
                    }
                }
            }
            if !harness.bridge.irc.pendingJoins.isEmpty {
                trouble.append("somebody waits at a door")
            }
            trouble += harness.violations
        }
    }

    @Test(
        "nobody is stuck, labels are answered once, and what is said in a room is shown or lies in a gap",
        arguments: LawSeeds.seeds(150))
    func law(seed: UInt64) throws {
        let run = try Run(seed: seed)
        for _ in 0..<80 {
            let channel = run.pick(Self.channels) ?? ""
            let client = run.pick(run.records.keys.sorted())
            switch (Int.random(in: 0..<24, using: &run.random), client) {
            case (0..<2, _): if run.records.count < 6 { run.arrive() }
            case (2, let client?): run.leave(client)
            case (3..<8, let client?):
                let more = (0..<Int.random(in: 0..<3, using: &run.random)).compactMap { _ in run.pick(Self.channels) }
                run.send(client, "JOIN " + ([channel] + more).joined(separator: ","))
            case (8, let client?): run.send(client, "PART " + channel)
            case (9, let client?): run.send(client, "PING x")
            case (10..<14, _): run.say(channel)
            case (14..<17, _): run.accept(channel)
            case (17, _): run.link(channel) { run.harness.endTransport($0, reason: "reset") }
            case (18, _):
                run.link(channel) {
                    if run.harness.upstream($0).state == .connecting { run.harness.refuse($0, status: 503) }
                }
            case (19, _): run.harness.acceptsConnections = Bool.random(using: &run.random)
            case (20..<24, _):
                run.harness.advance(by: .milliseconds(Int.random(in: 1...1500, using: &run.random)))
            default: continue
            }
            run.look()
        }
        run.settle()
        #expect(run.trouble == [], "seed \(seed)")
    }
}

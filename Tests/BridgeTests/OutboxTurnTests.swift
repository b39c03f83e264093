import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import JSONText
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// What is queued goes in turns: one message of each sender.
@Suite("Turns of the outbox")
struct OutboxTurnTests {
    private static let start = MonotonicInstant(nanoseconds: 0)

    private static func entry(
        _ id: String, by author: Substring? = nil, client: UInt64? = nil, network: String? = nil,
        state: OutboxEntry.State = .queued
    ) -> OutboxEntry {
        let author = ChatID(String(author ?? id.prefix(1)))
        var entry = OutboxEntry(
            message: ChatMessage(id: ChatID(id), sender: ChatPerson(id: author, name: "s"), text: id),
            origin: OutboxEntry.Origin(
                client: client.map { ClientID(rawValue: $0) }, person: nil, puppet: author,
                who: RoomSpeaker(nick: "s", source: "s!u@h"), text: id, clientTags: [], label: nil),
            state: state, acceptedAt: start)
        entry.line = network.map { .network($0) }
        return entry
    }

    private static func outbox(_ ids: String...) -> Outbox {
        var outbox = Outbox()
        for id in ids { outbox.append(entry(id)) }
        return outbox
    }

    /// Writes what is next, so many times at most.
    private static func write(_ outbox: inout Outbox, _ count: Int = .max) -> [String] {
        var written: [String] = []
        while written.count < count, let next = outbox.next {
            outbox.markNextWritten(at: start, frameCount: 1)
            written.append(next.message.id?.rawValue ?? "")
        }
        return written
    }

    @Test("one message of each, in the order in which they began to wait")
    func turns() {
        var outbox = Self.outbox("a1", "a2", "a3", "b1", "c1", "c2")
        #expect(Self.write(&outbox) == ["a1", "b1", "c1", "a2", "c2", "a3"])
        var late = Self.outbox("a1", "a2", "a3")
        #expect(Self.write(&late, 1) == ["a1"])
        late.append(Self.entry("b1"))
        late.append(Self.entry("b2"))
        #expect(Self.write(&late) == ["a2", "b1", "a3", "b2"])
    }

    @Test("what was said in one room elsewhere is in one line, whichever mirrors bring it")
    func roomsElsewhere() {
        func tags(_ origin: String) -> [StoredTag] { [StoredTag(name: OriginChain.tag, value: origin)] }
        var outbox = Outbox()
        for (id, by, origin) in [
            // An author has another name behind each mirror.
            ("n1", "near", "aaaaaa,0000b1"), ("n2", "near", "aaaaaa,0000b1"), ("f3", "far", "aaaaaa,cccccc,0000b2"),
            ("n4", "near", "aaaaaa,0000b1"), ("x1", "near", "dddddd,0000b1"), ("t1", "tool", "0000b3"),
        ] {
            var entry = Self.entry(id)
            entry.line = .relayed(tags(origin), by: by)
            outbox.append(entry)
        }
        #expect(Self.write(&outbox) == ["n1", "x1", "t1", "n2", "f3", "n4"])
        #expect(OutboxTurns.Line.relayed([], by: "bot") == .relay("bot"))
    }

    @Test("the choice stands until it is taken, whatever is said meanwhile")
    func choice() {
        var outbox = Self.outbox("a1", "a2", "b1")
        #expect(outbox.next?.message.id == ChatID("a1"))
        outbox.append(Self.entry("c1"))
        #expect(outbox.next?.message.id == ChatID("a1"))
        _ = outbox.confirm(id: ChatID("a1"), sender: nil)
        #expect(Self.write(&outbox) == ["a2", "b1", "c1"])
    }

    @Test("what cannot be sent at all was a turn")
    func removed() {
        var outbox = Self.outbox("a1", "a2", "b1")
        #expect(outbox.removeNext()?.message.id == ChatID("a1"))
        #expect(Self.write(&outbox) == ["b1", "a2"])
    }

    @Test("guests of one network have one turn together")
    func guests() {
        var outbox = Outbox()
        for id in ["g1", "h1", "g2", "i1"] { outbox.append(Self.entry(id, network: "10.0.0.1")) }
        outbox.append(Self.entry("a1"))
        outbox.append(Self.entry("a2"))
        #expect(Self.write(&outbox) == ["g1", "a1", "h1", "a2", "g2", "i1"])
    }

    @Test("nobody overtakes themselves by another address, nick or login")
    func moves() {
        var outbox = Outbox()
        outbox.append(Self.entry("g1", client: 1, network: "10.0.0.1"))
        outbox.append(Self.entry("g2", client: 1, network: "10.0.0.1"))
        // The same author from elsewhere, the same client under another name.
        outbox.append(Self.entry("g3", client: 2, network: "10.0.0.2"))
        outbox.append(Self.entry("n1", client: 1))
        outbox.append(Self.entry("b1"))
        #expect(Self.write(&outbox) == ["g1", "b1", "g2", "g3", "n1"])
    }

    /// Two histories lack what is unsettled: it goes again.
    private static func lackTwice(_ outbox: inout Outbox) {
        for asked in [start, start + .seconds(10)] {
            let given = outbox.settleMissing(asked: asked, patience: .seconds(10), isOnce: false) { _ in true }
            #expect(given.isEmpty)
        }
    }

    @Test("the pieces of a message go together, and count as one")
    func pieces() {
        var outbox = Self.outbox("a1", "a2", "b1", "b2")
        Self.split(&outbox, "a1", into: 3)
        #expect(Self.write(&outbox, 2) == ["a1", "a1.1"])
        #expect(outbox.linkLost(now: Self.start).isEmpty)
        #expect(Self.write(&outbox) == ["a1", "a1.1", "a1.2", "b1", "a2", "b2"])
    }

    @Test("what was on the wire goes first, in its old order, after a lost link and after a pause")
    func again() {
        var outbox = Self.outbox("a1", "a2", "a3", "b1", "c1")
        #expect(Self.write(&outbox, 3) == ["a1", "b1", "c1"])
        _ = outbox.confirm(id: ChatID("b1"), sender: nil)
        _ = outbox.takeDoubtful(now: Self.start + .seconds(60))
        outbox.linkLost(now: Self.start)
        outbox.append(Self.entry("d1"))
        #expect(Self.write(&outbox, 3) == ["a1", "c1", "a2"])
        #expect(outbox.putOff(id: ChatID("c1")) && outbox.putOff(id: ChatID("a1")) && outbox.putOff(id: ChatID("a2")))
        #expect(Self.write(&outbox) == ["a1", "c1", "a2", "d1", "a3"])
    }

    @Test("who waits for an unsettled message holds up only themselves, also where guests share a turn")
    func unsettled() {
        var outbox = Outbox()
        for id in ["g1", "a1", "g2", "h1", "a2"] {
            outbox.append(Self.entry(id, network: id.hasPrefix("a") ? nil : "10.0.0.1"))
        }
        #expect(Self.write(&outbox, 1) == ["g1"])
        outbox.linkLost(mayRepeat: false, now: Self.start)
        outbox.waitsForUnknown = true
        #expect(Self.write(&outbox) == ["a1", "h1", "a2"])
        outbox.append(Self.entry("g3", network: "10.0.0.1"))
        outbox.append(Self.entry("b1"))
        #expect(Self.write(&outbox) == ["b1"])
        let hasQueued = outbox.hasQueued
        #expect(!hasQueued)
        outbox.append(Self.entry("b2"))
        Self.lackTwice(&outbox)
        #expect(Self.write(&outbox) == ["g1", "b2", "g2", "g3"])
    }

    @Test("what an earlier process left goes in turns too, each author's before what they said since")
    func restored() {
        var outbox = Self.outbox("a3", "b2")
        outbox.restore([
            Self.entry("a1"), Self.entry("a2"), Self.entry("c1", state: .unknownAfterDisconnect), Self.entry("b1"),
        ])
        outbox.waitsForUnknown = true
        outbox.append(Self.entry("c2"))
        #expect(Self.write(&outbox) == ["a1", "b1", "a2", "b2", "a3"])
        #expect(outbox.giveUpUnknown().count == 1)
        #expect(Self.write(&outbox) == ["c2"])
    }

    @Test("age goes by acceptance, whatever the order of writing")
    func ages() {
        var outbox = Outbox()
        for (id, second) in [("a1", 0), ("a2", 1), ("b1", 5)] {
            var entry = Self.entry(id)
            entry.acceptedAt = Self.start + .seconds(second)
            outbox.append(entry)
        }
        #expect(Self.write(&outbox) == ["a1", "b1", "a2"])
        let now = Self.start + .seconds(11)
        #expect(outbox.nextDeadline(maxAge: .seconds(10)) == Self.start + .seconds(3))
        #expect(outbox.expire(maxAge: .seconds(10), now: now).compactMap { $0.message.id?.rawValue } == ["a1", "a2"])
    }

    // MARK: - The law

    private static func split(_ outbox: inout Outbox, _ id: String, into count: Int) {
        let whole = outbox.entries.first { $0.message.id == ChatID(id) }
        guard let whole else { return }
        outbox.split(
            id: ChatID(id),
            (0..<count).map { index in
                var piece = whole
                piece.message.id = ChatID(index == 0 ? id : "\(id).\(index)")
                piece.part = OutboxEntry.Part(
                    group: UInt64(truncatingIfNeeded: id.hashValue), index: index, whole: ChatID(id))
                return piece
            })
    }

    @Test(
        "while somebody waits nobody else begins two messages; each author's go in order, pieces together",
        arguments: LawSeeds.seeds(300))
    func law(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var outbox = Outbox()
        let authors = (0..<Int.random(in: 1...6, using: &random)).map { String(UnicodeScalar(UInt8(97 + $0))) }
        let repeats = Bool.random(using: &random)
        var said: [String: [String]] = [:]
        /// First writings by author, whole messages.
        var begun: [String: [String]] = [:]
        /// What went over this link.
        var wire: [String] = []
        /// For each author with something queued, who began how many messages since they wait.
        var since: [String: [String: Int]] = [:]
        func author(_ id: String) -> String { String(id.prefix(1)) }
        func whole(_ id: String) -> String { id.split(separator: ".").first.map(String.init) ?? id }
        func queued() -> Set<String> {
            Set(outbox.entries.filter { $0.state == .queued }.compactMap { $0.message.id.map { author($0.rawValue) } })
        }
        for _ in 0..<Int.random(in: 20...300, using: &random) {
            switch Int.random(in: 0..<12, using: &random) {
            case 0..<5:
                // The first of them is talkative.
                let isTalkative = Bool.random(using: &random)
                guard let name = isTalkative ? authors.first : authors.randomElement(using: &random) else { continue }
                let id = name + "-\((said[name] ?? []).count)"
                said[name, default: []].append(id)
                outbox.append(Self.entry(id))
                if Int.random(in: 0..<5, using: &random) == 0 {
                    Self.split(&outbox, id, into: Int.random(in: 2...4, using: &random))
                }
                if since[name] == nil { since[name] = [:] }
            case 5..<10:
                guard let id = outbox.next?.message.id?.rawValue else { continue }
                outbox.markNextWritten(at: Self.start, frameCount: 1)
                let (name, message) = (author(id), whole(id))
                wire.append(id)
                if id == message, begun[name]?.contains(id) != true {
                    begun[name, default: []].append(id)
                    for other in since.keys where other != name {
                        since[other]?[name, default: 0] += 1
                        #expect((since[other]?[name] ?? 0) <= 1, "seed \(seed): \(other) waits for \(name)")
                    }
                    since[name] = queued().contains(name) ? [:] : nil
                }
                if !queued().contains(name) { since[name] = nil }
            case 10:
                guard let id = wire.randomElement(using: &random) else { continue }
                _ = outbox.confirm(id: ChatID(id), sender: nil)
            default:
                outbox.linkLost(mayRepeat: repeats, now: Self.start)
                if !repeats { Self.lackTwice(&outbox) }
                wire = []
                for name in queued() where since[name] == nil { since[name] = [:] }
            }
            for (index, id) in wire.enumerated().dropFirst() where id != whole(id) {
                #expect(
                    whole(wire[index - 1]) == whole(id) || !wire[..<index].contains { whole($0) == whole(id) },
                    "seed \(seed): pieces apart in \(wire)")
            }
            for name in authors {
                let mine = wire.filter { author($0) == name }.map(whole)
                let numbers = mine.compactMap { said[name]?.firstIndex(of: $0) }
                #expect(numbers == numbers.sorted(), "seed \(seed): \(wire)")
            }
        }
        for name in authors { #expect(begun[name] ?? [] == Array((said[name] ?? []).prefix(begun[name]?.count ?? 0))) }
        while let id = outbox.next?.message.id?.rawValue {
            outbox.markNextWritten(at: Self.start, frameCount: 1)
            if id == whole(id), begun[author(id)]?.contains(id) != true { begun[author(id), default: []].append(id) }
        }
        #expect(begun == said, "seed \(seed)")
    }

    // MARK: - In a room

    private static func harness(_ change: (inout DialectTraits) -> Void) throws -> BridgeHarness {
        let room = try RoomSettings.stub("lobby", dialect: StubDialect(change))
        let limits = LimitSettings {
            $0.messagesPerSecond = nil
            $0.upstreamMessagesPerSecond = 1
            $0.upstreamMessagesBurst = 1
        }
        let harness = BridgeHarness(
            settings: BridgeSettings(serverName: "bridge", instanceID: "t", limits: limits, rooms: [room]))
        harness.start()
        return harness
    }

    private static func sent(_ harness: BridgeHarness) -> [String] {
        harness.takeOutputs().compactMap { output in
            guard case .upstream(0, .frame(let payload, _)) = output, let json = try? JSONValue(parsing: payload),
                json["kind"]?.string == "message"
            else { return nil }
            return json["text"]?.string
        }
    }

    @Test("a slow room goes round among its senders: who says one line waits for one of each other sender")
    func slowRoom() throws {
        let harness = try Self.harness { $0.confirmation = .none }
        let places: [(String, String?)] = [
            ("ann", nil), ("ben", nil), ("g1", "10.0.0.1"), ("g2", "10.0.0.1"), ("eve", nil),
        ]
        for (number, (nick, address)) in places.enumerated() {
            let client = UInt64(number + 1)
            harness.connect(client, address: address ?? "127.0.0.1", isLocal: address == nil)
            for line in ["NICK \(nick)", "USER u 0 * :r", "JOIN #lobby"] { harness.send(client, line) }
        }
        _ = harness.takeOutputs()
        for client in [UInt64(1), 3, 4] {
            for number in 1...9 { harness.send(client, "PRIVMSG #lobby :\(places[Int(client) - 1].0) \(number)") }
        }
        harness.send(2, "PRIVMSG #lobby :ben 1")
        harness.advance(by: .seconds(4.5))
        harness.send(5, "PRIVMSG #lobby :eve 1")
        harness.advance(by: .seconds(4))
        #expect(
            Self.sent(harness) == ["ann 1", "ann 2", "g1 1", "ben 1", "ann 3", "g1 2", "ann 4", "eve 1", "g1 3"])
    }
}

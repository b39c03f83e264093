import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Testing
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Many who come or go at once")
struct CrowdTests {
    private static let caps = "batch message-tags no-implicit-names"

    /// A wire that tells who comes and goes, or one that does not.
    private func stage(tellsOfLeaves: Bool = true, rooms: [String] = ["lobby"]) throws -> ActionsStage {
        try ActionsStage(ActionsStubDialect(says: ["message"]) { $0.tellsOfLeaves = tellsOfLeaves }, rooms: rooms)
    }

    private func join(_ people: ClosedRange<Int>, _ stage: ActionsStage, room: Int = 0) {
        for number in people { stage.backend("join|from=s\(number)|name=p\(number)", room: room) }
    }

    /// The lines to a client, without their tags and text about links.
    private func lines(_ client: Int, _ stage: ActionsStage) -> [String] {
        stage.happened().filter { $0.hasPrefix("C\(client)< ") && !$0.contains(" NOTICE ") }
            .map { String($0.dropFirst("C\(client)< ".count)) }
    }

    private func nicks(_ lines: [String], _ verb: String) -> [String] {
        lines.compactMap { line in
            guard let source = line.split(separator: " ").first(where: { $0.hasPrefix(":") }),
                line.contains(" \(verb) ") || line.hasSuffix(" \(verb)")
            else { return nil }
            return String(source.dropFirst().prefix { $0 != "!" })
        }
    }

    private var singles: Int { Int(JoinBatches.singlesBurst) }

    // MARK: - Coming

    @Test("a few are told of at once, the rest in a netjoin batch, each once and in order")
    func netjoin() throws {
        let stage = try stage()
        stage.enter(1, "alice", caps: Self.caps)
        join(1...singles + 30, stage)
        let first = lines(1, stage)
        #expect(nicks(first, "JOIN") == (1...singles).map { "p\($0)" })
        #expect(!first.contains { $0.contains("BATCH") })
        stage.harness.advance(by: JoinBatches.interval)
        let rest = lines(1, stage)
        #expect(rest.first == ":bridge BATCH +b1 netjoin bridge chat.example")
        #expect(rest.last == ":bridge BATCH -b1")
        #expect(nicks(rest, "JOIN") == (singles + 1...singles + 30).map { "p\($0)" })
        #expect(rest.dropFirst().dropLast().allSatisfy { $0.hasPrefix("@batch=b1 :") })
        stage.harness.advance(by: .seconds(10))
        #expect(lines(1, stage) == [])
    }

    @Test("whoever wants display names gets each right after its JOIN")
    func displayNames() throws {
        let stage = try stage()
        stage.enter(1, "alice", caps: Self.caps + " draft/metadata-2")
        stage.harness.send(1, "METADATA * SUB display-name")
        _ = stage.happened()
        join(1...singles + 3, stage)
        func named(_ lines: [String]) -> [String] {
            lines.compactMap { line in
                let words = line.split(separator: " ").drop { $0 != "METADATA" }
                return words.dropFirst().first.map(String.init)
            }
        }
        let first = lines(1, stage)
        #expect(named(first) == (1...singles).map { "p\($0)" })
        stage.harness.advance(by: JoinBatches.interval)
        let rest = lines(1, stage)
        #expect(named(rest) == (singles + 1...singles + 3).map { "p\($0)" })
        for (join, name) in zip(rest, rest.dropFirst()) where join.contains(" JOIN ") {
            #expect(named([name]) == nicks([join], "JOIN"))
        }
    }

    @Test("whoever has no batches gets the same lines at the same pace")
    func plain() throws {
        let stage = try stage()
        stage.enter(1, "alice", caps: "")
        join(1...singles + JoinBatches.maxPortion + 10, stage)
        #expect(lines(1, stage).count == singles)
        stage.harness.advance(by: JoinBatches.interval)
        let portion = lines(1, stage)
        #expect(nicks(portion, "JOIN").count == JoinBatches.maxPortion)
        #expect(portion.count == JoinBatches.maxPortion)
        stage.harness.advance(by: JoinBatches.interval)
        #expect(lines(1, stage).count == 10)
    }

    @Test("long after the link came up nobody returns with it: the lines stand by themselves")
    func later() throws {
        let stage = try stage()
        stage.enter(1, "alice", caps: Self.caps)
        stage.harness.advance(by: JoinBatches.returnTime)
        join(1...singles + 5, stage)
        stage.harness.advance(by: .seconds(1))
        let told = lines(1, stage)
        #expect(nicks(told, "JOIN").count == singles + 5)
        #expect(!told.contains { $0.contains("BATCH") })
    }

    @Test("whoever speaks while they wait is told of first, and once")
    func speaks() throws {
        let stage = try stage()
        stage.enter(1, "alice", caps: Self.caps)
        join(1...singles + 3, stage)
        _ = stage.happened()
        stage.backend("message|id=m1|from=s\(singles + 2)|name=p\(singles + 2)|text=hello")
        let told = lines(1, stage)
        #expect(nicks(told, "JOIN") == ["p\(singles + 2)"])
        #expect(nicks(told, "PRIVMSG") == ["p\(singles + 2)"])
        stage.harness.advance(by: .seconds(1))
        #expect(nicks(lines(1, stage), "JOIN") == ["p\(singles + 1)", "p\(singles + 3)"])
    }

    @Test("whoever leaves before they were told of was never there")
    func neverSeen() throws {
        let stage = try stage()
        stage.enter(1, "alice", caps: Self.caps)
        join(1...singles + 2, stage)
        _ = stage.happened()
        stage.backend("leave|from=s\(singles + 1)|name=p\(singles + 1)")
        #expect(lines(1, stage) == [])
        stage.harness.advance(by: .seconds(1))
        #expect(nicks(lines(1, stage), "JOIN") == ["p\(singles + 2)"])
        stage.backend("leave|from=s1|name=p1")
        #expect(nicks(lines(1, stage), "PART") == ["p1"])
    }

    @Test("NAMES lists who was told of, so that everybody appears once to whoever comes in between")
    func names() throws {
        let stage = try stage()
        stage.enter(1, "alice", caps: Self.caps)
        join(1...singles + 2, stage)
        stage.enter(2, "bob", caps: Self.caps)
        stage.harness.send(2, "NAMES #lobby")
        let listed = lines(2, stage).filter { $0.contains(" 353 ") }.joined(separator: " ").split(separator: " ")
        #expect(listed.contains("p\(singles)") || listed.contains(":p\(singles)"))
        #expect(!listed.contains { $0.hasSuffix("p\(singles + 1)") })
        stage.harness.advance(by: .seconds(1))
        #expect(nicks(lines(2, stage), "JOIN") == ["p\(singles + 1)", "p\(singles + 2)"])
    }

    @Test("in a room of many clients a portion is smaller, so that it holds nobody up")
    func portions() {
        let crowds = JoinBatches()
        for number in 1...2000 { crowds.append(PersonID(rawValue: UInt64(number)), .arrival) }
        #expect(crowds.takePortion(clients: 0)?.people.count == JoinBatches.maxPortion)
        #expect(crowds.takePortion(clients: 1000)?.people.count == JoinBatches.maxDeliveries / 1000)
        #expect(crowds.takePortion(clients: 1_000_000)?.people.count == JoinBatches.minPortion)
    }

    // MARK: - Going

    @Test("a short outage is nobody's leaving")
    func shortOutage() throws {
        let stage = try stage()
        stage.enter(1, "alice", caps: Self.caps)
        join(1...3, stage)
        _ = stage.happened()
        stage.harness.endTransport(0, reason: "gone")
        stage.harness.advance(by: .seconds(300))
        join(1...3, stage)
        #expect(nicks(lines(1, stage), "JOIN") == [])
    }

    @Test("when the link is gone for long, all leave in a netsplit batch, and return in a netjoin")
    func netsplit() throws {
        let stage = try stage()
        stage.enter(1, "alice", caps: Self.caps)
        join(1...3, stage)
        stage.harness.acceptsConnections = false
        stage.harness.endTransport(0, reason: "gone")
        _ = stage.happened()
        stage.harness.advance(by: JoinBatches.splitAfter - .seconds(1))
        #expect(lines(1, stage) == [])
        stage.harness.advance(by: .seconds(2))
        let told = lines(1, stage)
        #expect(
            told == [
                ":bridge BATCH +b1 netsplit bridge chat.example",
                "@batch=b1 :p1!chat@chat.example QUIT :bridge chat.example",
                "@batch=b1 :p2!chat@chat.example QUIT :bridge chat.example",
                "@batch=b1 :p3!chat@chat.example QUIT :bridge chat.example",
                ":bridge BATCH -b1",
            ])
        stage.harness.send(1, "NAMES #lobby")
        #expect(lines(1, stage).first?.hasSuffix("alice") == true)
        #expect(stage.harness.bridge.rooms[0].memberCount == 1)
        stage.harness.acceptsConnections = true
        stage.harness.accept(0)
        join(1...3, stage)
        #expect(nicks(lines(1, stage), "JOIN") == ["p1", "p2", "p3"])
    }

    @Test("whoever is seen in another room leaves only the one")
    func twoRooms() throws {
        let stage = try stage(rooms: ["lobby", "kitchen"])
        stage.enter(1, "alice", caps: "batch")
        join(1...1, stage)
        join(1...2, stage, room: 1)
        stage.harness.acceptsConnections = false
        stage.harness.endTransport(1, reason: "gone")
        _ = stage.happened()
        stage.harness.advance(by: JoinBatches.splitAfter + .seconds(1))
        let told = lines(1, stage)
        #expect(told.contains("@batch=b1 :p1!chat@chat.example PART #kitchen :bridge chat.example"))
        #expect(told.contains("@batch=b1 :p2!chat@chat.example QUIT :bridge chat.example"))
    }

    @Test("whoever comes back before their leaving was told has not left")
    func unnoticed() throws {
        let stage = try stage()
        stage.enter(1, "alice", caps: Self.caps)
        join(1...2, stage)
        stage.harness.acceptsConnections = false
        stage.harness.endTransport(0, reason: "gone")
        _ = stage.happened()
        stage.harness.advance(by: JoinBatches.splitAfter)
        stage.harness.acceptsConnections = true
        stage.harness.accept(0)
        join(1...1, stage)
        stage.harness.advance(by: .seconds(1))
        let told = lines(1, stage)
        #expect(nicks(told, "QUIT") == ["p2"])
        #expect(nicks(told, "JOIN") == [])
    }

    @Test("where no wire tells of leaves, people outlast an outage until they were silent for long, and go together")
    func silent() throws {
        let stage = try stage(tellsOfLeaves: false)
        stage.enter(1, "alice", caps: Self.caps)
        join(1...3, stage)
        stage.harness.acceptsConnections = false
        stage.harness.endTransport(0, reason: "gone")
        _ = stage.happened()
        stage.harness.advance(by: .seconds(1000))
        #expect(nicks(lines(1, stage), "QUIT") == [])
        stage.harness.advance(by: .seconds(1000))
        let told = lines(1, stage)
        #expect(nicks(told, "QUIT") == ["p1", "p2", "p3"])
        #expect(told.first?.contains("netsplit") == true)
    }

    @Test("who left during an outage, on a wire that tells of leaves, is gone when they were silent for long")
    func ghosts() throws {
        let stage = try stage()
        stage.enter(1, "alice", caps: Self.caps)
        join(1...2, stage)
        stage.harness.endTransport(0, reason: "gone")
        stage.harness.advance(by: .seconds(10))
        join(2...2, stage)
        _ = stage.happened()
        stage.harness.advance(by: .seconds(2000))
        #expect(nicks(lines(1, stage), "PART") == ["p1"])
    }

    @Test("a crowd that falls silent leaves at a pace, not all at once")
    func idleCrowd() throws {
        let stage = try stage(tellsOfLeaves: false)
        stage.enter(1, "alice", caps: Self.caps)
        join(1...singles + 20, stage)
        stage.harness.advance(by: .seconds(5))
        _ = stage.happened()
        var most = 0
        var gone: [String] = []
        for _ in 0..<10_000 where gone.count < singles + 20 {
            stage.harness.advance(by: .milliseconds(250))
            let told = nicks(lines(1, stage), "PART")
            most = max(most, told.count)
            gone += told
        }
        #expect(Set(gone).count == singles + 20)
        #expect(most <= singles + 20 - 1)
    }
}

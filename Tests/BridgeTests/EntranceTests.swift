import BridgeTestSupport
import Dialects
import HTTPProtocol
import Testing
import WireBytes

@testable import BridgeCore

/// Whoever wants into a room whose link is being opened is let in with it, so that they miss nothing that is said there.
@Suite("Entrances that wait for the link")
struct EntranceTests {
    /// A room `#lobby` that has a link only while somebody is there, more of the kind by a template, and a backend that does
    /// not answer yet.
    private final class Stage {
        let harness: BridgeHarness

        init(connect: ConnectPolicy = .whileJoined) throws {
            @Sendable func room(_ name: String) throws -> RoomSettings {
                var room = RoomSettings(
                    name: name, backend: "b", dialect: StubDialect { _ in },
                    url: try HTTPURL(parsing: "ws://chat.example/\(name)"), upstreamRoom: name)
                room.ping = .zero
                room.connect = connect
                return room
            }
            harness = BridgeHarness(
                settings: BridgeSettings(
                    serverName: "bridge", instanceID: "t",
                    limits: LimitSettings(
                        maxClients: 1000, maxClientsPerAddress: 1000, acceptsPerSecondPerAddress: nil,
                        messagesPerSecond: nil),
                    rooms: [try room("lobby")],
                    backends: [BackendSettings(name: "b", dialect: StubDialect { _ in })],
                    template: RoomTemplate(backend: "b") { try? room($0) }))
            harness.acceptsConnections = false
            harness.start()
        }

        func visit(_ client: UInt64, caps: String = "") {
            harness.connect(client)
            if !caps.isEmpty { harness.send(client, "CAP REQ :" + caps) }
            for line in ["NICK n\(client)", "USER u 0 * :r", "CAP END"] { harness.send(client, line) }
            _ = harness.takeOutputs()
        }

        func send(_ client: UInt64, _ lines: String...) -> [String] {
            for line in lines { harness.send(client, line) }
            return harness.takeLines(client)
        }

        func accept(_ room: Int = 0) -> [String] {
            harness.accept(room)
            return harness.takeLines(1)
        }
    }

    private static func entered(_ channel: String) -> [String] {
        [
            ":n1!~u@bridge JOIN \(channel)", ":bridge 353 n1 = \(channel) :@n1",
            ":bridge 366 n1 \(channel) :End of /NAMES list",
        ]
    }

    @Test(
        "a JOIN is answered when the link is up, and what follows it behind it",
        arguments: [ConnectPolicy.whileJoined, .always])
    func waits(connect: ConnectPolicy) throws {
        let stage = try Stage(connect: connect)
        stage.visit(1)
        #expect(stage.send(1, "JOIN #lobby", "TOPIC #lobby", "PING x") == [])
        stage.harness.advance(by: .milliseconds(990))
        #expect(stage.harness.takeLines(1) == [])
        #expect(
            stage.accept() == Self.entered("#lobby") + [
                ":bridge 331 n1 #lobby :No topic is set", ":bridge PONG bridge x",
            ])
        stage.harness.sendFrame(0, #"{"kind":"message","id":"1","sender":{"id":"s","name":"ann"},"text":"hi"}"#)
        #expect(stage.harness.takeLines(1).last == ":ann!chat@b PRIVMSG #lobby :hi")
        #expect(stage.harness.violations == [])
    }

    @Test("a link whose first try fails, or that takes long, is not waited for", arguments: [true, false])
    func failing(fails: Bool) throws {
        let stage = try Stage()
        stage.visit(1)
        #expect(stage.send(1, "JOIN #lobby") == [])
        if fails {
            stage.harness.endTransport(0, reason: "connection refused")
        } else {
            stage.harness.advance(by: .seconds(1))
        }
        let told = stage.harness.takeLines(1)
        #expect(Array(told.prefix(3)) == Self.entered("#lobby"))
        #expect(told.dropFirst(3).contains { $0.contains("connection refused") } == fails)
        // Nor by those who come later.
        stage.visit(2)
        #expect(stage.send(2, "JOIN #lobby").first == ":n2!~u@bridge JOIN #lobby")
        _ = stage.harness.takeLines(1)
        stage.harness.acceptsConnections = true
        stage.harness.advance(by: .seconds(5))
        if !fails { stage.harness.accept(0) }
        #expect(stage.harness.takeLines(1).contains { $0.contains("is missing: the backend keeps no history") })
    }

    @Test("several rooms are waited for together, and answered in the order in which they were asked for")
    func inOrder() throws {
        let stage = try Stage()
        stage.visit(1)
        stage.visit(9)
        #expect(stage.send(1, "JOIN #attic,nothing,#lobby,#roof") == [])
        // The links come up the other way round.
        #expect(stage.accept(2) == [])
        #expect(stage.accept(0) == [])
        #expect(
            stage.accept(1)
                == Self.entered("#attic") + [":bridge 403 n1 nothing :That cannot be the name of a room"]
                + Self.entered("#lobby") + Self.entered("#roof"))
        #expect(stage.send(9, "JOIN #roof").first == ":n9!~u@bridge JOIN #roof", "whoever comes now does not wait")
        #expect(stage.harness.violations == [])
    }

    @Test("a label is answered once, with all of it")
    func labeled() throws {
        let stage = try Stage()
        stage.visit(1, caps: "batch labeled-response")
        let begin = stage.send(1, "@label=a JOIN #lobby")
        #expect(begin.count == 1 && begin[0].hasPrefix("@label=a :bridge BATCH +") == true)
        let reference = begin.first?.split(separator: " ").first { $0.hasPrefix("+") }?.dropFirst() ?? ""
        #expect(
            stage.accept() == Self.entered("#lobby").map { "@batch=\(reference) " + $0 } + [
                ":bridge BATCH -\(reference)"
            ])
        #expect(stage.send(1, "@label=b PING x") == ["@label=b :bridge PONG bridge x"])
    }

    @Test("all of a crowd are let in, and somebody who is gone is not waited for")
    func crowd() throws {
        let stage = try Stage()
        let clients = (1...200).map { UInt64($0) }
        for client in clients {
            stage.visit(client)
            _ = stage.send(client, "JOIN #lobby", "PING x")
        }
        stage.harness.disconnect(100)
        stage.harness.accept(0)
        stage.harness.advance(by: .zero)
        #expect(stage.harness.bridge.rooms[0].memberCount == 199)
        let lines = stage.harness.takeOutputs()
        for client in clients where client != 100 {
            #expect(lines.contains(.line(client: client, Array(":bridge PONG bridge x".utf8))))
        }
        #expect(stage.harness.bridge.waitingAtDoors.isEmpty && stage.harness.bridge.nextIn.isEmpty)
        #expect(stage.harness.violations == [])
    }

    @Test("a room that was opened for somebody who is gone closes as if they had looked in")
    func gone() throws {
        let stage = try Stage()
        stage.visit(1)
        _ = stage.send(1, "JOIN #attic")
        stage.harness.disconnect(1)
        stage.harness.accept(1)
        stage.harness.advance(by: Room.linger - .seconds(1))
        #expect(stage.harness.bridge.rooms.count == 2)
        stage.harness.advance(by: .seconds(10))
        #expect(stage.harness.bridge.rooms.count == 1)
        #expect(stage.harness.violations == [])
    }

    @Test("nobody waits where they will be told what is missing")
    func missing() throws {
        let stage = try StoredStage(StoredWire.withoutHistory[0])
        stage.start()
        stage.enter("bob")
        stage.say("one")
        stage.crash()
        stage.harness.acceptsConnections = false
        stage.harness.start()
        stage.enter("bob")
        #expect(stage.room.slots.count == 1)
        stage.regainLink()
        #expect(stage.gaps().count == 1)
    }
}

import Accounts
import BridgeTestSupport
import BridgeTypes
import Digests
import Testing
import Upstream

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Whoever wants into a room whose link is being opened is let in with it, so that they miss nothing that is said there.
@Suite("Entrances that wait for the link")
struct EntranceTests {
    /// A room `#lobby` that has a link only while somebody is there, more of the kind by a template, and a backend that does
    /// not answer yet.
    private final class Stage {
        let harness: BridgeHarness

        init(
            connect: ConnectPolicy = .whileJoined, store: StoreStage? = nil, templateRooms: Int = 100
        ) throws {
            var remy = AccountSettings(name: "remy", password: SCRAMVerifier(quickly: "pw"))
            remy.isAdmin = true
            harness = BridgeHarness(
                settings: BridgeSettings(
                    serverName: "bridge", instanceID: "t", accounts: [remy],
                    limits: LimitSettings {
                        $0.maxClients = 1000
                        $0.maxClientsPerAddress = 1000
                        $0.acceptsPerSecondPerAddress = nil
                        $0.messagesPerSecond = nil
                        $0.templateRooms = templateRooms
                    },
                    rooms: [try .stub("lobby", connect: connect)],
                    backends: [BackendSettings(name: "b", dialect: StubDialect { _ in })],
                    template: RoomTemplate(backend: "b") { try? .stub($0, connect: connect) }), store: store)
            harness.acceptsConnections = false
            harness.start()
        }

        func visit(_ client: UInt64, caps: String = "", password: String = "") {
            harness.connect(client)
            if !caps.isEmpty { harness.send(client, "CAP REQ :" + caps) }
            if !password.isEmpty { harness.send(client, "PASS " + password) }
            for line in ["NICK n\(client)", "USER u 0 * :r", "CAP END"] { harness.send(client, line) }
            _ = harness.takeOutputs()
        }

        func send(_ client: UInt64, _ lines: String...) -> [String] {
            for line in lines { harness.send(client, line) }
            return harness.takeLines(client)
        }

        /// What went up since the last look.
        var frames: [String] {
            harness.takeOutputs().compactMap {
                if case .upstream(_, .frame(let bytes, _)) = $0 { String(decoding: bytes, as: UTF8.self) } else { nil }
            }
        }

        /// Until the client is answered.
        func seconds(until client: UInt64, has text: String) -> Int {
            for second in 0..<100 {
                if harness.takeLines(client).contains(where: { $0.contains(text) }) { return second }
                harness.advance(by: .seconds(1))
            }
            return .max
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

    @Test("however many rooms somebody asks for, they wait in vain once", arguments: [true, false])
    func patience(oneByOne: Bool) throws {
        let stage = try Stage()
        stage.visit(1)
        let channels = (0..<IRCServer.maxTemplateRoomsOfPerson).map { "#r\($0)" }
        for line in oneByOne ? channels : [channels.joined(separator: ",")] { stage.harness.send(1, "JOIN " + line) }
        stage.harness.send(1, "PING x")
        #expect(stage.seconds(until: 1, has: "PONG bridge x") <= 2)
        #expect(stage.harness.bridge.irc.sessions[ClientID(rawValue: 1)]?.rooms.count == channels.count)
    }

    @Test(
        "an account comes back to many rooms as soon, whether it is the backend or the disk that does not answer",
        arguments: [true, false])
    func comesBack(hasDisk: Bool) throws {
        let stage = try Stage(store: hasDisk ? StoreStage() : nil)
        stage.harness.acceptsConnections = true
        stage.visit(1, password: "remy:pw")
        // One person opens few; others open the rest.
        for room in 0..<80 {
            let guest = UInt64(10 + room / IRCServer.maxTemplateRoomsOfPerson)
            if room % IRCServer.maxTemplateRoomsOfPerson == 0 { stage.visit(guest) }
            _ = stage.send(guest, "JOIN #r\(room)")
            _ = stage.send(1, "JOIN #r\(room)")
        }
        stage.harness.advance(by: .seconds(30))
        for guest in UInt64(10)..<18 { stage.harness.disconnect(guest) }
        stage.harness.disconnect(1)
        stage.harness.advance(by: Room.linger + .seconds(10))
        #expect(stage.harness.bridge.rooms.count == 1)
        stage.harness.acceptsConnections = false
        stage.harness.store.answersQuestions = false
        stage.harness.connect(2)
        for line in ["PASS remy:pw", "NICK n2", "USER u 0 * :r", "PING x"] { stage.harness.send(2, line) }
        #expect(stage.seconds(until: 2, has: "PONG bridge x") <= 1)
        #expect(stage.harness.bridge.irc.sessions[ClientID(rawValue: 2)]?.rooms.count == 80)
    }

    @Test("nor is a disk waited for that stalls, and the gap begins when they asked")
    func stalledDisk() throws {
        let stage = try Stage(store: StoreStage())
        stage.harness.store.answersQuestions = false
        stage.visit(1)
        _ = stage.send(1, "JOIN #attic")
        #expect(stage.seconds(until: 1, has: "JOIN #attic") == 1)
        stage.harness.advance(by: .seconds(14))
        #expect(stage.accept(1).contains { $0.contains("between 11:59:59 and 12:00:15 UTC") })
    }

    @Test("nor a link that does not end")
    func leaving() throws {
        let stage = try Stage()
        stage.visit(1)
        _ = stage.send(1, "JOIN #lobby")
        stage.harness.accept(0)
        _ = stage.send(1, "PART #lobby")
        stage.harness.upstream(0).isSilent = true
        stage.harness.advance(by: Room.linger)
        #expect(stage.harness.bridge.rooms[0].isLeaving)
        _ = stage.send(1, "JOIN #lobby")
        #expect(stage.seconds(until: 1, has: "JOIN #lobby") == 1)
    }

    @Test("a room that gave way to another meanwhile is asked for again")
    func evicted() throws {
        let stage = try Stage(templateRooms: 2)
        stage.visit(1)
        stage.visit(2)
        #expect(stage.send(1, "JOIN #a,#b") == [])
        stage.harness.accept(2)
        _ = stage.send(2, "JOIN #c")
        stage.harness.accept(1)
        stage.harness.advance(by: .seconds(10))
        #expect(
            stage.harness.takeLines(1).last
                == ":bridge 405 n1 #b :2 rooms are open, and there may be no more; try again later")
    }

    @Test("what is sent behind a JOIN is not handled in the midst of the link's event")
    func reconnects() throws {
        let stage = try Stage()
        stage.visit(1, password: "remy:pw")
        #expect(stage.send(1, "JOIN #lobby", "PRIVMSG *bridge :reconnect #lobby") == [])
        #expect(stage.accept().contains { $0.contains("The link of #lobby was closed and is opened anew") })
        #expect(stage.harness.bridge.rooms[0].catchUp.state == .closed)
        stage.harness.advance(by: .seconds(30))
        #expect(stage.accept() == [])
        stage.harness.advance(by: CatchUp.gapPatience)
        let gap = "between 11:59:59 and 12:00:30 UTC (31 s) is missing"
        #expect(stage.harness.takeLines(1).contains { $0.contains(gap) })
    }

    @Test("what came behind a JOIN goes up though the client is gone", arguments: [true, false])
    func script(isReset: Bool) throws {
        let stage = try Stage()
        stage.visit(1)
        stage.harness.receive(1, Array("JOIN #lobby\r\nPRIVMSG #lobby :deployed\r\n".utf8))
        if !isReset { #expect(stage.harness.endSending(1)) }
        stage.harness.disconnect(1, reason: "the connection was reset")
        #expect(stage.harness.bridge.clientCount == 0)
        stage.harness.accept(0)
        stage.harness.advance(by: .seconds(1))
        #expect(stage.frames.count { $0.contains("deployed") } == 1)
        #expect(stage.harness.violations == [])
    }

    @Test("and though the bridge stops")
    func shutdown() throws {
        let stage = try Stage()
        stage.visit(1)
        #expect(stage.send(1, "JOIN #lobby", "PRIVMSG #lobby :hi") == [])
        stage.harness.shutdown()
        stage.harness.accept(0)
        #expect(stage.frames.contains { $0.contains(#""text":"hi""#) })
        #expect(!stage.harness.isConnected(1))
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

    @Test("a client without batches has its label on the one line")
    func labeledLine() throws {
        let stage = try Stage()
        stage.visit(1, caps: "labeled-response draft/no-implicit-names")
        #expect(stage.send(1, "@label=a JOIN #lobby") == [])
        #expect(stage.accept() == ["@label=a :n1!~u@bridge JOIN #lobby"])
    }

    @Test("each of a person's clients that asked has its own answer")
    func labeledTwice() throws {
        let stage = try Stage()
        for (client, name) in [(1, "a"), (2, "b")] as [(UInt64, String)] {
            stage.visit(client, caps: "batch labeled-response", password: "remy@\(name):pw")
            stage.harness.send(client, "@label=\(name) JOIN #lobby")
        }
        _ = stage.harness.takeOutputs()
        stage.harness.accept(0)
        let outputs = stage.harness.takeOutputs()
        for client in [1, 2] as [UInt64] {
            let lines = outputs.compactMap { output in
                if case .line(client, let bytes) = output { String(decoding: bytes, as: UTF8.self) } else { nil }
            }
            #expect(lines.count == 4 && lines.dropLast().allSatisfy { $0.hasPrefix("@batch=") }, "\(lines)")
        }
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
        #expect(stage.harness.bridge.irc.pendingJoins.isEmpty)
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

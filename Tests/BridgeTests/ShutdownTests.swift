import BridgeTestSupport
import BridgeTypes
import Dialects
import HTTPProtocol
import Rooms
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import Configuration
@testable import IRCServer

@Suite("Stopping in order")
struct ShutdownTests {
    private static func harness(_ clients: Int, drain: Duration = .seconds(10), prestop: Duration = .zero)
        throws -> BridgeHarness
    {
        var room = RoomSettings(
            name: "lobby", dialect: EnvelopeDialect(), url: try HTTPURL(parsing: "ws://chat.example/lobby"))
        room.ping = .zero
        var settings = BridgeSettings(
            serverName: "bridge", instanceID: "t", limits: LimitSettings { $0.messagesPerSecond = nil }, rooms: [room])
        settings.drain = drain
        settings.prestopDelay = prestop
        let harness = BridgeHarness(settings: settings)
        harness.start()
        for number in 0..<clients {
            let client = UInt64(number + 1)
            harness.connect(client)
            harness.send(client, "NICK n\(number)")
            harness.send(client, "USER u 0 * :u")
            harness.send(client, "JOIN #lobby")
        }
        _ = harness.takeOutputs()
        return harness
    }

    /// When each client was closed after the shutdown, in milliseconds, in that order.
    private static func departures(_ harness: BridgeHarness, _ time: Duration) -> [(client: UInt64, at: Int)] {
        var found: [(UInt64, Int)] = []
        for step in 0..<Int(time / .milliseconds(10)) {
            for output in harness.takeOutputs() {
                if case .clientClosed(let client) = output { found.append((client, step * 10)) }
            }
            harness.advance(by: .milliseconds(10))
        }
        return found
    }

    @Test(
        "a hundred clients are disconnected at once, more over what is left of the drain time",
        arguments: [100, 101, 400])
    func spread(clients: Int) throws {
        let harness = try Self.harness(clients)
        harness.shutdown()
        let found = Self.departures(harness, .seconds(11))
        #expect(Set(found.map(\.client)) == Set((1...UInt64(clients))))
        #expect(harness.violations == [])
        guard clients > 100 else { return #expect(found.allSatisfy { $0.at == 0 }) }
        #expect(found.map(\.client) != found.map(\.client).sorted(), "in random order")
        // Evenly: each tenth of the time has a tenth of them, but for one at either border.
        for tenth in 0..<10 {
            let count = found.count { $0.at / 1000 == tenth }
            #expect(abs(count - clients / 10) <= 2, "\(count) in second \(tenth)")
        }
        #expect(found.allSatisfy { $0.at <= 10_010 })
    }

    @Test("many clients are told of it one by one while the others still hear their room")
    func served() throws {
        let harness = try Self.harness(200)
        harness.shutdown()
        harness.advance(by: .seconds(5))
        let gone = harness.takeOutputs().count { if case .clientClosed = $0 { true } else { false } }
        #expect((80...120).contains(gone))
        harness.sendFrame(
            0,
            #"{"event":"message","message_id":"0AD7C6C5-8B32-4B46-9C6D-0B1C1D0F6D11","sender_id":"0AD7C6C5-8B32-4B46-9C6D-0B1C1D0F6D12","sender_name":"Remy","body":"hello","sent_at":1795262405}"#
        )
        let hearers = harness.takeOutputs().count {
            if case .line(_, let bytes) = $0 { String(decoding: bytes, as: UTF8.self).contains("hello") } else { false }
        }
        #expect(hearers == 200 - gone)
        harness.advance(by: .seconds(10))
        #expect(harness.takeOutputs().last == .stopped)
    }

    @Test("a queue that does not empty leaves many clients half of the drain time")
    func stalled() throws {
        let harness = try Self.harness(150)
        harness.upstreams[0].isSilent = true
        harness.send(1, "PRIVMSG #lobby :never confirmed")
        harness.shutdown()
        let found = Self.departures(harness, .seconds(11))
        #expect(found.count == 150)
        #expect(found.allSatisfy { (5000...10_010).contains($0.at) })
        #expect(Set(found.map { $0.at / 1000 }).count >= 5)
    }

    @Test(
        "a stop by default ends within the 10 s of Docker and Podman, and 2 s earlier where no client has to acknowledge"
    )
    func containers() throws {
        let harness = try Self.harness(1, drain: ServerConfiguration().drain)
        harness.upstreams[0].isSilent = true
        harness.send(1, "PRIVMSG #lobby :never confirmed")
        harness.shutdown()
        harness.advance(by: .seconds(8))
        #expect(harness.takeOutputs().last == .stopped)
        #expect(BridgeSettings(serverName: "bridge", instanceID: "t", rooms: []).drain == ServerConfiguration().drain)
    }

    @Test("clients are let in and served during the prestop delay, and the listeners are closed after it")
    func prestop() throws {
        let harness = try Self.harness(1, prestop: .seconds(5))
        harness.shutdown()
        #expect(!harness.bridge.isRunning)
        #expect(harness.bridge.isServing)
        harness.connect(2)
        harness.send(2, "NICK late")
        harness.send(2, "USER u 0 * :u")
        harness.send(2, "JOIN #lobby")
        harness.send(2, "PRIVMSG #lobby :still here")
        harness.advance(by: .milliseconds(4999))
        let before = harness.takeOutputs()
        #expect(!before.contains(.listenersClosed))
        #expect(
            before.contains {
                guard case .upstream(0, .frame(let bytes, _)) = $0 else { return false }
                return String(decoding: bytes, as: UTF8.self).contains("still here")
            })
        harness.advance(by: .milliseconds(1))
        #expect(harness.takeOutputs().first == .listenersClosed)
        #expect(!harness.bridge.isServing)
        // The message is not confirmed, so all of the drain time goes by.
        harness.advance(by: .seconds(13))
        let after = harness.takeOutputs()
        #expect(after.contains(.clientClosed(1)) && after.contains(.clientClosed(2)))
        #expect(after.last == .stopped)
    }

    @Test("departures: each client once, within the time, the moments in order; nobody waits where there is no time")
    func plan() {
        for seed in UInt64(0)..<50 {
            var random = SeededGenerator(seed: seed)
            let now = MonotonicInstant(nanoseconds: 1_000_000_000)
            let clients = (0..<UInt64(101 + seed * 20)).map { ClientID(rawValue: $0) }
            var plan = Departures(of: clients, now: now, over: .seconds(3), using: &random)
            var (left, last) = ([ClientID](), now)
            while let next = plan.next {
                #expect(next >= last && next < now + .seconds(3), "seed \(seed)")
                #expect(plan.popDue(next + .nanoseconds(-1)) == nil || next == last)
                if let client = plan.popDue(next) { left.append(client) }
                last = next
            }
            #expect(left.count == clients.count && Set(left) == Set(clients), "seed \(seed)")
            let none = Departures(of: clients, now: now, over: .zero, using: &random)
            #expect(none.endBy(now))
        }
    }
}

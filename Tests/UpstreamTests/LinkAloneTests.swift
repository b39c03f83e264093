import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Testing
import WireBytes

@testable import Upstream

/// A link needs no room and no bridge: its owner reports events, and finds its requests in its actions.
@Suite("A link by itself")
struct LinkAloneTests {
    private static func link(_ index: Int, backend: String, _ shared: UpstreamShared) throws -> UpstreamSession {
        let settings = LinkSettings(
            name: "lobby", backend: backend, dialect: EnvelopeDialect(),
            url: try HTTPURL(parsing: "ws://chat.example/lobby"))
        return UpstreamSession(room: RoomID(index: index), settings: settings, shared: shared)
    }

    private static func turn() -> Turn {
        Turn(now: ManualClock().now, random: AnyRandomNumberGenerator(SeededGenerator(seed: 1)))
    }

    @Test("it asks for a connection, says hello on it, and waits when it is lost")
    func opening() throws {
        let shared = UpstreamShared(connectsPerSecond: nil, backends: [])
        let link = try Self.link(0, backend: "b", shared)
        let context = DialectContext(room: "lobby")
        var turn = Self.turn()

        link.start(&turn)
        #expect(link.takeActions() == [])
        let granted = shared.connects.grant(&turn)
        #expect(granted == [link.room])
        let begun = link.slotGranted(&turn)
        #expect(begun == [])
        #expect(
            link.takeActions() == [
                .connect(to: .host("chat.example", port: 80), isSecure: false, timeout: link.settings.connectTimeout)
            ])

        let opened = link.transportOpened(&turn)
        #expect(opened == [])
        guard case .send(let request)? = link.takeActions().first else {
            Issue.record("nothing was said")
            return
        }
        #expect(request.text.hasPrefix("GET /lobby HTTP/1.1\r\n"))
        let isTimed = turn.due(.link(link.room)) != nil
        #expect(isTimed)

        let refusal = Array("HTTP/1.1 503 Busy\r\nRetry-After: 7\r\n\r\n".utf8)
        let told = refusal.withUnsafeBytes { link.bytesReceived($0, dialectContext: context, &turn) }
        guard case .down(let reason, let wasUp, let retryIn)? = told.first else {
            Issue.record("\(told)")
            return
        }
        #expect(told.count == 1 && !wasUp && retryIn >= .seconds(7) && reason.contains("503"))
        #expect(link.takeActions() == [.close(flush: true)])
        #expect(link.state == .waiting && link.failures == 1)
    }

    @Test("rooms of a backend that wants it open one after the other, and hold up no other backend")
    func turns() {
        let connects = ConnectQueue(connectsPerSecond: nil)
        var turn = Self.turn()
        let rooms = (0..<3).map { RoomID(index: $0) }
        for room in rooms { connects.request(room, inTurnOf: "slow", &turn) }
        connects.request(RoomID(index: 9), inTurnOf: nil, &turn)
        let first = connects.grant(&turn)
        #expect(first == [rooms[0], RoomID(index: 9)])

        // Not its turn to end.
        connects.endTurn(of: "slow", rooms[1], &turn)
        let none = connects.grant(&turn)
        #expect(none == [])

        connects.endTurn(of: "slow", rooms[0], pause: .seconds(30), &turn)
        let early = connects.grant(&turn)
        #expect(early == [])
        let due = turn.due(.connectGate)
        #expect(due == turn.now.monotonic + .seconds(30))
        turn.begin(at: Now(monotonic: turn.now.monotonic + .seconds(30), wall: turn.now.wall))
        let second = connects.grant(&turn)
        #expect(second == [rooms[1]])

        // Gone before it was open.
        connects.endTurns(of: rooms[1], &turn)
        let third = connects.grant(&turn)
        #expect(third == [rooms[2]])
    }

    @Test("so many a second are opened, and the timer wakes for the next")
    func pace() {
        let connects = ConnectQueue(connectsPerSecond: 2)
        var turn = Self.turn()
        for index in 0..<3 { connects.request(RoomID(index: index), inTurnOf: nil, &turn) }
        let first = connects.grant(&turn)
        #expect(first == [RoomID(index: 0), RoomID(index: 1)])
        guard let due = turn.due(.connectGate) else {
            Issue.record("nobody wakes")
            return
        }
        turn.begin(at: Now(monotonic: due, wall: turn.now.wall))
        let second = connects.grant(&turn)
        #expect(second == [RoomID(index: 2)])
    }
}

extension UpstreamSession {
    fileprivate func takeActions() -> [LinkAction] {
        var taken: [LinkAction] = []
        handActions { taken.append($0) }
        return taken
    }
}

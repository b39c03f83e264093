import Glibc
import Testing
import WireBytes

@testable import Transport

@Suite("Racing the addresses of a host")
struct RacingTests {
    struct OrderRow: CustomTestStringConvertible {
        var testDescription: String
        var addresses: [String]
        var order: [String]
    }

    static let orders: [OrderRow] = [
        OrderRow(testDescription: "nothing", addresses: [], order: []),
        OrderRow(
            testDescription: "one family stays as it is", addresses: ["[::1]:1", "[::2]:1"],
            order: ["[::1]:1", "[::2]:1"]),
        OrderRow(
            testDescription: "RFC 8305 §4: the families take turns",
            addresses: ["[::1]:1", "[::2]:1", "[::3]:1", "10.0.0.1:1", "10.0.0.2:1"],
            order: ["[::1]:1", "10.0.0.1:1", "[::2]:1", "10.0.0.2:1", "[::3]:1"]),
        OrderRow(
            testDescription: "the resolver's first family begins",
            addresses: ["10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "[::1]:1"],
            order: ["10.0.0.1:1", "[::1]:1", "10.0.0.2:1", "10.0.0.3:1"]),
        OrderRow(
            testDescription: "more of the second family", addresses: ["10.0.0.1:1", "[::1]:1", "[::2]:1"],
            order: ["10.0.0.1:1", "[::1]:1", "[::2]:1"]),
    ]

    @Test("addresses are tried with the families taking turns", arguments: orders)
    func order(row: OrderRow) {
        #expect(
            ConnectOrder.interleaved(row.addresses.compactMap { SocketAddress($0) }).map(\.description) == row.order)
    }

    /// A port of 127.0.0.1 whose backlog is full: the kernel drops further connections, so there is never an answer.
    private final class SilentPort: Sendable {
        let address: SocketAddress
        private let descriptor: Int32
        private let crowd: [RawSocket]

        init() throws {
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            #expect(listen(descriptor, 0) == 0)
            let port = try #require(SocketAddress(localOf: descriptor)?.port)
            address = try #require(SocketAddress(host: "127.0.0.1", port: port))
            crowd = try (0..<4).map { _ in try RawSocket(port: port, waits: false) }
            // One is in the backlog, which is full with it: an earlier one would be in instead.
            var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            try #require(poll(&ready, 1, 60_000) == 1)
        }

        deinit { close(descriptor) }
    }

    /// A port that is held but refuses.
    private final class RefusingPort: Sendable {
        let address: SocketAddress
        private let descriptor: Int32

        init() throws {
            let holder = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            let bound = SocketAddress.ipv4(0x7F00_0001, port: 0).withSocketAddress { raw, length in
                bind(holder, raw.assumingMemoryBound(to: sockaddr.self), length)
            }
            #expect(bound == 0)
            descriptor = holder
            address = try #require(SocketAddress(localOf: holder))
        }

        deinit { close(descriptor) }
    }

    @Test("an address that keeps silent is overtaken after the attempt delay, and its socket is closed")
    func overtaken() async throws {
        let test = try await TestLoop()
        let silent = try SilentPort()
        let good = try await test.listen()
        let started = try await test.run { transport, probe in
            let started = transport.now
            _ = transport.connect(toFirstOf: [silent.address, good], host: "two.example", timeout: .seconds(10))
            #expect(transport.racers.count == 1)
            return started
        }
        #expect(await test.until { probe, _ in !probe.opened.isEmpty })
        try await test.run { transport, probe in
            let id = try #require(probe.opened.first)
            #expect(probe.peers[id]?.address == good)
            #expect(transport.now - started >= TransportLimits.connectionAttemptDelay)
            #expect(transport.racers.isEmpty)
            #expect(transport.attempts.isEmpty)
            transport.send(id, "hello")
        }
        #expect(await test.until { probe, _ in probe.accepted.first.map { probe.text($0) } == "hello" })
    }

    @Test("an address that refuses gives way at once")
    func refusing() async throws {
        let test = try await TestLoop()
        let refusing = try RefusingPort()
        let silent = try SilentPort()
        let good = try await test.listen()
        try await test.run { transport, _ in
            _ = transport.connect(
                toFirstOf: [refusing.address, good, silent.address], host: "h", timeout: .seconds(10))
        }
        #expect(await test.until { probe, _ in !probe.opened.isEmpty })
        try await test.run { transport, probe in
            #expect(probe.opened.first.flatMap { probe.peers[$0]?.address } == good)
            #expect(transport.racers.isEmpty)
        }
    }

    @Test("when every address fails, the last reason is told, once")
    func allFail() async throws {
        let test = try await TestLoop()
        let first = try RefusingPort()
        let second = try RefusingPort()
        let id = try await test.run { transport, _ in
            transport.connect(toFirstOf: [first.address, second.address], host: "two.example", timeout: .seconds(10))
        }
        #expect(await test.until { probe, transport in !probe.ends(id).isEmpty && transport.connectionCount == 0 })
        try await test.run { transport, probe in
            let sentence = "two.example (\(second.address)) refused the connection: nothing listens there"
            #expect(probe.ends(id) == [.connectFailed(sentence, errno: ECONNREFUSED)])
            #expect(transport.racers.isEmpty)
        }
    }

    @Test("a race ends with its time, or when it is taken back; no socket is left", arguments: [true, false])
    func ends(takenBack: Bool) async throws {
        let test = try await TestLoop()
        let silent = try [SilentPort(), SilentPort()]
        let id = try await test.run { transport, _ in
            transport.connect(
                toFirstOf: silent.map(\.address), host: "two.example",
                timeout: takenBack ? .seconds(20) : .milliseconds(300))
        }
        #expect(await test.until { probe, transport in transport.racers.count == 2 || !probe.ends(id).isEmpty })
        if takenBack { try await test.run { transport, _ in transport.abort(id) } }
        #expect(await test.until { probe, _ in !probe.ends(id).isEmpty })
        try await test.run { transport, probe in
            #expect(probe.ends(id) == [takenBack ? .closedByUs : .connectTimedOut])
            #expect(transport.racers.isEmpty)
            #expect(transport.attempts.isEmpty)
        }
    }

    @Test("no address at all is a failed look-up")
    func none() async throws {
        let test = try await TestLoop()
        let id = try await test.run { transport, _ in
            transport.connect(toFirstOf: [], host: "none.example", timeout: .seconds(10))
        }
        #expect(await test.until { probe, _ in probe.ends(id) == [.resolveFailed("none.example has no address")] })
    }
}

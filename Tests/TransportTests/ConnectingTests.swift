import Glibc
import Testing
import Transport
import WireBytes

@Suite("Connecting")
struct ConnectingTests {
    @Test("a refused connection says where and why, later and once")
    func refused() async throws {
        let test = try await TestLoop()
        // Bound but not listening: the port stays reserved.
        let holder = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(holder) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                #expect(bind(holder, $0, length) == 0)
                #expect(getsockname(holder, $0, &length) == 0)
            }
        }
        let port = Int(UInt16(bigEndian: address.sin_port))

        let id = try await test.run { transport, probe in
            let id = transport.connect(host: "127.0.0.1", port: port, timeout: .seconds(5))
            transport.send(id, "never")
            #expect(probe.ends(id).isEmpty)
            return id
        }
        #expect(await test.until { probe, transport in !probe.ends(id).isEmpty && transport.connectionCount == 0 })
        try await test.run { _, probe in
            let sentence = "127.0.0.1:\(port) refused the connection: nothing listens there"
            #expect(probe.ends(id) == [.connectFailed(sentence, errno: ECONNREFUSED)])
            #expect(probe.opened.isEmpty)
            #expect(probe.reentries == 0)
        }
    }

    @Test("a name is looked up, and what was sent before the connection stood arrives")
    func byName() async throws {
        let test = try await TestLoop()
        let port = try await test.listen(ListenOptions(host: "127.0.0.1", port: 0)).port ?? 0
        let id = try await test.run { transport, _ in
            // ::1 comes first where it exists, and nothing listens there.
            let id = transport.connect(host: "localhost", port: port, timeout: .seconds(10))
            transport.send(id, "early")
            return id
        }
        #expect(await test.until { probe, _ in probe.accepted.first.map { probe.text($0) } == "early" })
        try await test.run { _, probe in
            #expect(probe.opened == [id])
            #expect(probe.peers[id]?.address?.port == port)
        }
    }

    @Test("a name without address says so", arguments: ["no-such-host.invalid", ""])
    func unknownName(host: String) async throws {
        let test = try await TestLoop()
        let id = try await test.run { transport, _ in transport.connect(host: host, port: 80, timeout: .seconds(15)) }
        #expect(await test.until { probe, _ in !probe.ends(id).isEmpty })
        try await test.run { _, probe in
            guard case .resolveFailed(let sentence) = probe.ends(id).first else {
                Issue.record("\(probe.ends(id))")
                return
            }
            #expect(sentence.contains(host))
            #expect(probe.ends(id).count == 1)
        }
    }

    @Test("a port that does not exist is refused later, like everything else")
    func wildPort() async throws {
        let test = try await TestLoop()
        let id = try await test.run { transport, _ in
            transport.connect(host: "127.0.0.1", port: 70000, timeout: .seconds(5))
        }
        #expect(
            await test.until { probe, _ in
                probe.ends(id) == [.resolveFailed("\"127.0.0.1\" port 70000 is not an address")]
            })
    }

    @Test("a peer that does not answer is given up")
    func timeout() async throws {
        let test = try await TestLoop()
        // A full backlog of one: the kernel drops further connections.
        let silent = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(silent) }
        #expect(listen(silent, 0) == 0)
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { #expect(getsockname(silent, $0, &length) == 0) }
        }
        let port = Int(UInt16(bigEndian: address.sin_port))
        let crowd = try (0..<4).map { _ in try RawSocket(port: port, waits: false) }
        let id = try await test.run { transport, _ in
            transport.connect(host: "127.0.0.1", port: port, timeout: .milliseconds(50))
        }
        #expect(await test.until { probe, transport in !probe.ends(id).isEmpty && transport.connectionCount == 0 })
        try await test.run { _, probe in #expect(probe.ends(id) == [.connectTimedOut]) }
        _ = crowd
    }

    @Test("an attempt can be taken back", arguments: ["localhost", "127.0.0.1"], [true, false])
    func takenBack(host: String, softly: Bool) async throws {
        let test = try await TestLoop()
        let port = try await test.listen().port ?? 0
        let id = try await test.run { transport, probe in
            let id = transport.connect(host: host, port: port, timeout: .seconds(5))
            if softly { transport.closeAfterFlush(id, linger: .seconds(5)) } else { transport.abort(id) }
            #expect(probe.ends(id).isEmpty)
            return id
        }
        #expect(await test.until { probe, _ in probe.ends(id) == [.closedByUs] })
        // A late answer of the resolver must not revive it: an attempt made now comes after it.
        let next = try await test.run { transport, _ in
            transport.connect(host: host, port: port, timeout: .seconds(10))
        }
        #expect(await test.until { probe, _ in probe.opened.contains(next) })
        try await test.run { _, probe in
            #expect(probe.opened == [next])
            #expect(probe.ends(id) == [.closedByUs])
        }
    }

    @Test("a Unix socket that is not there says so")
    func unixMissing() async throws {
        let test = try await TestLoop()
        let id = try await test.run { transport, _ in
            transport.connect(to: .unix(path: "/tmp/no/such/socket"), timeout: .seconds(5))
        }
        #expect(
            await test.until { probe, _ in
                probe.ends(id)
                    == [.connectFailed("there is no socket at unix:/tmp/no/such/socket", errno: ENOENT)]
            })
    }
}

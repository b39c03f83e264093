import Glibc
import Testing
import Transport
import WireBytes

@Suite("Listening")
struct ListeningTests {
    @Test("a listener on port 0 tells its port and its peers' addresses", arguments: ["127.0.0.1", "::1"])
    func bothFamilies(host: String) async throws {
        let test = try await TestLoop()
        let address = try await test.listen(ListenOptions(host: host, port: 0))
        #expect(address.host == host)
        #expect(address.port ?? 0 > 0)
        let client = try await test.run { transport, _ in transport.connect(to: address, timeout: .seconds(5)) }
        #expect(await test.until { probe, _ in probe.opened == [client] && probe.accepted.count == 1 })
        try await test.run { _, probe in
            #expect(probe.peers[client]?.address == address)
            #expect(probe.accepted.first.flatMap { probe.peers[$0]?.address?.host } == host)
        }
    }

    @Test("localhost listens on each of its addresses, on one port")
    func localhost() async throws {
        let test = try await TestLoop()
        let addresses = try await test.run { transport, _ in
            let (id, first) = try transport.listen(ListenOptions(host: "localhost", port: 0))
            #expect(transport.addresses(of: id).first == first)
            return transport.addresses(of: id)
        }
        #expect(Set(addresses.map(\.port)).count == 1)
        #expect(addresses.filter(\.isLoopback) == addresses)
        for address in addresses {
            let client = try await test.run { transport, _ in transport.connect(to: address, timeout: .seconds(5)) }
            #expect(await test.until { probe, _ in probe.opened.contains(client) })
        }
    }

    @Test("without v6Only IPv4 peers of an IPv6 listener appear as IPv4")
    func dualStack() async throws {
        let test = try await TestLoop()
        var options = ListenOptions(host: "::", port: 0)
        options.v6Only = false
        let port = try await test.listen(options).port ?? 0
        _ = try await test.run { transport, _ in
            transport.connect(host: "127.0.0.1", port: port, timeout: .seconds(5))
        }
        #expect(await test.until { probe, _ in probe.accepted.count == 1 })
        try await test.run { _, probe in
            #expect(probe.accepted.first.flatMap { probe.peers[$0]?.address?.host } == "127.0.0.1")
        }
    }

    @Test("a taken port is refused by name")
    func taken() async throws {
        let test = try await TestLoop()
        let address = try await test.listen()
        let port = try #require(address.port)
        await #expect(throws: TransportError.addressInUse(address)) {
            _ = try await test.listen(ListenOptions(host: "127.0.0.1", port: port))
        }
    }

    @Test("addresses that cannot be listened on are refused with a reason")
    func refused() async throws {
        let test = try await TestLoop()
        await #expect(throws: TransportError.portOutOfRange(65536)) {
            _ = try await test.listen(ListenOptions(host: "127.0.0.1", port: 65536))
        }
        await #expect(throws: TransportError.addressNotAvailable(.ipv4(0xC000_0201, port: 0))) {
            _ = try await test.listen(ListenOptions(host: "192.0.2.1", port: 0))
        }
        await #expect(throws: TransportError.resolveFailed("no host name was given")) {
            _ = try await test.listen(ListenOptions(host: "", port: 0))
        }
        await #expect(throws: TransportError.notAListener(descriptor: 0)) {
            _ = try await test.listen(ListenOptions(.descriptors([0])))
        }
    }

    @Test("a closed listener takes no more connections, its accepted ones live on")
    func closing() async throws {
        let test = try await TestLoop()
        let (client, server) = try await test.pair()
        let address = try await test.run { transport, probe in
            let listener = try #require(probe.acceptedBy[server])
            let address = try #require(transport.addresses(of: listener).first)
            transport.closeListener(listener)
            transport.closeListener(listener)
            transport.send(server, "alive")
            return address
        }
        let late = try await test.run { transport, _ in transport.connect(to: address, timeout: .seconds(5)) }
        #expect(await test.until { probe, _ in !probe.ends(late).isEmpty && probe.text(client) == "alive" })
        try await test.run { _, probe in #expect(probe.opened == [client]) }
    }

    @Test("a listening socket of somebody else's making is adopted")
    func adopted() async throws {
        let test = try await TestLoop()
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #expect(listen(descriptor, 8) == 0)
        let address = try await test.listen(ListenOptions(.descriptors([descriptor])))
        let client = try await test.run { transport, _ in
            transport.connect(host: "127.0.0.1", port: address.port ?? 0, timeout: .seconds(5))
        }
        #expect(await test.until { probe, _ in probe.opened == [client] && probe.accepted.count == 1 })
    }

    /// With the descriptors of the process used up, a listener must neither spin nor stay deaf. In a process of its own,
    /// because the limit is the process's.
    @Test("a listener rests when descriptors run out, and goes on when there are some")
    func descriptorsRunOut() async {
        await #expect(processExitsWith: .success) {
            let test = try await TestLoop()
            let port = try await test.listen().port ?? 0
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            limit.rlim_cur = min(limit.rlim_cur, 64)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            var fill: [Int32] = []
            while case let descriptor = dup(0), descriptor >= 0 { fill.append(descriptor) }
            // One is left, which the client's own socket takes.
            close(fill.removeLast())
            let client = try RawSocket(port: port)
            try #require(await test.until { probe, _ in probe.suspensions == [EMFILE] })
            let turns = try await test.run { transport, probe in
                try #require(probe.accepted.isEmpty)
                return transport.counters.turns
            }
            for descriptor in fill { close(descriptor) }
            client.send("patience")
            try #require(await test.until { probe, _ in probe.accepted.first.map { probe.text($0) } == "patience" })
            let later = try await test.run { transport, _ in transport.counters.turns }
            try #require(later - turns < 20)
        }
    }
}

@Suite("Socket files")
struct SocketFileTests {
    /// A directory that is removed with everything in it.
    final class Directory: Sendable {
        let path: String
        init() throws {
            var template = Array("/tmp/transport-XXXXXX".utf8CString)
            path = try #require(mkdtemp(&template).map { String(cString: $0) })
        }
        deinit {
            unlink("\(path)/s")
            rmdir(path)
        }
        var socket: String { "\(path)/s" }
    }

    static func permissions(_ path: String) -> UInt32? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o777 : nil
    }

    @Test("a Unix socket echoes, has its mode, and is removed with its listener")
    func unix() async throws {
        let directory = try Directory()
        let test = try await TestLoop()
        let (client, server) = try await test.pair(ListenOptions(.unix(path: directory.socket, mode: 0o660)))
        #expect(Self.permissions(directory.socket) == 0o660)
        try await test.run { transport, _ in
            transport.send(client, "over")
            transport.send(server, "and back")
        }
        #expect(await test.until { probe, _ in probe.text(server) == "over" && probe.text(client) == "and back" })
        try await test.run { transport, probe in
            transport.closeListener(try #require(probe.acceptedBy[server]))
        }
        #expect(Self.permissions(directory.socket) == nil)
    }

    @Test("a file left by a program that ended is replaced, a socket somebody answers on is not")
    func stale() async throws {
        let directory = try Directory()
        // Bound and closed: the file stays, without a listener.
        let left = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { room in
            for (index, byte) in directory.socket.utf8.enumerated() { room[index] = byte }
        }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(left, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        #expect(bound == 0)
        close(left)

        let test = try await TestLoop()
        let options = ListenOptions(.unix(path: directory.socket))
        _ = try await test.listen(options)
        #expect(Self.permissions(directory.socket) == 0o600)
        await #expect(throws: TransportError.addressInUse(.unix(path: directory.socket))) {
            _ = try await test.listen(options)
        }
    }

    @Test("a file that is no socket is left alone")
    func foreignFile() async throws {
        let directory = try Directory()
        close(open(directory.socket, O_CREAT | O_WRONLY, 0o600))
        let test = try await TestLoop()
        await #expect(throws: TransportError.notASocket(path: directory.socket)) {
            _ = try await test.listen(ListenOptions(.unix(path: directory.socket)))
        }
        #expect(Self.permissions(directory.socket) != nil)
    }

    @Test("a path that does not fit is refused")
    func longPath() async throws {
        let test = try await TestLoop()
        let path = "/tmp/" + String(repeating: "p", count: 103)
        await #expect(throws: TransportError.unixPathTooLong(path: path, limit: 107)) {
            _ = try await test.listen(ListenOptions(.unix(path: path)))
        }
    }
}

import Testing
import WireBytes

@testable import Transport

@Suite("Listening behind a proxy")
struct ProxyListenerTests {
    private static var listening: ListenOptions {
        var options = ListenOptions(host: "127.0.0.1", port: 0)
        options.proxies = TrustedPeers(ranges: ["127.0.0.0/8"].compactMap { NetworkRange($0) })
        return options
    }

    private static let line = "PROXY TCP4 203.0.113.7 192.0.2.1 49153 6667\r\n"

    @Test("the client's address stands in the place of the proxy's, and no byte behind the header is lost")
    func proxied() async throws {
        let test = try await TestLoop()
        let address = try await test.listen(Self.listening)
        let client = try await test.run { transport, _ in
            let id = transport.connect(to: address, timeout: .seconds(5))
            transport.send(id, Self.line + "NICK ann\r\n")
            return id
        }
        #expect(await test.until { probe, _ in probe.accepted.first.map { probe.text($0) } == "NICK ann\r\n" })
        let server = try await test.run { transport, probe in
            let server = try #require(probe.accepted.first)
            #expect(probe.peers[server]?.address == SocketAddress("203.0.113.7:49153"))
            transport.send(server, "hello")
            transport.closeAfterFlush(server, linger: .seconds(5))
            return server
        }
        #expect(await test.until { probe, _ in probe.text(client) == "hello" && probe.ends(client) == [.endOfStream] })
        try await test.run { transport, _ in transport.abort(client, silently: true) }
        #expect(await test.until { probe, transport in !probe.ends(server).isEmpty && transport.connectionCount == 0 })
    }

    @Test("a header that comes byte by byte is one")
    func slowly() async throws {
        let test = try await TestLoop()
        let port = try await test.listen(Self.listening).port ?? 0
        let socket = try RawSocket(port: port)
        for character in Self.line + "PING x\r\n" { socket.send(String(character)) }
        #expect(await test.until { probe, _ in probe.accepted.first.map { probe.text($0) } == "PING x\r\n" })
    }

    @Test("a proxy that speaks of nobody is its own client")
    func unknown() async throws {
        let test = try await TestLoop()
        let port = try await test.listen(Self.listening).port ?? 0
        let socket = try RawSocket(port: port)
        socket.send("PROXY UNKNOWN\r\n")
        #expect(await test.until { probe, _ in probe.accepted.count == 1 })
        try await test.run { _, probe in
            #expect(probe.accepted.first.flatMap { probe.peers[$0]?.address?.host } == "127.0.0.1")
        }
    }

    @Test("TLS begins behind the header")
    func secured() async throws {
        let test = try await TestLoop()
        var options = Self.listening
        options.tls = TestCertificates.shared.server
        let address = try await test.listen(options)
        let client = try await test.run { transport, _ in
            let id = transport.connect(to: address, timeout: .seconds(5))
            transport.send(id, Self.line)
            return id
        }
        // The header has left when the listening side has read it.
        #expect(
            await test.until { _, transport in
                transport.counters.bytesReceived == Self.line.utf8.count && transport.pendingProxyHeaders.isEmpty
            })
        try await test.run { transport, _ in
            transport.startTLS(client, TestCertificates.shared.trusting, host: "127.0.0.1")
            transport.send(client, "over TLS")
        }
        #expect(await test.until { probe, _ in probe.accepted.first.map { probe.text($0) } == "over TLS" })
        try await test.run { transport, probe in
            let server = try #require(probe.accepted.first)
            #expect(probe.peers[server]?.address == SocketAddress("203.0.113.7:49153"))
            #expect(transport.securityDescription(server) != nil)
            #expect(transport.requestedServerName(server) == nil)
            #expect(transport.tls.acceptedHandshakes == 0)
            #expect(transport.tls.handshakesByAddress.isEmpty)
        }
    }

    @Test("a TLS hello that comes with the header, or with a part of it, is not lost", arguments: [0, 20, 47, 60])
    func securedTogether(cut: Int) async throws {
        let test = try await TestLoop()
        var options = Self.listening
        options.tls = TestCertificates.shared.server
        let socket = try RawSocket(port: try await test.listen(options).port ?? 0)
        let client = try EnginePair(TestCertificates.shared.trusting, TestCertificates.shared.server).client
        let first = Array(Self.line.utf8) + client.takeOutput()
        socket.send(bytes: Array(first[..<cut]))
        socket.send(bytes: Array(first[cut...]))
        while client.engine.state == .handshaking {
            let answer = socket.read()
            try #require(!answer.isEmpty)
            client.receive(answer)
            socket.send(bytes: client.takeOutput())
        }
        client.encrypt("over TLS")
        socket.send(bytes: client.takeOutput())
        #expect(await test.until { probe, _ in probe.accepted.first.map { probe.text($0) } == "over TLS" })
        try await test.run { transport, probe in
            let server = try #require(probe.accepted.first)
            #expect(probe.peers[server]?.address == SocketAddress("203.0.113.7:49153"))
            #expect(transport.requestedServerName(server) == "chat.test")
        }
    }

    @Test(
        "what is no header ends the connection with its reason, and nobody hears of it as a client",
        arguments: [
            ("NICK ann\r\n", ProxyHeaderFailure.refused(.missing)),
            ("PROXY TCP4 nobody nowhere 1 2\r\n", .refused(.malformedLine)),
        ])
    func refused(text: String, failure: ProxyHeaderFailure) async throws {
        let test = try await TestLoop()
        let port = try await test.listen(Self.listening).port ?? 0
        let socket = try RawSocket(port: port)
        socket.send(text)
        #expect(await test.until { probe, _ in probe.proxyHeaderFailures == [failure] })
        #expect(socket.readToEnd() == "")
        try await test.run { transport, probe in
            #expect(probe.accepted.isEmpty && probe.peers.isEmpty)
            #expect(transport.connectionCount == 0 && transport.pendingProxyHeaders.isEmpty)
        }
    }

    @Test("a connection that ends before its header leaves nothing behind")
    func ended() async throws {
        let test = try await TestLoop()
        let port = try await test.listen(Self.listening).port ?? 0
        let socket = try RawSocket(port: port)
        socket.send("PROXY TC")
        socket.finishSending()
        #expect(await test.until { probe, _ in probe.proxyHeaderFailures == [.ended(.endOfStream)] })
        try await test.run { transport, _ in
            #expect(transport.connectionCount == 0 && transport.pendingProxyHeaders.isEmpty)
        }
    }

    @Test("a silent connection has so long, and no longer")
    func silent() async throws {
        let test = try await TestLoop()
        let port = try await test.listen(Self.listening).port ?? 0
        let socket = try RawSocket(port: port)
        socket.send("PROXY ")
        #expect(await test.until { _, transport in !transport.pendingProxyHeaders.isEmpty })
        try await test.run { transport, _ in
            for id in transport.pendingProxyHeaders.ids {
                // As if it had been silent that long.
                #expect(transport.timers[.proxyHeader(id)] != nil)
                transport.timers.set(.proxyHeader(id), at: transport.now)
            }
        }
        #expect(await test.until { probe, _ in probe.proxyHeaderFailures == [.ended(.proxyHeaderTimedOut)] })
        #expect(socket.readToEnd() == "")
    }

    @Test("who is not trusted is turned away unheard, header or not")
    func untrusted() async throws {
        let test = try await TestLoop()
        var options = Self.listening
        options.proxies = TrustedPeers(ranges: ["10.0.0.0/8"].compactMap { NetworkRange($0) })
        let port = try await test.listen(options).port ?? 0
        let socket = try RawSocket(port: port)
        #expect(await test.until { probe, _ in probe.proxyHeaderFailures == [.untrusted] })
        #expect(socket.readToEnd() == "")
        try await test.run { transport, probe in #expect(probe.accepted.isEmpty && transport.connectionCount == 0) }
    }

    @Test("closing the listener drops those whose header is awaited")
    func closed() async throws {
        let test = try await TestLoop()
        let (listener, port) = try await test.run { transport, _ in
            let (id, address) = try transport.listen(Self.listening)
            return (id, address.port ?? 0)
        }
        let socket = try RawSocket(port: port)
        socket.send("PROXY ")
        #expect(await test.until { _, transport in !transport.pendingProxyHeaders.isEmpty })
        try await test.run { transport, _ in transport.closeListener(listener) }
        #expect(socket.readToEnd() == "")
        #expect(
            await test.until { probe, transport in
                probe.proxyHeaderFailures.isEmpty && transport.connectionCount == 0
                    && transport.pendingProxyHeaders.isEmpty
            })
    }
}

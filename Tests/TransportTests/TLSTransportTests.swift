import Glibc
import Testing
import WireBytes

@testable import Transport

@Suite("TLS streams")
struct TLSTransportTests {
    static let certificates = TestCertificates.shared

    static var listening: ListenOptions {
        var options = ListenOptions(host: "127.0.0.1", port: 0)
        options.tls = certificates.server
        options.tls?.plainTextAnswer = "ERROR :This port speaks TLS\r\n"
        return options
    }

    private func securePair(
        _ test: TestLoop, _ options: ListenOptions = listening
    ) async throws -> (client: ConnectionID, server: ConnectionID) {
        try await test.pair(options, tls: Self.certificates.trusting)
    }

    @Test("bytes come back from an echo, whatever their size", arguments: [1, 16384, 65536, 65537, 3_000_000])
    func echo(byteCount: Int) async throws {
        let test = try await TestLoop()
        let (client, server) = try await securePair(test)
        try await test.run { transport, probe in
            probe.onReceived = { id, bytes, transport in
                if id == server { transport.send(server, ByteSlice(copying: bytes)) }
            }
            let bytes = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
            transport.send(client, bytes.withUnsafeBytes { ByteSlice(copying: $0) })
        }
        #expect(await test.until { probe, _ in probe.peers[client]?.received.count == byteCount })
        let intact = try await test.run { _, probe in
            probe.peers[client]?.received.enumerated().allSatisfy {
                $1 == UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8)
            }
        }
        #expect(intact == true)
    }

    @Test("many small slices arrive in order through a small send buffer")
    func orderOfSlices() async throws {
        let test = try await TestLoop()
        var options = Self.listening
        options.sendBufferBytes = 4096
        let (client, server) = try await securePair(test, options)
        let expected = (0..<50_000).reduce(0) { $0 + "\($1)\n".utf8.count }
        try await test.run { transport, _ in
            var writer = ByteWriter()
            for number in 0..<50_000 {
                // Slices that do not continue each other, as lines to different people do not.
                if number % 3 == 0 { _ = writer.take() }
                writer.append(decimal: Int64(number))
                writer.append("\n")
                transport.send(server, writer.take())
                writer.append("x")
                _ = writer.take()
            }
        }
        #expect(await test.until { probe, _ in probe.peers[client]?.received.count == expected })
        let lines = try await test.run { _, probe in
            probe.text(client).split(separator: "\n").enumerated().allSatisfy { Int($1) == $0 }
        }
        #expect(lines)
    }

    @Test("everything queued in one turn leaves in one write and one record")
    func oneWritePerTurn() async throws {
        let test = try await TestLoop()
        let (client, server) = try await securePair(test)
        // The client has its ticket when the first bytes have come.
        try await test.run { transport, _ in transport.send(server, "ready\n") }
        #expect(await test.until { probe, _ in probe.text(client) == "ready\n" })
        let before = try await test.run { transport, _ in
            for number in 0..<50 { transport.send(server, "line \(number)\n") }
            return (transport.counters.sendCalls, transport.counters.bytesSent)
        }
        #expect(await test.until { probe, _ in probe.text(client).hasSuffix("line 49\n") })
        let after = try await test.run { transport, probe in
            (transport.counters.sendCalls, transport.counters.bytesSent, probe.text(client).utf8.count)
        }
        #expect(after.0 == before.0 + 1)
        // A record of TLS 1.3 adds 22 bytes.
        #expect(after.1 - before.1 == after.2 - "ready\n".utf8.count + 22)
    }

    @Test("bytes sent before the connection stands arrive")
    func earlyBytes() async throws {
        let test = try await TestLoop()
        let address = try await test.listen(Self.listening)
        try await test.run { transport, _ in
            let id = transport.connect(to: address, timeout: .seconds(10), tls: Self.certificates.trusting)
            transport.send(id, "early")
        }
        #expect(await test.until { probe, _ in probe.accepted.first.map { probe.text($0) } == "early" })
    }

    @Test("who is accepted is paused before its first byte, and loses none")
    func pauseAtAccept() async throws {
        let test = try await TestLoop()
        let address = try await test.listen(Self.listening)
        let client = try await test.run { transport, probe in
            probe.onAccepted = { id, transport in
                if probe.accepted.count == 1 { transport.pauseReading(id) }
            }
            let id = transport.connect(to: address, timeout: .seconds(10), tls: Self.certificates.trusting)
            // Goes out with the end of the handshake, so that it comes in one piece with it.
            transport.send(id, "first words")
            probe.onOpened = { opened, transport in
                if opened == id { transport.closeAfterFlush(id, linger: .seconds(10)) }
            }
            return id
        }
        #expect(await test.until { probe, _ in !probe.accepted.isEmpty })
        // A round trip on another connection: everything readable has been read.
        let (other, otherServer) = try await test.pair()
        try await test.run { transport, _ in transport.send(other, "barrier") }
        #expect(await test.until { probe, _ in probe.text(otherServer) == "barrier" })
        let server = try await test.run { transport, probe in
            let server = try #require(probe.accepted.first)
            #expect(probe.text(server) == "")
            #expect(probe.ends(server) == [])
            transport.resumeReading(server)
            return server
        }
        #expect(await test.until { probe, _ in probe.ends(server) == [.endOfStream] })
        #expect(try await test.run { _, probe in probe.text(server) } == "first words")
        #expect(await test.until { probe, _ in probe.ends(client) == [.closedByUs] })
    }

    @Test("an owner may pause before the handshake is done")
    func pauseBeforeOpen() async throws {
        let test = try await TestLoop()
        let address = try await test.listen(Self.listening)
        let client = try await test.run { transport, probe in
            probe.onAccepted = { id, transport in transport.send(id, "hello") }
            let id = transport.connect(to: address, timeout: .seconds(10), tls: Self.certificates.trusting)
            transport.pauseReading(id)
            return id
        }
        #expect(await test.until { probe, _ in probe.opened.contains(client) })
        #expect(try await test.run { _, probe in probe.text(client) } == "")
        try await test.run { transport, _ in transport.resumeReading(client) }
        #expect(await test.until { probe, _ in probe.text(client) == "hello" })
    }

    @Test("a slow reader fills its queue, loses nothing, and the limit counts encrypted bytes too")
    func slowReader() async throws {
        let test = try await TestLoop()
        var options = Self.listening
        options.sendBufferBytes = 4096
        let (slow, server) = try await securePair(test, options)
        let total = 2_000_000
        try await test.run { transport, _ in
            transport.pauseReading(slow)
            let bytes = [UInt8](repeating: 7, count: total)
            transport.send(server, bytes.withUnsafeBytes { ByteSlice(copying: $0) })
            transport.notifyWhenDrained(server)
        }
        let (quick, quickServer) = try await test.pair()
        try await test.run { transport, _ in transport.send(quickServer, "still here") }
        #expect(await test.until { probe, _ in probe.text(quick) == "still here" })
        try await test.run { transport, _ in
            #expect(transport.queuedByteCount(server) > 0)
            transport.resumeReading(slow)
        }
        #expect(await test.until { probe, _ in probe.peers[slow]?.received.count == total })
        #expect(await test.until { probe, _ in probe.peers[server]?.drains == 1 })
        try await test.run { transport, _ in
            transport.pauseReading(slow)
            transport.setSendLimit(server, bytes: 1000)
            // More than the kernel takes of it.
            transport.send(server, String(repeating: "x", count: 16_000_000))
        }
        #expect(await test.until { probe, _ in probe.ends(server) == [.sendQueueExceeded(limit: 1000)] })
    }

    // MARK: - Ends

    @Test("a close after a flush says goodbye on both sides")
    func orderlyClose() async throws {
        let test = try await TestLoop()
        let (client, server) = try await securePair(test)
        try await test.run { transport, _ in
            transport.send(server, "bye")
            transport.closeAfterFlush(server, linger: .seconds(10))
        }
        #expect(await test.until { probe, _ in probe.ends(client) == [.endOfStream] })
        #expect(await test.until { probe, _ in probe.ends(server) == [.closedByUs] })
        #expect(try await test.run { _, probe in probe.text(client) } == "bye")
    }

    @Test("what is said at the peer's goodbye still reaches it")
    func answerAtTheEnd() async throws {
        let test = try await TestLoop()
        let listener = try await test.listen(Self.listening)
        let socket = try TLSRawClient(port: try #require(listener.port))
        try await test.run { _, probe in
            probe.onClosed = { id, _, transport in transport.send(id, "last answer") }
        }
        try socket.handshake()
        socket.goodbye()
        #expect(socket.readToEnd() == "last answer")
        #expect(socket.isEnded)
        let end = try await test.run { _, probe in try #require(probe.accepted.first.map { probe.ends($0) }) }
        #expect(end == [.endOfStream])
    }

    @Test("an end without a goodbye is a truncation, and what came before is delivered")
    func truncation() async throws {
        let test = try await TestLoop()
        let listener = try await test.listen(Self.listening)
        let socket = try TLSRawClient(port: try #require(listener.port))
        try socket.handshake()
        socket.send("cut off")
        socket.finishSending()
        #expect(await test.until { probe, _ in probe.accepted.first.map { probe.ends($0) } == [.tlsTruncated] })
        #expect(try await test.run { _, probe in probe.accepted.first.map { probe.text($0) } } == "cut off")
    }

    @Test("an abort is a reset")
    func abort() async throws {
        let test = try await TestLoop()
        let (client, server) = try await securePair(test)
        try await test.run { transport, _ in transport.abort(server) }
        #expect(await test.until { probe, _ in probe.ends(client) == [.reset] })
        #expect(await test.until { probe, _ in probe.ends(server) == [.closedByUs] })
    }

    // MARK: - Handshakes that fail

    @Test("plain text on a TLS port gets a plain answer")
    func plainText() async throws {
        let test = try await TestLoop()
        let listener = try await test.listen(Self.listening)
        let socket = try RawSocket(port: try #require(listener.port))
        socket.send("NICK alice\r\nUSER alice 0 * :Alice\r\n")
        #expect(socket.readToEnd() == "ERROR :This port speaks TLS\r\n")
        socket.finishSending()
        #expect(await test.until { probe, _ in probe.handshakeFailures == [.tlsFailed(.notTLS)] })
        #expect(await test.until { _, transport in transport.connectionCount == 0 })
        #expect(try await test.run { _, probe in probe.accepted }.isEmpty)
    }

    @Test("TLS towards a plain port is named")
    func plainPort() async throws {
        let test = try await TestLoop()
        let address = try await test.listen()
        let client = try await test.run { transport, probe in
            probe.onAccepted = { id, transport in transport.send(id, "ERROR :Not registered\r\n") }
            return transport.connect(to: address, timeout: .seconds(10), tls: Self.certificates.trusting)
        }
        #expect(await test.until { probe, _ in probe.ends(client) == [.tlsFailed(.notTLS)] })
        #expect(try await test.run { _, probe in probe.opened }.isEmpty)
    }

    @Test("a refused certificate ends both sides, and only the one that knows of the connection hears of it")
    func refusedCertificate() async throws {
        let test = try await TestLoop()
        let address = try await test.listen(Self.listening)
        var settings = Self.certificates.trusting
        settings.serverName = "elsewhere.test"
        let wanted = settings
        let client = try await test.run { transport, _ in
            transport.connect(to: address, timeout: .seconds(10), tls: wanted)
        }
        let failure = TLSFailure.wrongName(wanted: "elsewhere.test", found: ["chat.test", "127.0.0.1"])
        #expect(await test.until { probe, _ in probe.ends(client) == [.tlsFailed(failure)] })
        #expect(await test.until { probe, _ in probe.handshakeFailures.count == 1 })
        #expect(try await test.run { _, probe in probe.accepted.isEmpty && probe.opened.isEmpty })
        #expect(await test.until { _, transport in transport.connectionCount == 0 })
        #expect(try await test.run { transport, _ in transport.tls.acceptedHandshakes } == 0)
    }

    @Test("who leaves in the middle of a handshake leaves nothing behind")
    func leavingEarly() async throws {
        let test = try await TestLoop()
        let listener = try await test.listen(Self.listening)
        let socket = try RawSocket(port: try #require(listener.port))
        socket.send("\u{16}\u{3}")
        socket.finishSending()
        #expect(await test.until { probe, _ in probe.handshakeFailures == [.tlsFailed(.closedDuringHandshake)] })
        #expect(try await test.run { transport, _ in transport.tls.acceptedHandshakes } == 0)
    }

    @Test("closing the listener ends handshakes under way")
    func closingListener() async throws {
        let test = try await TestLoop()
        // All on the loop, so that no wait of the test lets the handshake time out.
        let client = try await test.run { transport, probe in
            let (id, address) = try transport.listen(Self.listening)
            probe.onDeadline = { transport in
                guard transport.tls.acceptedHandshakes == 1 else { return transport.setDeadline(transport.now) }
                probe.onDeadline = nil
                transport.closeListener(id)
            }
            transport.setDeadline(transport.now)
            return transport.connect(to: address, timeout: .seconds(10))
        }
        #expect(await test.until { probe, _ in probe.ends(client) == [.reset] })
        #expect(await test.until { _, transport in transport.connectionCount == 0 })
        let left = try await test.run { transport, probe in
            (transport.tls.acceptedHandshakes, probe.handshakeFailures.count)
        }
        #expect(left == (0, 0))
    }

    @Test("settings that cannot be used end the connection with the reason")
    func unusableSettings() async throws {
        let test = try await TestLoop()
        let client = try await test.run { transport, _ in
            var settings = TLSClientSettings()
            settings.authorities = .file("/nonexistent/ca.pem")
            return transport.connect(host: "127.0.0.1", port: 1, timeout: .seconds(10), tls: settings)
        }
        let error = TLSSetupError.unreadable(path: "/nonexistent/ca.pem", reason: "no such file or directory")
        #expect(await test.until { probe, _ in probe.ends(client) == [.tlsFailed(.unusable(error))] })
    }

    // MARK: - Sessions and certificates

    @Test("a second connection to the same place resumes the session of the first")
    func resumption() async throws {
        let test = try await TestLoop()
        let address = try await test.listen(Self.listening)
        func connect() async throws -> ConnectionID {
            let id = try await test.run { transport, probe in
                probe.onAccepted = { id, transport in transport.send(id, "hello") }
                return transport.connect(to: address, timeout: .seconds(10), tls: Self.certificates.trusting)
            }
            #expect(await test.until { probe, _ in probe.text(id) == "hello" })
            return id
        }
        let first = try await connect()
        let second = try await connect()
        let resumed = try await test.run { transport, _ in
            [first, second].map { transport.connections.find($0)?.pointee.secure?.engine.isResumed }
        }
        #expect(resumed == [false, true])
    }

    @Test("the fingerprint of a client's certificate is known")
    func fingerprint() async throws {
        let test = try await TestLoop()
        var options = Self.listening
        options.tls?.clientCertificates = .requested(.pem(Self.certificates.authority.certificatePEM))
        var settings = Self.certificates.trusting
        settings.identity = Self.certificates.client.identity
        let (client, server) = try await test.pair(options, tls: settings)
        let found = try await test.run { transport, _ in
            [transport.peerCertificateFingerprint(server), transport.peerCertificateFingerprint(client)]
        }
        #expect(found[0] == Self.certificates.client.certificate?.fingerprint)
        #expect(found[1] == Self.certificates.good.certificate?.fingerprint)
    }

    @Test("where any certificate is welcome, one that signed itself is known by its fingerprint, and none will do")
    func welcomed() async throws {
        let test = try await TestLoop()
        var options = Self.listening
        options.tls?.clientCertificates = .welcomed
        for shown in [Self.certificates.selfSigned, Self.certificates.expired, Self.certificates.stranger, nil] {
            var settings = Self.certificates.trusting
            settings.identity = shown?.identity
            let (_, server) = try await test.pair(options, tls: settings)
            let found = try await test.run { transport, _ in transport.peerCertificateFingerprint(server) }
            #expect(found == shown?.certificate?.fingerprint)
            #expect((found == nil) == (shown == nil))
        }
    }

    @Test("a session that is taken up again is still of the one who showed the certificate")
    func resumedFingerprint() async throws {
        let test = try await TestLoop()
        var options = Self.listening
        options.tls?.clientCertificates = .welcomed
        let wanted = options
        let (_, address) = try await test.run { transport, _ in try transport.listen(wanted) }
        var settings = Self.certificates.trusting
        settings.identity = Self.certificates.client.identity
        let showing = settings
        var seen: [String?] = []
        for _ in 0..<2 {
            let id = try await test.run { transport, probe in
                probe.onAccepted = { id, transport in
                    transport.send(id, transport.peerCertificateFingerprint(id) ?? "nobody")
                }
                return transport.connect(to: address, timeout: .seconds(10), tls: showing)
            }
            #expect(await test.until { probe, _ in probe.text(id).utf8.count >= 6 })
            seen.append(try await test.run { _, probe in probe.text(id) })
        }
        #expect(seen == [String?](repeating: Self.certificates.client.certificate?.fingerprint, count: 2))
    }

    @Test("new certificates are for new connections, bad ones change nothing")
    func renewal() async throws {
        let files = try TemporaryFiles()
        try files.write(Self.certificates.good, "cert.pem", "key.pem")
        let test = try await TestLoop()
        var options = Self.listening
        options.tls?.identity = TLSIdentity(
            certificate: .file(files.path("cert.pem")), key: .file(files.path("key.pem")))
        let wanted = options
        let (listener, address) = try await test.run { transport, _ in try transport.listen(wanted) }
        var insecure = TLSClientSettings()
        insecure.verifiesPeer = false
        let settings = insecure
        func connect() async throws -> (ConnectionID, String?) {
            let id = try await test.run { transport, _ in
                transport.connect(to: address, timeout: .seconds(10), tls: settings)
            }
            try #require(await test.until { probe, _ in probe.opened.contains(id) })
            return (id, try await test.run { transport, _ in transport.peerCertificateFingerprint(id) })
        }
        let (old, oldFingerprint) = try await connect()
        #expect(oldFingerprint == Self.certificates.good.certificate?.fingerprint)

        // Half of a renewal: the key does not belong to the certificate.
        try files.write(Self.certificates.otherName, "cert.pem", nil)
        try await test.run { transport, _ in
            #expect(
                throws: TLSSetupError.keyDoesNotMatch(key: files.path("key.pem"), certificate: files.path("cert.pem"))
            ) { try transport.reloadCertificates(listener) }
            // The watch waits until the files stop changing, then reports the fault once.
            for _ in 0..<4 { transport.checkCertificateFiles() }
        }
        #expect(await test.until { probe, _ in probe.certificateChanges.count == 1 })
        #expect(try await test.run { _, probe in probe.certificateChanges.first?.error } != nil)
        #expect(try await connect().1 == oldFingerprint)

        try files.write(Self.certificates.otherName, nil, "key.pem")
        try await test.run { transport, _ in for _ in 0..<4 { transport.checkCertificateFiles() } }
        #expect(await test.until { probe, _ in probe.certificateChanges.count == 2 })
        #expect(
            try await test.run { _, probe in
                probe.certificateChanges.last?.error == nil
                    && probe.certificateChanges.last?.user == .listener(listener)
            })
        #expect(try await connect().1 == Self.certificates.otherName.certificate?.fingerprint)

        // The old connection is none the worse for it.
        try await test.run { transport, _ in transport.send(old, "still here") }
        #expect(await test.until { probe, _ in probe.accepted.contains { probe.text($0) == "still here" } })
    }

    @Test("one address beyond this machine has so many handshakes at once, whatever its ports")
    func handshakesPerAddress() throws {
        let state = TLSState()
        func peer(_ port: Int) throws -> SocketAddress { try #require(SocketAddress(host: "192.0.2.1", port: port)) }
        for port in 1...TLSLimits.handshakesPerAddress { #expect(state.admit(try peer(port))) }
        #expect(!state.admit(try peer(9999)))
        #expect(state.admit(try #require(SocketAddress(host: "192.0.2.2", port: 1))))
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 1))
        for _ in 0...TLSLimits.handshakesPerAddress { #expect(state.admit(loopback)) }
        state.dismiss(try peer(1))
        #expect(state.admit(try peer(9999)))
        #expect(state.acceptedHandshakes == 2 * TLSLimits.handshakesPerAddress + 2)
        for port in 1...TLSLimits.handshakesPerAddress { state.dismiss(try peer(port)) }
        #expect(state.handshakesByAddress.count == 1)
    }

    @Test("no more than so many handshakes are under way at once")
    func handshakeLimit() async throws {
        let test = try await TestLoop()
        let listener = try await test.listen(Self.listening)
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 1))
        try await test.run { transport, _ in
            for _ in 0..<TLSLimits.handshakesAtOnce { #expect(transport.tls.admit(loopback)) }
        }
        let client = try await test.run { transport, _ in
            transport.connect(to: listener, timeout: .seconds(120), tls: Self.certificates.trusting)
        }
        let (other, otherServer) = try await test.pair()
        try await test.run { transport, _ in transport.send(other, "barrier") }
        #expect(await test.until { probe, _ in probe.text(otherServer) == "barrier" })
        try await test.run { transport, probe in
            #expect(transport.counters.accepted == 1)
            #expect(!probe.opened.contains(client))
            for _ in 0..<TLSLimits.handshakesAtOnce { transport.tls.dismiss(loopback) }
        }
        #expect(await test.until { probe, _ in probe.opened.contains(client) })
    }
}

/// A blocking TLS client on a socket of its own, for ends that the transport would not make.
final class TLSRawClient {
    private let socket: RawSocket
    private let engine: TLSEngine
    private let buffer = RawBuffer(byteCount: 65536)
    private var received: [UInt8] = []

    init(port: Int) throws {
        socket = try RawSocket(port: port)
        let settings = TestCertificates.shared.trusting
        engine = try TLSEngine(
            connecting: try TLSContext(client: settings), settings: settings, host: "chat.test", port: port,
            output: TLSOutput(), sessions: TLSSessionStore())
    }

    var isEnded: Bool { engine.state == .ended }

    func handshake() throws {
        engine.begin()
        while engine.state == .handshaking {
            flush()
            guard step() else { break }
        }
        flush()
        #expect(engine.state == .open)
    }

    func send(_ text: String) {
        Array(text.utf8).withUnsafeBytes { engine.encrypt($0) }
        flush()
    }

    func goodbye() {
        engine.closeNotify()
        flush()
    }

    func finishSending() { socket.finishSending() }

    func readToEnd() -> String {
        while step() {}
        return String(decoding: received, as: UTF8.self)
    }

    private func step() -> Bool {
        var bytes = [UInt8](repeating: 0, count: 65536)
        let count = recv(socket.descriptor, &bytes, bytes.count, 0)
        guard count > 0 else { return false }
        bytes.prefix(count).withUnsafeBytes { raw in
            engine.receive(raw, into: buffer.bytes) { received.append(contentsOf: $0) }
        }
        return true
    }

    private func flush() {
        let bytes = engine.takeOutbound()
        #expect(Glibc.send(socket.descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    }
}

/// A directory that goes with the test.
final class TemporaryFiles: Sendable {
    let directory: String

    init() throws {
        var template = Array("/tmp/chatbridge-test-XXXXXX".utf8CString)
        let made = template.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) }
        }
        directory = try #require(made)
    }

    deinit {
        for name in ["cert.pem", "key.pem"] { unlink(path(name)) }
        rmdir(directory)
    }

    func path(_ name: String) -> String { "\(directory)/\(name)" }

    /// Puts new files in the place of old ones, as a renewal does.
    func write(_ made: GeneratedCertificate, _ certificate: String?, _ key: String?) throws {
        for (name, bytes) in [(certificate, made.certificatePEM), (key, made.keyPEM)] {
            guard let name else { continue }
            let descriptor = open(path("new"), O_WRONLY | O_CREAT | O_TRUNC, 0o600)
            try #require(descriptor >= 0)
            #expect(Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
            close(descriptor)
            #expect(rename(path("new"), path(name)) == 0)
        }
    }
}

import BridgeTestSupport
import Testing
import WireBytes

@testable import Transport

@Suite("TLS engine")
struct TLSEngineTests {
    static let certificates = TestCertificates.shared

    @Test("both sides talk, however the bytes are cut", arguments: [1, 2, 7, 100, 1_000_000])
    func talk(pieceBytes: Int) throws {
        let pair = try EnginePair(Self.certificates.trusting, Self.certificates.server)
        pair.pump(pieceBytes: pieceBytes)
        #expect(pair.client.engine.state == .open)
        #expect(pair.server.engine.state == .open)
        pair.client.encrypt("from the client")
        pair.server.encrypt("from the server")
        pair.pump(pieceBytes: pieceBytes)
        #expect(String(decoding: pair.server.received, as: UTF8.self) == "from the client")
        #expect(String(decoding: pair.client.received, as: UTF8.self) == "from the server")
        #expect(pair.client.engine.description.hasPrefix("TLSv1.3 TLS_"))
    }

    @Test("plain bytes do not depend on where the encrypted ones are cut")
    func splitFeed() throws {
        // Cannot replay one recording: keys are fresh each time. So each way of cutting has a fresh pair.
        let expected = Array("one".utf8) + [UInt8](repeating: 9, count: 20_000) + Array("two".utf8)
        var found: [[UInt8]] = []
        for cut in [1, 5, 6, 21, 22, 23, 200, 16_400, 16_411, 20_000] {
            let pair = try EnginePair(Self.certificates.trusting, Self.certificates.server)
            pair.pump()
            pair.client.encrypt("one")
            [UInt8](repeating: 9, count: 20_000).withUnsafeBytes { pair.client.engine.encrypt($0) }
            pair.client.encrypt("two")
            let bytes = pair.client.takeOutput()
            pair.server.receive(Array(bytes.prefix(cut)))
            pair.server.receive([])
            pair.server.receive(Array(bytes.dropFirst(cut)))
            found.append(pair.server.received)
        }
        #expect(found.allSatisfy { $0 == expected })
    }

    @Test("a million bytes each way arrive whole")
    func bigData() throws {
        let pair = try EnginePair(Self.certificates.trusting, Self.certificates.server)
        pair.pump()
        let bytes = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        bytes.withUnsafeBytes {
            pair.client.engine.encrypt($0)
            pair.server.engine.encrypt($0)
        }
        pair.pump(pieceBytes: 47_000)
        #expect(pair.server.received == bytes)
        #expect(pair.client.received == bytes)
    }

    @Test("a goodbye is told from a cut")
    func closeNotify() throws {
        let pair = try EnginePair(Self.certificates.trusting, Self.certificates.server)
        pair.pump()
        pair.client.encrypt("last words")
        pair.client.engine.closeNotify()
        pair.client.engine.closeNotify()
        pair.client.encrypt("not sent")
        pair.pump()
        #expect(String(decoding: pair.server.received, as: UTF8.self) == "last words")
        #expect(pair.server.engine.state == .ended)
        // The other way still works.
        pair.server.encrypt("answer")
        pair.pump()
        #expect(String(decoding: pair.client.received, as: UTF8.self) == "answer")
        #expect(pair.client.engine.state == .open)
    }

    @Test("a changed byte ends the connection")
    func tampering() throws {
        let pair = try EnginePair(Self.certificates.trusting, Self.certificates.server)
        pair.pump()
        pair.client.encrypt("honest words")
        var bytes = pair.client.takeOutput()
        bytes[bytes.count - 1] ^= 1
        pair.server.receive(bytes)
        guard case .failed(.broken) = pair.server.engine.state else {
            Issue.record("state is \(pair.server.engine.state)")
            return
        }
        #expect(pair.server.received.isEmpty)
    }

    @Test("any bytes instead of a handshake end in a failure or in waiting", arguments: 0..<200)
    func garbage(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let bytes = (0..<600).map { _ in UInt8.random(in: 0...255, using: &random) }
        // Half of them with a record's header, so that more of the machine is reached.
        let head: [UInt8] = seed % 2 == 0 ? [] : [0x16, 3, 1, 2, 0]
        let asServer = try EnginePair(Self.certificates.trusting, Self.certificates.server)
        asServer.server.receive(head + bytes)
        #expect(asServer.server.engine.state != .open)
        asServer.client.receive(head + bytes)
        #expect(asServer.client.engine.state != .open)
        #expect(asServer.client.received.isEmpty && asServer.server.received.isEmpty)
    }

    // MARK: - Faults

    struct Fault: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var server: GeneratedCertificate
        var host = "chat.test"
        var change: @Sendable (inout TLSClientSettings) -> Void = { _ in }
        /// The client's verdict on the server; nil: no fault.
        var expected: TLSFailure?

        init(
            _ name: String, _ server: GeneratedCertificate, host: String = "chat.test", _ expected: TLSFailure?,
            _ change: @escaping @Sendable (inout TLSClientSettings) -> Void = { _ in }
        ) {
            testDescription = name
            self.server = server
            self.host = host
            self.expected = expected
            self.change = change
        }
    }

    static let faults: [Fault] = [
        Fault("a good name", certificates.good, nil),
        Fault("a good address", certificates.good, host: "127.0.0.1", nil),
        Fault("a dot at the end", certificates.good, host: "chat.test.", nil),
        Fault(
            "another name", certificates.otherName,
            .wrongName(wanted: "chat.test", found: ["other.test", "192.0.2.7"])),
        Fault(
            "another address", certificates.good, host: "127.0.0.2",
            .wrongName(wanted: "127.0.0.2", found: ["chat.test", "127.0.0.1"])),
        Fault("another name, as told", certificates.otherName, nil) { $0.serverName = "other.test" },
        Fault(
            "expired", certificates.expired,
            .certificateExpired(subject: "chat.test", since: certificates.expired.certificate?.notAfter ?? "")),
        Fault(
            "not yet valid", certificates.future,
            .certificateNotYetValid(subject: "chat.test", from: certificates.future.certificate?.notBefore ?? "")),
        Fault("self-signed", certificates.selfSigned, .selfSigned(subject: "chat.test")),
        Fault("self-signed and trusted", certificates.selfSigned, nil) {
            $0.authorities = .pem(certificates.selfSigned.certificatePEM)
        },
        Fault("an unknown issuer", certificates.good, .unknownIssuer(issuer: "Test Authority")) {
            $0.authorities = .pem(certificates.selfSigned.certificatePEM)
        },
        Fault("the system's authorities", certificates.good, .unknownIssuer(issuer: "Test Authority")) {
            $0.authorities = nil
        },
        Fault("insecure", certificates.expired, host: "elsewhere.test", nil) {
            $0.verifiesPeer = false
            $0.authorities = nil
        },
        Fault("the pinned key", certificates.good, nil) { $0.pins = [certificates.good.keyDigest] },
        Fault("one of two pinned keys, self-signed", certificates.selfSigned, nil) {
            $0.pins = [certificates.good.keyDigest, certificates.selfSigned.keyDigest]
        },
        Fault(
            "not the pinned key", certificates.good, .notPinned(found: certificates.good.certificate?.pin ?? "")
        ) {
            $0.pins = [certificates.client.keyDigest]
        },
        Fault(
            "a pin is no word about names", certificates.otherName,
            .wrongName(
                wanted: "chat.test", found: ["other.test", "192.0.2.7"])
        ) { $0.pins = [certificates.otherName.keyDigest] },
        Fault(
            "a pin is no word about dates", certificates.expired,
            .certificateExpired(subject: "chat.test", since: certificates.expired.certificate?.notAfter ?? "")
        ) { $0.pins = [certificates.expired.keyDigest] },
    ]

    @Test("a certificate's fault is named", arguments: faults)
    func verification(row: Fault) throws {
        var settings = Self.certificates.trusting
        row.change(&settings)
        let pair = try EnginePair(settings, TLSServerSettings(identity: row.server.identity), host: row.host)
        pair.pump()
        #expect(pair.client.engine.state == row.expected.map { .failed($0) } ?? .open)
        // A refusal is sent to the peer.
        #expect((pair.server.engine.state == .open) == (row.expected == nil))
    }

    @Test("a resumed session is still held to the pins")
    func resumption() throws {
        let sessions = TLSSessionStore()
        let context = try TLSContext(server: Self.certificates.server)
        let settings = Self.certificates.trusting
        func pair() throws -> EnginePair {
            let pair = try EnginePair(settings, Self.certificates.server, sessions: sessions, serverContext: context)
            pair.pump()
            pair.server.encrypt("x")
            pair.pump()
            return pair
        }
        #expect(try pair().client.engine.isResumed == false)
        #expect(try pair().client.engine.isResumed)
        // Other settings, other sessions.
        var pinned = settings
        pinned.pins = [Self.certificates.client.keyDigest]
        let strict = try EnginePair(pinned, Self.certificates.server, sessions: sessions, serverContext: context)
        strict.pump()
        #expect(
            strict.client.engine.state == .failed(.notPinned(found: Self.certificates.good.certificate?.pin ?? "")))
    }

    @Test("versions that do not meet are named on both sides")
    func versions() throws {
        var server = Self.certificates.server
        server.minimumVersion = .v13
        let pair = try EnginePair(Self.certificates.trusting, server)
        pair.pump()
        #expect(pair.client.engine.state == .open)
        // An old client's first record: a hello for TLS 1.0 with one cipher and no extensions.
        let hello: [UInt8] =
            [0x16, 3, 1, 0, 45, 1, 0, 0, 41, 3, 1] + [UInt8](repeating: 7, count: 32) + [0, 0, 2, 0, 0x2F, 1, 0]
        let old = try EnginePair(Self.certificates.trusting, server)
        old.server.receive(hello)
        #expect(old.server.engine.state == .failed(.protocolTooOld))
        // The answer is the alert that reports the same to the other side.
        let alert = old.server.takeOutput()
        #expect(Array(alert.suffix(2)) == [2, 70])
        let told = try EnginePair(Self.certificates.trusting, Self.certificates.server)
        told.client.receive([0x15, 3, 3, 0, 2, 2, 70])
        #expect(told.client.engine.state == .failed(.protocolTooOld))
    }

    @Test("plain text is told from TLS", arguments: ["NICK alice\r\n", "GET / HTTP/1.1\r\n\r\n", "\0", "\u{7F}"])
    func plainText(text: String) throws {
        let pair = try EnginePair(Self.certificates.trusting, Self.certificates.server)
        pair.server.receive(Array(text.utf8))
        #expect(pair.server.engine.state == .failed(.notTLS))
        pair.client.receive(Array(text.utf8))
        #expect(pair.client.engine.state == .failed(.notTLS))
    }

    @Test("client certificates are asked for, judged and shown")
    func clientCertificates() throws {
        let authority = TLSSource.pem(Self.certificates.authority.certificatePEM)
        var server = Self.certificates.server
        server.clientCertificates = .required(authority)
        var client = Self.certificates.trusting

        let without = try EnginePair(client, server)
        without.pump()
        #expect(without.server.engine.state == .failed(.clientCertificateMissing))
        #expect(without.client.engine.state == .failed(.clientCertificateRequired))

        client.identity = Self.certificates.client.identity
        let with = try EnginePair(client, server)
        with.pump()
        #expect(with.server.engine.state == .open)
        #expect(
            with.server.engine.peerCertificate?.fingerprint == Self.certificates.client.certificate?.fingerprint)

        client.identity = Self.certificates.stranger.identity
        let stranger = try EnginePair(client, server)
        stranger.pump()
        #expect(stranger.server.engine.state == .failed(.unknownIssuer(issuer: "Strange Authority")))
        guard case .failed(.certificateRefusedByPeer) = stranger.client.engine.state else {
            Issue.record("the client says \(stranger.client.engine.state)")
            return
        }

        server.clientCertificates = .requested(authority)
        let optional = try EnginePair(Self.certificates.trusting, server)
        optional.pump()
        #expect(optional.server.engine.state == .open)
        #expect(optional.server.engine.peerCertificate == nil)
    }

    // MARK: - Loading

    @Test("what cannot be loaded says why")
    func loading() throws {
        let (good, other) = (Self.certificates.good, Self.certificates.client)
        func problem(_ certificate: TLSSource, _ key: TLSSource) -> TLSSetupError? {
            do throws(TLSSetupError) {
                try TLSServerSettings(identity: TLSIdentity(certificate: certificate, key: key)).check()
                return nil
            } catch {
                return error
            }
        }
        let name = "the given PEM text"
        #expect(problem(.pem(good.certificatePEM), .pem(good.keyPEM)) == nil)
        #expect(
            problem(.file("/nonexistent/cert.pem"), .pem(good.keyPEM))
                == .unreadable(path: "/nonexistent/cert.pem", reason: "no such file or directory"))
        #expect(problem(.pem(good.keyPEM), .pem(good.keyPEM)) == .noCertificate(name))
        #expect(problem(.pem(good.certificatePEM), .pem(good.certificatePEM)) == .noKey(name))
        #expect(
            problem(.pem(good.certificatePEM), .pem(other.keyPEM)) == .keyDoesNotMatch(key: name, certificate: name))
        #expect(problem(.pem(good.certificatePEM), .pem(Array(Self.lockedKey.utf8))) == .keyHasPassphrase(name))
        var client = TLSClientSettings()
        client.authorities = .pem(Array("nothing here".utf8))
        #expect(throws: TLSSetupError.noCertificate(name)) { try client.check() }
    }

    /// A P-256 key with the passphrase "secret".
    static let lockedKey = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjSjhSpmvweUwICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEDfk5Kq85XX5UfjAeQVX7HMEgZAT
        L0V/xmTVu353a9UG5beJ5kw4naA8zO9cTr4Ahs4b+AYg8482o04bfz/bX+CnX0Vl
        AB6xCSNxujF7E4uUCssUPc7WdZ1Ie3ApIu62p7yre7xvLGK9Dj0b3t67Veym3zyB
        uJH10VBzbBLpZ3OwJu+kP2563zrb8mlys0JEr8dJCOtP74TCHHfBBX6rR7xPuoo=
        -----END ENCRYPTED PRIVATE KEY-----
        """

    @Test("names that a certificate cannot have are refused", arguments: ["", "a,DNS:b", "a/b", "fe80::1%1", " a"])
    func names(name: String) {
        let maker = CertificateGenerator(names: [name], notBefore: 0, notAfter: 1)
        #expect(throws: CertificateGenerator.GenerationError.badName(name)) { try maker.make() }
    }
}

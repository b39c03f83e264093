import Glibc
import WireBytes

@testable import Transport

/// Certificates for tests, made once: an authority, certificates signed by it, and untrusted ones.
struct TestCertificates: Sendable {
    static let shared = make()

    static let day: Int64 = 24 * 60 * 60
    static let now = Int64(time(nil))

    var authority: GeneratedCertificate
    var good: GeneratedCertificate
    var otherName: GeneratedCertificate
    var expired: GeneratedCertificate
    var future: GeneratedCertificate
    var selfSigned: GeneratedCertificate
    var client: GeneratedCertificate
    var stranger: GeneratedCertificate

    private static func maker(_ names: [String], from: Int64 = -day, to: Int64 = day) -> CertificateGenerator {
        CertificateGenerator(names: names, notBefore: now + from, notAfter: now + to)
    }

    private static func make() -> TestCertificates {
        do {
            var root = maker(["Test Authority"])
            root.isAuthority = true
            let authority = try root.make()
            root.names = ["Strange Authority"]
            let strangeAuthority = try root.make()
            let here = ["chat.test", "127.0.0.1"]
            return TestCertificates(
                authority: authority, good: try maker(here).make(signedBy: authority),
                otherName: try maker(["other.test", "192.0.2.7"]).make(signedBy: authority),
                expired: try maker(here, from: -3 * day, to: -2 * day).make(signedBy: authority),
                future: try maker(here, from: 2 * day, to: 3 * day).make(signedBy: authority),
                selfSigned: try maker(here).make(), client: try maker(["alice"]).make(signedBy: authority),
                stranger: try maker(here).make(signedBy: strangeAuthority))
        } catch {
            fatalError("test certificates cannot be made: \(error)")
        }
    }

    /// A client that trusts the test authority.
    var trusting: TLSClientSettings {
        var settings = TLSClientSettings()
        settings.authorities = .pem(authority.certificatePEM)
        return settings
    }

    var server: TLSServerSettings { TLSServerSettings(identity: good.identity) }
}

extension GeneratedCertificate {
    var certificate: Certificate? { try? PEM.certificates(.pem(certificatePEM), isRequired: true).first }
    var keyDigest: [UInt8] { certificate?.keyDigest ?? [] }
}

extension TLSEngine {
    /// The outbound bytes, as if the socket had taken them.
    func takeOutbound() -> [UInt8] {
        var bytes: [UInt8] = []
        outbound.forEachPending(limit: outbound.sliceCount) { bytes.append(contentsOf: $0) }
        dropOutbound()
        return bytes
    }
}

/// Two engines wired to each other in memory.
final class EnginePair {
    final class Side {
        let engine: TLSEngine
        var received: [UInt8] = []
        private let buffer = RawBuffer(byteCount: 4096)

        init(_ engine: TLSEngine) { self.engine = engine }

        func receive(_ bytes: [UInt8]) {
            bytes.withUnsafeBytes { raw in
                engine.receive(raw, into: buffer.bytes) { received.append(contentsOf: $0) }
            }
        }

        func takeOutput() -> [UInt8] {
            engine.takeOutbound()
        }

        func encrypt(_ text: String) { Array(text.utf8).withUnsafeBytes { engine.encrypt($0) } }
    }

    let client: Side
    let server: Side

    init(
        _ clientSettings: TLSClientSettings, _ serverSettings: TLSServerSettings, host: String = "chat.test",
        sessions: TLSSessionStore = TLSSessionStore(), serverContext: TLSContext? = nil
    ) throws {
        let output = TLSOutput()
        client = Side(
            try TLSEngine(
                connecting: try TLSContext(client: clientSettings), settings: clientSettings, host: host, port: 1,
                output: output, sessions: sessions))
        server = Side(
            try TLSEngine(accepting: try serverContext ?? TLSContext(server: serverSettings), output: output))
        client.engine.begin()
    }

    /// Carries bytes both ways, in pieces of at most `pieceBytes`, until both sides are idle.
    func pump(pieceBytes: Int = .max) {
        while true {
            let up = client.takeOutput()
            carry(up, to: server, pieceBytes)
            let down = server.takeOutput()
            carry(down, to: client, pieceBytes)
            if up.isEmpty, down.isEmpty { return }
        }
    }

    private func carry(_ bytes: [UInt8], to side: Side, _ pieceBytes: Int) {
        var rest = bytes[...]
        while !rest.isEmpty {
            side.receive(Array(rest.prefix(pieceBytes)))
            rest = rest.dropFirst(pieceBytes)
        }
    }
}

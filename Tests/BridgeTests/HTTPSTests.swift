import BridgeTestSupport
import Glibc
import HTTPProtocol
import Testing
import Transport
import WireBytes

@testable import ChatBridge
@testable import Configuration

@Suite("HTTP with TLS")
struct HTTPSTests {
    /// A folder with a certificate and its key, removed when the test is over.
    private final class Folder {
        let path: String

        init() throws {
            var template = Array("/tmp/chatbridge-https-XXXXXX".utf8CString)
            try #require(mkdtemp(&template) != nil)
            path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }

        deinit {
            for name in ["cert.pem", "key.pem"] { unlink("\(path)/\(name)") }
            rmdir(path)
        }

        /// Writes a new pair.
        func renew() throws -> GeneratedCertificate {
            let made = try CertificateGenerator(
                names: ["127.0.0.1"], notBefore: 1_700_000_000, notAfter: 4_000_000_000
            ).make()
            try write("cert.pem", made.certificatePEM)
            try write("key.pem", made.keyPEM)
            return made
        }

        private func write(_ name: String, _ bytes: [UInt8]) throws {
            let file = try #require(fopen("\(path)/\(name)", "w"))
            defer { fclose(file) }
            try #require(fwrite(bytes, 1, bytes.count, file) == bytes.count)
        }

        func configuration(_ keys: String = "") throws -> Configuration {
            let toml = """
                [[rooms]]
                name = "lobby"
                url = "ws://127.0.0.1:1/lobby"
                connect = "while-joined"
                [storage]
                url = "memory:"
                [[listeners]]
                bind = "irc://127.0.0.1:0"
                [[http]]
                bind = "https://127.0.0.1:0"
                cert = "\(path)/cert.pem"
                key = "\(path)/key.pem"
                \(keys)
                """
            let process = ConfigurationEnvironment.ofThisProcess()
            var environment = testEnvironment()
            environment.readFile = { $0 == "chatbridge.toml" ? .success(Array(toml.utf8)) : process.readFile($0) }
            return try ConfigurationLoader.load(ConfigurationRequest(), from: environment).configuration
        }
    }

    private static func ask(_ stage: HTTPStage, _ port: Int, _ certificate: GeneratedCertificate) async throws -> String
    {
        var request = HTTPClientRequest(try HTTPURL(parsing: "https://127.0.0.1:\(port)/healthz"))
        request.tls = TLSClientSettings()
        request.tls?.authorities = .pem(certificate.certificatePEM)
        return HTTPClientTests.text(await stage.send(request))
    }

    @Test("a listener of [[http]] speaks TLS, and takes a replaced certificate when told to")
    func secure() async throws {
        let folder = try Folder()
        let old = try folder.renew()
        let service = try await HealthTests.start(folder.configuration())
        let port = try #require(service.httpAddresses.first?.port)
        #expect(try await Self.ask(try await HTTPStage(), port, old) == "200 ok\n")
        // Plain HTTP learns what to do.
        let stage = try await HTTPStage()
        let plain = HTTPClientTests.text(await stage.send(try stage.request("/healthz", port: port)))
        #expect(plain == "400 This port speaks TLS: use https://\n")

        let new = try folder.renew()
        await service.loop.run { $0.bridgeDriver?.reloadCertificates($0) }
        #expect(try await Self.ask(try await HTTPStage(), port, new) == "200 ok\n")
        #expect(try await Self.ask(try await HTTPStage(), port, old) != "200 ok\n")
        service.shutdown()
        await service.waitUntilStopped()
    }

    @Test(
        "what a listener with TLS lacks, or one without has, is named",
        arguments: [
            ("bind = \"https://0.0.0.0:9667\"", ["cert is not set", "key is not set"]),
            (
                "bind = \"https://0.0.0.0:9667\"\ncert = \"/c\"\nkey = \"/k\"",
                ["there is no file \"/c\"", "no file \"/k\""]
            ),
            ("bind = \"http://127.0.0.1:9667\"\ncert = \"/c\"", ["write bind = \"https://127.0.0.1:9667\""]),
            ("bind = \"https://0.0.0.0:9667\"\nmin_tls = \"1.1\"", ["1.3"]),
        ])
    func refused(_ keys: String, _ expected: [String]) {
        let found = problems(withRoom("[[http]]\n" + keys))
        for text in expected { #expect(found.contains { $0.contains(text) }, "\(found)") }
    }

    @Test("min_tls reaches the listener")
    func oldest() throws {
        let folder = try Folder()
        _ = try folder.renew()
        let settings = try folder.configuration("min_tls = \"1.3\"").http.first?.tlsSettings()
        #expect(settings?.minimumVersion == .v13)
    }
}

import BridgeTestSupport
import Testing
import Transport

@testable import Configuration

@Suite("Configurations to copy")
struct ExampleConfigurationTests {
    @Test(
        "a configuration to copy loads once its files are there, and none opens a port to clients without a log-in",
        arguments: ["team-server", "sidecar", "personal", "behind-a-proxy"])
    func examples(_ name: String) throws {
        let made = try CertificateGenerator(names: ["irc.example.com"], notBefore: 0, notAfter: 4_000_000_000)
            .make()
        let (certificate, key) = (made.certificatePEM, made.keyPEM)
        let text = try RepositoryFile.example("examples/\(name).toml")
        let machine = ConfigurationEnvironment(variables: ["HOME": "/home/me"], hostName: "h.test") { path in
            switch path {
            case "chatbridge.toml": .success(Array(text.utf8))
            case "/etc/chatbridge/tls/fullchain.pem": .success(certificate)
            case "/etc/chatbridge/tls/privkey.pem": .success(key)
            case _ where path.hasSuffix(".hash") || path.hasSuffix("password"):
                .success(Array(examplePasswordHash.utf8))
            case _ where path.hasSuffix("token"): .success(Array("t0ken\n".utf8))
            default: .failure(.notFound)
            }
        }
        let loaded = try ConfigurationLoader.load(ConfigurationRequest(), from: machine).configuration
        #expect(!loaded.rooms.isEmpty && loaded.identity.requireLogin != .never)
        for listener in loaded.listeners where !listener.isLocal {
            #expect(listener.bind.isSecure || listener.bind.isLoopback)
            #expect(loaded.identity.password != nil || !loaded.accounts.isEmpty)
        }
    }
}

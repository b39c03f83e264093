import BridgeTestSupport
import Digests
import IRCProtocol
import Testing
import WireBytes

@testable import Mirrors

@Suite("Logging in to an IRC network")
struct NetworkLoginTests {
    private static let verifier = SCRAMVerifier(
        password: SecretBytes("secret".utf8), salt: [1, 2, 3, 4, 5, 6, 7, 8], iterations: 4096)

    private func lines(_ player: NetworkPlayer) -> [String] {
        player.network.takeActions().flatMap { NetworkPlayer.lines($0, at: player.clock.now) }
    }

    private func said(_ player: NetworkPlayer, _ lines: [String]) {
        var player = player
        for line in lines { player.receive(Array((line + "\r\n").utf8)) }
    }

    private func begin(_ password: String) -> NetworkPlayer {
        var player = NetworkPlayer(
            NetworkPlayer.settings("#chat") {
                $0.login = .scramSHA256(user: "bot", password: MirrorSecret(Array(password.utf8)))
            })
        player.perform("open")
        said(player, ["CAP * LS :sasl=SCRAM-SHA-256", "CAP * ACK :sasl"])
        _ = lines(player)
        return player
    }

    /// The bytes that the client's AUTHENTICATE carries.
    private func response(_ lines: [String]) throws -> [UInt8] {
        let prefix = "> AUTHENTICATE "
        let param = try #require(lines.first { $0.hasPrefix(prefix) }).dropFirst(prefix.count)
        return try #require(Base64.decode(String(param)))
    }

    private func challenge(_ player: NetworkPlayer, _ bytes: [UInt8]) {
        said(player, IRCSASLExchange.chunks(of: bytes).map { "AUTHENTICATE " + $0 })
    }

    private func server(_ player: NetworkPlayer) throws -> SCRAMServerExchange {
        said(player, ["AUTHENTICATE +"])
        let first = try SCRAMClientFirst(parsing: response(lines(player)))
        return SCRAMServerExchange(first, verifier: Self.verifier, randomness: [UInt8](0..<18))
    }

    @Test("SCRAM-SHA-256 with this relay's own server side")
    func scram() throws {
        let player = begin("secret")
        let server = try server(player)
        challenge(player, server.challenge)
        challenge(player, try server.finish(response(lines(player))))
        #expect(lines(player) == ["> AUTHENTICATE +"])
        said(player, [":s 903 bridge :SASL authentication successful"])
        #expect(lines(player) == ["> CAP END"])
    }

    @Test("a server that does not know the password is left")
    func imposter() throws {
        let player = begin("other")
        challenge(player, try server(player).challenge)
        _ = try response(lines(player))
        challenge(player, Array("v=\(Base64.encode([UInt8](repeating: 0, count: 32)))".utf8))
        #expect(
            lines(player) == [
                "= note warn mirror-login-refused: the network cannot prove that it knows the password", "= close",
            ])
    }

    @Test("a long password goes in lines of 400 bytes")
    func chunks() throws {
        var login = try #require(
            NetworkLogin(
                .plain(user: "bot", password: MirrorSecret([UInt8](repeating: 0x70, count: 295))), randomness: []))
        guard case .send(let params) = login.received("+") else { return #expect(Bool(false), "no answer") }
        #expect(params.map(\.utf8.count) == [400, 1])
        #expect(params.last == "+")
    }

    @Test("a challenge without end is given up")
    func endless() throws {
        var login = try #require(NetworkLogin(.external, randomness: []))
        let chunk = String(repeating: "A", count: 400)
        let steps = (0..<20).map { _ in login.received(chunk) }
        #expect(steps.contains { if case .failed = $0 { true } else { false } })
        #expect(login.received(chunk + "A") == .failed("the network's answer is too long"))
    }

    @Test("no description shows a secret")
    func redacted() {
        let settings = NetworkPlayer.settings("#chat") {
            $0.login = .plain(user: "bot", password: MirrorSecret(Array("hunter2".utf8)))
            $0.serverPassword = MirrorSecret(Array("hunter2".utf8))
        }
        var text = ""
        dump(settings, to: &text)
        #expect(!text.contains("hunter2") && !text.contains("104"))
    }

    @Test("words in Latin-1 are read")
    func latin1() {
        var player = NetworkPlayer(NetworkPlayer.settings("#chat"))
        player.perform("usable")
        player.receive(Array(":ann!u@h PRIVMSG #chat :gr".utf8) + [0xFC, 0xDF, 0x65, 0x0D, 0x0A])
        #expect(lines(player) == ["= #chat <ann> grüße"])
    }
}

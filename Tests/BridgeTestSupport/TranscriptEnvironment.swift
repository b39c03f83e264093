import Accounts
import BridgeCore
import DescribedDialects
import Dialects
import Digests
import HTTPProtocol
import IRCServer
import JSONText
import Media
import Upstream
import WireBytes

// Optional parts of a transcript's bridge, enabled by its first line.
//
//     with: wire=deletes     messages can be taken back: {"event":"delete","message_ids":[…],…}
//     with: gateway=secret   gateways of 10.0.0.0/8 say WEBIRC with that password
//     with: tokens=on        the backend identifies the owner of `token-of-ann`, and refuses every other token
//     with: uploads=on       the backend takes files

extension TranscriptHeader {
    /// The wire of the rooms.
    func wire() throws -> any Dialect {
        guard options["wire"] == "deletes" else { return EnvelopeDialect() }
        return CustomDialect(try CustomDefinition(try JSONValue(parsing: Array(Self.wireWithDeletes.utf8))))
    }

    /// The envelope's frames, and one for messages that are taken back.
    private static let wireWithDeletes = """
        {"dialect": "custom", "identity": "puppet", "echo": "by-id",
         "decode": [
           {"when": {"/event": "message"}, "event": "message",
            "fields": {"id": "/message_id", "sender.id": "/sender_id", "sender.name": "/sender_name", "text": "/body",
                       "at": {"ptr": "/sent_at", "as": "time:unix"}}},
           {"when": {"/event": "delete"}, "event": "delete",
            "fields": {"ids": {"each": "/message_ids"}, "sender.id": "/sender_id", "sender.name": "/sender_name"}}],
         "encode": {
           "message": {"event": "message", "message_id": "{{id}}", "sender_id": "{{sender.id}}",
                       "sender_name": "{{sender.name}}", "body": "{{text}}"},
           "delete": {"event": "delete", "message_ids": "{{ids}}", "sender_id": "{{sender.id}}",
                      "sender_name": "{{sender.name}}"}}}
        """

    /// Adds the settings of the options other than rooms.
    func surround(_ settings: inout BridgeSettings) throws {
        if let password = options["gateway"] {
            settings.gateways = [
                WebIRCSettings(
                    password: .plain(SecretBytes(password.utf8)),
                    from: [NetworkRange("10.0.0.0/8")].compactMap(\.self))
            ]
        }
        guard options["tokens"] == "on" || options["uploads"] == "on" else { return }
        settings.backends = [
            BackendSettings(
                name: "chat.example", dialect: AccountDialect(), httpBase: try HTTPURL(parsing: "https://chat.example"))
        ]
        if options["tokens"] == "on" { settings.bearerBackend = "chat.example" }
        if options["uploads"] == "on" {
            settings.media = MediaSettings(
                links: SignedFileLinks(base: "https://irc.example", key: [0], lifetime: .zero))
        }
    }

    /// The backend's answer to a query for the owner of a token.
    static func owner(of token: String?) -> Result<BackendCallResponse, BackendCallFailure> {
        guard let token, token.hasPrefix("token-of-") else { return TokenServer.answer(401, "{}") }
        let name = token.dropFirst("token-of-".count)
        return TokenServer.answer(200, #"{"id":"id-of-\#(name)","name":"\#(name)"}"#)
    }
}

/// The client's side of a SCRAM log-in in a transcript, and the form of the server's messages: without random values, which would
/// differ in each run.
struct TranscriptSCRAM {
    /// The challenge of each client.
    private var challenges: [UInt64: [UInt8]] = [:]

    /// A line to a client as it stands in the transcript; nil: as it is.
    mutating func show(_ client: UInt64, _ line: String) -> String? {
        guard line.hasPrefix("AUTHENTICATE "), let bytes = Base64.decode(String(line.dropFirst("AUTHENTICATE ".count)))
        else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        if text.hasPrefix("v=") { return "[AUTHENTICATE: the server's signature]" }
        guard text.hasPrefix("r="), let nonceEnd = text.firstIndex(of: ",") else { return nil }
        challenges[client] = bytes
        return "[AUTHENTICATE: the nonces\(text[nonceEnd...])]"
    }

    /// The parameters of the `AUTHENTICATE` lines with the proof; nil: nothing is to be proven.
    ///
    /// - Parameter login: `name:password`.
    mutating func proof(_ client: UInt64, _ login: String) -> [String]? {
        let words = login.split(separator: ":", maxSplits: 1).map(String.init)
        guard words.count == 2, let challenge = challenges.removeValue(forKey: client) else { return nil }
        var scram = SCRAMClient(name: words[0], password: words[1])
        return scram.proof(challenge).map { [Base64.encode($0)] }
    }
}

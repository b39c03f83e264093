import Digests
import HTTPProtocol
import JSONText
import WireBytes

/// The page for browsers: one document, `studio.html`, which the build puts into the program as it is.
enum StudioPage {
    static let html: [UInt8] = PackageResources.studio_html

    /// The style and the script by their hashes, this server's files and sockets, and the relay's socket; nothing else.
    ///
    /// - Parameters:
    ///   - authority: `host:port` under which the page was asked for.
    ///   - relay: the address of IRC over WebSocket.
    ///
    /// Source: CSP3; Trusted Types, "require-trusted-types-for": no text can become markup.
    static func policy(authority: String, relay: String?) -> String {
        let relay = relay.map { " " + $0 } ?? ""
        return "default-src 'none'; style-src '\(styleHash)'; script-src '\(scriptHash)'; "
            + "connect-src 'self' ws://\(authority)\(relay); img-src 'self' data: blob:; media-src 'self' blob:; "
            + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
            + "require-trusted-types-for 'script'; trusted-types 'none'"
    }

    private static let styleHash = hash(of: "style")
    private static let scriptHash = hash(of: "script")

    /// Source: CSP3, "source-list".
    private static func hash(of element: String) -> String {
        let text = String(decoding: html, as: UTF8.self)
        guard let start = text.firstRange(of: "<\(element)>")?.upperBound,
            let end = text[start...].firstRange(of: "</\(element)>")?.lowerBound
        else { return "sha256-none" }
        return "sha256-" + Base64.encode(SHA256.hash(Array(text[start..<end].utf8)))
    }

    /// `/studio.json`: what the page must know before it connects.
    static func setup(rooms: [StudioRoomSettings], relay: String?) -> [UInt8] {
        JSONValue.object([
            .init(
                "rooms",
                .array(
                    rooms.map {
                        .object([
                            .init("name", .string($0.name)), .init("topic", .string($0.topic)),
                            .init("channel", $0.channel.map { .string($0) } ?? .null),
                        ])
                    })),
            .init("irc", relay.map { .string($0) } ?? .null),
        ]).bytes
    }

    /// For clients that are no browsers.
    static func text(host: String, rooms: [String]) -> String {
        var page = """
            This is the studio, the practice chat backend of chatbridge. A browser gets a chat here.

            Each room speaks four dialects, by the path that a client connects to:

                ws://\(host)/\(StudioRoomName.fallback)                        envelope
                ws://\(host)/typed/\(StudioRoomName.fallback)                  typed
                ws://\(host)/ws/chat/\(StudioRoomName.fallback)?token=TOKEN    jwt-rooms; POST /api/auth/login gives the token
                ws://\(host)/swiftchat/\(StudioRoomName.fallback)              swiftchat

            In "envelope" every frame goes to everybody in the room, the sender included. Frames are JSON objects with
            six keys:

                {"event":"message","message_id":"<UUID>","sender_id":"<UUID>","sender_name":"Ada",
                 "body":"hello","sent_at":1763695136.5}

            "event" may also be "typing" or "readReceipt", with an empty body; in a receipt, message_id is the
            message that was read.

            """
        if !rooms.isEmpty {
            page += "\nA visitor who answers waits in: \(rooms.joined(separator: ", "))\n"
        }
        return page
    }
}

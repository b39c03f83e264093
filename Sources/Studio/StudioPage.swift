import HTTPProtocol
import WSProtocol
import WireBytes

/// The studio's page for browsers and curl.
enum StudioPage {
    /// The whole answer to a request that asks for no WebSocket. The transport ends after it.
    static func answer(to request: HTTPRequestHead, rooms: [String]) -> ByteSlice {
        var out = ByteWriter()
        switch request.method {
        case "GET", "HEAD":
            let page = text(host: request.headers.first("Host") ?? "this address", rooms: rooms)
            var fields = HTTPHeaders([
                ("Connection", "close"), ("Content-Type", "text/plain; charset=utf-8"),
                ("X-Content-Type-Options", "nosniff"),
            ])
            fields.append(name: "Content-Length", value: String(page.utf8.count))
            do throws(HTTPProtocolError) {
                try HTTPResponseHead(status: 200, reason: "OK", headers: fields).serialize(into: &out)
                if request.method == "GET" { out.append(page) }
            } catch {
                assertionFailure(error.sentence)
            }
        default:
            refuse(405, "Method Not Allowed", "The studio answers GET and WebSocket requests.", into: &out)
        }
        return out.take()
    }

    /// A refusal in plain text. The transport ends after it.
    static func refusal(_ status: Int, _ reason: String, _ sentence: String) -> ByteSlice {
        var out = ByteWriter()
        refuse(status, reason, sentence, into: &out)
        return out.take()
    }

    private static func refuse(_ status: Int, _ reason: String, _ sentence: String, into out: inout ByteWriter) {
        let headers: [(name: String, value: String)] = status == 405 ? [("Allow", "GET, HEAD")] : []
        let written = WebSocketServerHandshake.refuse(
            status: status, reason: reason, headers: headers, body: sentence + "\n", into: &out)
        assert(written, "a refusal of our own is malformed")
    }

    private static func text(host: String, rooms: [String]) -> String {
        var page = """
            This is the studio, the practice chat backend of chatbridge.

            It is a relay: every frame that a client sends goes to everybody in the same room, the sender
            included. Nothing is kept and nothing is checked. The path is the room:

                ws://\(host)/\(StudioRoomName.fallback)

            Its frames are JSON objects with six keys (the dialect "envelope"):

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

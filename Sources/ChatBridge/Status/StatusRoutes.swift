import BridgeTypes
import Digests
import HTTPProtocol
import Transport
import WireBytes

/// Routes for the operator: metrics, the status page, and its data. They read, and change nothing.
enum StatusRoutes {
    static func metrics(
        _ driver: BridgeDriver, store: StoreDriver?, reload: ConfigurationReload, token: SecretBytes?,
        hasRoomLabels: Bool
    ) -> [HTTPRoute] {
        [
            route("/metrics", token) { [weak driver] exchange, transport in
                guard let driver else { return }
                let format = MetricsText.Format(accept: exchange.head.headers.all("Accept"))
                let text = MetricsText.text(
                    MetricsReading(driver, store: store, reload: reload.standing, transport), format,
                    hasRoomLabels: hasRoomLabels)
                exchange.respond(
                    200, headers: .notStored(format.contentType), body: Array(text.utf8), transport: transport)
            }
        ]
    }

    static func status(_ board: StatusBoard, token: SecretBytes?) -> [HTTPRoute] {
        [
            route("/status", token) { exchange, transport in
                var headers = HTTPHeaders.notStored("text/html; charset=utf-8")
                headers.append(name: "Content-Security-Policy", value: StatusPage.policy)
                // The address may hold the token.
                headers.append(name: "Referrer-Policy", value: "no-referrer")
                exchange.respond(200, headers: headers, body: Array(StatusPage.html.utf8), transport: transport)
            },
            route("/status.json", token) { exchange, transport in
                exchange.respond(
                    200, headers: .notStored("application/json"), body: board.document(transport),
                    transport: transport)
            },
            route("/status/stream", token) { exchange, transport in board.open(exchange, transport) },
        ]
    }

    private static func route(
        _ path: String, _ token: SecretBytes?, _ answer: @escaping (HTTPExchange, Transport) -> Void
    ) -> HTTPRoute {
        HTTPRoute(method: "GET", path: path) { exchange, transport in
            guard admits(exchange.head.headers, query: exchange.target.query, token) else {
                var headers = HTTPHeaders.notStored("text/plain; charset=utf-8")
                headers.append(name: "WWW-Authenticate", value: "Bearer")
                return exchange.respond(
                    401, headers: headers,
                    body: Array("a token is needed: Authorization: Bearer TOKEN, or \(path)?token=TOKEN\n".utf8),
                    transport: transport)
            }
            answer(exchange, transport)
        }
    }

    /// Whether a request has the listener's token, in a header field or, for browsers, in its address.
    static func admits(_ headers: HTTPHeaders, query: String?, _ token: SecretBytes?) -> Bool {
        guard let token else { return true }
        let fields = headers.all("Authorization").filter { $0.lowercased().hasPrefix("bearer ") }
            .map { String($0.dropFirst("bearer ".count).drop { $0 == " " }) }
        let given =
            fields
            + (query ?? "").split(separator: "&").filter { $0.hasPrefix("token=") }
            .compactMap { decoded($0.dropFirst("token=".count)) }
        // One token, so that a request is no list of guesses.
        return given.count == 1 && given.allSatisfy { SecretBytes($0.utf8) == token }
    }

    /// Without percent-encoding; nil: it is wrong.
    private static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(code)
            rest = rest.dropFirst(2)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

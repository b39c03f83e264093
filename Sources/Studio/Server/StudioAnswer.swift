import HTTPProtocol
import JSONText
import WSProtocol
import WireBytes

/// An answer over HTTP. The transport ends after it.
struct StudioAnswer {
    var status: Int
    var reason: String
    var headers: [(name: String, value: String)] = []
    var body: [UInt8]

    static func json(_ value: JSONValue, status: Int = 200, reason: String = "OK") -> StudioAnswer {
        StudioAnswer(status: status, reason: reason, headers: [("Content-Type", "application/json")], body: value.bytes)
    }

    static func text(_ text: String, status: Int = 200, reason: String = "OK") -> StudioAnswer {
        StudioAnswer(
            status: status, reason: reason, headers: [("Content-Type", "text/plain; charset=utf-8")],
            body: Array(text.utf8))
    }

    /// As FastAPI refuses.
    static func detail(_ text: String, _ status: Int, _ reason: String) -> StudioAnswer {
        .json(.object([.init("detail", .string(text))]), status: status, reason: reason)
    }

    /// The whole answer.
    ///
    /// - Parameter isHead: without the body.
    func bytes(isHead: Bool = false) -> ByteSlice {
        var out = ByteWriter()
        var fields = HTTPHeaders(headers)
        fields.append(name: "Connection", value: "close")
        fields.append(name: "X-Content-Type-Options", value: "nosniff")
        fields.append(name: "Referrer-Policy", value: "no-referrer")
        fields.append(name: "Content-Length", value: String(body.count))
        do throws(HTTPProtocolError) {
            try HTTPResponseHead(status: status, reason: reason, headers: fields).serialize(into: &out)
            if !isHead { out.append(body) }
        } catch {
            assertionFailure(error.sentence)
        }
        return out.take()
    }
}

/// Which requests of browsers are answered.
///
/// A page of another site can send requests to this machine, and name any host in them that it can make resolve to it: so
/// a request with an origin must come from this server's own page, and the host must be an address or a local name.
///
/// Source: RFC 6455 §10.2; RFC 6454 §7.
enum StudioGate {
    static func refusal(of request: HTTPRequestHead, hosts: Set<String>) -> StudioAnswer? {
        let target: HTTPRequestTarget
        do throws(HTTPProtocolError) {
            target = try HTTPRequestTarget(of: request)
        } catch {
            return .text(error.sentence + "\n", status: error.statusHint, reason: "Bad Request")
        }
        let host = target.host
        guard
            host.isEmpty || host == "localhost" || host.hasSuffix(".localhost") || hosts.contains(host)
                || NetworkAddress(host) != nil
        else {
            return .text(
                "The studio answers under addresses and localhost only.\n", status: 421, reason: "Misdirected Request")
        }
        let origins = request.headers.all("Origin")
        guard origins.isEmpty || origins == ["http://" + target.authority] else {
            return .text("The studio answers its own page only.\n", status: 403, reason: "Forbidden")
        }
        return nil
    }
}

import WireBytes

/// The checks of a request's head before it is trusted: one host, and a target of the form that its method may have.
///
/// Source: RFC 9112 §3.2, §3.3.
enum HTTPRequestCheck {
    /// - Returns: path and query, `*`, as an origin server sees it; and the host without case, empty where HTTP/1.0
    ///   names none.
    static func target(of head: HTTPRequestHead) throws(HTTPProtocolError) -> (resource: String, authority: String) {
        // CONNECT asks for a tunnel; its target is no resource here.
        guard head.method != "CONNECT" else { throw .unsupportedMethod }
        let host = head.headers.first("Host").map(ASCII.lowercased)
        // An empty Host is legal for targets without authority; a server that answers to names refuses it itself.
        if let host, !host.isEmpty { try check(authority: host) }

        if head.target.utf8.first == UInt8(ascii: "/") {
            guard !head.target.utf8.contains(UInt8(ascii: "#")) else { throw .malformedTarget }
            return (head.target, host ?? "")
        }
        if head.target == "*" {
            guard head.method == "OPTIONS" else { throw .malformedTarget }
            return ("*", host ?? "")
        }
        let (authority, resource) = try absolute(head.target)
        // The RFC lets the target win; a proxy that believed Host instead would have asked for something else.
        if let host, host != authority { throw .hostMismatch }
        return (resource, authority)
    }

    /// Splits `http://host:port/path?query`.
    private static func absolute(
        _ target: String
    ) throws(HTTPProtocolError) -> (authority: String, resource: String) {
        let bytes = Array(target.utf8)
        let scheme = ["http://", "https://"].first { prefix in
            ASCII.equalsIgnoringCase(String(decoding: bytes.prefix(prefix.utf8.count), as: UTF8.self), prefix)
        }
        guard let scheme else { throw .malformedTarget }
        let rest = bytes.dropFirst(scheme.utf8.count)
        guard !rest.contains(UInt8(ascii: "#")) else { throw .malformedTarget }
        let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
        let authority = ASCII.lowercased(String(decoding: rest[..<end], as: UTF8.self))
        try check(authority: authority)
        let resource = String(decoding: rest[end...], as: UTF8.self)
        return (authority, resource.utf8.first == UInt8(ascii: "/") ? resource : "/" + resource)
    }

    /// `host`, `host:port` or `[address]:port`; no user, no path.
    ///
    /// Source: RFC 9110 §7.2; RFC 3986 §3.2.
    private static func check(authority: String) throws(HTTPProtocolError) {
        do throws(HTTPURLError) {
            let url = try HTTPURL(parsing: "http://\(authority)/")
            guard url.pathAndQuery == "/" else { throw HTTPURLError.invalidCharacter }
        } catch {
            throw .malformedHost
        }
    }
}

/// A request's host and resource, as ``HTTPServerConnection`` has checked them.
public struct HTTPRequestTarget: Equatable, Sendable {
    /// Lower case, as written: with its port, an IPv6 address in brackets. Empty where HTTP/1.0 names none, or Host is
    /// empty.
    public var authority: String
    /// Begins with a slash, still percent-encoded; or `*`.
    public var path: String
    /// The text after the first `?`, or nil.
    public var query: String?

    init(resource: String, authority: String) {
        self.authority = authority
        let bytes = resource.utf8
        if let mark = bytes.firstIndex(of: UInt8(ascii: "?")) {
            path = String(resource[..<mark])
            query = String(resource[bytes.index(after: mark)...])
        } else {
            path = resource
        }
    }

    /// Checks a head that came without ``HTTPServerConnection``, such as a WebSocket's.
    public init(of head: HTTPRequestHead) throws(HTTPProtocolError) {
        let (resource, authority) = try HTTPRequestCheck.target(of: head)
        self.init(resource: resource, authority: authority)
    }

    /// The host without its port, an IPv6 address without brackets.
    public var host: String {
        let bytes = Array(authority.utf8)
        if bytes.first == UInt8(ascii: "["), let end = bytes.firstIndex(of: UInt8(ascii: "]")) {
            return String(decoding: bytes[1..<end], as: UTF8.self)
        }
        let name = bytes.prefix { $0 != UInt8(ascii: ":") }
        // A dot at the end makes the same name absolute.
        return String(decoding: name.last == UInt8(ascii: ".") ? name.dropLast() : name, as: UTF8.self)
    }

    /// Whether the query has a field called `name`, with or without a value. `name` must need no percent-encoding.
    public func hasQueryField(_ name: String) -> Bool {
        guard let query else { return false }
        return query.utf8.split(separator: UInt8(ascii: "&")).contains { field in
            field.prefix { $0 != UInt8(ascii: "=") }.elementsEqual(name.utf8)
        }
    }
}

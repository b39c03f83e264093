import HTTPProtocol
import Transport
import WireBytes

/// One row of a server's table.
struct HTTPRoute {
    /// `GET` answers HEAD as well.
    var method: String
    /// As on the request line, without the query; not percent-decoded. One that ends in `/*` takes everything below.
    var path: String
    /// Of the paths that ``path`` covers those that exist at the moment; nil: all.
    var isKnown: ((String) -> Bool)?
    /// Longest body, in bytes. A longer one is refused as soon as that is known.
    var maxBodyBytes = 0
    /// For supervisors: such requests have reserved connections.
    var isVital = false
    /// Fields of refusals that the route does not give itself, such as that of a long body.
    var refusalFields: ((HTTPRequestHead) -> [(name: String, value: String)])?
    /// Called as soon as the head is complete, before the body is read; nil: all requests pass.
    var gate: ((HTTPGate, Transport) -> Void)?
    /// Answers now, or retains the exchange and answers later, on the loop.
    var answer: (HTTPExchange, Transport) -> Void

    func matches(path: String) -> Bool {
        guard self.path.utf8.last == UInt8(ascii: "*") else { return self.path == path }
        return path.utf8.starts(with: self.path.utf8.dropLast()) && isKnown?(path) ?? true
    }

    func matches(method: String) -> Bool { self.method == method || (self.method == "GET" && method == "HEAD") }
}

/// Which names a listener answers to.
///
/// A foreign page can resolve its own name to this machine and then read the answers as its own (DNS rebinding). Its
/// requests still carry the foreign name, so a loopback listener accepts only names of this machine.
struct HTTPHostRule: Equatable, Sendable {
    /// Lower case, without ports. Beyond loopback, none means any.
    var hosts: [String]
    var isLoopback: Bool

    func allows(_ target: HTTPRequestTarget, version: HTTPVersion) -> Bool {
        let host = target.host
        // No browser sends a request without a Host; scripts that speak HTTP/1.0 do.
        if host.isEmpty { return target.authority.isEmpty && version < .http11 && (isLoopback || hosts.isEmpty) }
        if hosts.contains(host) { return true }
        if isLoopback { return host == "localhost" || SocketAddress(host: host, port: 0)?.isLoopback == true }
        return hosts.isEmpty
    }
}

/// The routes and rules of one listener.
struct HTTPSite {
    /// The listener's address as it is configured.
    var label = ""
    var hosts: HTTPHostRule
    var routes: [HTTPRoute]
    var proxies = HTTPProxies()

    var hasVitalRoutes: Bool { routes.contains(where: \.isVital) }
}

/// One request with its body, and the pending answer. Lives on the loop; may be retained and answered later.
final class HTTPExchange {
    let head: HTTPRequestHead
    let target: HTTPRequestTarget
    let body: [UInt8]
    let visitor: HTTPVisitor
    /// The gate's object for the request; released with the exchange.
    let pass: AnyObject?
    private weak var server: HTTPServer?
    private let connection: ConnectionID
    /// Of all the server's requests: an answer that comes too late must not go to the next request.
    let number: UInt64

    init(
        head: HTTPRequestHead, target: HTTPRequestTarget, body: [UInt8], visitor: HTTPVisitor,
        pass: AnyObject? = nil, server: HTTPServer, connection: ConnectionID, number: UInt64
    ) {
        self.pass = pass
        self.head = head
        self.target = target
        self.body = body
        self.visitor = visitor
        self.server = server
        self.connection = connection
        self.number = number
    }

    /// Whether the client still waits. Once false, every call below does nothing.
    var isOpen: Bool { server?.isOpen(connection, number) ?? false }

    /// Answers in one piece. `headers` must not frame the message: the connection does that.
    func respond(_ status: Int, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8] = [], transport: Transport) {
        server?.respond(connection, number, status, headers, body, transport)
    }

    /// Answers with text.
    func respond(_ status: Int, type: String = "text/plain; charset=utf-8", _ text: String, transport: Transport) {
        respond(status, headers: HTTPHeaders([("Content-Type", type)]), body: Array(text.utf8), transport: transport)
    }

    /// Begins an answer; ``write(_:transport:)`` and ``finish(transport:)`` follow.
    ///
    /// - Parameter length: of the whole body, in bytes; nil: not known.
    func begin(_ status: Int, headers: HTTPHeaders = HTTPHeaders(), length: Int? = nil, transport: Transport) {
        server?.begin(connection, number, status, headers, length.map { .length($0) } ?? .stream, transport)
    }

    /// Calls `then` once: as soon as the client has taken all written bytes, or when the exchange is over.
    func whenDrained(_ transport: Transport, then: @escaping (Transport) -> Void) {
        guard let server, server.whenDrained(connection, number, transport, then) else { return then(transport) }
    }

    /// How long the client has taken none of the waiting bytes; nil: none wait, or the exchange is over.
    func stall(_ transport: Transport) -> Duration? { server?.stall(connection, number, transport) }

    /// Aborts an answer that cannot be completed, so that it does not look complete.
    func breakOff(_ transport: Transport) { server?.breakOff(connection, number, transport) }

    func write(_ slice: ByteSlice, transport: Transport) { server?.write(connection, number, slice, transport) }

    func finish(transport: Transport) { server?.finish(connection, number, transport) }
}

/// A request before its body, for a route that looks at the head first. One of ``open(_:transport:)`` and
/// ``refuse(_:headers:_:transport:)`` is owed, now or later.
struct HTTPGate {
    let head: HTTPRequestHead
    let target: HTTPRequestTarget
    let visitor: HTTPVisitor
    weak var server: HTTPServer?
    let connection: ConnectionID
    let number: UInt64

    /// Lets the request in; see ``HTTPExchange/pass``.
    func open(_ pass: AnyObject?, transport: Transport) { server?.openGate(connection, number, pass, transport) }

    func refuse(_ status: Int, headers: [(name: String, value: String)] = [], _ text: String, transport: Transport) {
        server?.refuseGate(connection, number)
        server?.respond(
            connection, number, status, HTTPHeaders([("Content-Type", "text/plain; charset=utf-8")] + headers),
            Array(text.utf8), transport)
    }
}

extension HTTPHeaders {
    /// For answers that hold only for the moment.
    static func notStored(_ type: String) -> HTTPHeaders {
        HTTPHeaders([("Content-Type", type), ("Cache-Control", "no-store")])
    }
}

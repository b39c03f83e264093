import HTTPProtocol
import Transport
import WireBytes

/// A request to a foreign server.
struct HTTPClientRequest: Sendable {
    /// A token; GET, HEAD, PUT, DELETE and OPTIONS are sent again when a reused connection turns out to be closed.
    var method = "GET"
    /// `http` or `https`.
    var url: HTTPURL
    /// Host and the fields that frame the message are the client's business.
    var headers = HTTPHeaders()
    /// Nil: no body at all.
    var body: [UInt8]?
    /// For everything: waiting, name, connection, redirects, answer.
    var timeout: Duration = .seconds(30)
    /// Longest time in which nothing comes, pauses of the receiver left out; nil: ``timeout`` alone counts.
    var stallTimeout: Duration?
    /// Longest answer, in bytes.
    var maxBodyBytes = HTTPBodyLimits.maxBodyBytes
    /// Without, a redirect is an answer like others.
    var followsRedirects = true
    /// How `https` is secured; nil: as the system's authorities have it.
    var tls: TLSClientSettings?
    /// Which way the connection takes.
    var proxies = HTTPProxyRules.direct

    init(_ url: HTTPURL, method: String = "GET") {
        self.url = url
        self.method = method
    }
}

extension HTTPClientRequest {
    /// Whether doing it twice is no different from doing it once. Source: RFC 9110 §9.2.2.
    var isRepeatable: Bool { ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"].contains(method) }
}

/// How long an answer is waited for: in all, and where that is bounded, for the next bytes of it.
struct HTTPTimeout {
    let deadline: MonotonicInstant
    private let stallTimeout: Duration?
    private var movedAt: MonotonicInstant

    init(_ request: HTTPClientRequest, now: MonotonicInstant) {
        deadline = now + request.timeout
        stallTimeout = request.stallTimeout
        movedAt = now
    }

    /// Something came, or is wanted again.
    mutating func moved(now: MonotonicInstant) { movedAt = now }

    /// When it is to be looked at next; nil: it has been long enough.
    func nextLook(now: MonotonicInstant, isPaused: Bool = false) -> MonotonicInstant? {
        let look = stallTimeout.map { min(deadline, (isPaused ? now : movedAt) + $0) } ?? deadline
        return look > now ? look : nil
    }
}

/// Takes an answer as it comes. Called on the loop; must not call the client from within, but for later.
protocol HTTPBodyReceiver: AnyObject {
    /// The head of the answer, redirects left out. False: nothing more is wanted, and the request is given up.
    func headReceived(_ head: HTTPResponseHead, transport: Transport) -> Bool
    func partReceived(_ part: ByteSlice, transport: Transport) -> HTTPBodyDemand
}

/// A receiver's reaction to a part of a body.
enum HTTPBodyDemand {
    case more
    /// No more before ``HTTPClient/resume(_:transport:)``, except bytes that were read already.
    case pause
    /// The request is given up.
    case stop
}

struct HTTPClientResponse: Equatable, Sendable {
    var head: HTTPResponseHead
    var body: [UInt8]
    /// The URL that answered in the end, after redirects.
    var url: HTTPURL
}

/// Why there is no answer. The request may have been carried out all the same, except where the case says otherwise.
enum HTTPClientError: Error, Equatable, Sendable {
    /// Nothing was sent: the URL is none that this client can ask.
    case unsupportedURL(String)
    /// Nothing was sent: no connection. The sentence says why.
    case notConnected(String)
    case connectionLost(String)
    case protocolError(HTTPProtocolError)
    case timedOut
    case tooManyRedirects(limit: Int)
    /// To another host or port, or from https to http. The place is without its query.
    case redirectRefused(to: String)
    /// Nothing was sent: too many requests wait.
    case busy(limit: Int)
    case cancelled

    /// The same request would end the same way.
    var isFinal: Bool {
        switch self {
        case .unsupportedURL, .tooManyRedirects, .redirectRefused, .protocolError(.bodyTooLarge): true
        case .notConnected, .connectionLost, .protocolError, .timedOut, .busy, .cancelled: false
        }
    }

    /// Without a full stop.
    var sentence: String {
        switch self {
        case .unsupportedURL(let sentence), .notConnected(let sentence), .connectionLost(let sentence): sentence
        case .protocolError(let error): error.sentence
        case .timedOut: "no answer in time"
        case .tooManyRedirects(let limit): "more than \(limit) redirects"
        case .redirectRefused(let place): "redirected to \(place), which is not followed"
        case .busy(let limit): "more than \(limit) requests are waiting"
        case .cancelled: "given up"
        }
    }
}

/// A connection's far end and the way there: requests of equal routes may share one.
struct HTTPClientRoute: Hashable, Sendable {
    var origin: HTTPOrigin
    /// Nil: plain.
    var tls: TLSClientSettings?
    var proxy: HTTPProxy?

    /// The route of a request.
    ///
    /// - Throws: when there is none, such as for a scheme that cannot be carried.
    init(_ request: HTTPClientRequest) throws(HTTPClientError) {
        let url = request.url
        guard url.scheme == "http" || url.scheme == "https" else {
            throw .unsupportedURL("\(url.scheme):// cannot be asked by this version")
        }
        origin = HTTPOrigin(url)
        tls = url.isSecure ? request.tls ?? TLSClientSettings() : nil
        switch request.proxies.route(to: url) {
        case .direct: proxy = nil
        case .proxy(let proxy): self.proxy = proxy
        case .unusable(let sentence): throw .unsupportedURL(sentence)
        }
    }
}

/// Where a redirect leads, and whether it is followed.
enum HTTPRedirect {
    /// Redirects followed for one request.
    static let limit = 3
    /// Source: RFC 9110 §15.4.
    static let statuses: Set<Int> = [301, 302, 303, 307, 308]

    /// The request to send next.
    ///
    /// Only to the same host: another one would receive the credentials, and could direct requests to internal servers.
    /// From http to https of the same host is permitted; otherwise scheme and port stay.
    static func next(
        _ request: HTTPClientRequest, status: Int, location: String
    ) throws(HTTPClientError) -> HTTPClientRequest {
        let url = try resolve(location, against: request.url)
        let old = HTTPOrigin(request.url)
        let new = HTTPOrigin(url)
        let isUpgrade = old.scheme == "http" && new.scheme == "https" && old.port == 80 && new.port == 443
        guard new.host == old.host, new == old || isUpgrade else { throw .redirectRefused(to: url.description) }
        var next = request
        next.url = url
        // Source: RFC 9110 §15.4.2 to §15.4.4: common practice.
        if status == 303 && request.method != "HEAD" || (status == 301 || status == 302) && request.method == "POST" {
            next.method = "GET"
            next.body = nil
            next.headers.removeAll("Content-Type")
        }
        return next
    }

    /// Source: RFC 3986 §5.2. Dot segments are left for the server.
    private static func resolve(_ location: String, against base: HTTPURL) throws(HTTPClientError) -> HTTPURL {
        let reference = String(location.prefix { $0 != "#" })
        let origin = "\(base.scheme)://\(base.hostHeader)"
        let path = base.pathAndQuery.prefix { $0 != "?" }
        let text: String
        if reference.firstRange(of: "://").map({ !reference[..<$0.lowerBound].contains("/") }) == true {
            text = reference
        } else if reference.hasPrefix("//") {
            text = "\(base.scheme):\(reference)"
        } else if reference.hasPrefix("/") {
            text = origin + reference
        } else if reference.hasPrefix("?") || reference.isEmpty {
            text = origin + path + reference
        } else {
            text = origin + path[...(path.lastIndex(of: "/") ?? path.startIndex)] + reference
        }
        do throws(HTTPURLError) {
            return try HTTPURL(parsing: text)
        } catch {
            throw .redirectRefused(to: String(reference.prefix { $0 != "?" }))
        }
    }
}

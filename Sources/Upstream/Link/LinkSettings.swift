public import Dialects
public import HTTPProtocol
public import WSProtocol

/// Where a link leads, and how.
public struct LinkSettings: Sendable {
    /// `[a-z0-9_-]+` of a room, for logs and metrics; an account's own link has the account's name behind it.
    public var name: String
    /// Name of the backend; the host in its people's sources and part of every id.
    public var backend: String
    public var dialect: any Dialect
    public var url: HTTPURL
    /// The room's id or name on the backend.
    public var upstreamRoom: String
    /// So many messages from before are fetched when the room opens for the first time, and at first after each outage; 0:
    /// none when it opens.
    public var historyLimit: Int
    public var subprotocols: [String]
    /// A backend that chooses none of the subprotocols is refused.
    public var requiresSubprotocol: Bool
    public var headers: [(name: String, value: String)]
    /// Each attempt begins with reading credentials.
    public var authenticates: Bool
    /// HTTP statuses and close codes that mean that what we showed is not taken.
    public var refusalCodes: Set<Int> = [401, 403, 1008, 4001, 4003]
    /// Which way the connection takes.
    public var proxies: HTTPProxyRules
    public var userAgent: String
    public var connectTimeout: Duration
    public var handshakeTimeout: Duration
    public var ping: Duration
    /// Where nobody chose another.
    public static let usualPing: Duration = .seconds(20)
    public var pongTimeout: Duration
    public var webSocketLimits: WebSocketLimits
    /// What is offered to the backend; nil: nothing.
    public var compression: WebSocketCompression?
    public var backoff: BackoffTraits
    /// A session that was usable this long starts the next outage with the first delay again.
    public var backoffResetAfter: Duration

    public init(
        name: String, backend: String? = nil, dialect: any Dialect, url: HTTPURL, upstreamRoom: String? = nil,
        historyLimit: Int = 50, subprotocols: [String] = [], requiresSubprotocol: Bool = false,
        headers: [(name: String, value: String)] = [], authenticates: Bool = false,
        proxies: HTTPProxyRules = .direct, userAgent: String = "chatbridge",
        connectTimeout: Duration = .seconds(10), handshakeTimeout: Duration = .seconds(10),
        ping: Duration = LinkSettings.usualPing, pongTimeout: Duration = .seconds(10),
        webSocketLimits: WebSocketLimits = WebSocketLimits(), compression: WebSocketCompression? = nil,
        backoff: BackoffTraits? = nil, backoffResetAfter: Duration = .seconds(10)
    ) {
        self.name = name
        self.backend = backend ?? name
        self.dialect = dialect
        self.url = url
        self.upstreamRoom = upstreamRoom ?? name
        self.historyLimit = historyLimit
        self.subprotocols = subprotocols
        self.requiresSubprotocol = requiresSubprotocol
        self.headers = headers
        self.authenticates = authenticates
        self.proxies = proxies
        self.userAgent = userAgent
        self.connectTimeout = connectTimeout
        self.handshakeTimeout = handshakeTimeout
        self.ping = ping
        self.pongTimeout = pongTimeout
        self.webSocketLimits = webSocketLimits
        self.compression = compression
        self.backoff = backoff ?? dialect.traits.backoff
        self.backoffResetAfter = backoffResetAfter
    }
}

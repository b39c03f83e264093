public import Dialects
public import HTTPProtocol
public import WSProtocol

/// The target of a link, and its options.
public struct LinkSettings: Sendable {
    /// `[a-z0-9_-]+` of a room, for logs and metrics; an account's own link has the account's name behind it.
    public var name: String
    /// Name of the backend; the host in its users' sources and part of every id.
    public var backend: String
    public var dialect: any Dialect
    public var url: HTTPURL
    /// The room's id or name on the backend.
    public var upstreamRoom: String
    /// So many messages from before are fetched when the room opens for the first time, and at first after each outage;
    /// 0: none when it opens.
    public var historyLimit: Int
    public var subprotocols: [String]
    /// A backend that chooses none of the subprotocols is refused.
    public var requiresSubprotocol: Bool
    public var headers: [(name: String, value: String)]
    /// Each attempt begins with reading credentials.
    public var authenticates: Bool
    /// HTTP statuses and close codes that mean that the credentials are refused.
    public var refusalCodes = usualRefusalCodes
    private static let usualRefusalCodes: Set<Int> = [401, 403, 1008, 4001, 4003]
    /// Selects the proxy of the connection.
    public var proxies: HTTPProxyRules
    public var userAgent: String
    public var connectTimeout: Duration
    public var handshakeTimeout: Duration
    public var ping: Duration
    /// The default.
    public static let usualPing: Duration = .seconds(20)
    public var pongTimeout: Duration
    public var webSocketLimits: WebSocketLimits
    /// The compression offered to the backend; nil: none.
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

/// The target of a room's connection: the backend, or the proxy in front of it.
public enum UpstreamEndpoint: Equatable, Sendable {
    /// A name or a numeric address, IPv6 without brackets.
    case host(String, port: Int)
    /// The path of a Unix-domain socket.
    case unix(path: String)
}

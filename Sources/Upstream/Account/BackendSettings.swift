public import Dialects
public import HTTPProtocol

/// A backend: one account, one store of tokens and one HTTP base for all its rooms. A room finds its backend by
/// ``RoomSettings/backend``.
public struct BackendSettings: Sendable {
    /// As ``RoomSettings/backend`` names it.
    public var name: String
    public var dialect: any Dialect
    /// `http` or `https`; calls go to this origin. Nil: there are no calls.
    public var httpBase: HTTPURL?
    /// The user of the account, where the dialect logs in by name.
    public var user: String?
    /// Nil: no login; calls use the rooms' credentials.
    public var login: LoginSettings?
    /// Whether there are credentials at all.
    public var authenticates: Bool
    /// No request is made before a client needs it.
    public var isOnDemand: Bool
    public var limits: BackendLimits

    public init(
        name: String, dialect: any Dialect, httpBase: HTTPURL? = nil, user: String? = nil,
        login: LoginSettings? = nil, authenticates: Bool = false, isOnDemand: Bool = false,
        limits: BackendLimits = BackendLimits()
    ) {
        self.name = name
        self.dialect = dialect
        self.httpBase = httpBase
        self.user = user
        self.login = login
        self.authenticates = authenticates || login != nil
        self.isOnDemand = isOnDemand
        self.limits = limits
    }

    /// Identifies the owner of stored tokens: the user and the server.
    var tokenOwner: String { (user ?? "") + " " + (httpBase?.description ?? "") }
}

/// How tokens are obtained and sent.
public struct LoginSettings: Sendable {
    /// The place of the token when a room's socket is opened. Calls send it as a bearer token, or in the same header.
    public enum Placement: Equatable, Sendable {
        /// `format` with `{token}` replaced.
        case header(name: String, format: String)
        case query(name: String)
        /// As the first frame on the socket.
        case message

        /// Source: RFC 6750 §2.1.
        public static let bearer = Placement.header(name: "Authorization", format: "Bearer {token}")

        /// The place of the dialect's own clients.
        public static func usual(for traits: DialectTraits) -> Placement {
            if traits.opening.contains(.authenticates) { return .message }
            return traits.name == "jwt-rooms" ? .query(name: "token") : .bearer
        }
    }

    /// The login and refresh calls; nil: the dialect's own.
    public var calls: (any DialectCalls)?
    public var sendAs: Placement
    /// Time before its end at which a token is renewed.
    public var refreshBefore: Duration
    /// Statuses of answers to calls that mean a stale token.
    public var staleStatuses: Set<Int>

    public init(
        calls: (any DialectCalls)? = nil, sendAs: Placement = .bearer, refreshBefore: Duration = .seconds(60),
        staleStatuses: Set<Int> = [401, 403]
    ) {
        self.calls = calls
        self.sendAs = sendAs
        self.refreshBefore = refreshBefore
        self.staleStatuses = staleStatuses
    }
}

/// Bounds on the calls of one backend.
public struct BackendLimits: Equatable, Sendable {
    /// Calls in flight. Rooms share the backend with its users, whose apps make one call at a time.
    public var callsAtOnce: Int
    /// Queued calls. Each room asks for its history once a reconnect.
    public var callsWaiting: Int
    /// From submission to answer, retries included.
    public var callTimeout: Duration
    /// Longest answer, in bytes: a few thousand messages.
    public var answerBytes: Int

    public init(
        callsAtOnce: Int = 4, callsWaiting: Int = 500, callTimeout: Duration = .seconds(30),
        answerBytes: Int = 8 * 1024 * 1024
    ) {
        self.callsAtOnce = callsAtOnce
        self.callsWaiting = callsWaiting
        self.callTimeout = callTimeout
        self.answerBytes = answerBytes
    }
}

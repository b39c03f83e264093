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
    /// Whose account it is, where the dialect logs in by name.
    public var user: String?
    /// Nil: nobody logs in; calls show what the rooms show.
    public var login: LoginSettings?
    /// Whether there is anything to show at all.
    public var authenticates: Bool
    /// Asked for nothing before somebody needs it.
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

    /// Tells kept tokens of this account from those of another: the user and the place.
    var tokenOwner: String { (user ?? "") + " " + (httpBase?.description ?? "") }
}

/// How tokens are got and shown.
public struct LoginSettings: Sendable {
    /// Where the token goes when a room's socket is opened. Calls show it as a bearer token, or in the same header.
    public enum Placement: Equatable, Sendable {
        /// `format` with `{token}` replaced.
        case header(name: String, format: String)
        case query(name: String)
        /// As the first frame on the socket.
        case message

        /// Source: RFC 6750 §2.1.
        public static let bearer = Placement.header(name: "Authorization", format: "Bearer {token}")

        /// Where the dialect's own clients put it.
        public static func usual(for traits: DialectTraits) -> Placement {
            if traits.opening.contains(.authenticates) { return .message }
            return traits.name == "jwt-rooms" ? .query(name: "token") : .bearer
        }
    }

    /// Knows how to log in and refresh; nil: the dialect's own calls.
    public var calls: (any DialectCalls)?
    public var sendAs: Placement
    /// How long before its end a token is renewed.
    public var refreshBefore: Duration
    /// Statuses of answers to calls that mean that the token is stale.
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
    /// Calls under way at a time. Rooms share the backend with people, whose apps ask one thing at a time.
    public var callsAtOnce: Int
    /// Calls that wait. Each room asks for its history once a reconnect.
    public var callsWaiting: Int
    /// From being wanted to being answered, retries included.
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

public import Dialects
public import HTTPProtocol

/// What the rooms of one backend share: a dialect, an account, and where its HTTP calls go.
public struct BackendSettings: Sendable {
    /// The host in its people's sources and part of every id; ``RoomSettings/backend`` names it.
    public var name: String
    /// For the calls beside the socket; rooms have theirs, which may have options of their own.
    public var dialect: any Dialect
    /// `http` or `https`; nil where the backend is a socket file and nobody named another place.
    public var httpBase: HTTPURL?
    /// Who the bridge is for dialects that log in by themselves.
    public var user: String?

    public init(name: String, dialect: any Dialect, httpBase: HTTPURL? = nil, user: String? = nil) {
        self.name = name
        self.dialect = dialect
        self.httpBase = httpBase
        self.user = user
    }
}

public import ChatModel

/// The credentials of one attempt to open a room's link. Read anew for each attempt, so that a token that was replaced
/// in its file is used without a restart.
public struct UpstreamCredentials: Equatable, Sendable {
    /// Fields for the handshake, after the room's own.
    public var headers: [Item]
    /// Added to the URL's query; not encoded yet.
    public var query: [Item]
    /// The login on the socket itself once it is open, where the wire has one.
    public var socket: ChatCredentials?

    public struct Item: Equatable, Sendable {
        public var name: String
        public var value: String

        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    public init(headers: [Item] = [], query: [Item] = [], socket: ChatCredentials? = nil) {
        self.headers = headers
        self.query = query
        self.socket = socket
    }
}

extension UpstreamCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "***" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

extension UpstreamCredentials.Item: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "\(name): ***" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

/// Why there are no credentials; a sentence without a full stop that repeats no secret.
public struct UpstreamCredentialsFailure: Error, Equatable, Sendable {
    public var sentence: String
    /// The backend itself refuses the account; asking again soon would not help.
    public var isRefusal: Bool

    public init(_ sentence: String, isRefusal: Bool = false) {
        self.sentence = sentence
        self.isRefusal = isRefusal
    }
}

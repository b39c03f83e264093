public import ChatModel

// Calls over HTTP beside the socket. A dialect turns a call into a request and an answer into a value; sending, pacing
// and tokens are the caller's business.

/// The calls beside the socket that a dialect knows.
public protocol DialectCalls: Sendable {
    /// The request for `call`; nil where the backend has none such.
    func request(for call: BackendCall, context: DialectContext) -> BackendRequest?

    /// The meaning of an answer with a status of 2xx.
    func reply(to call: BackendCall, answer: BackendAnswer, context: DialectContext) -> BackendReply

    /// The reason in an answer with any other status; nil when it has none. Never an echo of the request.
    func complaint(_ answer: BackendAnswer) -> String?

    /// Whether `BackendCall.history` can say before when.
    var takesBefore: Bool { get }

    /// Whether it says after which message, or since when, so that an answer that is bounded may end before the newest one.
    var takesAfter: Bool { get }

    /// Whether an answer begins right behind the message that it says so of, and never with that one.
    var beginsBehind: Bool { get }
}

extension DialectCalls {
    public var takesBefore: Bool { false }
    public var takesAfter: Bool { false }
    public var beginsBehind: Bool { false }
}

public enum BackendCall: Equatable, Sendable {
    /// Tokens for a name and a password.
    case logIn(user: String, password: String)
    /// New tokens for the refresh token.
    case refresh(token: String)
    /// The account's own id and name.
    case whoAmI
    /// The rooms that the account can enter.
    case rooms
    case history(HistoryQuery)
    /// Everything in the room counts as read.
    case markRead(room: String)
    /// A file that a message will carry.
    case upload(UploadedFile)
}

/// Which messages are wanted.
public struct HistoryQuery: Equatable, Sendable {
    /// The room as the backend calls it.
    public var room: String
    /// The newest message that is known already.
    public var after: ChatID?
    /// The time of that message.
    public var since: ChatTimestamp?
    /// Only messages before this time; only for calls that ``DialectCalls/takesBefore``.
    public var before: ChatTimestamp?
    /// The oldest message that is known already, where the call is to go on from there.
    public var beforeID: ChatID?
    /// At most so many, the newest ones; nil: everything there is.
    public var limit: Int?

    public init(
        room: String, after: ChatID? = nil, since: ChatTimestamp? = nil, before: ChatTimestamp? = nil,
        beforeID: ChatID? = nil, limit: Int? = nil
    ) {
        self.room = room
        self.after = after
        self.since = since
        self.before = before
        self.beforeID = beforeID
        self.limit = limit
    }
}

public struct UploadedFile: Equatable, Sendable {
    public var name: String
    public var mime: String
    public var bytes: [UInt8]

    public init(name: String, mime: String, bytes: [UInt8]) {
        self.name = name
        self.mime = mime
        self.bytes = bytes
    }
}

/// An HTTP request, without host and credentials.
public struct BackendRequest: Equatable, Sendable {
    public enum Method: String, Sendable { case get = "GET", post = "POST", patch = "PATCH", delete = "DELETE" }

    public enum Body: Equatable, Sendable {
        case none
        case json([UInt8])
        /// One file, after the other fields.
        case multipart(fields: [(name: String, value: String)], fileField: String, file: UploadedFile)

        public static func == (a: Self, b: Self) -> Bool {
            switch (a, b) {
            case (.none, .none): true
            case (.json(let x), .json(let y)): x == y
            case (.multipart(let f, let n, let x), .multipart(let g, let m, let y)):
                n == m && x == y && f.elementsEqual(g) { $0.name == $1.name && $0.value == $1.value }
            default: false
            }
        }
    }

    public var method: Method
    /// A path with its query, percent-encoded, from the root of the backend's HTTP base; or a whole URL, which must have
    /// the origin of that base.
    public var target: String
    public var body: Body
    /// Goes with the account's access token.
    public var isAuthorized: Bool

    public init(_ method: Method, _ target: String, body: Body = .none, isAuthorized: Bool = true) {
        self.method = method
        self.target = target
        self.body = body
        self.isAuthorized = isAuthorized
    }
}

/// An HTTP answer; the body is whole and within the limits.
public struct BackendAnswer: Equatable, Sendable {
    public var status: Int
    public var body: [UInt8]

    public init(status: Int, body: [UInt8]) {
        self.status = status
        self.body = body
    }
}

/// The meaning of an answer.
public enum BackendReply: Equatable, Sendable {
    case tokens(BackendTokens)
    case person(ChatPerson)
    case rooms([BackendRoom])
    /// Oldest first, in the order of the backend. `isComplete`: there is nothing older in the room.
    case messages([ChatMessage], isComplete: Bool)
    case attachment(ChatAttachment)
    case done
    /// An answer of another form.
    case unusable(DropReason)
}

/// Tokens of an account. A secret: never in a log, an error or a line.
public struct BackendTokens: Equatable, Sendable {
    public var access: String
    /// Nil: log in again when the access token ends.
    public var refresh: String?
    /// How long the access token holds, in milliseconds, where the answer says it; else a JWT says it itself.
    public var lifetimeMilliseconds: Int64?

    public init(access: String, refresh: String? = nil, lifetimeMilliseconds: Int64? = nil) {
        self.access = access
        self.refresh = refresh
        self.lifetimeMilliseconds = lifetimeMilliseconds
    }
}

extension BackendTokens: Redacted {
    public var description: String { "***" }
}

/// A room of the backend, for LIST.
public struct BackendRoom: Equatable, Sendable {
    /// As calls and frames name it.
    public var id: String
    /// For people; where the socket's URL takes names, this one.
    public var name: String
    public var topic: String?
    public var unread: Int64?

    public init(id: String, name: String, topic: String? = nil, unread: Int64? = nil) {
        self.id = id
        self.name = name
        self.topic = topic
        self.unread = unread
    }
}

// MARK: - Redaction

// Calls carry passwords and tokens, in bodies of any form.

extension BackendCall: Redacted {
    public var description: String {
        switch self {
        case .logIn: "log in"
        case .refresh: "refresh"
        case .whoAmI: "who am I"
        case .rooms: "rooms"
        case .history: "history"
        case .markRead: "mark read"
        case .upload(let file): "upload of \(file.bytes.count) bytes"
        }
    }
}

extension BackendRequest: Redacted {
    /// Method and path; neither query nor body.
    public var description: String {
        method.rawValue + " " + String(decoding: target.utf8.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
    }
}

extension BackendRequest.Body: Redacted {
    public var description: String {
        switch self {
        case .none: "nothing"
        case .json(let bytes): "JSON of \(bytes.count) bytes"
        case .multipart(_, _, let file): "a file of \(file.bytes.count) bytes"
        }
    }
}

extension BackendAnswer: Redacted {
    public var description: String { "\(status) with \(body.count) bytes" }
}

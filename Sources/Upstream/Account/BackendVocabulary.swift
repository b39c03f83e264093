public import BridgeTypes
public import ChatModel
public import Dialects

/// The secrets of a backend's account, as the driver read them.
public enum BackendSecrets: Equatable, Sendable {
    /// For the login call.
    case login(user: String, password: String)
    /// Sent as they are.
    case fixed(UpstreamCredentials)
}

extension BackendSecrets: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "***" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

/// Tokens in persistent storage.
public struct StoredTokens: Equatable, Sendable {
    public var access: String
    public var refresh: String?
    /// When the access token ends; nil: not known.
    public var expiresAt: ChatTimestamp?
    /// Their owner; tokens of another owner are not used.
    public var owner: String

    public init(access: String, refresh: String? = nil, expiresAt: ChatTimestamp? = nil, owner: String) {
        self.access = access
        self.refresh = refresh
        self.expiresAt = expiresAt
        self.owner = owner
    }
}

extension StoredTokens: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "***" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

/// One HTTP exchange that the driver carries out: to the backend's own origin, without leaving it by redirects.
public struct BackendCallRequest: Equatable, Sendable {
    public var backend: BackendID
    public var request: BackendRequest
    /// Its credentials, as header fields and in the query; nothing on a socket.
    public var authorization: UpstreamCredentials
    public var timeout: Duration
    /// Longest answer, in bytes.
    public var maxAnswerBytes: Int
    /// Longest time without a byte, while bytes are taken; nil: only ``timeout`` counts.
    public var stallTimeout: Duration?
    /// A client's token is being verified: the request carries that alone, no header and no certificate of the
    /// bridge's.
    public var carriesClientTokenOnly: Bool

    package init(
        backend: BackendID, request: BackendRequest, authorization: UpstreamCredentials, timeout: Duration,
        maxAnswerBytes: Int, stallTimeout: Duration? = nil, carriesClientTokenOnly: Bool = false
    ) {
        self.backend = backend
        self.request = request
        self.authorization = authorization
        self.timeout = timeout
        self.maxAnswerBytes = maxAnswerBytes
        self.stallTimeout = stallTimeout
        self.carriesClientTokenOnly = carriesClientTokenOnly
    }
}

/// An answer of any status, and the server's `Retry-After`.
public struct BackendCallResponse: Equatable, Sendable {
    public var answer: BackendAnswer
    public var retryAfter: Duration?

    public init(_ answer: BackendAnswer, retryAfter: Duration? = nil) {
        self.answer = answer
        self.retryAfter = retryAfter
    }
}

/// The requester of a call's reply.
package enum BackendPurpose: Equatable {
    case whoAmI
    case rooms
    case history(RoomID)
    case olderHistory(RoomID)
    case markRead(RoomID)
    case ownIdentity(RoomID)
    case upload(UploadID)

    /// The kind of a call: calls of one kind fail together.
    enum Kind: Hashable {
        case person
        case rooms
        case history
        case markRead
        case upload
    }

    var kind: Kind {
        switch self {
        case .whoAmI, .ownIdentity: .person
        case .rooms: .rooms
        case .history, .olderHistory: .history
        case .markRead: .markRead
        case .upload: .upload
        }
    }

    /// The subject of a call: calls about the same are refused together.
    struct Subject: Hashable {
        var kind: Kind
        var room: RoomID?
    }

    var subject: Subject {
        switch self {
        case .whoAmI, .rooms, .upload: Subject(kind: kind)
        case .history(let room), .olderHistory(let room), .markRead(let room), .ownIdentity(let room):
            Subject(kind: kind, room: room)
        }
    }
}

/// Outcomes for the bridge.
package enum BackendEvent {
    /// A room that asked for credentials gets them, or not.
    case credentials(RoomID, Result<UpstreamCredentials, UpstreamCredentialsFailure>)
    case answered(BackendPurpose, Result<BackendReply, BackendCallFailure>)
    /// There are other tokens than before, usable from now on.
    case renewed
}

/// Why a call beside the socket failed.
public struct BackendCallFailure: Error, Equatable, Sendable {
    /// Without a full stop; repeats no secret.
    public var sentence: String
    /// The HTTP status of the answer, if there was one.
    public var status: Int?
    /// The same call would end the same way: its answer is too large, or it leads elsewhere.
    public var isFinal: Bool

    public init(sentence: String, status: Int? = nil, isFinal: Bool = false) {
        self.sentence = sentence
        self.status = status
        self.isFinal = isFinal
    }
}

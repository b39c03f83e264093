public import ChatModel

/// A translator between one backend's JSON frames and ``ChatModel``.
///
/// A dialect is a value without clock, state or I/O: the session around it supplies ids and times and decides what to do
/// with what a frame says. To add one, write a type that conforms and give it a row in ``DialectTable``.
public protocol Dialect: Sendable {
    /// What the session must know about this wire.
    var traits: DialectTraits { get }

    /// Translates one frame. Any bytes end in events or a named drop reason.
    ///
    /// - Parameters:
    ///   - frame: the whole payload of one WebSocket message; valid only during the call.
    ///   - isBinary: whether it came as a binary message.
    ///   - context: who we are in this room.
    func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame

    /// Translates one command into the frames that carry it, oldest first.
    func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand
}

/// Who we are and where, as a codec needs to know it.
public struct DialectContext: Sendable {
    /// Every upstream id under which we speak: one for each IRC user where senders can be named.
    public var selfIDs: Set<ChatID>
    /// Our names, for wires without ids.
    public var selfNames: Set<String>
    /// The room's id or name on the backend.
    public var room: String

    public init(selfIDs: Set<ChatID> = [], selfNames: Set<String> = [], room: String) {
        self.selfIDs = selfIDs
        self.selfNames = selfNames
        self.room = room
    }

    /// Whether `person` is one of us: by id where there is one, else by exact name.
    public func isSelf(_ person: ChatPerson) -> Bool {
        if let id = person.id { return selfIDs.contains(id) }
        if let name = person.name { return selfNames.contains(name) }
        return false
    }
}

/// Why a frame gave nothing, or a command could not be said.
public enum DropReason: String, Sendable, CaseIterable {
    case malformed
    case notObject = "not-object"
    case missingField = "missing-field"
    case wrongType = "wrong-type"
    case unknownType = "unknown-type"
    case unsupported
    case tooLong = "too-long"
}

public enum DecodedFrame: Equatable, Sendable {
    /// Understood; may be empty when a frame needs no event.
    case events([ChatEvent])
    /// Nothing usable. `typeKey` is the frame's own type value where it had one, for the log.
    case dropped(DropReason, typeKey: String?)
}

/// One WebSocket message to send.
public struct EncodedFrame: Equatable, Sendable {
    public var bytes: [UInt8]
    public var isBinary: Bool

    public init(bytes: [UInt8], isBinary: Bool) {
        self.bytes = bytes
        self.isBinary = isBinary
    }
}

public enum EncodedCommand: Equatable, Sendable {
    case frames([EncodedFrame])
    /// The wire cannot say it; the session decides what to do instead.
    case unsupported(DropReason)
}

/// What the session around a codec must know of the wire; one row for each dialect.
public struct DialectTraits: Equatable, Sendable {
    public enum Identity: String, Sendable, CaseIterable { case puppet, single }
    public enum MessageIDOrigin: String, Sendable, CaseIterable { case client, server }
    public enum Confirmation: String, Sendable, CaseIterable {
        /// The own message comes back with the id that we gave it.
        case echoByID
        /// The own message comes back with an id of the server's; matched by sender and text.
        case echoByText
        /// A `sent` receipt, an ack or an answer that names the message.
        case receipt
        /// Nothing on the socket says that it arrived; written is the end.
        case none
    }
    public enum TypingOut: String, Sendable, CaseIterable { case none, startOnly, startStop }
    public enum Liveness: String, Sendable, CaseIterable {
        /// The WebSocket protocol's own ping.
        case protocolPing
        /// A ping inside the JSON, where the server does not answer the protocol's.
        case jsonPing
    }

    /// The name in configurations.
    public var name: String
    public var identity: Identity
    public var messageIDOrigin: MessageIDOrigin
    /// Whether the sender gets the own message back.
    public var echoesOwnMessages: Bool
    public var confirmation: Confirmation
    public var typingOut: TypingOut
    public var sendsReadReceipts: Bool
    /// Whether the backend itself vouches for who a sender is.
    public var authenticatesSenders: Bool
    /// Whether the wire tells of joins and leaves.
    public var hasMembership: Bool
    /// Whether the session must wait for a `ready` event before it is usable.
    public var waitsForReady: Bool
    /// Largest frame that we send, in bytes of payload.
    public var maxFrameBytes: Int
    public var liveness: Liveness
    public var backoff: BackoffTraits

    public init(
        name: String, identity: Identity, messageIDOrigin: MessageIDOrigin, echoesOwnMessages: Bool,
        confirmation: Confirmation, typingOut: TypingOut, sendsReadReceipts: Bool, authenticatesSenders: Bool,
        hasMembership: Bool, waitsForReady: Bool, maxFrameBytes: Int, liveness: Liveness, backoff: BackoffTraits
    ) {
        self.name = name
        self.identity = identity
        self.messageIDOrigin = messageIDOrigin
        self.echoesOwnMessages = echoesOwnMessages
        self.confirmation = confirmation
        self.typingOut = typingOut
        self.sendsReadReceipts = sendsReadReceipts
        self.authenticatesSenders = authenticatesSenders
        self.hasMembership = hasMembership
        self.waitsForReady = waitsForReady
        self.maxFrameBytes = maxFrameBytes
        self.liveness = liveness
        self.backoff = backoff
    }
}

/// How a dialect's own clients reconnect.
public struct BackoffTraits: Equatable, Sendable {
    public var first: Duration
    public var factor: Double
    public var cap: Duration
    /// Share of the delay by which it varies either way, 0...1.
    public var jitter: Double
    /// After this many failures in a row the room counts as degraded; trying goes on.
    public var degradedAfter: Int?

    public init(first: Duration, factor: Double, cap: Duration, jitter: Double, degradedAfter: Int? = nil) {
        self.first = first
        self.factor = factor
        self.cap = cap
        self.jitter = jitter
        self.degradedAfter = degradedAfter
    }
}

/// Every dialect by its configuration name.
public enum DialectTable {
    public struct Row: Sendable {
        public let name: String
        /// Other names that configurations may use.
        public let aliases: [String]
        public let make: @Sendable () -> any Dialect
    }

    public static let rows: [Row] = [
        Row(name: "envelope", aliases: ["pixar"], make: { EnvelopeDialect() })
    ]

    /// The dialect called `name`, or nil.
    public static func dialect(named name: String) -> (any Dialect)? {
        rows.first { $0.name == name || $0.aliases.contains(name) }?.make()
    }

    public static var names: [String] { rows.map(\.name) }
}

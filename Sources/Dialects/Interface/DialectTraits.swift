/// How a dialect's own clients reconnect.
public struct BackoffTraits: Equatable, Sendable {
    public let first: Duration
    public let factor: Double
    public let cap: Duration
    /// Share of the delay by which it varies either way, 0...1.
    public let jitter: Double
    /// After this many failures in a row the room counts as degraded; trying goes on.
    public let degradedAfter: Int?

    public init(first: Duration, factor: Double, cap: Duration, jitter: Double, degradedAfter: Int? = nil) {
        self.first = first
        self.factor = factor
        self.cap = cap
        self.jitter = jitter
        self.degradedAfter = degradedAfter
    }
}

/// Properties of a wire that the session around a codec depends on; one row for each dialect.
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
    /// Commands that the session sends before it is usable, in this order; each only where it applies.
    public struct Opening: OptionSet, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// `ChatCommand.auth` with the token, if there is one that was not given with the handshake; then `auth` `ok` is
        /// awaited.
        public static let authenticates = Opening(rawValue: 1)
        /// `ChatCommand.subscribe`.
        public static let subscribes = Opening(rawValue: 2)
    }
    /// Source of the messages that were missed while disconnected.
    public enum HistorySource: String, Sendable, CaseIterable {
        case none
        /// The backend sends them by itself after the session opened.
        case pushed
        /// `ChatCommand.fetch`; answered by `history` with the same `ref`, or without one.
        case socket
        /// `BackendCall.history`.
        case call
    }
    /// Source of the messages before the oldest known one.
    public enum OlderSource: String, Sendable, CaseIterable {
        case none
        /// `ChatCommand.fetch` with `before`.
        case socket
        /// `BackendCall.history`; where that does not take `before`, everything is asked for.
        case call
    }
    /// How read markers are sent to the backend.
    public enum ReadReport: String, Sendable, CaseIterable {
        case none
        /// A frame for each message.
        case eachMessage
        /// One frame; earlier messages are included.
        case upTo
        /// `BackendCall.markRead`.
        case call
    }
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
    public var readReport = ReadReport.none
    /// Whether the backend itself authenticates senders.
    public var authenticatesSenders = false
    /// Whether frames identify people by name alone, even where calls have ids too.
    public var namesAreIDs = false
    /// Whether the wire has leave events; without, a person leaves after a time without a frame.
    public var tellsOfLeaves = false
    public var opening: Opening = []
    /// Whether the session is usable only after a `ready` event, or a `history`.
    public var waitsForReady = false
    public var history = HistorySource.none
    public var older = OlderSource.none
    /// Largest frame to send, in bytes of payload.
    public var maxFrameBytes = Self.usualMaxFrameBytes
    public var liveness = Liveness.protocolPing
    /// Whether the answer to such a ping can be distinguished from other frames.
    public var answersPings = true
    /// Silence after which a ``Liveness/jsonPing`` is sent; nil: the session's own pause.
    public var pingInterval: Duration?
    /// Rooms of one backend open one after the other: each takes something that the server has little of.
    public var connectsInTurn = false
    /// Interval at which the wire wants typing repeated.
    public var typingRefresh: Duration = .milliseconds(2500)
    /// The only emoji that a reaction can be; empty: any.
    public var reactionChoices: [String] = []
    /// Whether ``Dialect/automaticReplies(to:context:)`` is to be asked.
    public var repliesByRule = false
    /// Whether deletions can name messages of other rooms.
    public var deletesOfOtherRooms = false
    /// Where one account speaks for all: whether a message has a field for the author's name, so that the text needs no
    /// prefix.
    public var sendsSenderName = false
    /// The confirmation comes from another person's client and may never come. The answer to a later ping confirms as
    /// well.
    public var acknowledgedByPeople = false
    /// Whether the backend wants delivery reports for each message.
    public var reportsDelivery = false
    /// Whether a message can name any sender. Elsewhere the backend takes the sender from the login, and only
    /// ``Identity/single`` works.
    public var namesSenders = true
    /// Whether the backend's files need a token.
    public var guardsFiles = false
    /// Whether the backend answers each deletion, if only by its event. Others complain at most.
    public var answersDeletes = false
    /// Whether the backend takes a client-chosen id with a message and returns it as `ref`: a message with another one
    /// was sent by another client.
    public var returnsClientIDs = false
    /// Whether the ids that clients give their messages must be numbers.
    public var idsAreNumbers = false
    /// The confirmation is usual, not promised: a live backend that never confirms is confirmed by pong instead.
    public var confirmationIsGuess = false
    /// Whether only a message's author can edit it, so that an edit without a sender is the author's.
    public var authorsAloneEdit = false
    public var backoff: BackoffTraits

    /// Apple's WebSocket client refuses longer messages by default.
    public static let usualMaxFrameBytes = 1024 * 1024

    /// The traits that every wire must name; the others have their usual values and are set afterwards.
    public init(
        name: String, identity: Identity, messageIDOrigin: MessageIDOrigin, echoesOwnMessages: Bool,
        confirmation: Confirmation, typingOut: TypingOut, backoff: BackoffTraits
    ) {
        self.name = name
        self.identity = identity
        self.messageIDOrigin = messageIDOrigin
        self.echoesOwnMessages = echoesOwnMessages
        self.confirmation = confirmation
        self.typingOut = typingOut
        self.backoff = backoff
    }
}

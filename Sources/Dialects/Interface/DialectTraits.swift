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
    /// What the session sends before it is usable, in this order; each only where it applies.
    public struct Opening: OptionSet, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// `ChatCommand.auth` with the token, if there is one that was not given with the handshake; then `auth` `ok` is
        /// awaited.
        public static let authenticates = Opening(rawValue: 1)
        /// `ChatCommand.subscribe`.
        public static let subscribes = Opening(rawValue: 2)
    }
    /// Where messages come from that were said while nobody listened.
    public enum HistorySource: String, Sendable, CaseIterable {
        case none
        /// The backend sends them by itself after the session opened.
        case pushed
        /// `ChatCommand.fetch`; answered by `history` with the same `ref`, or without one.
        case socket
        /// `BackendCall.history`.
        case call
    }
    /// Where messages come from that were said before the oldest known one.
    public enum OlderSource: String, Sendable, CaseIterable {
        case none
        /// `ChatCommand.fetch` with `before`.
        case socket
        /// `BackendCall.history`; where that does not take `before`, everything is asked for.
        case call
    }
    /// How reading is told to the backend.
    public enum ReadReport: String, Sendable, CaseIterable {
        case none
        /// A frame for each message.
        case eachMessage
        /// One frame; what came before is meant too.
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
    public var readReport: ReadReport
    /// Whether the backend itself vouches for who a sender is.
    public var authenticatesSenders: Bool
    /// Whether frames know people by name alone, even where calls tell an id too.
    public var namesAreIDs: Bool
    /// Whether the wire tells of leaves; without, a person leaves after a time without a frame.
    public var tellsOfLeaves: Bool
    public var opening: Opening
    /// Whether the session is usable only after a `ready` event, or a `history`.
    public var waitsForReady: Bool
    public var history: HistorySource
    public var older: OlderSource
    /// Largest frame that we send, in bytes of payload.
    public var maxFrameBytes: Int
    public var liveness: Liveness
    /// Whether the answer to such a ping can be told from other frames.
    public var answersPings: Bool
    /// Silence after which a ``Liveness/jsonPing`` is sent; nil: the session's own pause.
    public var pingInterval: Duration?
    /// Rooms of one backend open one after the other: each takes something that the server has little of.
    public var connectsInTurn: Bool
    /// How often the wire wants typing repeated while somebody types.
    public var typingRefresh: Duration
    /// The only emoji that a reaction can be; empty: any.
    public var reactionChoices: [String]
    /// Whether ``Dialect/automaticReplies(to:context:)`` is to be asked.
    public var repliesByRule: Bool
    /// Whether deletions can name messages of other rooms.
    public var deletesOfOtherRooms: Bool
    /// Where one account speaks for all: whether a message has a place of its own for the name of who really speaks, so
    /// that the text needs no prefix.
    public var sendsSenderName: Bool
    /// What confirms a message comes from somebody's client and may never come. That the server answers a ping which was
    /// sent after the message counts as well.
    public var acknowledgedByPeople: Bool
    /// Whether the backend wants to hear of each message that it was shown to somebody.
    public var reportsDelivery: Bool
    /// Whether a message of ours can name any sender. Elsewhere the backend takes the sender from the login, and only
    /// ``Identity/single`` is true.
    public var namesSenders = true
    /// Whether the backend gives its files only to whoever shows a token.
    public var guardsFiles = false
    /// Whether the backend answers each deletion, be it that it tells everybody of it. Others complain at most.
    public var answersDeletes = false
    /// Whether the backend gets our id with a message and gives back, as `ref`, the one that a message's client gave it: what
    /// bears another is another client's, whatever it says.
    public var returnsClientIDs = false
    /// The confirmation is what the wire usually does, not a promise: a backend that lives and never answers is confirmed
    /// by pong instead.
    public var confirmationIsGuess = false
    /// Whether the backend lets nobody but a message's author edit it, so that an edit that names nobody is the author's.
    public var authorsAloneEdit = false
    public var backoff: BackoffTraits

    public init(
        name: String, identity: Identity, messageIDOrigin: MessageIDOrigin, echoesOwnMessages: Bool,
        confirmation: Confirmation, typingOut: TypingOut, readReport: ReadReport = .none,
        authenticatesSenders: Bool = false, namesAreIDs: Bool = false, tellsOfLeaves: Bool = false,
        opening: Opening = [],
        waitsForReady: Bool = false, history: HistorySource = .none, older: OlderSource = .none,
        maxFrameBytes: Int = 1024 * 1024,
        liveness: Liveness = .protocolPing, answersPings: Bool = true, pingInterval: Duration? = nil,
        connectsInTurn: Bool = false,
        typingRefresh: Duration = .milliseconds(2500),
        reactionChoices: [String] = [], repliesByRule: Bool = false, deletesOfOtherRooms: Bool = false,
        sendsSenderName: Bool = false, acknowledgedByPeople: Bool = false, reportsDelivery: Bool = false,
        backoff: BackoffTraits
    ) {
        self.name = name
        self.identity = identity
        self.messageIDOrigin = messageIDOrigin
        self.echoesOwnMessages = echoesOwnMessages
        self.confirmation = confirmation
        self.typingOut = typingOut
        self.readReport = readReport
        self.authenticatesSenders = authenticatesSenders
        self.namesAreIDs = namesAreIDs
        self.tellsOfLeaves = tellsOfLeaves
        self.opening = opening
        self.waitsForReady = waitsForReady
        self.history = history
        self.older = older
        self.maxFrameBytes = maxFrameBytes
        self.liveness = liveness
        self.answersPings = answersPings
        self.pingInterval = pingInterval
        self.connectsInTurn = connectsInTurn
        self.typingRefresh = typingRefresh
        self.reactionChoices = reactionChoices
        self.repliesByRule = repliesByRule
        self.deletesOfOtherRooms = deletesOfOtherRooms
        self.sendsSenderName = sendsSenderName
        self.acknowledgedByPeople = acknowledgedByPeople
        self.reportsDelivery = reportsDelivery
        self.backoff = backoff
    }
}

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

    /// Frames that a frame asks for by rule, whatever else it says; only asked of a dialect whose traits say so.
    func automaticReplies(to frame: UnsafeRawBufferPointer, context: DialectContext) -> [EncodedFrame]

    /// The calls beside the socket; nil when there are none.
    var calls: (any DialectCalls)? { get }
}

extension Dialect {
    public func automaticReplies(to frame: UnsafeRawBufferPointer, context: DialectContext) -> [EncodedFrame] { [] }
    public var calls: (any DialectCalls)? { nil }
}

/// Who we are and where, as a codec needs to know it.
public struct DialectContext: Sendable {
    /// Every upstream id under which we speak: one for each IRC user where senders can be named.
    public var selfIDs: Set<ChatID> { didSet { selfFilter = Self.filter(selfIDs) } }
    /// Our names, for wires without ids.
    public var selfNames: Set<String>
    /// The room's id or name on the backend, as the configuration says it.
    public var room: String
    /// The room's id as the backend announced it when the session became usable; frames and calls use it where they want
    /// an id and the configuration gave a name.
    public var announcedRoom: String?
    /// The bits of ``selfIDs``: most messages are of others, whose ids need no hashing then.
    private var selfFilter: UInt64

    public init(
        selfIDs: Set<ChatID> = [], selfNames: Set<String> = [], room: String, announcedRoom: String? = nil
    ) {
        self.selfIDs = selfIDs
        self.selfNames = selfNames
        self.room = room
        self.announcedRoom = announcedRoom
        selfFilter = Self.filter(selfIDs)
    }

    /// More ids than bits leave hardly a bit out, and each change of the set would cost more.
    private static func filter(_ ids: Set<ChatID>) -> UInt64 {
        ids.count > 64 ? ~0 : ids.reduce(0) { $0 | $1.filterBit }
    }

    /// Whether `person` is one of us: by id where there is one, else by exact name.
    public func isSelf(_ person: ChatPerson) -> Bool {
        if let id = person.id { return isSelf(id) }
        if let name = person.name { return isOneOfOurs(name) }
        return false
    }

    /// To the byte: what Swift takes for the same may be somebody else there.
    func isOneOfOurs(_ name: String) -> Bool {
        selfNames.contains(name) && selfNames.contains { TextBytes.areSame($0, name) }
    }

    /// Whether `id` is one of ours.
    public func isSelf(_ id: ChatID) -> Bool { selfFilter & id.filterBit != 0 && selfIDs.contains(id) }
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

public enum DecodedFrame: Sendable {
    /// Understood: one event, as nearly always; without an array, which would cost as much as the rest.
    case event(ChatEvent)
    /// Understood: any other number of events; none when a frame needs none. Made by ``events(_:)``.
    case several([ChatEvent])
    /// Nothing usable. `typeKey` is the frame's own type value where it had one, for the log.
    case dropped(DropReason, typeKey: String?)

    /// Understood; may be empty when a frame needs no event.
    public static func events(_ events: [ChatEvent]) -> DecodedFrame {
        events.count == 1 ? .event(events[0]) : .several(events)
    }

    /// What the frame says; nil when it was dropped.
    public var events: [ChatEvent]? {
        switch self {
        case .event(let event): [event]
        case .several(let events): events
        case .dropped: nil
        }
    }
}

extension DecodedFrame: Equatable {
    public static func == (a: DecodedFrame, b: DecodedFrame) -> Bool {
        switch (a, b) {
        case (.dropped(let x, let xKey), .dropped(let y, let yKey)): x == y && xKey == yKey
        case (.dropped, _), (_, .dropped): false
        default: a.events == b.events
        }
    }
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

public enum EncodedCommand: Sendable {
    /// One frame, as nearly always.
    case frame(EncodedFrame)
    /// Any other number of frames, oldest first. Made by ``frames(_:)``.
    case several([EncodedFrame])
    /// The wire cannot say it; the session decides what to do instead.
    case unsupported(DropReason)

    /// Oldest first.
    public static func frames(_ frames: [EncodedFrame]) -> EncodedCommand {
        frames.count == 1 ? .frame(frames[0]) : .several(frames)
    }

    /// The frames that say it, oldest first; nil when it cannot be said.
    public var frames: [EncodedFrame]? {
        switch self {
        case .frame(let frame): [frame]
        case .several(let frames): frames
        case .unsupported: nil
        }
    }
}

extension EncodedCommand: Equatable {
    public static func == (a: EncodedCommand, b: EncodedCommand) -> Bool {
        switch (a, b) {
        case (.unsupported(let x), .unsupported(let y)): x == y
        case (.unsupported, _), (_, .unsupported): false
        default: a.frames == b.frames
        }
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
        /// Whether there is an option `base`, the backend's HTTP base: without a slash at its end, and filled in where the
        /// operator does not write it.
        public var takesBase = false
        /// Makes the dialect, or says what is wrong with its options.
        public let make: @Sendable (consuming DialectOptions) throws(DialectOptionError) -> any Dialect
    }

    public static let rows: [Row] = [
        Row(name: "envelope", aliases: ["pixar"]) { options throws(DialectOptionError) in
            try options.finish()
            return EnvelopeDialect()
        },
        Row(name: "jwt-rooms", aliases: [], takesBase: true) { options throws(DialectOptionError) in
            try JWTRoomsDialect(options)
        },
        Row(name: "plainjson", aliases: ["article"], takesBase: true) { options throws(DialectOptionError) in
            try PlainJSONDialect(options)
        },
        Row(name: "typed", aliases: []) { options throws(DialectOptionError) in try TypedDialect(options) },
        Row(name: "swiftchat", aliases: []) { options throws(DialectOptionError) in try SwiftChatDialect(options) },
        Row(name: "directus", aliases: [], takesBase: true) { options throws(DialectOptionError) in
            try DirectusDialect(options)
        },
    ]

    /// The row for a name or an alias, or nil.
    public static func row(named name: String) -> Row? {
        rows.first { $0.name == name || $0.aliases.contains(name) }
    }

    /// The dialect called `name`; nil when there is none.
    ///
    /// - Throws: what is wrong with the options.
    public static func dialect(
        named name: String, options: consuming DialectOptions = DialectOptions()
    ) throws(DialectOptionError) -> (any Dialect)? {
        try row(named: name)?.make(options)
    }

    public static var names: [String] { rows.map(\.name) }
}

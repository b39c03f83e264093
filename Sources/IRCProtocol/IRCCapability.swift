/// The capabilities that a client can negotiate.
///
/// To add one: a case, its row in ``IRCCapabilityTable``, and, where it withholds a tag or a command, a row in
/// ``IRCReductionTable``.
public enum IRCCapability: UInt8, CaseIterable, Sendable {
    /// `message-tags`
    case messageTags
    /// `server-time`
    case serverTime
    /// `account-tag`
    case accountTag
    /// `account-notify`
    case accountNotify
    /// `extended-join`
    case extendedJoin
    /// `batch`
    case batch
    /// `labeled-response`
    case labeledResponse
    /// `echo-message`
    case echoMessage
    /// `standard-replies`
    case standardReplies
    /// `away-notify`
    case awayNotify
    /// `multi-prefix`
    case multiPrefix
    /// `userhost-in-names`
    case userhostInNames
    /// `setname`
    case setname
    /// `invite-notify`
    case inviteNotify
    /// `no-implicit-names`
    case noImplicitNames
    /// `draft/read-marker`
    case readMarker
    /// `cap-notify`
    case capNotify
    /// `sasl`
    case sasl
    /// `znc.in/self-message`
    case selfMessage
    /// `draft/message-redaction`
    case messageRedaction
    /// `draft/multiline`
    case multiline
    /// `draft/account-registration`
    case accountRegistration
    /// `sts`
    case sts
    /// `draft/chathistory`
    case chatHistory
    /// `draft/event-playback`
    case eventPlayback
    /// `soju.im/search`
    case search

    // People and the server.
    /// `extended-monitor`
    case extendedMonitor
    /// `draft/pre-away`
    case preAway
    /// `draft/extended-isupport`
    case extendedISupport
    /// `draft/metadata-2`
    case metadata
    /// `draft/relaymsg`
    case relaymsg
}

/// A set of capabilities, as small and cheap as an integer.
public struct IRCCapabilitySet: SetAlgebra, Hashable, Sendable {
    /// One bit for each capability, at its raw value.
    public private(set) var rawValue: UInt64

    public init() { rawValue = 0 }

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Every capability there is.
    public static let all = IRCCapabilitySet(IRCCapability.allCases)

    private static func bit(_ capability: IRCCapability) -> UInt64 { 1 << UInt64(capability.rawValue) }

    public var isEmpty: Bool { rawValue == 0 }

    /// A stable number of the set, the same in every version of the program: FNV-1a over the capabilities' names.
    public var fingerprint: UInt64 {
        let names = IRCCapability.allCases.lazy.filter(contains).compactMap {
            IRCCapabilityTable.row(for: $0).names.first
        }
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in names.sorted().joined(separator: " ").utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return hash
    }

    public func contains(_ capability: IRCCapability) -> Bool { rawValue & Self.bit(capability) != 0 }

    @discardableResult
    public mutating func insert(
        _ capability: IRCCapability
    ) -> (inserted: Bool, memberAfterInsert: IRCCapability) {
        let before = rawValue
        rawValue |= Self.bit(capability)
        return (rawValue != before, capability)
    }

    @discardableResult
    public mutating func remove(_ capability: IRCCapability) -> IRCCapability? {
        guard contains(capability) else { return nil }
        rawValue &= ~Self.bit(capability)
        return capability
    }

    @discardableResult
    public mutating func update(with capability: IRCCapability) -> IRCCapability? {
        insert(capability).inserted ? nil : capability
    }

    public func union(_ other: Self) -> Self { Self(rawValue: rawValue | other.rawValue) }
    public func intersection(_ other: Self) -> Self { Self(rawValue: rawValue & other.rawValue) }
    public func symmetricDifference(_ other: Self) -> Self { Self(rawValue: rawValue ^ other.rawValue) }
    public mutating func formUnion(_ other: Self) { rawValue |= other.rawValue }
    public mutating func formIntersection(_ other: Self) { rawValue &= other.rawValue }
    public mutating func formSymmetricDifference(_ other: Self) { rawValue ^= other.rawValue }

    /// The members, in the order of their declaration.
    public var members: [IRCCapability] { IRCCapability.allCases.filter { contains($0) } }

    /// The capabilities of this set that change how a room's line renders: clients with equal profiles can share one
    /// rendering of it.
    public var renderingProfile: IRCCapabilitySet { intersection(IRCCapabilityTable.changingRoomLines) }
}

/// One capability: its names on the wire and its effect on lines.
public struct IRCCapabilityRow: Sendable {
    public let capability: IRCCapability
    /// The canonical name first; the others are advertised and accepted as well.
    public let names: [String]
    /// Whether it hides or changes a line that goes to a whole room.
    public let changesRoomLines: Bool
    /// Where it is specified.
    public let source: String

    init(_ capability: IRCCapability, _ names: String..., changesRoomLines: Bool = false, source: String) {
        self.capability = capability
        self.names = names
        self.changesRoomLines = changesRoomLines
        self.source = source
    }
}

/// The capabilities, one row each.
public enum IRCCapabilityTable {
    public static let rows: [IRCCapabilityRow] = [
        IRCCapabilityRow(.messageTags, "message-tags", changesRoomLines: true, source: "IRCv3 message-tags"),
        IRCCapabilityRow(.serverTime, "server-time", changesRoomLines: true, source: "IRCv3 server-time"),
        IRCCapabilityRow(.accountTag, "account-tag", changesRoomLines: true, source: "IRCv3 account-tag"),
        IRCCapabilityRow(.accountNotify, "account-notify", changesRoomLines: true, source: "IRCv3 account-notify"),
        IRCCapabilityRow(.extendedJoin, "extended-join", changesRoomLines: true, source: "IRCv3 extended-join"),
        IRCCapabilityRow(.batch, "batch", changesRoomLines: true, source: "IRCv3 batch"),
        // A label belongs to one client's own answer, never to a line for others.
        IRCCapabilityRow(.labeledResponse, "labeled-response", source: "IRCv3 labeled-response"),
        IRCCapabilityRow(.echoMessage, "echo-message", source: "IRCv3 echo-message"),
        IRCCapabilityRow(.standardReplies, "standard-replies", source: "IRCv3 standard-replies"),
        IRCCapabilityRow(.awayNotify, "away-notify", changesRoomLines: true, source: "IRCv3 away-notify"),
        IRCCapabilityRow(.multiPrefix, "multi-prefix", source: "IRCv3 multi-prefix"),
        IRCCapabilityRow(.userhostInNames, "userhost-in-names", source: "IRCv3 userhost-in-names"),
        IRCCapabilityRow(.setname, "setname", changesRoomLines: true, source: "IRCv3 setname"),
        IRCCapabilityRow(.inviteNotify, "invite-notify", changesRoomLines: true, source: "IRCv3 invite-notify"),
        IRCCapabilityRow(
            .noImplicitNames, "no-implicit-names", "draft/no-implicit-names", "soju.im/no-implicit-names",
            source: "IRCv3 no-implicit-names"),
        IRCCapabilityRow(.readMarker, "draft/read-marker", source: "IRCv3 read-marker"),
        IRCCapabilityRow(.capNotify, "cap-notify", source: "IRCv3 capability-negotiation"),
        IRCCapabilityRow(.sasl, "sasl", source: "IRCv3 sasl-3.2"),
        IRCCapabilityRow(.selfMessage, "znc.in/self-message", source: "ZNC, self-message"),
        IRCCapabilityRow(
            .messageRedaction, "draft/message-redaction", changesRoomLines: true, source: "IRCv3 message-redaction"),
        IRCCapabilityRow(.multiline, "draft/multiline", changesRoomLines: true, source: "IRCv3 multiline"),
        IRCCapabilityRow(.accountRegistration, "draft/account-registration", source: "IRCv3 account-registration"),
        // Advertised, never requested; its value depends on the listener.
        IRCCapabilityRow(.sts, "sts", source: "IRCv3 sts"),
        IRCCapabilityRow(.chatHistory, "draft/chathistory", source: "IRCv3 chathistory"),
        IRCCapabilityRow(.eventPlayback, "draft/event-playback", source: "IRCv3 chathistory"),
        IRCCapabilityRow(.search, "soju.im/search", source: "soju, search"),

        // Asks for lines about users who share no channel with the client; a room's own lines stay as they are.
        IRCCapabilityRow(.extendedMonitor, "extended-monitor", source: "IRCv3 extended-monitor"),
        IRCCapabilityRow(.preAway, "draft/pre-away", source: "IRCv3 pre-away"),
        IRCCapabilityRow(.extendedISupport, "draft/extended-isupport", source: "IRCv3 extended-isupport"),
        // METADATA lines go to the subscribers of a key, one by one.
        IRCCapabilityRow(.metadata, "draft/metadata-2", source: "IRCv3 metadata"),
        IRCCapabilityRow(
            .relaymsg, "draft/relaymsg", changesRoomLines: true, source: "Ergo, draft/relaymsg"),
    ]

    /// Rows by raw value of their capability; a test holds the table complete.
    private static let byCapability: [IRCCapability: IRCCapabilityRow] = Dictionary(
        rows.map { ($0.capability, $0) }, uniquingKeysWith: { first, _ in first })

    /// All names with their capabilities; a name is stored as its index in this list.
    private static let named: [(name: String, capability: IRCCapability)] = rows.flatMap { row in
        row.names.map { ($0, row.capability) }
    }

    private static let byName: [String: Int] = Dictionary(
        named.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })

    static let changingRoomLines = IRCCapabilitySet(rows.lazy.filter(\.changesRoomLines).map(\.capability))

    public static func row(for capability: IRCCapability) -> IRCCapabilityRow {
        byCapability[capability] ?? IRCCapabilityRow(capability, source: "")
    }

    /// The capability of that exact name (case matters), canonical or not.
    public static func capability(named name: String) -> IRCCapability? { byName[name].map { named[$0].capability } }

    /// A name of the table, in a byte.
    struct Name: Equatable, Sendable {
        private let place: UInt8

        /// Nil for names that are not in the table.
        init?(_ name: String) {
            guard let place = byName[name].flatMap({ UInt8(exactly: $0) }) else { return nil }
            self.place = place
        }

        var text: String { named[Int(place)].name }
        var capability: IRCCapability { named[Int(place)].capability }
    }
}

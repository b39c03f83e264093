import WireBytes

// The one place that applies capabilities to lines: handlers build the richest form of a line, and this table removes
// the parts that a client did not negotiate.

/// The capability that each tag and command needs, and its fallback without.
public enum IRCReductionTable {
    /// The fallback of a command whose capability is missing.
    public enum Fallback: Hashable, Sendable {
        /// The line is dropped.
        case nothing
        /// Only the first so many parameters stay.
        case firstParams(Int)
        /// The line is dropped unless the first parameter is the client's own nick.
        case onlyToItself
        /// The line becomes a NOTICE to the client, unless the client knows standard replies by ``standardReplies``.
        case notice
        /// In a list of names in the last parameter, only the highest prefix of each stays.
        case onePrefixInNames
        /// In a list of names in the last parameter, `!user@host` goes.
        case nicksInNames
        /// In the flags of a WHO line, only the highest prefix stays.
        case onePrefixInFlags
    }

    public struct CommandRow: Sendable {
        public let command: String
        public let needs: IRCCapability
        public let without: Fallback
    }

    public struct TagRow: Sendable {
        public let name: String
        public let needs: IRCCapability
    }

    /// Tags that have a capability of their own. Every other tag needs message-tags.
    public static let tags: [TagRow] = [
        TagRow(name: "time", needs: .serverTime),
        TagRow(name: "account", needs: .accountTag),
        TagRow(name: "label", needs: .labeledResponse),
        TagRow(name: "batch", needs: .batch),
        TagRow(name: "draft/multiline-concat", needs: .multiline),
        TagRow(name: "draft/relaymsg", needs: .relaymsg),
    ]

    /// Commands that need a capability. A command may have several rows; they apply in order.
    public static let commands: [CommandRow] = [
        CommandRow(command: "TAGMSG", needs: .messageTags, without: .nothing),
        CommandRow(command: "BATCH", needs: .batch, without: .nothing),
        CommandRow(command: "ACK", needs: .labeledResponse, without: .nothing),
        CommandRow(command: "AWAY", needs: .awayNotify, without: .nothing),
        CommandRow(command: "ACCOUNT", needs: .accountNotify, without: .nothing),
        CommandRow(command: "SETNAME", needs: .setname, without: .nothing),
        CommandRow(command: "MARKREAD", needs: .readMarker, without: .nothing),
        CommandRow(command: "REDACT", needs: .messageRedaction, without: .nothing),
        CommandRow(command: "INVITE", needs: .inviteNotify, without: .onlyToItself),
        CommandRow(command: "JOIN", needs: .extendedJoin, without: .firstParams(1)),
        CommandRow(command: "FAIL", needs: .standardReplies, without: .notice),
        CommandRow(command: "WARN", needs: .standardReplies, without: .notice),
        CommandRow(command: "NOTE", needs: .standardReplies, without: .notice),
        CommandRow(command: "353", needs: .multiPrefix, without: .onePrefixInNames),
        CommandRow(command: "353", needs: .userhostInNames, without: .nicksInNames),
        CommandRow(command: "352", needs: .multiPrefix, without: .onePrefixInFlags),
        CommandRow(command: "METADATA", needs: .metadata, without: .nothing),
        CommandRow(command: "760", needs: .metadata, without: .nothing),
    ]

    /// Commands whose specifications define standard replies: their senders know these, negotiated or not.
    static let commandsWithStandardReplies: Set<String> = ["REGISTER", "VERIFY"]

    /// Commands whose own specification defines standard replies: clients with its capability know these without
    /// `standard-replies`, which is for all others.
    ///
    /// Source: IRCv3 standard-replies, "Capabilities".
    public static let standardReplies: [String: IRCCapability] = [
        "BATCH": .multiline,
        "CHATHISTORY": .chatHistory,
        "MARKREAD": .readMarker,
        "METADATA": .metadata,
        "REDACT": .messageRedaction,
        "RELAYMSG": .relaymsg,
        "SEARCH": .search,
        "SETNAME": .setname,
    ]

    /// Codes that a token of 005 announces, and which every client therefore gets.
    ///
    /// Source: IRCv3 utf8-only.
    public static let announcedCodes: Set<String> = ["INVALID_UTF8"]

    /// Whether a client with these capabilities is shown a standard reply as one.
    static func showsStandardReply(_ params: [String], _ caps: IRCCapabilitySet) -> Bool {
        if params.count > 1, announcedCodes.contains(params[1]) { return true }
        if let command = params.first, commandsWithStandardReplies.contains(command) { return true }
        return params.first.flatMap { standardReplies[$0] }.map { caps.contains($0) } ?? false
    }

    private static let rowsByCommand = Dictionary(grouping: commands, by: \.command)

    /// A bit for each command with a row; nearly all other commands have another, and need no look-up.
    private static let commandBits = commands.reduce(0) { $0 | bit(of: $1.command) }

    private static func bit(of command: String) -> UInt64 {
        1 << ((UInt64(command.utf8.count) &* 11 &+ UInt64(command.utf8.first ?? 0)) & 63)
    }

    static func rows(for command: String) -> [CommandRow] {
        commandBits & bit(of: command) == 0 ? [] : rowsByCommand[command] ?? []
    }

    static func capability(forTag name: String) -> IRCCapability {
        tags.first { $0.name == name }?.needs ?? .messageTags
    }

    /// With none of these a client is shown no tags.
    public static let ofTags = IRCCapabilitySet(tags.map(\.needs) + [.messageTags])
}

extension IRCCapabilitySet {
    func showsTag(_ name: String) -> Bool {
        self == .all || contains(IRCReductionTable.capability(forTag: name))
    }
}

extension IRCMessage {
    /// Appends the line as a client with these capabilities may see it, which is ``reduced(for:nick:)`` without a copy
    /// where there is nothing to reduce but tags.
    ///
    /// - Returns: the command of the line; nil: the client gets nothing.
    public func append(reducedFor caps: IRCCapabilitySet, nick: String, to writer: inout ByteWriter) -> String? {
        if IRCReductionTable.rows(for: command).isEmpty {
            IRCEncoder.append(self, tagsFor: caps, to: &writer)
            return command
        }
        guard let reduced = reduced(for: caps, nick: nick) else { return nil }
        IRCEncoder.append(reduced, to: &writer)
        return reduced.command
    }

    /// The message as a client with these capabilities may see it, or nil when it gets nothing.
    ///
    /// - Parameters:
    ///   - caps: the client's enabled capabilities.
    ///   - nick: the client's own nick; empty before it has one.
    ///
    /// Reducing twice is the same as once.
    public func reduced(for caps: IRCCapabilitySet, nick: String) -> IRCMessage? {
        var message = self
        if !tags.isEmpty {
            message.tags = tags.filter { caps.contains(IRCReductionTable.capability(forTag: $0.name)) }
        }
        for row in IRCReductionTable.rows(for: command) where !caps.contains(row.needs) {
            switch row.without {
            case .nothing:
                return nil
            case .onlyToItself:
                let fold = IRCCasemapping.ascii.fold
                guard let target = params.first, fold(target) == fold(nick) else { return nil }
            case .firstParams(let count):
                message.params = Array(message.params.prefix(count))
            case .notice:
                guard !IRCReductionTable.showsStandardReply(message.params, caps) else { break }
                message = message.asNotice(to: nick)
            case .onePrefixInNames: message.filterNames(IRCMemberPrefixes.FurtherPrefixes())
            case .nicksInNames: message.filterNames(IRCMemberPrefixes.Hosts())
            case .onePrefixInFlags:
                // 352: client channel user host server nick flags hopcount-and-realname.
                guard message.params.count > 6 else { break }
                message.params[6] = IRCMemberPrefixes.keepingHighest(inFlags: message.params[6])
            }
        }
        return message
    }

    /// A standard reply as a line that every client shows: `<COMMAND> <CODE> <context>: text`.
    private func asNotice(to nick: String) -> IRCMessage {
        var text = params.dropLast().joined(separator: " ")
        if let last = params.last { text += text.isEmpty ? last : ": " + last }
        return IRCMessage(tags: tags, source: source, command: "NOTICE", params: [nick.isEmpty ? "*" : nick, text])
    }

    /// Drops bytes from the list of names in the last parameter. Rooms of thousands give long lists, so it is copied
    /// only where there is something to drop.
    private mutating func filterNames(_ unwanted: some NamesFilter) {
        guard var names = params.last, names.withUTF8({ unwanted.mayBe(in: UnsafeRawBufferPointer($0)) }) else {
            return
        }
        var filter = unwanted
        replaceLastParam(by: String(decoding: names.utf8.filter { !filter.drops($0) }, as: UTF8.self))
    }
}

/// What goes from a list of names, which is read once from its front.
protocol NamesFilter {
    /// Without this byte there is nothing to drop.
    var sign: UInt8 { get }
    mutating func drops(_ byte: UInt8) -> Bool
}

extension NamesFilter {
    func mayBe(in names: UnsafeRawBufferPointer) -> Bool {
        ByteScan.firstOffset(of: sign, sign, sign, in: names) != nil
    }
}

/// Channel membership prefixes at the front of a name.
enum IRCMemberPrefixes {
    private static func isPrefix(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "@") || byte == UInt8(ascii: "+")
    }

    /// `@+nick` becomes `@nick`: prefixes come highest first.
    struct FurtherPrefixes: NamesFilter {
        private enum Place { case front, behindPrefix, inside }
        /// Two prefixes are `@+`.
        let sign = UInt8(ascii: "+")
        private var place = Place.front

        mutating func drops(_ byte: UInt8) -> Bool {
            if byte == Byte.space {
                place = .front
            } else if place == .inside || !isPrefix(byte) {
                place = .inside
            } else {
                defer { place = .behindPrefix }
                return place == .behindPrefix
            }
            return false
        }
    }

    /// `nick!user@host` becomes `nick`.
    struct Hosts: NamesFilter {
        let sign = UInt8(ascii: "!")
        private var isBehindNick = false

        mutating func drops(_ byte: UInt8) -> Bool {
            if byte == Byte.space {
                isBehindNick = false
            } else if byte == sign {
                isBehindNick = true
            }
            return isBehindNick
        }
    }

    /// `H*@+` becomes `H*@`.
    static func keepingHighest(inFlags flags: String) -> String {
        var hasPrefix = false
        let kept = flags.utf8.filter { byte in
            guard isPrefix(byte) else { return true }
            defer { hasPrefix = true }
            return !hasPrefix
        }
        return String(decoding: kept, as: UTF8.self)
    }
}

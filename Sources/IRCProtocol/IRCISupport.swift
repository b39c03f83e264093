/// The tokens of 005, in order.
///
/// Source: modern.ircdocs.horse, "RPL_ISUPPORT Parameters".
public struct IRCISupport: Sendable {
    /// Tokens of a line; with the nick and the text at the end they make 15 parameters.
    ///
    /// Source: modern.ircdocs.horse, RPL_ISUPPORT.
    public static let maxTokensPerLine = 13

    /// The text that ends every 005.
    public static let trailingText = "are supported by this server"

    /// `NAME` or `NAME=value`, escaped.
    public private(set) var tokens: [String] = []

    public init() {}

    /// Adds a token. In the value, space, `=` and backslash are escaped as `\x20`, `\x3D`, `\x5C`.
    public mutating func add(_ name: String, _ value: String? = nil) {
        guard let value else { return tokens.append(name) }
        var escaped: [UInt8] = []
        for byte in value.utf8 where byte > 0x1F && byte != 0x7F {
            switch byte {
            case Byte.space: escaped += Array("\\x20".utf8)
            case Byte.backslash: escaped += Array("\\x5C".utf8)
            case Byte.equals: escaped += Array("\\x3D".utf8)
            default: escaped.append(byte)
            }
        }
        tokens.append(name + "=" + String(decoding: escaped, as: UTF8.self))
    }

    public mutating func add(_ name: String, _ value: Int) { add(name, String(value)) }

    /// The tokens of each 005 line: at most 13, and few enough bytes for 510 with the rest of the line. A token that is
    /// longer than a line by itself has a row of its own, which the encoder cuts.
    public var rows: [[String]] {
        let budget = IRCEncoder.maxContentBytes - IRCLimits.listOverheadBytes
        var rows: [[String]] = []
        var bytes = 0
        for token in tokens {
            let size = token.utf8.count + 1
            if let last = rows.indices.last, rows[last].count < Self.maxTokensPerLine, bytes + size <= budget {
                rows[last].append(token)
                bytes += size
            } else {
                rows.append([token])
                bytes = size
            }
        }
        return rows
    }

    /// The features of the server, as rows for 005.
    ///
    /// Lengths are in bytes. A nil or false argument leaves its token out.
    ///
    /// - Parameters:
    ///   - chanModes: four comma-separated groups: lists, always with a value, with a value when set, flags.
    ///   - targMax: `PRIVMSG:4,NOTICE:4`.
    ///   - elist: the letters of the filters that LIST knows.
    ///   - icon: the URL of an image that stands for the network.
    ///   - fileHost: the URL to which files are uploaded.
    ///   - maxBans: masks in a room's ban list.
    ///   - monitor: nicks that a client may monitor.
    ///   - safeRate: clients are neither delayed nor closed for sending much.
    public static func standard(
        network: String, casemapping: IRCCasemapping = .ascii,
        nickLen: Int = IRCNames.standardNickBytes, topicLen: Int = 390, awayLen: Int = 200, nameLen: Int = 128,
        userLen: Int = 32, kickLen: Int? = nil, modes: Int = 4, maxTargets: Int = 4, chanModes: String = ",,,nt",
        targMax: String? = nil, elist: String? = nil,
        bot: String? = nil, icon: String? = nil, maxBans: Int? = nil, monitor: Int? = nil, safeList: Bool = false,
        safeRate: Bool = false, requiresAccount: Bool = false, chatHistory: Int? = nil,
        fileHost: String? = nil
    ) -> [[String]] {
        var support = IRCISupport()
        support.add("AWAYLEN", awayLen)
        if let bot { support.add("BOT", bot) }
        support.add("CASEMAPPING", casemapping.rawValue)
        support.add("CHANMODES", chanModes)
        support.add("CHANNELLEN", IRCNames.standardChannelBytes)
        support.add("CHANTYPES", "#")
        if let chatHistory { support.add("CHATHISTORY", chatHistory) }
        if let elist { support.add("ELIST", elist) }
        support.add("HOSTLEN", 63)
        if let kickLen { support.add("KICKLEN", kickLen) }
        if let maxBans { support.add("MAXLIST", "b:\(maxBans)") }
        support.add("MAXTARGETS", maxTargets)
        support.add("MODES", modes)
        if let monitor { support.add("MONITOR", monitor) }
        if chatHistory != nil { support.add("MSGREFTYPES", "msgid,timestamp") }
        support.add("NAMELEN", nameLen)
        support.add("NETWORK", network)
        support.add("NICKLEN", nickLen)
        support.add("PREFIX", "(ov)@+")
        if safeList { support.add("SAFELIST") }
        if safeRate { support.add("SAFERATE") }
        if let targMax { support.add("TARGMAX", targMax) }
        support.add("TOPICLEN", topicLen)
        support.add("USERLEN", userLen)
        support.add("UTF8ONLY")
        support.add("WHOX")
        // Source: IRCv3 account-registration, "ISUPPORT token".
        if requiresAccount { support.add("draft/ACCOUNTREQUIRED") }
        if let icon { support.add("draft/ICON", icon) }
        // Source: soju.im/filehost; IRCv3 filehost, a draft of the same.
        if let fileHost {
            support.add("draft/FILEHOST", fileHost)
            support.add("soju.im/FILEHOST", fileHost)
        }
        return support.rows
    }
}

/// Which client-only tags of a client are relayed: those of any name, but for receipts.
///
/// Source: IRCv3 message-tags, "Client-only tags" and "Size limit"; IRCv3 typing, reply.
public enum IRCClientTags {
    /// Receipts: only the server reports delivery and reading.
    private static let receipts: Set<String> = ["+draft/read", "+draft/delivered"]

    /// A TAGMSG with this one is part of the history, as a reaction is. Source: Ergo, `+draft/persist`.
    public static let persist = "+draft/persist"

    /// Whether a tag that a client sent may be relayed. `name` is as on the wire: with its `+`. Tags without it are the
    /// server's to give and are never taken from a client.
    public static func isAllowed(_ name: String) -> Bool {
        name.utf8.first == UInt8(ascii: "+") && name.utf8.count > 1 && !receipts.contains(name)
    }

    /// Tags that have two names while clients move from the draft to the specification.
    private static let pairs = [("+typing", "+draft/typing"), ("+reply", "+draft/reply")]

    /// The relayed ones of a client's tags: those that are allowed, under every name that receivers know.
    ///
    /// Typing goes under its ratified name alone; a reply under both, since a client that misses the one it knows shows
    /// an answer without its question. The second name is left out where it would push out a tag of the client's.
    public static func relayed(_ tags: [IRCTag]) -> [IRCTag] {
        var relayed = tags.filter { isAllowed($0.name) }
        guard !relayed.isEmpty else { return [] }
        for (name, draft) in pairs {
            guard let tag = relayed.first(where: { $0.name == name }) ?? relayed.first(where: { $0.name == draft })
            else { continue }
            let index = relayed.firstIndex { $0.name == name || $0.name == draft } ?? relayed.endIndex
            relayed.removeAll { $0.name == name || $0.name == draft }
            relayed.insert(IRCTag(name, tag.value), at: min(index, relayed.endIndex))
            guard name == "+reply" else { continue }
            var both = relayed
            both.insert(IRCTag(draft, tag.value), at: min(index + 1, relayed.endIndex))
            if IRCEncoder.tagByteCount(both) <= IRCLimits.maxClientTagBytes { relayed = both }
        }
        return relayed
    }
}

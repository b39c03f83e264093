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

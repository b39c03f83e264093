import IRCProtocol

/// What a server says of itself in 005, as far as a client acts on it.
///
/// Source: modern.ircdocs.horse, "RPL_ISUPPORT Parameters".
struct NetworkSupport {
    /// Until the server says another, as RFC 1459 §2.2 has it.
    private(set) var casemapping = IRCCasemapping.rfc1459
    private(set) var channelTypes = "#&"
    /// Bytes; nil: not said.
    private(set) var nickLength: Int?
    private(set) var topicLength: Int?
    /// Nicks that can be watched; nil: MONITOR is unknown.
    private(set) var monitor: Int?
    /// The letter of the mode for bots.
    private(set) var botMode: String?
    /// Messages in one answer to CHATHISTORY; nil: not said.
    private(set) var historyLimit: Int?
    private(set) var historyKnowsMsgid = true
    /// Channels in one JOIN.
    private(set) var joinTargets = Self.defaultJoinTargets
    /// Of CLIENTTAGDENY, without the `+` of the tags.
    private var tagDeny: [Substring] = []

    static let defaultJoinTargets = 10

    /// The parameters of a 005 but for the nick and the text at the end.
    mutating func received(_ tokens: ArraySlice<String>) {
        for token in tokens {
            let parts = token.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            set(String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
        }
    }

    private mutating func set(_ name: String, _ value: String) {
        switch name {
        case "CASEMAPPING":
            // An unknown mapping is compared as bytes but for ASCII, which joins no names that differ.
            casemapping = value == "strict-rfc1459" ? .rfc1459 : IRCCasemapping(rawValue: value) ?? .ascii
        case "CHANTYPES": channelTypes = value
        case "NICKLEN": nickLength = Self.count(value)
        case "TOPICLEN": topicLength = Self.count(value)
        case "MONITOR": monitor = value.isEmpty ? .max : Self.count(value)
        case "BOT": botMode = value.utf8.count == 1 ? value : nil
        case "CHATHISTORY", "draft/CHATHISTORY": historyLimit = Self.count(value)
        case "MSGREFTYPES": historyKnowsMsgid = value.split(separator: ",").contains("msgid")
        case "TARGMAX":
            for limit in value.split(separator: ",") where limit.uppercased().hasPrefix("JOIN:") {
                joinTargets = Self.count(String(limit.dropFirst(5))) ?? Self.defaultJoinTargets
            }
        case "CLIENTTAGDENY": tagDeny = value.split(separator: ",")
        default: break
        }
    }

    /// Nil for what is no number from 1 on.
    private static func count(_ text: String) -> Int? { Int(text).flatMap { $0 > 0 ? $0 : nil } }

    /// Whether the server relays a client-only tag, named without its `+`.
    ///
    /// Source: IRCv3 message-tags, "Rejection of client-only tags".
    func relays(tag name: String) -> Bool {
        if tagDeny.contains("*") { return tagDeny.contains { $0 == "-" + name } }
        return !tagDeny.contains { $0 == name }
    }

    func isChannel(_ name: String) -> Bool { name.first.map { channelTypes.contains($0) } ?? false }

    func areSame(_ a: String, _ b: String) -> Bool { casemapping.fold(a) == casemapping.fold(b) }
}

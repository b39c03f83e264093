/// Muted people, for filtering stored messages.
///
/// An IRC user is identified by the account, or without one by the nick; a person upstream by the id, or without one by
/// the name.
public struct StoredMutes: Equatable, Sendable {
    /// Ids of people upstream.
    public var ids: Set<ChatID> = []
    /// Names of people upstream without an id.
    public var names: [String] = []
    /// In the form in which accounts are compared.
    public var accounts: Set<String> = []
    /// Of IRC users without an account; folded.
    public var nicks: Set<String> = []
    /// Nicks are folded as RFC 1459 has it: `[]\~` are the upper case of `{}|^`.
    public var foldsAsRFC1459 = false

    public init() {}

    public var isEmpty: Bool { ids.isEmpty && names.isEmpty && accounts.isEmpty && nicks.isEmpty }

    /// Whether the author or actor is muted; an unknown actor is not.
    public func cover(_ row: StoredMessage) -> Bool {
        guard !isEmpty, row.kind != .gap else { return false }
        guard row.author == nil else {
            if let account = row.account {
                return !accounts.isEmpty && accounts.contains(Self.folded(account, asRFC1459: false))
            }
            return !nicks.isEmpty && nicks.contains(Self.folded(row.nick, asRFC1459: foldsAsRFC1459))
        }
        if let id = row.sender.id { return ids.contains(id) }
        if let name = row.sender.name { return covers(name) }
        // The actor of an event may be unknown; messages without a name are one person's.
        return row.kind == .message && covers(Self.nameless)
    }

    private func covers(_ name: String) -> Bool {
        names.contains { TextBytes.areSame($0, name) }
    }

    /// Stands for people upstream without an id and a name.
    public static let nameless = "unknown"

    private static func folded(_ nick: String, asRFC1459 foldsAsRFC1459: Bool) -> String {
        String(
            decoding: nick.utf8.map { byte in
                switch byte {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte | 0x20
                case UInt8(ascii: "[")...UInt8(ascii: "]"): foldsAsRFC1459 ? byte | 0x20 : byte
                case UInt8(ascii: "~"): foldsAsRFC1459 ? UInt8(ascii: "^") : byte
                default: byte
                }
            }, as: UTF8.self)
    }
}

import HTTPProtocol

/// The name of a room, taken from the path that a client connects to.
enum StudioRoomName {
    /// Bytes of a name. Backends show names to people; longer ones are unreadable.
    static let maxBytes = 200
    /// Where `/` leads.
    static let fallback = "lobby"

    /// The last non-empty component of the path, percent-decoded: `/chat/caf%C3%A9?x=1` is `café`.
    ///
    /// - Returns: nil when an escape is malformed, or the name is too long, not UTF-8 or has a control character.
    ///
    /// Source: RFC 3986 §2.1, §3.3.
    static func parse(target: String) -> String? {
        var path = target.prefix { $0 != "?" && $0 != "#" }
        while path.last == "/" { path.removeLast() }
        guard let last = path.split(separator: "/").last else { return fallback }
        guard let name = HTTPURL.percentDecoded(String(last)), isValid(name) else { return nil }
        return name
    }

    static func isValid(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= maxBytes && name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }
}

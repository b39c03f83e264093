import WireBytes

/// The name of a room, taken from the path that a client connects to.
enum StudioRoomName {
    /// Bytes of a name. Backends show names to people; nobody reads more than this.
    static let maxBytes = 200
    /// Where `/` leads.
    static let fallback = "lobby"

    /// The last non-empty component of the path, percent-decoded: `/chat/caf%C3%A9?x=1` is `café`.
    ///
    /// - Returns: nil when an escape is malformed, or the name is too long, not UTF-8 or has a control character.
    ///
    /// Source: RFC 3986 §2.1, §3.3.
    static func parse(target: String) -> String? {
        let bytes = Array(target.utf8)
        var path = bytes.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        while path.last == UInt8(ascii: "/") { path.removeLast() }
        guard !path.isEmpty else { return fallback }
        let start = path.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? path.startIndex
        guard let name = percentDecoded(path[start...]), name.count <= maxBytes,
            name.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }), name.withUnsafeBytes({ UTF8Validator.isValid($0) })
        else { return nil }
        return String(decoding: name, as: UTF8.self)
    }

    private static func percentDecoded(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var rest = bytes
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(hexValue), let low = rest.popFirst().flatMap(hexValue) else {
                return nil
            }
            decoded.append(high << 4 | low)
        }
        return decoded
    }

    private static func hexValue(_ byte: UInt8) -> UInt8? {
        guard ASCII.isHexDigit(byte) else { return nil }
        return ASCII.isDigit(byte) ? byte - UInt8(ascii: "0") : (byte | 0x20) - UInt8(ascii: "a") + 10
    }
}

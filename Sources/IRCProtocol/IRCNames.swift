/// How names are compared.
///
/// Source: modern.ircdocs.horse, "CASEMAPPING parameter".
public enum IRCCasemapping: String, Sendable, CaseIterable {
    /// A to Z are a to z.
    case ascii
    /// Like ``ascii``, and `[]\~` are the upper case of `{}|^`.
    case rfc1459

    /// `text` with its upper case letters lowered: equal for names that are the same name. Folding twice is the same as
    /// once; bytes beyond ASCII stay.
    public func fold(_ text: String) -> String {
        guard text.utf8.contains(where: { folded($0) != $0 }) else { return text }
        var text = text
        return text.withUTF8 { bytes in
            String(unsafeUninitializedCapacity: bytes.count) { out in
                for index in 0..<bytes.count { out.initializeElement(at: index, to: folded(bytes[index])) }
                return bytes.count
            }
        }
    }

    private func folded(_ byte: UInt8) -> UInt8 {
        if Byte.isUpper(byte) { return byte | 0x20 }
        guard self == .rfc1459 else { return byte }
        switch byte {
        case UInt8(ascii: "["): return UInt8(ascii: "{")
        case UInt8(ascii: "]"): return UInt8(ascii: "}")
        case UInt8(ascii: "\\"): return UInt8(ascii: "|")
        case UInt8(ascii: "~"): return UInt8(ascii: "^")
        default: return byte
        }
    }
}

/// A person as the source of a line: `nick!user@host`.
///
/// Source: modern.ircdocs.horse, "Source".
public struct IRCSource: Hashable, Sendable {
    public var nick: String
    public var user: String
    public var host: String

    public init(nick: String, user: String, host: String) {
        self.nick = nick
        self.user = user
        self.host = host
    }

    /// `nick!user@host`
    public var text: String { "\(nick)!\(user)@\(host)" }

    /// Takes `nick!user@host` apart; nil unless all three parts are there. The user ends at the last `@`.
    public init?(parsing text: String) {
        let bytes = text.utf8
        guard let bang = bytes.firstIndex(of: UInt8(ascii: "!")),
            let at = bytes[bytes.index(after: bang)...].lastIndex(of: Byte.at)
        else { return nil }
        let nick = bytes[..<bang]
        let user = bytes[bytes.index(after: bang)..<at]
        let host = bytes[bytes.index(after: at)...]
        guard !nick.isEmpty, !user.isEmpty, !host.isEmpty else { return nil }
        self.init(nick: String(Substring(nick)), user: String(Substring(user)), host: String(Substring(host)))
    }
}

/// Which names may stand in a line.
///
/// Source: modern.ircdocs.horse, "Clients" and "Channels".
public enum IRCNames {
    /// Bytes of a nick.
    public static let standardNickBytes = 30
    /// Bytes of a channel's name, with its `#`.
    public static let standardChannelBytes = 64

    /// Whether a person may take `nick`.
    ///
    /// Refused are the bytes that give a line or a mask its structure (space and `,*?.!@:`), a first character that
    /// marks something else (a digit, `-`, a channel's `#&`, a member prefix `~%+`, a server mask's `$`), controls, white
    /// space, and characters without a width or a look of their own. With `utf8` off only RFC 2812's characters are taken.
    public static func isValidNickname(
        _ nick: String, maxBytes: Int = IRCNames.standardNickBytes, utf8: Bool = true
    ) -> Bool {
        guard let first = nick.utf8.first, nick.utf8.count <= maxBytes else { return false }
        if Byte.isDigit(first) || "-#&~%+$=".utf8.contains(first) { return false }
        if !utf8 { return nick.utf8.allSatisfy(isRFC2812Nick) }
        if nick.utf8.contains(where: " ,*?.!@:".utf8.contains) { return false }
        // A combining mark at the front would join whatever the client shows before the nick.
        if let scalar = nick.unicodeScalars.first, isMark(scalar) { return false }
        return nick.unicodeScalars.allSatisfy(isVisible)
    }

    /// Whether `name` may name a channel: `#` and at least one character that is not a space, comma, control or
    /// character without a look of its own.
    public static func isValidChannelName(
        _ name: String, maxBytes: Int = IRCNames.standardChannelBytes, utf8: Bool = true
    ) -> Bool {
        guard name.utf8.first == UInt8(ascii: "#"), (2...max(2, maxBytes)).contains(name.utf8.count) else {
            return false
        }
        if name.utf8.contains(where: { $0 <= Byte.space || $0 == UInt8(ascii: ",") || $0 == 0x7F }) { return false }
        return utf8 ? name.unicodeScalars.allSatisfy(isVisible) : name.utf8.allSatisfy { $0 < 0x80 }
    }

    private static func isRFC2812Nick(_ byte: UInt8) -> Bool {
        Byte.isDigit(byte) || Byte.isLower(Byte.lower(byte)) || "-[]\\`_^{|}".utf8.contains(byte)
    }

    private static func isMark(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .spacingMark: true
        default: false
        }
    }

    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar.value > 0x20 && scalar.value < 0x7F }
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator,
            .spaceSeparator:
            return false
        default:
            return !scalar.properties.isDefaultIgnorableCodePoint
        }
    }
}

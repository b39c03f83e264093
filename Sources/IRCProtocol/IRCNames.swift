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
        var text = text
        let lowered: String? = text.withUTF8 { bytes in
            guard bytes.contains(where: { folded($0) != $0 }) else { return nil }
            return String(unsafeUninitializedCapacity: bytes.count) { out in
                for index in 0..<bytes.count { out.initializeElement(at: index, to: folded(bytes[index])) }
                return bytes.count
            }
        }
        return lowered ?? text
    }

    /// `text` with those letters lowered that ``ascii`` does not know.
    public func foldPunctuation(_ text: String) -> String {
        guard self != .ascii else { return text }
        return String(decoding: text.utf8.map { Byte.isUpper($0) ? $0 : folded($0) }, as: UTF8.self)
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
        if nick.utf8.allSatisfy(isRFC2812Nick) { return true }
        if !utf8 { return false }
        if nick.utf8.contains(where: " ,*?.!@:".utf8.contains) { return false }
        // A combining mark at the front would join the text that the client shows before the nick.
        if let scalar = nick.unicodeScalars.first, isMark(scalar) { return false }
        return nick.unicodeScalars.allSatisfy(isVisible)
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

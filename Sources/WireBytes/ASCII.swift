/// ASCII for text protocols: case without locale, tokens, optional white space, bounded decimals.
public enum ASCII {
    /// `byte` in lower case when it is A...Z, else itself.
    @inlinable
    public static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte
    }

    /// `text` with A...Z in lower case and all else as it is.
    public static func lowercased(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 &- UInt8(ascii: "A") < 26 }) else { return text }
        return String(decoding: text.utf8.map(lowercased), as: UTF8.self)
    }

    /// Whether both are equal when the case of ASCII letters is ignored.
    public static func equalsIgnoringCase(_ a: some StringProtocol, _ b: some StringProtocol) -> Bool {
        a.utf8.elementsEqual(b.utf8) { lowercased($0) == lowercased($1) }
    }

    @inlinable
    public static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

    @inlinable
    public static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- UInt8(ascii: "a") < 26 }

    /// Whether `byte` is a hexadecimal digit of either case.
    @inlinable
    public static func isHexDigit(_ byte: UInt8) -> Bool { isDigit(byte) || (byte | 0x20) &- UInt8(ascii: "a") < 6 }

    /// Space or horizontal tab. Source: RFC 9110 §5.6.3.
    @inlinable
    public static func isOWS(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Whether `byte` may stand in an HTTP token. Source: RFC 9110 §5.6.2.
    public static func isTokenByte(_ byte: UInt8) -> Bool {
        if isLetter(byte) || isDigit(byte) { return true }
        switch byte {
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            return true
        default: return false
        }
    }

    /// Whether `text` is a non-empty HTTP token. Source: RFC 9110 §5.6.2.
    public static func isToken(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy(isTokenByte)
    }

    /// `bytes` without spaces and tabs at both ends.
    public static func trimmingOWS(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var rest = bytes
        while let first = rest.first, isOWS(first) { rest = rest.dropFirst() }
        while let last = rest.last, isOWS(last) { rest = rest.dropLast() }
        return rest
    }

    /// The value of `digits`, which must be 1 to `maxDigits` ASCII digits and nothing else.
    /// At most 18 digits are read, so that the sum cannot overflow.
    public static func decimal(_ digits: some Collection<UInt8>, maxDigits: Int = 18) -> Int? {
        guard !digits.isEmpty, digits.count <= min(maxDigits, 18) else { return nil }
        var value = 0
        for digit in digits {
            guard isDigit(digit) else { return nil }
            value = value &* 10 &+ Int(digit &- UInt8(ascii: "0"))
        }
        return value
    }
}

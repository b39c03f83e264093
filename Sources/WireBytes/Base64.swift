/// Base64 between bytes and text.
///
/// Source: RFC 4648 §4, §5.
public enum Base64 {
    static let standard: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    static let urlSafe: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

    /// `bytes` in the standard alphabet, padded.
    public static func encode(_ bytes: [UInt8]) -> String { encode(bytes, alphabet: standard, padded: true) }

    /// `bytes` in the URL-safe alphabet, without padding.
    public static func encodeURLSafe(_ bytes: [UInt8]) -> String { encode(bytes, alphabet: urlSafe, padded: false) }

    /// The decoded bytes of `text`, or nil. Strict: standard alphabet, padding required, no white space, and the unused
    /// bits of the last digit are zero, so that each value has one spelling.
    public static func decode(_ text: String) -> [UInt8]? {
        decode(text, digit62: UInt8(ascii: "+"), digit63: UInt8(ascii: "/"))
    }

    /// Like ``decode(_:)`` in the URL-safe alphabet; padding may be absent, but not be partial.
    public static func decodeURLSafe(_ text: String) -> [UInt8]? {
        let missing = text.utf8.count % 4
        let padded = missing == 0 ? text : text + (missing == 2 ? "==" : "=")
        return decode(padded, digit62: UInt8(ascii: "-"), digit63: UInt8(ascii: "_"))
    }

    private static func encode(_ bytes: [UInt8], alphabet: StaticString, padded: Bool) -> String {
        let capacity = (bytes.count + 2) / 3 * 4
        return String(unsafeUninitializedCapacity: capacity) { out in
            var written = 0
            func digit(_ value: UInt32) {
                out[written] = alphabet.utf8Start[Int(value & 63)]
                written += 1
            }
            var index = 0
            while bytes.count - index >= 3 {
                let group = UInt32(bytes[index]) << 16 | UInt32(bytes[index + 1]) << 8 | UInt32(bytes[index + 2])
                digit(group >> 18)
                digit(group >> 12)
                digit(group >> 6)
                digit(group)
                index += 3
            }
            let left = bytes.count - index
            if left > 0 {
                let group = UInt32(bytes[index]) << 16 | (left == 2 ? UInt32(bytes[index + 1]) << 8 : 0)
                digit(group >> 18)
                digit(group >> 12)
                if left == 2 { digit(group >> 6) }
                while padded, written < capacity {
                    out[written] = UInt8(ascii: "=")
                    written += 1
                }
            }
            return written
        }
    }

    private static func decode(_ text: String, digit62: UInt8, digit63: UInt8) -> [UInt8]? {
        var digits = Array(text.utf8)
        guard digits.count % 4 == 0 else { return nil }
        let padding = digits.suffix(2).reversed().prefix { $0 == UInt8(ascii: "=") }.count
        digits.removeLast(padding)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count * 3 / 4)
        var bits: UInt32 = 0
        var bitCount = 0
        for digit in digits {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = digit - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = digit - UInt8(ascii: "a") + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0") + 52
            case digit62: value = 62
            case digit63: value = 63
            default: return nil
            }
            bits = bits << 6 | UInt32(value)
            bitCount += 6
            if bitCount >= 8 {
                bitCount -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
                bits &= 1 << UInt32(bitCount) - 1
            }
        }
        return bits == 0 ? bytes : nil
    }
}

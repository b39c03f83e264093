import CSystem

// Base64 from buffer to buffer, for frames that carry a document inside a string.

extension Base64 {
    /// Bytes that `byteCount` bytes take as padded digits.
    public static func encodedCount(_ byteCount: Int) -> Int { (byteCount + 2) / 3 * 4 }

    /// Room that ``decodeTolerant(_:into:)`` needs for `digitCount` digits, in bytes.
    public static func decodedCapacity(_ digitCount: Int) -> Int { digitCount / 4 * 3 + 2 }

    /// Writes `bytes` in the standard alphabet, padded, to the front of `out`.
    ///
    /// - Returns: bytes written; nil when `out` is shorter than ``encodedCount(_:)``.
    public static func encode(
        _ bytes: UnsafeRawBufferPointer, into out: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let needed = encodedCount(bytes.count)
        guard out.count >= needed else { return nil }
        guard let source = bytes.baseAddress, let target = out.baseAddress else { return 0 }
        var read = source.assumingMemoryBound(to: UInt8.self)
        var write = target.assumingMemoryBound(to: UInt8.self)
        let digits = standard.utf8Start
        let end = read + bytes.count
        let encoded = cb_base64_encode(read, bytes.count, write)
        read += encoded
        write += encoded / 12 * 16
        while end - read >= 3 {
            let group = UInt32(read[0]) << 16 | UInt32(read[1]) << 8 | UInt32(read[2])
            write[0] = digits[Int(group >> 18)]
            write[1] = digits[Int(group >> 12 & 63)]
            write[2] = digits[Int(group >> 6 & 63)]
            write[3] = digits[Int(group & 63)]
            read += 3
            write += 4
        }
        let left = end - read
        if left > 0 {
            let group = UInt32(read[0]) << 16 | (left == 2 ? UInt32(read[1]) << 8 : 0)
            write[0] = digits[Int(group >> 18)]
            write[1] = digits[Int(group >> 12 & 63)]
            write[2] = left == 2 ? digits[Int(group >> 6 & 63)] : UInt8(ascii: "=")
            write[3] = UInt8(ascii: "=")
        }
        return needed
    }

    /// Writes the decoded bytes of `text` to the front of `out`, accepting every common variant: either alphabet,
    /// padded or not, and any unused bits of the last digit. White space and anything else is refused.
    ///
    /// - Returns: bytes written; nil when `text` is no base64, and when `out` is shorter than ``decodedCapacity(_:)``.
    ///
    /// Source: RFC 4648 §4, §5; §3.2 and §3.5 leave padding and unused bits to the application.
    public static func decodeTolerant(
        _ text: UnsafeRawBufferPointer, into out: UnsafeMutableRawBufferPointer
    ) -> Int? {
        var count = text.count
        while count > 0, text[count - 1] == UInt8(ascii: "=") { count -= 1 }
        guard count % 4 != 1, out.count >= decodedCapacity(count) else { return nil }
        guard count > 0, let source = text.baseAddress, let target = out.baseAddress else { return 0 }
        var read = source.assumingMemoryBound(to: UInt8.self)
        let start = target.assumingMemoryBound(to: UInt8.self)
        var write = start
        let end = read + count
        var flaws: UInt8 = 0
        let decoded = cb_base64_decode(read, count, write)
        read += decoded
        write += decoded / 16 * 12
        while end - read >= 4 {
            let (a, b, c, d) = (value(read[0]), value(read[1]), value(read[2]), value(read[3]))
            flaws |= a | b | c | d
            let group = UInt32(a) << 18 | UInt32(b) << 12 | UInt32(c) << 6 | UInt32(d)
            write[0] = UInt8(truncatingIfNeeded: group >> 16)
            write[1] = UInt8(truncatingIfNeeded: group >> 8)
            write[2] = UInt8(truncatingIfNeeded: group)
            read += 4
            write += 3
        }
        let left = end - read
        if left >= 2 {
            let (a, b, c) = (value(read[0]), value(read[1]), left == 3 ? value(read[2]) : 0)
            flaws |= a | b | c
            let group = UInt32(a) << 18 | UInt32(b) << 12 | UInt32(c) << 6
            write[0] = UInt8(truncatingIfNeeded: group >> 16)
            write += 1
            if left == 3 {
                write[0] = UInt8(truncatingIfNeeded: group >> 8)
                write += 1
            }
        }
        return flaws & noDigit == 0 ? write - start : nil
    }

    /// The entry in ``values`` for a byte that is no digit; no digit has this bit.
    private static let noDigit: UInt8 = 0x80

    @inline(__always)
    private static func value(_ byte: UInt8) -> UInt8 { values[Int(byte)] }

    /// The value of each byte as a digit of either alphabet.
    private static let values: InlineArray<256, UInt8> = {
        var values = InlineArray<256, UInt8>(repeating: noDigit)
        for alphabet in [standard, urlSafe] {
            for index in 0..<64 { values[Int(alphabet.utf8Start[index])] = UInt8(truncatingIfNeeded: index) }
        }
        return values
    }()
}

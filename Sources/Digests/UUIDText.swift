/// Name-based identifiers.
public enum UUIDv5 {
    /// The identifier of `name` within `namespace` (16 bytes), in upper-case text form.
    ///
    /// Source: RFC 9562 §5.5.
    public static func make(namespace: [UInt8], name: String) -> String {
        let digest = SHA1.hash(namespace + Array(name.utf8))
        return UUIDText.format(version: 5) { digest[$0] }
    }
}

/// The text form of identifiers, `8-4-4-4-12` hexadecimal digits.
public enum UUIDText {
    /// The 16 bytes of an identifier in text form, either case, or nil.
    public static func parse(_ text: String) -> [UInt8]? {
        let characters = Array(text.utf8)
        guard characters.count == 36 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(16)
        var high: UInt8?
        for (index, character) in characters.enumerated() {
            if [8, 13, 18, 23].contains(index) {
                guard character == UInt8(ascii: "-") else { return nil }
                continue
            }
            let nibble: UInt8
            switch character {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): nibble = character - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): nibble = character - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): nibble = character - UInt8(ascii: "A") + 10
            default: return nil
            }
            if let first = high {
                bytes.append(first << 4 | nibble)
                high = nil
            } else {
                high = nibble
            }
        }
        return bytes
    }

    /// 16 bytes in upper case, with the version and variant bits set.
    static func format(version: UInt8, _ byte: (Int) -> UInt8) -> String {
        String(unsafeUninitializedCapacity: 36) { text in
            var end = 0
            func add(_ character: UInt8) {
                text.initializeElement(at: end, to: character)
                end += 1
            }
            func digit(_ nibble: UInt8) -> UInt8 {
                nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "A") - 10 + nibble
            }
            for index in 0..<16 {
                var byte = byte(index)
                if index == 6 { byte = byte & 0x0F | version << 4 }
                if index == 8 { byte = byte & 0x3F | 0x80 }
                if index == 4 || index == 6 || index == 8 || index == 10 { add(UInt8(ascii: "-")) }
                add(digit(byte >> 4))
                add(digit(byte & 15))
            }
            return end
        }
    }
}

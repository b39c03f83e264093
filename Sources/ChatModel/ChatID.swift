/// An identifier that a chat backend or one of its clients made: of a message, a person or a room.
///
/// The spelling received is kept. UUID-shaped ids (8-4-4-4-12 hexadecimal digits) compare without regard to case, all
/// others byte by byte, because peers print the same UUID in either case.
public struct ChatID: Sendable {
    /// The id as it was received.
    public let rawValue: String
    @usableFromInline let isUUIDShaped: Bool

    public init(_ rawValue: String) {
        self.rawValue = rawValue
        self.isUUIDShaped = Self.hasUUIDShape(rawValue)
    }

    private static func hasUUIDShape(_ text: String) -> Bool {
        guard text.utf8.count == 36 else { return false }
        var text = text
        return text.withUTF8 { bytes in
            guard bytes[8] == 0x2D, bytes[13] == 0x2D, bytes[18] == 0x2D, bytes[23] == 0x2D else { return false }
            var hexDigits = 0
            for byte in bytes {
                let isDigit = byte &- UInt8(ascii: "0") < 10
                let isLetter = (byte | 0x20) &- UInt8(ascii: "a") < 6
                hexDigits &+= isDigit || isLetter ? 1 : 0
            }
            return hexDigits == 32
        }
    }

    /// Whether the id has the shape of a UUID, 8-4-4-4-12 hexadecimal digits of either case.
    public var isUUID: Bool { isUUIDShaped }

    /// Upper case where case means nothing; for keys in stores that compare bytes.
    public var canonical: String { isUUIDShaped ? rawValue.uppercased() : rawValue }
}

extension ChatID: Hashable {
    public static func == (a: ChatID, b: ChatID) -> Bool {
        guard a.isUUIDShaped == b.isUUIDShaped else { return false }
        let isUUID = a.isUUIDShaped
        var a = a.rawValue
        var b = b.rawValue
        guard a.utf8.count == b.utf8.count else { return false }
        let fold: UInt8 = isUUID ? 0x20 : 0
        return a.withUTF8 { x in
            b.withUTF8 { y in
                var differs: UInt8 = 0
                for index in 0..<x.count { differs |= (x[index] | fold) ^ (y[index] | fold) }
                return differs == 0
            }
        }
    }

    public func hash(into hasher: inout Hasher) {
        var text = rawValue
        text.withUTF8 { bytes in
            let fold: UInt64 = isUUIDShaped ? 0x2020_2020_2020_2020 : 0
            var rest = UnsafeRawBufferPointer(bytes)
            while rest.count >= 8 {
                hasher.combine(rest.loadUnaligned(as: UInt64.self) | fold)
                rest = UnsafeRawBufferPointer(rebasing: rest[8...])
            }
            for byte in rest { hasher.combine(byte | UInt8(truncatingIfNeeded: fold)) }
        }
    }
}

extension ChatID: CustomStringConvertible {
    public var description: String { rawValue }
}

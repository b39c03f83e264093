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
        let bytes = text.utf8
        guard bytes.count == 36 else { return false }
        var index = 0
        for byte in bytes {
            switch index {
            case 8, 13, 18, 23:
                guard byte == UInt8(ascii: "-") else { return false }
            default:
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
                    UInt8(ascii: "A")...UInt8(ascii: "F"):
                    break
                default: return false
                }
            }
            index += 1
        }
        return true
    }

    /// Upper case where case means nothing; for keys in stores that compare bytes.
    public var canonical: String { isUUIDShaped ? rawValue.uppercased() : rawValue }
}

extension ChatID: Hashable {
    public static func == (a: ChatID, b: ChatID) -> Bool {
        if a.rawValue == b.rawValue { return true }
        guard a.isUUIDShaped, b.isUUIDShaped else { return false }
        return zip(a.rawValue.utf8, b.rawValue.utf8).allSatisfy { $0 | 0x20 == $1 | 0x20 }
    }

    public func hash(into hasher: inout Hasher) {
        // `| 0x20` folds letters and leaves digits alone; it maps `-` (2D) onto itself as well.
        for byte in rawValue.utf8 { hasher.combine(isUUIDShaped ? byte | 0x20 : byte) }
    }
}

extension ChatID: CustomStringConvertible {
    public var description: String { rawValue }
}

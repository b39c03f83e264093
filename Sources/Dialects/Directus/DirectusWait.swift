/// How long a server that has too much to do wants to be left alone; it says so in words only: `retry after 500ms`.
///
/// The number is rounded and bears the unit of the library `ms`: ms, s, m, h or d.
///
/// Source: observed, directus fixtures/in.jsonl.
enum DirectusWait {
    /// Where the words do not say; the length of a limiter's period as Directus is delivered.
    static let unsaid: Int64 = 1000
    /// More digits cannot be a plausible wait.
    private static let maxDigits = 9

    static func milliseconds(in text: String) -> Int64 {
        let bytes = Array(text.utf8)
        let words = Array("retry after ".utf8)
        guard bytes.count > words.count,
            let start = (0...(bytes.count - words.count)).first(where: {
                bytes[$0..<($0 + words.count)].elementsEqual(words)
            })
        else { return unsaid }
        let rest = bytes[(start + words.count)...]
        let digits = rest.prefix { $0 &- UInt8(ascii: "0") < 10 }
        guard !digits.isEmpty, digits.count <= maxDigits, let number = Int64(String(decoding: digits, as: UTF8.self))
        else { return unsaid }
        let unit = rest.dropFirst(digits.count).prefix {
            $0 | 0x20 >= UInt8(ascii: "a") && $0 | 0x20 <= UInt8(ascii: "z")
        }
        let factor: Int64
        switch String(decoding: unit, as: UTF8.self) {
        case "ms": factor = 1
        case "s": factor = 1000
        case "m": factor = 60_000
        case "h": factor = 3_600_000
        case "d": factor = 86_400_000
        default: return unsaid
        }
        return number * factor
    }
}

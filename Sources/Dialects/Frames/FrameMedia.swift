import ChatModel
import JSONText

// What the dialects with files read of them, and how addresses of files become whole.

/// Numbers that describe a file.
enum FrameMedia {
    /// Most digits of a number in quotes: these fit into 63 bits, more may not.
    static let maxQuotedDigits = 18

    /// A whole number; a fraction is cut off. Nil for everything else, and for what does not fit.
    static func whole(_ field: JSONField?) -> Int64? {
        guard let field else { return nil }
        if let value = field.int64 { return value }
        guard field.kind == .decimal, let value = field.double, value.magnitude < 0x1p63 else { return nil }
        return Int64(value)
    }

    /// Bytes of a file: a number above zero, also in quotes.
    static func size(_ field: JSONField?) -> Int64? {
        guard let field else { return nil }
        let value: Int64?
        if field.kind == .string {
            value = field.withRawBytes { bytes in
                guard 1...maxQuotedDigits ~= bytes.count else { return nil }
                var sum: Int64 = 0
                for byte in bytes {
                    guard byte &- UInt8(ascii: "0") < 10 else { return nil }
                    sum = sum * 10 + Int64(byte &- UInt8(ascii: "0"))
                }
                return sum
            }
        } else {
            value = whole(field)
        }
        return value.flatMap { $0 > 0 ? $0 : nil }
    }
}

/// The address against which relative addresses of files are resolved.
struct FrameBase: Sendable, Equatable {
    /// Without a slash at its end.
    let text: String

    /// Reads the option `base`.
    ///
    /// - Throws: when it is no address of a web server.
    static func option(_ options: inout DialectOptions) throws(DialectOptionError) -> FrameBase? {
        guard let text = try options.text("base") else { return nil }
        let bytes = text.utf8
        let authority = ["http://", "https://"].first { bytes.starts(with: $0.utf8) }.map {
            bytes.dropFirst($0.utf8.count)
        }
        guard let authority, let first = authority.first, first != UInt8(ascii: "/"),
            bytes.allSatisfy({ 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
        else { throw options.error("base", "must be the address of a web server, such as \"https://chat.example\"") }
        var end = bytes.endIndex
        while end > bytes.startIndex, bytes[bytes.index(before: end)] == UInt8(ascii: "/") {
            end = bytes.index(before: end)
        }
        return FrameBase(text: String(text[..<end]))
    }

    /// `url` itself when it has a scheme, else its place below `base`. Two slashes in front do not lead to another host:
    /// all relative addresses stay with the backend.
    static func resolve(_ url: String?, against base: FrameBase?) -> String? {
        guard let url, !url.isEmpty else { return nil }
        guard let base, !hasScheme(url) else { return url }
        guard let first = url.utf8.firstIndex(where: { $0 != UInt8(ascii: "/") }) else { return base.text + "/" }
        return base.text + "/" + url[first...]
    }

    /// Source: RFC 3986 §3.1.
    private static func hasScheme(_ url: String) -> Bool {
        var isFirst = true
        for byte in url.utf8 {
            let isLetter = (byte | 0x20) &- UInt8(ascii: "a") < 26
            switch byte {
            case UInt8(ascii: ":"): return !isFirst
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."):
                if isFirst { return false }
            default:
                if !isLetter { return false }
            }
            isFirst = false
        }
        return false
    }
}

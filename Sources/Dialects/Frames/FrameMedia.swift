import JSONText
import WireBytes

// Numbers that describe files, and absolute addresses of files.

/// Numbers out of JSON: file sizes, widths and the like.
enum FrameNumber {
    /// A whole number; a fraction is cut off. Nil for other values, and for numbers beyond `Int64`.
    static func whole(_ field: JSONField?) -> Int64? {
        guard let field else { return nil }
        if let value = field.int64 { return value }
        guard field.kind == .decimal, let value = field.double, value.magnitude < 0x1p63 else { return nil }
        return Int64(value)
    }

    /// A whole number above 0: written as one, as a decimal with its fraction cut off, or as digits in quotes. Nil for
    /// other values and beyond the range.
    static func count(_ field: JSONField?) -> Int64? {
        let value =
            field?.kind == .string
            ? field?.withUTF8 { ASCII.decimal($0) }.flatMap { $0.map { Int64($0) } } : whole(field)
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

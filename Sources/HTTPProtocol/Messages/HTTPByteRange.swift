import WireBytes

/// One requested part of a file.
///
/// A request for several parts at once, or in other units, gets the whole: every server may ignore it, and a multipart
/// answer has a form of its own that nothing here has to pass on.
///
/// Source: RFC 9110 §14.1.2, §14.2.
public enum HTTPByteRange: Equatable, Sendable {
    /// `bytes=5-9` and `bytes=5-`; both ends count.
    case from(Int, through: Int?)
    /// `bytes=-5`: so many at the end.
    case last(Int)

    /// Reads the value of a `Range` field; nil: it is to be ignored.
    public init?(_ value: String) {
        let bytes = value.utf8
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")),
            ASCII.equalsIgnoringCase(String(value[..<equals]), "bytes")
        else { return nil }
        let range = ASCII.trimmingOWS(Array(bytes[bytes.index(after: equals)...])[...])
        guard let dash = range.firstIndex(of: UInt8(ascii: "-")) else { return nil }
        let (front, back) = (range[..<dash], range[(dash + 1)...])
        if front.isEmpty {
            guard let count = ASCII.decimal(back) else { return nil }
            self = .last(count)
        } else {
            guard let first = ASCII.decimal(front) else { return nil }
            if back.isEmpty {
                self = .from(first, through: nil)
            } else {
                guard let last = ASCII.decimal(back), last >= first else { return nil }
                self = .from(first, through: last)
            }
        }
    }

    /// The part that a request asks for; nil: the whole. Only GET has parts.
    public init?(request head: HTTPRequestHead) {
        let fields = head.headers.all("Range")
        guard head.method == "GET", fields.count == 1 else { return nil }
        self.init(fields[0])
    }

    /// The value of a `Range` field.
    public var field: String {
        switch self {
        case .from(let first, let last): "bytes=\(first)-\(last.map(String.init) ?? "")"
        case .last(let count): "bytes=-\(count)"
        }
    }

    /// The bytes of a file of `length` bytes; nil: there are none of them (416).
    public func bytes(of length: Int) -> Range<Int>? {
        switch self {
        case .from(let first, let last):
            guard first < length else { return nil }
            return first..<(min(last ?? length, length - 1) + 1)
        case .last(let count):
            guard count > 0, length > 0 else { return nil }
            return max(length - count, 0)..<length
        }
    }
}

/// Which part of a file an answer holds, or how large the file is that has no such part.
///
/// Source: RFC 9110 §14.4.
public enum HTTPContentRange: Equatable, Sendable {
    /// Of a file of `total` bytes; nil: not known.
    case part(Range<Int>, total: Int?)
    case unsatisfied(total: Int)

    /// Reads the value of a `Content-Range` field; nil for anything but one sound range of bytes.
    public init?(_ value: String) {
        let words = value.utf8.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.count == 2, ASCII.equalsIgnoringCase(String(words[0]) ?? "", "bytes") else { return nil }
        let parts = words[1].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let total = ASCII.decimal(parts[1])
        guard total != nil || parts[1].elementsEqual("*".utf8) else { return nil }
        if parts[0].elementsEqual("*".utf8) {
            guard let total else { return nil }
            self = .unsatisfied(total: total)
            return
        }
        let ends = parts[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard ends.count == 2, let first = ASCII.decimal(ends[0]), let last = ASCII.decimal(ends[1]), first <= last,
            last < total ?? .max
        else { return nil }
        self = .part(first..<(last + 1), total: total)
    }

    /// The value of a `Content-Range` field.
    public var field: String {
        switch self {
        case .part(let range, let total):
            "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total.map(String.init) ?? "*")"
        case .unsatisfied(let total): "bytes */\(total)"
        }
    }
}

/// How large and how deep a document may be.
public struct JSONLimits: Equatable, Sendable {
    /// Deepest nesting of any reader, in containers: the room that a reader keeps for its own bookkeeping.
    public static let deepestNesting = 1024

    /// Largest document, in bytes. The default is the largest frame that the bridge takes from a backend.
    ///
    /// Source: chat backends, "Incoming frame over 4 MiB: close 1009".
    public var maxBytes: Int
    /// Most objects and arrays inside each other, the outermost counted. The default is the limit of Foundation, so a
    /// document that Apple clients read is read here too. Never above ``deepestNesting``.
    public var maxDepth: Int

    @inlinable
    public init(maxBytes: Int = 4 * 1024 * 1024, maxDepth: Int = 512) {
        self.maxBytes = maxBytes
        self.maxDepth = min(maxDepth, Self.deepestNesting)
    }
}

/// Why bytes are no JSON document. Always the sender's fault; nothing of the document may be used.
public struct JSONError: Error, Equatable, Sendable {
    public enum Reason: String, Sendable, CaseIterable {
        case tooLong = "too-long"
        case tooDeep = "too-deep"
        case unexpectedEnd = "unexpected-end"
        case unexpectedByte = "unexpected-byte"
        case controlInString = "control-in-string"
        case badEscape = "bad-escape"
        case loneSurrogate = "lone-surrogate"
        case badUTF8 = "bad-utf8"
        case badNumber = "bad-number"
        case badLiteral = "bad-literal"
        case trailingBytes = "trailing-bytes"
    }

    public let reason: Reason
    /// Offset in bytes from the start of the document.
    public let offset: Int

    @usableFromInline
    init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}

extension JSONError: CustomStringConvertible {
    public var description: String { "\(reason.rawValue) at byte \(offset)" }
}

import ChatModel
import JSONText

/// Attachments as all dialects see them.
package enum FrameAttachment {
    /// The attachment kind for a MIME type; `hint` is the wire's own word, if it has one.
    package static func kind(mime: String?, hint: ChatAttachment.Kind? = nil) -> ChatAttachment.Kind {
        switch hint {
        case .image, .video, .audio: return hint ?? .file
        default: break
        }
        switch mime?.utf8.firstIndex(of: UInt8(ascii: "/")).map({ mime?[..<$0] ?? "" }) {
        case "image": return .image
        case "video": return .video
        case "audio": return .audio
        default: return hint == .document || mime?.isEmpty == false ? .document : .file
        }
    }

    /// The attachment that `text` is, when it is one whole `data:` URI in base64; white space around it does not count.
    ///
    /// The size is that of the decoded file, computed from the length; the base64 is not decoded.
    ///
    /// Source: RFC 2397.
    static func inline(_ text: String) -> ChatAttachment? {
        // Nearly every text ends here.
        guard let first = text.utf8.first, first == UInt8(ascii: "d") || first <= 0x20 else { return nil }
        var native = text
        return native.withUTF8 { bytes in
            var scan = DataURIScanner(rest: bytes[...])
            return scan.attachment()
        }
    }

    /// Whether ``inline(_:)`` is worth asking about the text of `field`, however it is escaped.
    @inline(__always)
    static func mayBeInline(_ field: JSONField) -> Bool {
        guard let first = field.firstRawByte else { return false }
        return first == UInt8(ascii: "d") || first == UInt8(ascii: "\\") || first <= 0x20
    }

    /// `text`, then the attachments' addresses on lines of their own, unless the text ends in one; for wires that carry
    /// only text.
    package static func textWithLinks(_ text: String, _ attachments: [ChatAttachment]) -> String {
        guard !attachments.isEmpty else { return text }
        var whole = text
        for attachment in attachments {
            guard let url = attachment.url, !url.isEmpty, !whole.hasSuffix(url) else { continue }
            if !whole.isEmpty { whole += "\n" }
            whole += url
        }
        return whole
    }
}

private struct DataURIScanner {
    var rest: Slice<UnsafeBufferPointer<UInt8>>

    mutating func attachment() -> ChatAttachment? {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
        while let first = rest.first, isSpace(first) { rest = rest.dropFirst() }
        guard take("data:") else { return nil }
        while let last = rest.last, isSpace(last) { rest = rest.dropLast() }
        var mime: String?
        if let first = rest.first, first != UInt8(ascii: ";") {
            let begin = rest
            guard token(), take("/"), token() else { return nil }
            mime = String(decoding: begin[begin.startIndex..<rest.startIndex], as: UTF8.self)
        }
        while !take(";base64,") {
            guard take(";"), token(), take("="), token() else { return nil }
        }
        var body = rest
        var padding = 0
        while padding < 2, body.last == UInt8(ascii: "=") {
            body = body.dropLast()
            padding += 1
        }
        guard body.allSatisfy(Self.isBase64) else { return nil }
        let (bytes, over) = body.count.multipliedReportingOverflow(by: 3)
        guard !over else { return nil }
        return ChatAttachment(
            kind: FrameAttachment.kind(mime: mime), size: bytes >= 4 ? Int64(bytes / 4) : nil,
            mime: mime ?? "text/plain", inline: String(decoding: rest, as: UTF8.self))
    }

    private mutating func take(_ word: StaticString) -> Bool {
        let wanted = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard rest.starts(with: wanted) else { return false }
        rest = rest.dropFirst(wanted.count)
        return true
    }

    /// One or more letters, digits, `_`, `.`, `+`, `-`.
    private mutating func token() -> Bool {
        let begin = rest.count
        while let byte = rest.first, Self.isToken(byte) { rest = rest.dropFirst() }
        return rest.count < begin
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        byte &- UInt8(ascii: "0") < 10 || (byte | 0x20) &- UInt8(ascii: "a") < 26
    }

    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "+"), UInt8(ascii: "-"): true
        default: isAlphanumeric(byte)
        }
    }

    private static func isBase64(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "+") || byte == UInt8(ascii: "/") || isAlphanumeric(byte)
    }
}

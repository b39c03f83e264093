import ChatModel
import HTTPProtocol
import IRCProtocol

// Files as IRC users see them: one line each, with a link that opens without the bridge's own token, or the word that there
// is none.

extension MessageRendering {
    /// Attachments of one message that are shown; nobody sends more by hand.
    static let maxAttachmentLines = 20
    /// Bytes of a file's name that are shown.
    static let maxFileNameBytes = 150
    /// Bytes of a link. Longer ones fill several lines, and no client opens those.
    static let maxLinkBytes = 2048

    static func lines(
        of attachments: [ChatAttachment], budget: Int, files: FileLinks? = nil
    ) -> [IRCUtterance.Line] {
        var lines: [IRCUtterance.Line] = []
        for attachment in attachments.prefix(maxAttachmentLines) {
            // By lines, since a CR LF is one character to a search for either.
            let line = IRCTextSplitter.lines(cleanBody(describe(attachment, files: files)), maxLines: 10)
                .joined(separator: " ")
            for (index, piece) in IRCTextSplitter.split(line, budget: budget).enumerated() {
                lines.append(IRCUtterance.Line(piece, isContinuation: index > 0))
            }
        }
        let omitted = attachments.count - maxAttachmentLines
        if omitted > 0 {
            lines.append(IRCUtterance.Line("… \(omitted) more attachment\(omitted == 1 ? "" : "s")"))
        }
        return lines
    }

    /// One line that a person can use: `[image] cat.png (12 KiB) https://…`.
    ///
    /// - Parameter files: makes links through the bridge, where the file's own address opens for nobody.
    static func describe(
        _ attachment: ChatAttachment, files: FileLinks? = nil
    ) -> String {
        if let inline = attachment.inline {
            // Inline data is never printed; its size is three quarters of its base64.
            let size = attachment.size ?? Int64(inline.utf8.count / 4 * 3)
            return "[\(attachment.kind.rawValue), \(byteSize(size)), inline]"
        }
        var line = "[\(attachment.kind.rawValue)]"
        let name = attachment.name.map { NickMaker.prefix(of: $0, maxBytes: maxFileNameBytes) } ?? ""
        if !name.isEmpty { line += " " + name }
        if let size = attachment.size, size >= 0 { line += " (\(byteSize(size)))" }
        let url = files?.url(of: attachment) ?? attachment.url.flatMap { link($0) }
        if let url { return line + " " + url }
        return line + (name.isEmpty && attachment.size == nil ? " " : ", ") + "not available through a link"
    }

    static func byteSize(_ bytes: Int64) -> String {
        if bytes < 1024 { return "\(bytes) B" }
        if bytes < 1024 * 1024 { return "\(bytes / 1024) KiB" }
        return "\(bytes / (1024 * 1024)) MiB"
    }

    // MARK: - Links

    /// `url` as it may stand in a line, or nil: no web link, or one that carries what lets its bearer in.
    ///
    /// Blanks and invisible characters come back percent-encoded; a link with a control character is no link.
    static func link(_ url: String) -> String? {
        guard url.utf8.count <= maxLinkBytes, let start = afterScheme(url) else { return nil }
        let rest = url.utf8[start...]
        let end =
            rest.firstIndex {
                $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#")
            } ?? rest.endIndex
        let authority = rest[..<end]
        // A name and password in front of the host; or something that some clients take for a slash.
        guard !authority.isEmpty,
            !authority.contains(where: { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "\\") || $0 <= 0x20 })
        else { return nil }
        guard !holdsSecret(rest[end...]) else { return nil }
        var shown = String.UnicodeScalarView()
        for scalar in url.unicodeScalars {
            if IdentityMap.isControl(scalar) { return nil }
            if scalar.properties.isWhitespace || scalar.properties.generalCategory == .format {
                for byte in String(scalar).utf8 {
                    let hex = String(byte, radix: 16, uppercase: true)
                    shown.append(contentsOf: ("%" + (hex.utf8.count < 2 ? "0" : "") + hex).unicodeScalars)
                }
            } else {
                shown.append(scalar)
            }
        }
        return String(shown)
    }

    private static func afterScheme(_ url: String) -> String.Index? {
        for scheme in ["https://", "http://"] where lowercased(url.utf8.prefix(scheme.utf8.count)) == scheme {
            return url.utf8.index(url.startIndex, offsetBy: scheme.utf8.count)
        }
        return nil
    }

    private static func lowercased(_ bytes: Substring.UTF8View) -> String {
        String(decoding: bytes.map { $0 &- UInt8(ascii: "A") < 26 ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    /// Looks at the query and at the fragment, in which some logins hand their tokens over.
    private static func holdsSecret(_ resource: Substring.UTF8View) -> Bool {
        guard
            let query = resource.firstIndex(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") })
        else { return false }
        let separators = Array("?#&;".utf8)
        for parameter in resource[query...].split(whereSeparator: { separators.contains($0) }) {
            let name = Substring(parameter.prefix { $0 != UInt8(ascii: "=") })
            guard name.utf8.count + 1 < parameter.count else { continue }
            if SecretNames.contains(HTTPURL.percentDecoded(String(name)) ?? String(name)) { return true }
            // The look of a JWT: three parts, of which the first is base64url of `{"`.
            let value = parameter.dropFirst(name.utf8.count + 1)
            if value.starts(with: "eyJ".utf8), value.count(where: { $0 == UInt8(ascii: ".") }) == 2 { return true }
        }
        return false
    }
}

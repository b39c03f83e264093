import BridgeTypes
import ChatModel
import IRCProtocol
import Media
import Rooms

// Attachments as IRC users see them: one line each, with a link that works without the bridge's own token, or a note
// that there is none.

extension MessageRendering {
    /// Bytes of a file name that are shown.
    static let maxFileNameBytes = 150

    static func lines(
        of attachments: [ChatAttachment], budget: Int, files: RoomFileLinks? = nil
    ) -> [IRCUtterance.Line] {
        var lines: [IRCUtterance.Line] = []
        for attachment in attachments.prefix(RoomFileLinks.maxShown) {
            // By lines, since CR LF is one character in a search for either.
            let line = IRCTextSplitter.lines(MessageText.cleanBody(describe(attachment, files: files)), maxLines: 10)
                .joined(separator: " ")
            for (index, piece) in IRCTextSplitter.split(line, budget: budget).enumerated() {
                lines.append(IRCUtterance.Line(piece, isContinuation: index > 0))
            }
        }
        let omitted = attachments.count - RoomFileLinks.maxShown
        if omitted > 0 {
            lines.append(IRCUtterance.Line("… \(omitted) more attachment\(omitted == 1 ? "" : "s")"))
        }
        return lines
    }

    /// A description in one line: `[image] cat.png (12 KiB) https://…`.
    ///
    /// - Parameter files: makes links through the bridge, for files whose own address is not accessible.
    static func describe(
        _ attachment: ChatAttachment, files: RoomFileLinks? = nil
    ) -> String {
        if let inline = attachment.inline {
            // Inline data is never printed; its size is three quarters of its base64.
            let size = attachment.size ?? Int64(inline.utf8.count / 4 * 3)
            return "[\(attachment.kind.rawValue), \(byteSize(size)), inline]"
        }
        var line = "[\(attachment.kind.rawValue)]"
        let name = attachment.name.map { PrintableText.prefix(of: $0, maxBytes: maxFileNameBytes) } ?? ""
        if !name.isEmpty { line += " " + name }
        if let size = attachment.size, size >= 0 { line += " (\(byteSize(size)))" }
        let url = files?.url(of: attachment) ?? attachment.url.flatMap { WebLink.shown($0) }
        if let url { return line + " " + url }
        return line + (name.isEmpty && attachment.size == nil ? " " : ", ") + "not available through a link"
    }

    static func byteSize(_ bytes: Int64) -> String {
        if bytes < 1024 { return "\(bytes) B" }
        if bytes < 1024 * 1024 { return "\(bytes / 1024) KiB" }
        return "\(bytes / (1024 * 1024)) MiB"
    }
}

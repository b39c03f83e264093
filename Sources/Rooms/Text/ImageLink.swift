import ChatModel

/// A message that consists of a picture's link: chat apps show the picture, so it is also sent as an attachment.
///
/// The text stays: a wire without attachments loses nothing, and echoes are recognised by it.
enum ImageLink {
    /// Longer addresses stay text only; no IRC line holds one.
    static let maxBytes = 2048
    private static let types: [String: String] = [
        "jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif", "webp": "image/webp",
    ]

    static func attachment(in text: String) -> ChatAttachment? {
        guard text.utf8.first == UInt8(ascii: "h"), text.utf8.count <= maxBytes,
            text.hasPrefix("https://") || text.hasPrefix("http://"),
            text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F })
        else { return nil }
        let address = text.prefix { $0 != "?" && $0 != "#" }
        let parts = address.split(separator: "/", omittingEmptySubsequences: false)
        // "http:", "", the host, and at least a file.
        guard parts.count >= 4, !parts[2].isEmpty, let file = parts.last, let dot = file.lastIndex(of: "."),
            dot > file.startIndex, let mime = types[file[file.index(after: dot)...].lowercased()]
        else { return nil }
        return ChatAttachment(kind: .image, url: text, name: String(file), mime: mime)
    }
}

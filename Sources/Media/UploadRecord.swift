public import ChatModel

/// An uploaded file and its link.
public struct UploadRecord: Equatable, Sendable {
    /// Limit of recorded files, about 500 bytes each; the oldest are evicted. Links are normally sent within minutes.
    public static let capacity = 1000
    /// Limit of one record, in bytes of all its texts: names and addresses are chosen by the backend.
    package static let maxBytes = 4096

    public var link: String
    /// The room's backend, by its name in the settings.
    public var backend: String
    /// The attachment as the backend expects it in a message.
    public var attachment: ChatAttachment

    public init(link: String, backend: String, attachment: ChatAttachment) {
        self.link = link
        self.backend = backend
        self.attachment = attachment
    }
}

extension UploadRecord {
    package var byteCount: Int {
        let texts = [attachment.url, attachment.name, attachment.mime, attachment.thumbnail, attachment.fileID]
        return link.utf8.count + texts.reduce(0) { $0 + ($1?.utf8.count ?? 0) }
    }
}

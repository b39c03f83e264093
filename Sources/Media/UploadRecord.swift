public import ChatModel

/// A file that was uploaded, and the link that its uploader was given.
public struct UploadRecord: Equatable, Sendable {
    /// Files remembered, about 500 bytes each; the oldest go first. People say a link within minutes.
    public static let capacity = 1000
    /// Longest that is remembered, in bytes of all its texts: names and addresses are the backend's to choose.
    package static let maxBytes = 4096

    public var link: String
    /// The room's, by its name in the settings.
    public var backend: String
    /// As the backend wants it in a message.
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

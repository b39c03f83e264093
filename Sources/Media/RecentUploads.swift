import ChatModel

/// Recent uploads by their links. A message with such a link is sent with the file as an attachment.
struct RecentUploads {
    private var entries: [String: UploadRecord] = [:]
    private var order: [String] = []

    var isEmpty: Bool { entries.isEmpty }

    /// - Parameter stored: of an earlier process, oldest first.
    init(_ stored: [UploadRecord] = []) {
        for record in stored { add(record) }
    }

    mutating func add(_ record: UploadRecord) {
        if entries.updateValue(record, forKey: record.link) == nil { order.append(record.link) }
        if order.count > UploadRecord.capacity { entries[order.removeFirst()] = nil }
    }

    /// The file of a link; nil also on other backends, which do not have the file.
    func file(at link: String, backend: String) -> ChatAttachment? {
        guard link.utf8.count <= WebLink.maxBytes, let entry = entries[link], entry.backend == backend
        else { return nil }
        return entry.attachment
    }
}

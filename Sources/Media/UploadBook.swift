import ChatModel

/// What was uploaded lately, by the links that uploaders were given: when such a link is said, it is the file that is said.
struct UploadBook {
    private var entries: [String: UploadRecord] = [:]
    private var order: [String] = []

    var isEmpty: Bool { entries.isEmpty }

    /// - Parameter kept: of an earlier process, oldest first.
    init(_ kept: [UploadRecord] = []) {
        for record in kept { add(record) }
    }

    mutating func add(_ record: UploadRecord) {
        if entries.updateValue(record, forKey: record.link) == nil { order.append(record.link) }
        if order.count > UploadRecord.capacity { entries[order.removeFirst()] = nil }
    }

    /// Another backend does not have the file.
    func file(at link: String, backend: String) -> ChatAttachment? {
        guard link.utf8.count <= WebLink.maxBytes, let entry = entries[link], entry.backend == backend
        else { return nil }
        return entry.attachment
    }
}

import BridgeTypes
import ChatModel

/// An upload in progress.
package struct RunningUpload {
    /// The room for which links to the file are made.
    package let room: String
    /// The room's backend.
    package let backend: String
    package let file: String
    package let account: String
    /// The file to store locally; nil: it goes to the backend.
    package let stored: StoredFile?

    package init(room: String, backend: String, file: String, account: String, stored: StoredFile?) {
        self.room = room
        self.backend = backend
        self.file = file
        self.account = account
        self.stored = stored
    }
}

/// Uploads in progress, and recent ones.
package final class Uploads {
    /// Limit of files in one message.
    private static let maxInMessage = 10

    private var running: [UploadID: RunningUpload] = [:]
    private var recent: RecentUploads

    /// - Parameter stored: of an earlier process, oldest first.
    package init(_ stored: [UploadRecord] = []) { recent = RecentUploads(stored) }

    package func begin(_ id: UploadID, _ upload: RunningUpload) { running[id] = upload }

    /// Ends an upload; nil: not in progress.
    package func end(_ id: UploadID) -> RunningUpload? { running.removeValue(forKey: id) }

    /// Records a file that a backend has. False: the record is too large.
    package func record(_ record: UploadRecord) -> Bool {
        guard record.byteCount <= UploadRecord.maxBytes else { return false }
        recent.add(record)
        return true
    }

    /// Replaces links to recent uploads, at the end or the start of a message, by attachments.
    ///
    /// - Parameter backend: of the message; others do not have the files.
    /// - Returns: the rest of the text, which may be empty.
    package func find(in text: String, backend: String) -> (text: String, attachments: [ChatAttachment]) {
        guard !recent.isEmpty else { return (text, []) }
        var attachments: [ChatAttachment] = []
        var words = text[...]
        while attachments.count < Self.maxInMessage {
            let blank: (Character) -> Bool = { $0 == " " || $0 == "\n" }
            let tail = words.lastIndex(where: blank).map { words[words.index(after: $0)...] } ?? words
            if let file = recent.file(at: String(tail), backend: backend) {
                attachments.insert(file, at: 0)
                words = words[..<tail.startIndex]
            } else {
                let head = words.prefix { !blank($0) }
                guard attachments.isEmpty, head.endIndex < words.endIndex,
                    let file = recent.file(at: String(head), backend: backend)
                else { break }
                attachments.append(file)
                words = words[words.index(after: head.endIndex)...]
            }
            while words.last.map(blank) ?? false { words.removeLast() }
            if words.isEmpty { break }
        }
        return (attachments.isEmpty ? text : String(words), attachments)
    }
}

import BridgeTypes
import ChatModel

/// What an upload will be known by.
package struct RunningUpload {
    /// In whose name links to the file are made.
    package let room: String
    /// The room's, whoever uploads there.
    package let backend: String
    package let file: String
    package let account: String
    /// What is kept here; nil: the backend gets it.
    package let kept: KeptFile?

    package init(room: String, backend: String, file: String, account: String, kept: KeptFile?) {
        self.room = room
        self.backend = backend
        self.file = file
        self.account = account
        self.kept = kept
    }
}

/// Uploads that are under way, and those of lately: when the link of one is said, it is the file that is said.
package final class Uploads {
    /// Files of one message.
    private static let maxInMessage = 10

    private var running: [UploadID: RunningUpload] = [:]
    private var book: UploadBook

    /// - Parameter kept: of an earlier process, oldest first.
    package init(_ kept: [UploadRecord] = []) { book = UploadBook(kept) }

    package func begin(_ id: UploadID, _ upload: RunningUpload) { running[id] = upload }

    /// It is known what became of it. Nil: nobody waits for that.
    package func end(_ id: UploadID) -> RunningUpload? { running.removeValue(forKey: id) }

    /// A backend has the file. False: there is too much of it to be remembered.
    package func remember(_ record: UploadRecord) -> Bool {
        guard record.byteCount <= UploadRecord.maxBytes else { return false }
        book.add(record)
        return true
    }

    /// What is said, with files that its author uploaded before: as attachments, and without their links where these stand
    /// at the end or the beginning.
    ///
    /// - Parameter backend: where it is said; another does not have the files.
    /// - Returns: the words that are left, which may be none.
    package func find(in text: String, backend: String) -> (text: String, attachments: [ChatAttachment]) {
        guard !book.isEmpty else { return (text, []) }
        var attachments: [ChatAttachment] = []
        var words = text[...]
        while attachments.count < Self.maxInMessage {
            let blank: (Character) -> Bool = { $0 == " " || $0 == "\n" }
            let tail = words.lastIndex(where: blank).map { words[words.index(after: $0)...] } ?? words
            if let file = book.file(at: String(tail), backend: backend) {
                attachments.insert(file, at: 0)
                words = words[..<tail.startIndex]
            } else {
                let head = words.prefix { !blank($0) }
                guard attachments.isEmpty, head.endIndex < words.endIndex,
                    let file = book.file(at: String(head), backend: backend)
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

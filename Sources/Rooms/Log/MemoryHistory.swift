import ChatModel

/// What was said in a room, for those who ask for it, where nothing outlasts the process: the newest messages, whole.
package final class MemoryHistory {
    /// As many as ``RecentMessages/capacity``.
    static let maxRows = 2000
    /// Bytes of all of them, about: texts may be long, and files may stand within messages.
    package static let maxBytes = 4 * 1024 * 1024

    /// By place, ascending; those before `first` are gone.
    private var rows: [StoredMessage] = []
    private var first = 0
    /// About the bytes that the messages take up.
    package private(set) var byteCount = 0

    package init() {}

    var isEmpty: Bool { first >= rows.count }

    private var kept: ArraySlice<StoredMessage> { rows[first...] }

    package func append(_ message: StoredMessage) {
        rows.append(message)
        byteCount += message.memoryByteCount
        makeRoom()
    }

    /// The oldest messages go.
    private func makeRoom() {
        while rows.count - first > Self.maxRows || byteCount > Self.maxBytes, first < rows.count {
            byteCount -= rows[first].memoryByteCount
            rows[first] = StoredMessage(sequence: rows[first].sequence, msgid: "", at: rows[first].at)
            first += 1
        }
        // Half of the places are empty: moving the others costs no more than filling those did.
        if first > Self.maxRows {
            rows.removeFirst(first)
            first = 0
        }
    }

    private func modify(_ msgid: String, _ change: (inout StoredMessage) -> Void) {
        guard let index = rows[first...].lastIndex(where: { $0.msgid == msgid }) else { return }
        byteCount -= rows[index].memoryByteCount
        change(&rows[index])
        byteCount += rows[index].memoryByteCount
        makeRoom()
    }

    package func learn(_ upstreamID: ChatID, of msgid: String) { modify(msgid) { $0.learn(upstreamID) } }

    package func edit(msgid: String, text: String) {
        modify(msgid) { $0.edit(text) }
    }

    /// With the message goes what was done to it.
    ///
    /// - Returns: what ``restore(_:)`` needs.
    @discardableResult
    package func takeBack(msgid: String) -> [StoredMessage] {
        var before: [StoredMessage] = []
        for index in rows.indices.dropFirst(first) where rows[index].msgid == msgid || rows[index].wasDone(to: msgid) {
            before.append(rows[index])
            byteCount -= rows[index].memoryByteCount
            rows[index].takeBack()
            byteCount += rows[index].memoryByteCount
        }
        return before
    }

    /// It was not taken back after all.
    package func restore(_ before: [StoredMessage]) {
        for row in before { modify(row.msgid) { $0 = row } }
    }

    // MARK: - Questions, as the store answers them

    package func message(_ msgid: String) -> StoredMessage? { kept.last { $0.msgid == msgid } }

    package func places(_ query: StoredPageQuery) -> StoredPlaces { StoredPlaces(query, of: Array(kept)) }

    /// The first `limit` messages whose place is greater than `after` and at most `through`.
    package func messages(after: Int64, through: Int64, limit: Int) -> [StoredMessage] {
        Array(kept.lazy.filter { $0.sequence > after && $0.sequence <= through }.prefix(max(0, limit)))
    }

    /// Takes a step.
    package func search(_ search: StoredSearch) -> StoredSearchStep { search.step(in: kept) }
}

extension StoredMessage {
    fileprivate init(sequence: Int64, msgid: String, at: ChatTimestamp) {
        self.init(sequence: sequence, msgid: msgid, at: at, nick: "", source: "", text: "")
    }

    /// About the bytes that the message takes up in memory.
    package var memoryByteCount: Int {
        var count = 512 + text.utf8.count + (sentAs?.utf8.count ?? 0)
        for attachment in attachments {
            count +=
                256 + (attachment.inline?.utf8.count ?? 0) + (attachment.url?.utf8.count ?? 0)
                + (attachment.thumbnail?.utf8.count ?? 0)
        }
        for tag in clientTags { count += 64 + tag.name.utf8.count + (tag.value?.utf8.count ?? 0) }
        return count
    }
}

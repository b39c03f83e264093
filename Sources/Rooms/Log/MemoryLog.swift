import ChatModel

/// The newest messages of a room, complete, for history queries without a store.
package final class MemoryLog {
    /// As many as ``RecentLog/capacity``.
    static let maxRows = 2000
    /// Approximate bytes of all messages: texts may be long, and may contain inline files.
    package static let maxBytes = 4 * 1024 * 1024

    /// By sequence number, ascending; those before `first` are dropped, and nil.
    private var rows: [StoredMessage?] = []
    private var first = 0
    /// Approximate bytes of the messages.
    package private(set) var byteCount = 0

    package init() {}

    var isEmpty: Bool { first >= rows.count }

    private var kept: some BidirectionalCollection<StoredMessage> { rows[first...].lazy.compactMap(\.self) }

    package func append(_ message: consuming StoredMessage) {
        byteCount += message.memoryByteCount
        rows.append(message)
        makeRoom()
    }

    /// Drops the oldest messages.
    private func makeRoom() {
        while rows.count - first > Self.maxRows || byteCount > Self.maxBytes, first < rows.count {
            byteCount -= rows[first]?.memoryByteCount ?? 0
            rows[first] = nil
            first += 1
        }
        // Half of the array is vacant: moving the others costs no more than filling it did.
        if first > Self.maxRows {
            rows.removeFirst(first)
            first = 0
        }
    }

    private func modify(_ msgid: String, _ change: (inout StoredMessage) -> Void) {
        guard let index = rows[first...].lastIndex(where: { $0?.msgid == msgid }) else { return }
        update(index, change)
        makeRoom()
    }

    private func update(_ index: Int, _ change: (inout StoredMessage) -> Void) {
        guard var row = rows[index] else { return }
        byteCount -= row.memoryByteCount
        change(&row)
        byteCount += row.memoryByteCount
        rows[index] = row
    }

    package func learn(_ upstreamID: ChatID, of msgid: String) { modify(msgid) { $0.learn(upstreamID) } }

    package func edit(msgid: String, text: String) {
        modify(msgid) { $0.edit(text) }
    }

    /// Removes a message, and the actions on it.
    ///
    /// - Returns: the argument for ``restore(_:)``.
    @discardableResult
    package func takeBack(msgid: String) -> [StoredMessage] {
        var before: [StoredMessage] = []
        for index in rows.indices.dropFirst(first) {
            guard let row = rows[index], row.msgid == msgid || row.wasDone(to: msgid) else { continue }
            before.append(row)
            update(index) { $0.takeBack() }
        }
        return before
    }

    /// Undoes a removal.
    package func restore(_ before: [StoredMessage]) {
        for row in before { modify(row.msgid) { if !$0.isErased { $0 = row } } }
    }

    /// Erases a person's messages, and the actions on them.
    func erase(_ person: StoredPerson, in room: StoredRoomKey) -> StoredErasure {
        let msgids = Set(kept.lazy.filter { person.wrote($0, in: room) }.map(\.msgid))
        var erased = StoredErasure()
        for index in rows.indices.dropFirst(first) {
            guard let row = rows[index], !row.isErased,
                msgids.contains(row.msgid) || row.target.map(msgids.contains) ?? false
            else { continue }
            erased.count(row.kind)
            update(index) { $0.erase() }
        }
        return erased
    }

    /// The oldest row that is still here.
    package var firstSequence: Int64? { kept.first?.sequence }

    // MARK: - Queries, as of the store

    package func message(_ msgid: String) -> StoredMessage? { kept.last { $0.msgid == msgid } }

    package func places(_ query: StoredPageQuery) -> StoredPlaces { StoredPlaces(query, of: Array(kept)) }

    /// The first `limit` messages with sequence numbers greater than `after` and at most `through`.
    package func messages(after: Int64, through: Int64, limit: Int) -> [StoredMessage] {
        Array(kept.lazy.filter { $0.sequence > after && $0.sequence <= through }.prefix(max(0, limit)))
    }

    /// Performs a step.
    package func search(_ search: StoredSearch) -> StoredSearchStep { search.step(in: kept) }
}

import ChatModel

/// The messages of a history page from which a client may continue.
///
/// A timestamp alone is ambiguous where several messages bear it. A client that has just received a page, and requests
/// the messages before or after it by the timestamp of its end, refers to that message: so none is left out or
/// repeated, and paging until a page is empty terminates.
///
/// | continues from                  | clients                     |
/// |---------------------------------|-----------------------------|
/// | the first or the last line      | that take pages as they are |
/// | the first or the last message   | that ignore events          |
/// | the earliest or the latest time | that sort by times          |
struct PageBoundaries: Equatable {
    private struct End: Equatable {
        var msgid: String
        var at: ChatTimestamp

        init(_ row: StoredMessage) { (msgid, at) = (row.msgid, row.at) }

        var reference: StoredReference { .messageOrTime(msgid, at) }
    }

    private var first: End?
    private var firstSaid: End?
    private var earliest: End?
    private var last: End?
    private var lastSaid: End?
    private var latest: End?

    var isEmpty: Bool { first == nil }

    /// The next line of the page was sent.
    mutating func told(_ row: StoredMessage) {
        let end = End(row)
        first = first ?? end
        last = end
        if row.kind != .event, !row.isTakenBack {
            firstSaid = firstSaid ?? end
            lastSaid = end
        }
        if earliest.map({ end.at < $0.at }) ?? true { earliest = end }
        if latest.map({ end.at >= $0.at }) ?? true { latest = end }
    }

    /// The selection that continues this page, if it is given by the timestamp of the page's end; any other is
    /// unchanged.
    func goingOn(_ selection: StoredPageQuery.Selection) -> StoredPageQuery.Selection {
        switch selection {
        case .newest(let after, let before?): .newest(after: after, before: self.before(before))
        case .oldest(let after): .oldest(after: self.after(after))
        case .between(.time(let from), .time(let to)):
            .between(from <= to ? after(.time(from)) : before(.time(from)), .time(to))
        case .newest, .around, .between: selection
        }
    }

    private func before(_ reference: StoredReference) -> StoredReference {
        guard case .time(let at) = reference else { return reference }
        return [first, firstSaid, earliest].lazy.compactMap(\.self).first { $0.at == at }?.reference ?? reference
    }

    private func after(_ reference: StoredReference) -> StoredReference {
        guard case .time(let at) = reference else { return reference }
        return [last, lastSaid, latest].lazy.compactMap(\.self).first { $0.at == at }?.reference ?? reference
    }
}

/// The ends of the pages that a client received last.
struct ToldPages {
    /// Rooms and conversations that a client pages through at the same time, at most: about 500 bytes each.
    static let maxPlaces = 8

    /// In the order of sending.
    private var pages: [(key: StoredRoomKey, ends: PageBoundaries)] = []

    var isEmpty: Bool { pages.isEmpty }

    subscript(key: StoredRoomKey) -> PageBoundaries? { pages.last { $0.key == key }?.ends }

    mutating func told(_ ends: PageBoundaries, of key: StoredRoomKey) {
        guard !ends.isEmpty else { return }
        pages.removeAll { $0.key == key }
        if pages.count >= Self.maxPlaces { pages.removeFirst() }
        pages.append((key, ends))
    }
}

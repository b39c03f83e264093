import ChatModel

/// The messages of a page from which its reader may go on.
///
/// By the time of a message alone nobody can tell which one is meant where several bear it. Who has just been told a page, and
/// asks for what comes before or after it by the time of its end, means that message: nothing is left out then, nothing comes
/// twice, and whoever goes on until a page is empty comes to an end.
///
/// | who goes on from                | clients                                          |
/// |---------------------------------|--------------------------------------------------|
/// | the first line, or the last     | that take pages as they are                      |
/// | what was said first, or last    | that make nothing of what was done               |
/// | the earliest time, or the latest | that sort by times                               |
struct PageEnds: Equatable {
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

    /// The next line of the page was told.
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

    /// What comes next to this page, for who asks for it by the time of the page's end; the same for everybody else.
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

/// The ends of the pages that a client was told last.
struct ToldPages {
    /// Rooms and conversations in which somebody leafs at the same time, at most: about 500 bytes each.
    static let maxPlaces = 8

    /// The one that was told last stands last.
    private var pages: [(key: StoredRoomKey, ends: PageEnds)] = []

    var isEmpty: Bool { pages.isEmpty }

    subscript(key: StoredRoomKey) -> PageEnds? { pages.last { $0.key == key }?.ends }

    mutating func told(_ ends: PageEnds, of key: StoredRoomKey) {
        guard !ends.isEmpty else { return }
        pages.removeAll { $0.key == key }
        if pages.count >= Self.maxPlaces { pages.removeFirst() }
        pages.append((key, ends))
    }
}

// Where a time stands in a room's order.
//
// Clients page through the past by the times of their messages: before the time of the first one, or after that of the
// last. The order of a room is not that of its times: late messages, and those of wrong clocks, stand among others. So
// a time refers to all messages that have it, and to everything before and after them.
//
// | messages that bear the time | what lies before it ends                              | what lies after it begins                   |
// |-----------------------------|-------------------------------------------------------|---------------------------------------------|
// | none                        | in front of the first that bears a later time         | there                                       |
// | one                         | in front of it                                        | behind it                                   |
// | several                     | in front of the last one from which the page reaches beyond the first | behind the first one from which it reaches beyond the last |
//
// The intended one of several is unknown: the client may have all of them, or, as where times are whole seconds and the
// previous page ended among them, the nearest only. So messages within one page's distance are all included, and some
// are repeated under their ids. For distant ones this would return the same page again and again, and a client could
// never advance. That holds for a reference that moves from page to page; for a fixed one all are included, however far
// they are.
//
// A client that continues from the end of its last page refers to that very message:
// ``StoredReference/messageOrTime(_:_:)``.

extension StoredPageQuery {
    /// Whether paging moves this reference to an end of the page.
    ///
    /// - Parameter index: which of ``references``.
    public func moves(_ index: Int) -> Bool {
        switch selection {
        case .newest(_, let before): before != nil && index == references.count - 1
        case .oldest: true
        case .around: false
        case .between: index == 0
        }
    }
}

/// An order in which messages are found by their ids and times.
public protocol TimedOrder: StoredOrder {
    var query: StoredPageQuery { get }
    /// The place of a message by the bridge's id.
    func place(of msgid: String) throws(Failure) -> Int64?
    /// The place of the first message, in the room's order, that bears this time or a later one.
    func firstPlace(notBefore at: ChatTimestamp) throws(Failure) -> Int64?
    /// The first place of a message that bears this very time, from `lower` on.
    func oldestPlace(at: ChatTimestamp, from lower: Int64) throws(Failure) -> Int64?
    /// The last place of such a message, up to and including `upper`.
    func newestPlace(at: ChatTimestamp, through upper: Int64) throws(Failure) -> Int64?
}

extension TimedOrder {
    public func span(of reference: StoredReference, index: Int) throws(Failure) -> StoredSpan? {
        switch reference {
        case .beginning: return .beginning
        case .place(let place): return StoredSpan(start: place, end: place &+ 1)
        case .message(let msgid): return try place(of: msgid).map { StoredSpan(start: $0, end: $0 &+ 1) }
        case .messageOrTime(let msgid, let at):
            if let place = try place(of: msgid) { return StoredSpan(start: place, end: place &+ 1) }
            return try self.span(of: .time(at), index: index)
        case .timeOrBeginning(let at): return try span(of: at, index) ?? .beginning
        case .time(let at):
            if let span = try span(of: at, index) { return span }
            return try firstPlace(notBefore: at).map { StoredSpan(start: $0, end: $0) } ?? .end
        }
    }

    /// Nil: no message bears this very time.
    private func span(of at: ChatTimestamp, _ index: Int) throws(Failure) -> StoredSpan? {
        guard let first = try oldestPlace(at: at, from: .min), let last = try newestPlace(at: at, through: .max) else {
            return nil
        }
        if case .around = query.selection { return StoredSpan(start: first, end: last &+ 1) }
        guard first < last, query.moves(index), query.limit > 0 else { return StoredSpan(start: last, end: first &+ 1) }
        let behind = try oldest(query.limit, from: first, before: last &+ 1)
        let ahead = try newest(query.limit, from: first, before: last &+ 1)
        let furthest = behind.count < query.limit ? last : behind.last ?? last
        let nearest = ahead.count < query.limit ? first : ahead.first ?? first
        return StoredSpan(
            start: try newestPlace(at: at, through: furthest) ?? first,
            end: (try oldestPlace(at: at, from: nearest) ?? last) &+ 1)
    }
}

// Where a time stands in a room's order.
//
// Clients go through the past by the times of messages that they have: they ask for what came before the time of the first
// one, or after that of the last. The order of a room is not that of its times: what came late, or from a wrong clock, bears a
// time under which others stand. So a time that messages bear means these messages, and what lies before them and after them
// are all there is.
//
// | messages that bear the time | what lies before it ends                       | what lies after it begins                     |
// |-----------------------------|------------------------------------------------|-----------------------------------------------|
// | none                        | in front of the first that bears a later time  | there                                         |
// | one stretch of them         | in front of it                                 | behind it                                     |
// | several stretches           | in front of the last one from which the page reaches beyond the first | behind the first one from which it reaches beyond the last |
//
// Which of several stretches somebody means nobody can tell. Those near each other, as where times are whole seconds, are
// within one page: it begins so that nothing is left out, and tells some of it twice. Were those far from each other treated
// alike, the page could end where it had been asked for, and who goes on from there would never come further. That
// holds for a reference that moves from page to page; from one that stays nothing is left out, however far they are.

extension StoredPageQuery {
    /// Whether who leafs through the past puts an end of this page in the place of that reference.
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
    /// The messages around a place that bear the same time as the one at this place, without any other between them.
    ///
    /// - Parameter at: the time of the message at `place`.
    func stretch(around place: Int64, at: ChatTimestamp) throws(Failure) -> StoredSpan
}

extension TimedOrder {
    public func span(of reference: StoredReference, index: Int) throws(Failure) -> StoredSpan? {
        switch reference {
        case .beginning: return .beginning
        case .message(let msgid): return try place(of: msgid).map { StoredSpan(start: $0, end: $0 &+ 1) }
        case .timeOrBeginning(let at): return try span(of: at, moves: query.moves(index)) ?? .beginning
        case .time(let at):
            if let span = try span(of: at, moves: query.moves(index)) { return span }
            return try firstPlace(notBefore: at).map { StoredSpan(start: $0, end: $0) } ?? .end
        }
    }

    /// Nil: no message bears this very time.
    private func span(of at: ChatTimestamp, moves: Bool) throws(Failure) -> StoredSpan? {
        guard let oldest = try oldestPlace(at: at, from: .min), let newest = try newestPlace(at: at, through: .max)
        else {
            return nil
        }
        let first = try stretch(around: oldest, at: at)
        guard newest >= first.end else { return first }
        let last = try stretch(around: newest, at: at)
        guard moves, query.limit > 0 else { return StoredSpan(start: last.start, end: first.end) }
        let behind = try self.oldest(query.limit, from: first.start, before: .max)
        let ahead = try self.newest(query.limit, from: .min, before: last.end)
        let furthest = behind.count < query.limit ? .max : behind.last ?? .max
        let nearest = ahead.count < query.limit ? .min : ahead.first ?? .min
        let before = try newestPlace(at: at, through: furthest) ?? oldest
        let after = try oldestPlace(at: at, from: nearest) ?? newest
        return StoredSpan(
            start: try stretch(around: before, at: at).start, end: try stretch(around: after, at: at).end)
    }
}

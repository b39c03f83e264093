// Pages of a room's order: the messages before, after or around a place.
//
// References select a page. The position of a reference, and the messages before and behind it, follow from the room's
// order alone: from the places in which messages were shown. Times may differ from it, since clocks may be wrong; a
// time stands for a place, too (StoredTimes.swift).

/// A client's reference to a place in a room's order.
public enum StoredReference: Hashable, Sendable {
    /// In front of everything.
    case beginning
    /// By the bridge's id.
    case message(String)
    /// By time: all messages with this very time, wherever in the order they stand; else the place in front of the
    /// first message, in the room's order, with a later time. StoredTimes.swift has the details.
    case time(ChatTimestamp)
    /// Like ``time(_:)`` where messages bear this very time; else in front of everything.
    case timeOrBeginning(ChatTimestamp)
    /// By the bridge's id; where there is no such message any more, by the time that it bears.
    case messageOrTime(String, ChatTimestamp)
    /// By a message's place, whether it is still stored or not.
    case place(Int64)

    /// The time by which it is named; nil: it is not named by one alone.
    public var time: ChatTimestamp? {
        switch self {
        case .time(let at), .messageOrTime(_, let at): at
        case .beginning, .message, .timeOrBeginning, .place: nil
        }
    }
}

/// The position of a reference: messages before it end at `start`, messages after it begin at `end`; neither includes
/// them.
///
/// The messages between them belong to the reference itself. For a time that several messages have, `end` may come
/// before `start`: those between belong to both sides.
public struct StoredSpan: Equatable, Sendable {
    public var start: Int64
    public var end: Int64

    public init(start: Int64, end: Int64) {
        self.start = start
        self.end = end
    }

    public static let beginning = StoredSpan(start: .min, end: .min)
    /// Behind everything.
    public static let end = StoredSpan(start: .max, end: .max)
}

/// Which messages of a room are wanted.
public struct StoredPageQuery: Equatable, Sendable {
    public enum Selection: Equatable, Sendable {
        /// The newest ones between two references; nil: no bound there.
        case newest(after: StoredReference?, before: StoredReference?)
        /// The oldest ones behind a reference.
        case oldest(after: StoredReference)
        /// Messages on both sides of a reference, and its own; half of them on each side where there are as many.
        case around(StoredReference)
        /// Those between two references, counted from the first one, forwards or backwards.
        case between(StoredReference, StoredReference)
    }

    public var selection: Selection
    /// At most so many. Exactly so many, unless there are no more.
    public var limit: Int
    /// Also those that were taken back, of which only the place is left.
    public var withTakenBack: Bool
    /// Also events; never events about a redacted message.
    public var withEvents: Bool
    /// Nothing of these people.
    public var without: StoredMutes

    public init(
        _ selection: Selection, limit: Int, withTakenBack: Bool = false, withEvents: Bool = false,
        without: StoredMutes = StoredMutes()
    ) {
        self.selection = selection
        self.limit = limit
        self.withTakenBack = withTakenBack
        self.withEvents = withEvents
        self.without = without
    }

    /// Whether a message of the room can be in the page.
    public func shows(_ row: StoredMessage) -> Bool {
        let isThere =
            (withEvents || row.kind != .event)
            && (!row.isTakenBack || withTakenBack && !StoredMessage.Kind.ofDeeds.contains(row.kind))
        return isThere && !without.cover(row)
    }

    /// In the order in which ``StoredPlaces/spans`` has them.
    public var references: [StoredReference] {
        switch selection {
        case .newest(let after, let before): [after, before].compactMap(\.self)
        case .oldest(let after): [after]
        case .around(let place): [place]
        case .between(let first, let second): [first, second]
        }
    }

    /// The same with other references in the places of these.
    public func mapReferences(_ transform: (StoredReference) -> StoredReference) -> StoredPageQuery {
        var query = self
        switch selection {
        case .newest(let after, let before):
            query.selection = .newest(after: after.map(transform), before: before.map(transform))
        case .oldest(let after): query.selection = .oldest(after: transform(after))
        case .around(let place): query.selection = .around(transform(place))
        case .between(let first, let second): query.selection = .between(transform(first), transform(second))
        }
        return query
    }
}

/// A page by places: the messages themselves may be large, and are read a few at a time.
public struct StoredPlaces: Equatable, Sendable {
    /// Of the messages, oldest first.
    public var sequences: [Int64]
    /// Where each reference of the query stands; nil: there is no such message.
    public var spans: [StoredSpan?]
    /// The room's oldest messages in their order, taken-back ones too, at most ``beginningCount``; only where the page or a
    /// reference reaches them.
    public var beginning: [StoredMessage]

    /// Enough to recognise messages of the same moment that are older than the room's first one.
    public static let beginningCount = 16

    public init(sequences: [Int64] = [], spans: [StoredSpan?] = [], beginning: [StoredMessage] = []) {
        self.sequences = sequences
        self.spans = spans
        self.beginning = beginning
    }
}

/// An order in which pages can be found.
public protocol StoredOrder {
    associatedtype Failure: Error

    /// Where a reference stands; nil: there is no such message.
    ///
    /// - Parameter index: which of the query's references it is.
    func span(of reference: StoredReference, index: Int) throws(Failure) -> StoredSpan?
    /// The oldest places from `lower` up to, not including, `upper`; ascending.
    func oldest(_ limit: Int, from lower: Int64, before upper: Int64) throws(Failure) -> [Int64]
    /// The newest of them; ascending.
    func newest(_ limit: Int, from lower: Int64, before upper: Int64) throws(Failure) -> [Int64]
}

extension StoredPageQuery {
    /// The page's places and where the references stand; no places where a reference is unknown.
    public func find<Order: StoredOrder>(
        in order: Order
    ) throws(Order.Failure) -> (sequences: [Int64], spans: [StoredSpan?]) {
        var spans: [StoredSpan?] = []
        for (index, reference) in references.enumerated() {
            spans.append(try order.span(of: reference, index: index))
        }
        let known = spans.compactMap(\.self)
        guard known.count == spans.count, limit > 0 else { return ([], spans) }
        switch selection {
        case .newest(let after, let before):
            let lower = after == nil ? Int64.min : known[0].end
            let upper = before == nil ? Int64.max : known[known.count - 1].start
            return (try order.newest(limit, from: lower, before: upper), spans)
        case .oldest: return (try order.oldest(limit, from: known[0].end, before: .max), spans)
        case .around:
            let later = try order.oldest(limit, from: known[0].start, before: .max)
            let earlier = try order.newest(limit, from: .min, before: known[0].start)
            // The page is full as long as either side has enough.
            let least = min(later.count, limit - limit / 2)
            let earlierCount = min(earlier.count, limit - least)
            return (Array(earlier.suffix(earlierCount) + later.prefix(limit - earlierCount)), spans)
        case .between:
            if isForwards(known) {
                return (try order.oldest(limit, from: known[0].end, before: known[1].start), spans)
            }
            return (try order.newest(limit, from: known[1].end, before: known[0].start), spans)
        }
    }

    /// Of ``Selection/between(_:_:)``: whether the first reference is the older one.
    public func isForwards(_ spans: [StoredSpan]) -> Bool {
        guard case .between(let first, let second) = selection, spans.count == 2 else { return true }
        if let from = first.time, let to = second.time { return from <= to }
        // A time that nothing bears, and the message behind it, begin at one place.
        return (spans[0].start, spans[0].end) <= (spans[1].start, spans[1].end)
    }
}

/// Messages in memory as an order.
public struct StoredRows: TimedOrder {
    /// By place, ascending.
    private let rows: [StoredMessage]
    public let query: StoredPageQuery

    /// - Parameter rows: in the order of their places.
    public init(_ rows: [StoredMessage], for query: StoredPageQuery) {
        self.rows = rows
        self.query = query
    }

    // New ones are asked about more often.
    public func place(of msgid: String) -> Int64? { rows.last { $0.msgid == msgid }?.sequence }

    public func firstPlace(notBefore at: ChatTimestamp) -> Int64? { rows.first { $0.at >= at }?.sequence }

    public func oldestPlace(at: ChatTimestamp, from lower: Int64) -> Int64? {
        rows.first { $0.at == at && $0.sequence >= lower }?.sequence
    }

    public func newestPlace(at: ChatTimestamp, through upper: Int64) -> Int64? {
        rows.last { $0.at == at && $0.sequence <= upper }?.sequence
    }

    private func places(from lower: Int64, before upper: Int64) -> some BidirectionalCollection<Int64> {
        rows.lazy.filter { row in
            row.sequence >= lower && row.sequence < upper && query.shows(row)
        }.map(\.sequence)
    }

    public func oldest(_ limit: Int, from lower: Int64, before upper: Int64) -> [Int64] {
        Array(places(from: lower, before: upper).prefix(max(0, limit)))
    }

    public func newest(_ limit: Int, from lower: Int64, before upper: Int64) -> [Int64] {
        Array(places(from: lower, before: upper).suffix(max(0, limit)))
    }
}

extension StoredPlaces {
    /// The answer to a query over all messages of a room.
    ///
    /// - Parameter rows: in the order of their places.
    public init(_ query: StoredPageQuery, of rows: [StoredMessage]) {
        let (sequences, spans) = query.find(in: StoredRows(rows, for: query))
        self.init(sequences: sequences, spans: spans)
        if reachesBeginning(query, first: rows.first?.sequence) {
            beginning = Array(rows.prefix(Self.beginningCount))
        }
    }

    /// Whether there might be more in the page, or a reference stand elsewhere, if the room had older messages.
    public func reachesBeginning(_ query: StoredPageQuery, first: Int64?) -> Bool {
        guard let first else { return false }
        return sequences.count < query.limit || sequences.first.map { $0 <= first } ?? true
            || spans.contains { $0.map { $0.start <= first } ?? true }
    }
}

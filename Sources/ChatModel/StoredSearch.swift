// Searches of a room's messages. They are done in steps, bounded by messages and by bytes, so that others are answered
// between two of them, and so that a search ends with the connection that asked for it: the next step is asked for, or not.

/// A search of a room, and its progress.
public struct StoredSearch: Equatable, Sendable {
    /// The sender's nick at that time; ASCII letters count alike in both cases.
    public var nick: String?
    /// In nicks `[]\~` count as the upper case of `{}|^`: the casemapping rfc1459.
    public var foldsPunctuation = false
    /// A part of the text; ASCII letters count alike in both cases.
    public var text: String?
    /// At this time or later.
    public var after: ChatTimestamp?
    /// At this time or earlier.
    public var before: ChatTimestamp?
    /// At most so many: the oldest ones where ``after`` is given, else the newest.
    public var limit: Int
    /// No messages of these people.
    public var without = StoredMutes()
    /// The place that was looked at last; nil: the search begins.
    public private(set) var last: Int64?
    /// Messages that were looked at.
    public private(set) var lookedCount = 0

    /// Messages of a room that are looked at.
    public static let maxLooked = 50_000
    /// Messages that are looked at in one step.
    public static let stepCount = 2000
    /// Bytes of text that are looked at in one step, and the message with which they are reached: a few milliseconds.
    public static let stepBytes = 1 << 20

    public init(
        nick: String? = nil, text: String? = nil, after: ChatTimestamp? = nil, before: ChatTimestamp? = nil, limit: Int
    ) {
        self.nick = nick
        self.text = text
        self.after = after
        self.before = before
        self.limit = limit
    }

    /// From the oldest message on; else from the newest one back.
    public var isForwards: Bool { after != nil }

    /// Takes a step.
    ///
    /// - Parameters:
    ///   - rows: in the order of their places.
    ///   - count: messages that are looked at.
    public func step(in rows: some BidirectionalCollection<StoredMessage>, count: Int = stepCount) -> StoredSearchStep {
        guard limit > 0 else { return StoredSearchStep() }
        var look = StoredSearchLook(self, count: count)
        var found: [StoredMessage] = []
        func takes(_ row: StoredMessage) -> Bool {
            var text = row.text
            if text.withUTF8({ look.matches(place: row.sequence, isMeant(row) ? UnsafeRawBufferPointer($0) : nil) }) {
                found.append(row)
            }
            return look.goesOn
        }
        if isForwards {
            _ = rows.lazy.drop { row in last.map { row.sequence <= $0 } ?? false }.allSatisfy(takes)
        } else {
            _ = rows.reversed().lazy.drop { row in last.map { row.sequence >= $0 } ?? false }.allSatisfy(takes)
            found.reverse()
        }
        return look.step(found)
    }

    /// Whether all but the text is as it is looked for.
    private func isMeant(_ row: StoredMessage) -> Bool {
        guard StoredMessage.Kind.ofWords.contains(row.kind), !row.isTakenBack, !without.cover(row) else { return false }
        if let after, row.at < after { return false }
        if let before, row.at > before { return false }
        if let nick, folded(row.nick) != folded(nick) { return false }
        return true
    }

    private func folded(_ nick: String) -> [UInt8] {
        nick.utf8.map { byte in
            if byte &- UInt8(ascii: "A") < 26 { return byte | 0x20 }
            guard foldsPunctuation, let place = Self.upperPunctuation.firstIndex(of: byte) else { return byte }
            return Self.lowerPunctuation[place]
        }
    }

    private static let upperPunctuation = Array("[]\\~".utf8)
    private static let lowerPunctuation = Array("{}|^".utf8)

    /// An SQL expression of `value` with its punctuation in lower case.
    public static func loweredPunctuation(sql value: String) -> String {
        zip("[]\\~", "{}|^").reduce(value) { "replace(\($0), '\($1.0)', '\($1.1)')" }
    }

    /// The rest of the search.
    fileprivate func goingOn(behind last: Int64, looked: Int, found: Int) -> StoredSearch {
        var rest = self
        rest.last = last
        rest.lookedCount += looked
        rest.limit -= found
        return rest
    }
}

/// The result of one step of a search.
public struct StoredSearchStep: Equatable, Sendable {
    /// Oldest first.
    public var found: [StoredMessage] = []
    /// Of the texts that were looked at.
    public var byteCount = 0
    /// The next step; nil: this was the last one.
    public var rest: StoredSearch?
    /// It was the last one because ``StoredSearch/maxLooked`` messages were looked at.
    public var isCut = false

    public init() {}
}

/// One step of a search, message by message.
public struct StoredSearchLook {
    private let search: StoredSearch
    private let pattern: TextPattern?
    private let most: Int
    private var last: Int64?
    private var lookedCount = 0
    private var foundCount = 0
    private var byteCount = 0

    public init(_ search: StoredSearch, count: Int) {
        self.search = search
        pattern = search.text.flatMap { $0.isEmpty ? nil : TextPattern($0) }
        most = min(count, StoredSearch.maxLooked - search.lookedCount)
    }

    /// Looks at a message.
    ///
    /// - Parameter text: nil: something else is not as it is looked for.
    public mutating func matches(place: Int64, _ text: UnsafeRawBufferPointer?) -> Bool {
        last = place
        lookedCount += 1
        guard let text else { return false }
        if let pattern {
            byteCount += text.count
            guard pattern.firstIndex(in: text) != nil else { return false }
        }
        foundCount += 1
        return true
    }

    /// There is room for another message in this step.
    public var goesOn: Bool {
        lookedCount < most && byteCount < StoredSearch.stepBytes && foundCount < search.limit
    }

    /// - Parameter found: the messages that matched.
    public func step(_ found: [StoredMessage]) -> StoredSearchStep {
        var step = StoredSearchStep()
        step.found = found
        step.byteCount = byteCount
        // Where there was room for more, there is no more.
        guard !goesOn, foundCount < search.limit, let last else { return step }
        let rest = search.goingOn(behind: last, looked: lookedCount, found: foundCount)
        if rest.lookedCount < StoredSearch.maxLooked { step.rest = rest } else { step.isCut = true }
        return step
    }
}

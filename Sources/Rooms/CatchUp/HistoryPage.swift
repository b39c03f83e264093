import ChatModel

/// A page of a backend's history, compared with the known messages.
///
/// Clocks are wrong: those of senders, and the local one, which stamps relayed messages. Where a page is not in the
/// order of its times, the backend's order is that of arrival, and is authoritative. Only where both orders agree, or
/// the backend's is none at all, do times decide; and between messages of one moment, which are many where times are
/// whole seconds, the backend's order does again.
///
/// Histories are listed oldest first or newest first, which no backend declares:
///
/// | evidence                                                 | where                                              |
/// |----------------------------------------------------------|----------------------------------------------------|
/// | the order in which known messages came, and the times    | they are of several moments                        |
/// | known messages are older than unknown ones               | all is of one moment, or of a few                  |
/// | the backend's order at the last page with evidence       | all is of one moment otherwise                     |
/// | none: oldest first                                       | there was no such page                             |
struct HistoryPage {
    /// As the backend has them, oldest first.
    let told: [ChatMessage]
    /// The backend's order is that of arrival, and not that of the times.
    let isByArrival: Bool
    /// Most of the page lies in the future, so the local clock is behind.
    let isOurClockBehind: Bool
    /// The backend lists newest first; nil: this page is not conclusive.
    let isNewestFirst: Bool?
    /// No later time is credible.
    private let latest: ChatTimestamp
    /// Marks those of ``told`` that were shown before the gap.
    private let isPrior: [Bool]
    /// ``told`` in the order in which they are shown.
    let shown: [Int]
    /// The first and the last of ``told`` that prove a message from before the gap to be older, or newer.
    let firstPrior: Int?
    let lastPrior: Int?

    var messages: [ChatMessage] { shown.map { told[$0] } }

    /// - Parameters:
    ///   - sendersTellTime: times are from the senders' clocks.
    ///   - mark: the latest possible time of the newest message before the gap; nil: unknown.
    ///   - wasNewestFirst: the backend listed newest first before.
    ///   - place: the position at which a message became known, as a number that grows; nil: unknown, or without id.
    ///   - end: messages at this position, or later, came after the gap.
    init(
        _ given: [ChatMessage], sendersTellTime: Bool, mark: ChatTimestamp?, wall: ChatTimestamp, end: Int,
        wasNewestFirst: Bool = false, place: (ChatMessage) -> Int?
    ) {
        let times = given.compactMap(\.at)
        isOurClockBehind = Self.are(times, mostlyAfter: Self.credible(wall))
        let known = given.filter { message in place(message).map { $0 < end } ?? false }.compactMap(\.at)
        if isOurClockBehind {
            latest = ChatTimestamp(milliseconds: .max)
        } else if let mark = mark.map({ Self.credible(min($0, wall)) }) {
            // Set while the local clock was behind.
            latest = Self.are(known, mostlyAfter: mark) ? Self.credible(wall) : mark
        } else {
            latest = ChatTimestamp(milliseconds: .max)
        }
        let byTime = Self.steps(zip(times, times.dropFirst()))
        // A backend that sorts by times may have those of one moment the other way round, so they prove nothing.
        func steps(_ messages: some Sequence<ChatMessage>) -> (up: Int, down: Int) {
            let placed = messages.compactMap { message in place(message).map { (place: $0, at: message.at) } }
            return Self.steps(
                zip(placed, placed.dropFirst()).lazy.filter { $0.at == nil || $0.at != $1.at }
                    .map { ($0.place, $1.place) })
        }
        // Known messages are known in the order of arrival; times are the weaker evidence. But ids of relayed messages
        // are learned late, as are those of messages never shown: a few of them cannot reverse a page in the order of
        // its times, and relayed ones prove nothing where their times prove nothing either.
        var byPlace = steps(given.lazy.filter { !$0.isSelf })
        if byPlace == (0, 0), !sendersTellTime { byPlace = steps(given) }
        let isOfOneMoment = byTime == (0, 0) && byPlace == (0, 0) && times.count > 1
        if isOfOneMoment {
            // For the order within a moment this page is its own evidence, and unknown messages came last.
            let placed = given.filter { !$0.isSelf }.map { place($0) ?? .max }
            byPlace = Self.steps(zip(placed, placed.dropFirst()))
        }
        // Known messages are older than missed ones, except those dropped from the ring.
        let isNews = given.filter { !$0.isSelf }.map { place($0) == nil ? 1 : 0 }
        let byNews = Self.steps(zip(isNews, isNews.dropFirst()))
        let isReversed =
            if isOfOneMoment {
                byPlace.up == byPlace.down ? wasNewestFirst : byPlace.down > byPlace.up
            } else if byTime.down == 0 {
                byPlace.down >= Self.quorum && byPlace.up == 0
            } else if byPlace.up != byPlace.down {
                byPlace.down > byPlace.up
            } else if sendersTellTime {
                // Oldest first is the default. Where each sender has a clock, a few wrong ones prove nothing else.
                byTime.down >= Self.quorum && byTime.down > 3 * byTime.up
                    || byTime.up == 0 && byNews.down > byNews.up
            } else {
                byTime.down > byTime.up
            }
        let (along, against) = isReversed ? (byPlace.down, byPlace.up) : (byPlace.up, byPlace.down)
        isByArrival = (isReversed ? byTime.up : byTime.down) > 0 && along >= 3 * against
        isNewestFirst = Self.isCertain(isReversed, byTime, byPlace) && !isOfOneMoment ? isReversed : nil
        let told = isReversed ? given.reversed() : given
        self.told = told
        shown = isByArrival && sendersTellTime ? Array(told.indices) : CatchUp.order(of: told)
        isPrior = told.map { message in place(message).map { $0 < end } ?? false }
        let (isPrior, isByArrival, latest) = (isPrior, isByArrival, latest)
        func proves(_ index: Int) -> Bool {
            isPrior[index] && (isByArrival || told[index].at.map { $0 <= latest } ?? true)
        }
        // By times, a page's first is not the first listed.
        let order = isByArrival ? Array(told.indices) : shown
        rank = Dictionary(uniqueKeysWithValues: order.enumerated().map { ($1, $0) })
        firstPrior = order.first(where: proves).flatMap { [rank] in rank[$0] }
        lastPrior = order.last(where: proves).flatMap { [rank] in rank[$0] }
    }

    /// The rank of each of ``told`` in the order that ``firstPrior`` and ``lastPrior`` count.
    private let rank: [Int: Int]

    func rank(_ index: Int) -> Int { rank[index] ?? index }

    /// A message that was shown before the gap, by a credible clock.
    func isPrior(_ index: Int) -> Bool { isPrior[index] }

    func isCredible(_ at: ChatTimestamp) -> Bool { at <= latest }

    /// A time noted as past, by present knowledge of clocks.
    func past(_ at: ChatTimestamp, wall: ChatTimestamp) -> ChatTimestamp { isOurClockBehind ? at : min(at, wall) }

    /// A clock that is ahead of the local one by more than this, in milliseconds, proves nothing; Kerberos allows
    /// clocks the same.
    static let credibleLead: Int64 = 5 * 60 * 1000
    /// Fewer messages than these do not outvote the local clock, or the order of the times.
    private static let quorum = 3

    /// The latest credible time at `at`.
    static func credible(_ at: ChatTimestamp) -> ChatTimestamp {
        let (sum, over) = at.milliseconds.addingReportingOverflow(credibleLead)
        return over ? ChatTimestamp(milliseconds: .max) : ChatTimestamp(milliseconds: sum)
    }

    /// The earliest arrival of a message with this time.
    static func withoutLead(_ at: ChatTimestamp) -> ChatTimestamp {
        let (early, over) = at.milliseconds.subtractingReportingOverflow(credibleLead)
        return ChatTimestamp(milliseconds: over ? .min : early)
    }

    private static func are(_ times: [ChatTimestamp], mostlyAfter limit: ChatTimestamp) -> Bool {
        times.count >= quorum && times.count { $0 > limit } * 2 > times.count
    }

    /// Whether all evidence agrees, and more of it than one or two wrong clocks could produce.
    private static func isCertain(
        _ isReversed: Bool, _ byTime: (up: Int, down: Int), _ byPlace: (up: Int, down: Int)
    ) -> Bool {
        let (along, against) =
            isReversed
            ? (byTime.down + byPlace.down, byTime.up + byPlace.up)
            : (byTime.up + byPlace.up, byTime.down + byPlace.down)
        return along >= quorum && against == 0
    }

    private static func steps<Value: Comparable>(_ pairs: some Sequence<(Value, Value)>) -> (up: Int, down: Int) {
        var (up, down) = (0, 0)
        for (a, b) in pairs where a != b {
            if a < b { up += 1 } else { down += 1 }
        }
        return (up, down)
    }
}

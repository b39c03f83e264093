import ChatModel

/// A history as a backend told it, held against what is known.
///
/// Times are told by clocks, and clocks are wrong: those of senders, and ours, whose time our own messages bear. Where a
/// page is not in the order of its times, the order in which the backend tells it is that in which it took the messages,
/// and says for certain what came behind what. Only where both orders are one, or the backend's is no order at all, do
/// times decide; and between messages of one moment, which are many where times are whole seconds, the backend's does again.
///
/// Histories are told oldest first or newest first, and no backend says which:
///
/// | what tells it                                            | where                                              |
/// |----------------------------------------------------------|----------------------------------------------------|
/// | the order in which known messages came, and the times    | they are of several moments                        |
/// | what is known is older than what is not                  | all is of one moment, or of a few                  |
/// | how the backend told it the last time that something did | all is of one moment otherwise                     |
/// | nothing: oldest first                                    | that was never seen                                |
struct HistoryPage {
    /// As the backend has them, oldest first.
    let told: [ChatMessage]
    /// The backend's order is that of arrival, and not that of the times.
    let isByArrival: Bool
    /// Most of what is told lies in the future, so it is our clock that is behind.
    let isOurClockBehind: Bool
    /// The backend tells newest first; nil: this page does not say for certain.
    let isNewestFirst: Bool?
    /// No time after this one is believed.
    private let latest: ChatTimestamp
    /// Which of ``told`` were shown before the gap.
    private let isPrior: [Bool]
    /// ``told`` in the order in which they are shown.
    let shown: [Int]
    /// The first and the last of ``told`` that prove that something shown before the gap is older, or newer.
    let firstPrior: Int?
    let lastPrior: Int?

    var messages: [ChatMessage] { shown.map { told[$0] } }

    /// - Parameters:
    ///   - sendersTellTime: times are those of the senders' clocks.
    ///   - mark: when the newest message before the gap was said, at the latest; nil: unknown.
    ///   - wasNewestFirst: the backend told newest first before.
    ///   - place: when a message became known, as a number that grows; nil: it is not known, or has no id.
    ///   - end: what became known at this place, or later, came after the gap.
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
            // Noted while our clock was behind.
            latest = Self.are(known, mostlyAfter: mark) ? Self.credible(wall) : mark
        } else {
            latest = ChatTimestamp(milliseconds: .max)
        }
        let byTime = Self.steps(zip(times, times.dropFirst()))
        // A backend that sorts by times may have those of one moment the other way round, so they say nothing.
        func steps(_ messages: some Sequence<ChatMessage>) -> (up: Int, down: Int) {
            let placed = messages.compactMap { message in place(message).map { (place: $0, at: message.at) } }
            return Self.steps(
                zip(placed, placed.dropFirst()).lazy.filter { $0.at == nil || $0.at != $1.at }
                    .map { ($0.place, $1.place) })
        }
        // What is known is known in the order in which it came; times are the weaker witness. But ids of our own messages are
        // learned late, as those of what was never shown are: a few of them cannot turn round what is in the order of its
        // times, and ours say nothing where their times say nothing either.
        var byPlace = steps(given.lazy.filter { !$0.isSelf })
        if byPlace == (0, 0), !sendersTellTime { byPlace = steps(given) }
        let isOfOneMoment = byTime == (0, 0) && byPlace == (0, 0) && times.count > 1
        if isOfOneMoment {
            // Of the order within a moment this page is a witness for itself, and what is not known came last.
            let placed = given.filter { !$0.isSelf }.map { place($0) ?? .max }
            byPlace = Self.steps(zip(placed, placed.dropFirst()))
        }
        // What is known is older than what was missed, but for what nobody knows any more.
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
                // Histories are told oldest first. Where each sender has a clock, some that are wrong prove nothing else.
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
        // By their times a page's first is not the first that is told.
        let order = isByArrival ? Array(told.indices) : shown
        rank = Dictionary(uniqueKeysWithValues: order.enumerated().map { ($1, $0) })
        firstPrior = order.first(where: proves).flatMap { [rank] in rank[$0] }
        lastPrior = order.last(where: proves).flatMap { [rank] in rank[$0] }
    }

    /// Where each of ``told`` stands among those that ``firstPrior`` and ``lastPrior`` count.
    private let rank: [Int: Int]

    func rank(_ index: Int) -> Int { rank[index] ?? index }

    /// Something that was shown before the gap, by a clock that can be right.
    func isPrior(_ index: Int) -> Bool { isPrior[index] }

    func isCredible(_ at: ChatTimestamp) -> Bool { at <= latest }

    /// A time that was noted as past, by what is known of clocks now.
    func past(_ at: ChatTimestamp, wall: ChatTimestamp) -> ChatTimestamp { isOurClockBehind ? at : min(at, wall) }

    /// A clock that is ahead of ours by more than this, in milliseconds, proves nothing; Kerberos allows clocks the same.
    static let credibleLead: Int64 = 5 * 60 * 1000
    /// Fewer messages than these do not outvote our clock, or the order of the times.
    private static let quorum = 3

    /// The latest time that is believed at `at`.
    static func credible(_ at: ChatTimestamp) -> ChatTimestamp {
        let (sum, over) = at.milliseconds.addingReportingOverflow(credibleLead)
        return over ? ChatTimestamp(milliseconds: .max) : ChatTimestamp(milliseconds: sum)
    }

    /// When something was heard at the earliest that bears this time.
    static func withoutLead(_ at: ChatTimestamp) -> ChatTimestamp {
        let (early, over) = at.milliseconds.subtractingReportingOverflow(credibleLead)
        return ChatTimestamp(milliseconds: over ? .min : early)
    }

    private static func are(_ times: [ChatTimestamp], mostlyAfter limit: ChatTimestamp) -> Bool {
        times.count >= quorum && times.count { $0 > limit } * 2 > times.count
    }

    /// Whether all that tells the order tells this one, and more than one wrong clock or two could.
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

import ChatModel
import WireBytes

/// A cache of backend messages from before the room's beginning here, for history queries.
///
/// The messages have sequence numbers in front of all others, descending from the room's first one. They exist for the
/// querying clients only: they are neither shown to others nor persisted, and expire when unused.
///
/// | state  | meaning                                  | leaves by                                                    |
/// |--------|------------------------------------------|--------------------------------------------------------------|
/// | idle   | no request is pending                    | a query for older ones → due, or asked                        |
/// | due    | waits for the pause between requests, or | timer → asked; the first history → idle, answering all        |
/// |        | for the room's first history             |                                                               |
/// | asked  | the request is in flight                 | answer, refusal, time-out, lost link → idle, answering all    |
final class OlderHistory {
    /// Messages cached for one room: an hour of scrolling back.
    static let maxRows = 4000
    /// Approximate bytes of them.
    static let maxBytes = 4 * 1024 * 1024
    /// Messages per request, where the backend accepts a limit.
    static let pageCount = 200
    /// Time-out of a request, as of a history after an outage.
    static let patience = CatchUp.patience
    /// Pause between two requests for a room: bulk queries cost the backend no more than a user who scrolls.
    static let pause: Duration = .seconds(1)
    /// Without a query for this long, the cache expires.
    static let idleTime: Duration = .seconds(10 * 60)

    enum State: Equatable {
        case idle
        case due(MonotonicInstant)
        /// `ref` names a question over the socket; nil: by a call.
        case asked(ref: String?, until: MonotonicInstant)
    }

    /// The sequence number of the room's first message at creation; nil: it had none.
    let border: Int64?
    /// The room's first messages at creation.
    let beginning: [StoredMessage]
    /// Oldest first.
    private(set) var rows: [StoredMessage] = []
    private var byteCount = 0
    private(set) var state = State.idle
    /// The backend has nothing older, or the cache is full.
    private(set) var isComplete = false
    private var askedAt: MonotonicInstant?
    private var usedAt: MonotonicInstant
    /// Waiting queries; called with whether messages came.
    private var waiting: [(Bool) -> Void] = []

    init(border: Int64?, beginning: [StoredMessage], now: MonotonicInstant) {
        self.border = border
        self.beginning = beginning
        usedAt = now
    }

    // MARK: - Requests

    /// The time of the next step: expiry, request or time-out.
    var nextStep: MonotonicInstant {
        switch state {
        case .idle: usedAt + Self.idleTime
        case .due(let at): at
        case .asked(_, let deadline): deadline
        }
    }

    func use(at now: MonotonicInstant) { usedAt = now }

    /// Adds a query that waits for older messages.
    func wait(_ then: @escaping (Bool) -> Void) { waiting.append(then) }

    /// The end of the pause between requests, if in the future.
    func pauseEnd(now: MonotonicInstant) -> MonotonicInstant? {
        askedAt.map { $0 + Self.pause }.flatMap { $0 > now ? $0 : nil }
    }

    func postpone(to at: MonotonicInstant) { state = .due(at) }

    /// - Parameter ref: names a question over the socket; nil: by a call.
    func asked(ref: String?, now: MonotonicInstant) {
        askedAt = now
        state = .asked(ref: ref, until: now + Self.patience)
    }

    /// Ends the request. Returns the waiting queries.
    func settle() -> [(Bool) -> Void] {
        state = .idle
        defer { waiting = [] }
        return waiting
    }

    // MARK: - Contents

    /// The oldest known message that the backend knows too.
    var mark: StoredMessage? { rows.first ?? beginning.first { $0.kind == .message } }

    /// As many of the oldest known ones as yield a time bound in spite of a few wrong clocks.
    private static let witnesses = 15

    /// An upper time bound of the messages to request, by the backend's clock or the senders'; nil: the room is empty.
    ///
    /// - Parameter wall: the local clock, where each sender has a clock. The oldest known message may then bear a time
    ///   long before its arrival, and an older one a later time.
    func until(wall: ChatTimestamp?) -> ChatTimestamp? {
        guard let mark else { return nil }
        guard let wall else { return mark.backendAt ?? mark.at }
        let times = (rows.prefix(Self.witnesses) + beginning).lazy.filter { $0.kind == .message }
            .prefix(Self.witnesses).map { $0.backendAt ?? $0.at }.sorted()
        // With few known messages, all may be repeated.
        return times.count < Self.witnesses ? max(wall, times.last ?? wall) : times[times.count / 2]
    }

    /// The reference for the store: any entry here is older than all of its messages.
    func asked(_ reference: StoredReference) -> StoredReference {
        switch reference {
        case .beginning, .timeOrBeginning, .place: reference
        case .message(let msgid), .messageOrTime(let msgid, _):
            rows.contains { $0.msgid == msgid } ? .beginning : reference
        case .time(let at):
            if rows.contains(where: { $0.at == at }) {
                .beginning
            } else {
                rows.contains { $0.at > at } ? .timeOrBeginning(at) : reference
            }
        }
    }

    /// The messages of an answer that are older than all known ones, oldest first.
    ///
    /// - Parameter mayBeApart: the answer need not end where the known messages begin. Then it counts only with one of them.
    func news(in messages: [ChatMessage], mayBeApart: Bool) -> ArraySlice<ChatMessage> {
        guard let mark else { return mayBeApart ? [] : messages[...] }
        let known = Set((rows + beginning).compactMap(\.upstreamID))
        let nameless = (rows + beginning).prefix(StoredPlaces.beginningCount).filter { $0.upstreamID == nil }
        // A message that the backend puts behind a known one is known, or cannot be placed.
        let isKnown = { (message: ChatMessage) -> Bool in
            message.id.map(known.contains) ?? false || nameless.contains { Self.isSame(message, $0) }
        }
        if let index = messages.firstIndex(where: isKnown) { return messages[..<index] }
        if mayBeApart { return [] }
        let markAt = mark.backendAt ?? mark.at
        return messages[..<(messages.firstIndex { $0.at.map { $0 > markAt } ?? false } ?? messages.count)]
    }

    /// Largest difference between the relay's and the backend's time of a relayed message, in milliseconds.
    private static let ownTolerance: Int64 = 2 * 60 * 1000

    /// Whether a message is known without the backend's id: an unidentified relayed one, or one of a wire without ids.
    private static func isSame(_ message: ChatMessage, _ row: StoredMessage) -> Bool {
        guard row.kind == .message, message.text == row.sentAs ?? row.text, let at = message.at else { return false }
        if row.author == nil { return message.sender == row.sender && at == row.backendAt }
        let (apart, over) = at.milliseconds.subtractingReportingOverflow((row.backendAt ?? row.at).milliseconds)
        return !over && apart.magnitude <= ownTolerance.magnitude
    }

    /// The sequence number of the next older message.
    func nextPlace(below border: Int64) -> Int64 { (rows.first?.sequence ?? self.border ?? border) &- 1 }

    /// Adds older messages in front.
    ///
    /// - Parameters:
    ///   - messages: oldest first.
    ///   - isComplete: the backend has nothing older.
    func prepend(_ messages: [StoredMessage], isComplete: Bool) {
        var fitting: [StoredMessage] = []
        for message in messages.reversed() {
            guard rows.count + fitting.count < Self.maxRows, byteCount < Self.maxBytes else { break }
            byteCount += message.memoryByteCount
            fitting.append(message)
        }
        rows = fitting.reversed() + rows
        let isFull = rows.count >= Self.maxRows || byteCount >= Self.maxBytes
        self.isComplete = isComplete || messages.isEmpty || isFull
    }

    func takeBack(_ upstreamID: ChatID) {
        guard let index = rows.firstIndex(where: { $0.upstreamID == upstreamID }) else { return }
        rows[index].takeBack()
    }
}

import ChatModel
import WireBytes

/// What a room's backend has from before the room's beginning here, as far as somebody asked for it of late.
///
/// The messages have places in front of all others, going down from the room's first one, and are in nobody's order but of
/// those who ask for them: they are not shown to others, not kept, and forgotten when nobody has asked for a while.
///
/// | state  | meaning                                  | leaves by                                                    |
/// |--------|------------------------------------------|--------------------------------------------------------------|
/// | idle   | nothing is awaited                       | somebody wants more → due, or asked                           |
/// | due    | more may be asked for in a moment, or    | timer → asked; the first history → idle, and all are told     |
/// |        | when the room's first history is there   |                                                               |
/// | asked  | the backend was asked                    | answer, refusal, time-out, lost link → idle, and all are told |
final class OlderHistory {
    /// Messages held for one room: what one who scrolls back looks at in an hour.
    static let maxRows = 4000
    /// Bytes of them, about.
    static let maxBytes = 4 * 1024 * 1024
    /// Messages asked for at a time, where the backend can be told how many.
    static let pageCount = 200
    /// How long the backend has for an answer. As for the history after an outage.
    static let patience = CatchUp.patience
    /// Between two questions about a room: whoever leafs through it costs the backend no more than a person who scrolls.
    static let pause: Duration = .seconds(1)
    /// Without a question for so long, everything is forgotten.
    static let idleTime: Duration = .seconds(10 * 60)

    enum State: Equatable {
        case idle
        case due(MonotonicInstant)
        /// `ref` names a question over the socket; nil: by a call.
        case asked(ref: String?, until: MonotonicInstant)
    }

    /// The place of the room's first message when this began; nil: it had none.
    let border: Int64?
    /// The room's first messages then.
    let beginning: [StoredMessage]
    /// Oldest first.
    private(set) var rows: [StoredMessage] = []
    private var byteCount = 0
    private(set) var state = State.idle
    /// The backend has nothing older, or nothing older is held.
    private(set) var isComplete = false
    private var askedAt: MonotonicInstant?
    private var usedAt: MonotonicInstant
    /// Who waits; called with whether something came.
    private var waiting: [(Bool) -> Void] = []

    init(border: Int64?, beginning: [StoredMessage], now: MonotonicInstant) {
        self.border = border
        self.beginning = beginning
        usedAt = now
    }

    // MARK: - Asking

    /// When something is to be done: it is forgotten, asked for, or no longer awaited.
    var nextStep: MonotonicInstant {
        switch state {
        case .idle: usedAt + Self.idleTime
        case .due(let at): at
        case .asked(_, let deadline): deadline
        }
    }

    func use(at now: MonotonicInstant) { usedAt = now }

    /// Somebody wants more and waits for it.
    func wait(_ then: @escaping (Bool) -> Void) { waiting.append(then) }

    /// When it may be asked for, if not at once.
    func pauseEnd(now: MonotonicInstant) -> MonotonicInstant? {
        askedAt.map { $0 + Self.pause }.flatMap { $0 > now ? $0 : nil }
    }

    func postpone(to at: MonotonicInstant) { state = .due(at) }

    /// - Parameter ref: names a question over the socket; nil: by a call.
    func asked(ref: String?, now: MonotonicInstant) {
        askedAt = now
        state = .asked(ref: ref, until: now + Self.patience)
    }

    /// Nothing is awaited any more. Returns who waited.
    func settle() -> [(Bool) -> Void] {
        state = .idle
        defer { waiting = [] }
        return waiting
    }

    // MARK: - What is known

    /// The oldest known message that the backend knows too.
    var mark: StoredMessage? { rows.first ?? beginning.first { $0.kind == .message } }

    /// As many of the oldest known ones as tell when the rest was said, whatever a few wrong clocks say.
    private static let witnesses = 15

    /// By when all that is wanted was said, by the backend's clock or those of senders; nil: nothing is known of the room.
    ///
    /// - Parameter wall: our clock, where each sender has one of their own. Then the oldest known message may bear a time long
    ///   before it came, and what is older a later one.
    func until(wall: ChatTimestamp?) -> ChatTimestamp? {
        guard let mark else { return nil }
        guard let wall else { return mark.backendAt ?? mark.at }
        let times = (rows.prefix(Self.witnesses) + beginning).lazy.filter { $0.kind == .message }
            .prefix(Self.witnesses).map { $0.backendAt ?? $0.at }.sorted()
        // Of a few known ones all may come again.
        return times.count < Self.witnesses ? max(wall, times.last ?? wall) : times[times.count / 2]
    }

    /// What the store is asked for in the place of a reference: whatever stands here lies in front of all that it has.
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

    /// Of an answer, what is older than everything known, oldest first.
    func news(in messages: [ChatMessage]) -> ArraySlice<ChatMessage> {
        guard let mark else { return messages[...] }
        let known = Set((rows + beginning).compactMap(\.upstreamID))
        let nameless = (rows + beginning).prefix(StoredPlaces.beginningCount).filter { $0.upstreamID == nil }
        // What the backend puts behind a known message is known, or is none of ours to place.
        let isKnown = { (message: ChatMessage) -> Bool in
            message.id.map(known.contains) ?? false || nameless.contains { Self.isSame(message, $0) }
        }
        if let index = messages.firstIndex(where: isKnown) { return messages[..<index] }
        let markAt = mark.backendAt ?? mark.at
        return messages[..<(messages.firstIndex { $0.at.map { $0 > markAt } ?? false } ?? messages.count)]
    }

    /// By how much the time that we gave a message of ours may differ from the one that the backend gave it, in
    /// milliseconds.
    private static let ownTolerance: Int64 = 2 * 60 * 1000

    /// Whether a message is one that is known without the backend's id: one of ours whose id nobody told us, or one of a wire
    /// without ids.
    private static func isSame(_ message: ChatMessage, _ row: StoredMessage) -> Bool {
        guard row.kind == .message, message.text == row.sentAs ?? row.text, let at = message.at else { return false }
        if row.author == nil { return message.sender == row.sender && at == row.backendAt }
        let (apart, over) = at.milliseconds.subtractingReportingOverflow((row.backendAt ?? row.at).milliseconds)
        return !over && apart.magnitude <= ownTolerance.magnitude
    }

    /// The place of the next older message.
    func nextPlace(below border: Int64) -> Int64 { (rows.first?.sequence ?? self.border ?? border) &- 1 }

    /// More came, older than all there is.
    ///
    /// - Parameters:
    ///   - messages: oldest first.
    ///   - isComplete: there is nothing older.
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

public import ChatModel
import Dialects
public import WireBytes

// The scripted visitor of a room, as a value: frames of others and `now` in, frames out.
//
// It is an ordinary member that speaks the `envelope` dialect, so that a single person with an IRC client sees typing,
// receipts and answers cross the bridge. Its rules:
// - A newcomer is greeted by name within ``greetingLimit``, after some typing. PendingRegistrations of the same moment share one
//   greeting. Joins are invisible on this wire, so ``newcomer(_:now:using:)`` reports them; an unannounced sender is
//   greeted with the first answer.
// - Every message of others is acknowledged with a read receipt, ``readingTime`` after it came.
// - A message is answered after typing, unless ``maxAnswers`` answers are on their way. While one to its sender is, that
//   one answers what they said last.
// - `ping-X` is answered `pong-X` at once; programs use it as a barrier.
// - Asked to stop, it says no more until it hears its name.
// - It never answers itself, which includes visitors of other rooms: they are one person. In an empty room, due frames
//   are dropped.

/// One scripted visitor. See the top of the file for its rules.
public struct StudioVisitor {
    /// Its id, the same in every room, so that peers see one person.
    public static let id = ChatID("5E0C1B54-7E0D-4C0B-9C52-7B1D0F6A21E8")
    public static let name = "Remy"

    /// A newcomer is greeted within this time.
    public static let greetingLimit = Duration.seconds(5)
    /// From a message to its read receipt.
    public static let readingTime = Duration.seconds(1)
    /// From a join or a message to the first typing frame, and how much longer it may be by chance: people do not answer
    /// on the tick. With ``StudioScript/typing`` this stays below ``greetingLimit``.
    static let thinkingTime = Duration.milliseconds(1200)
    static let thinkingJitter = Duration.milliseconds(800)
    /// Between two typing frames. Clients of this wire show one for three seconds.
    static let typingInterval = Duration.seconds(2)
    /// Answers on their way at once, greetings not counted.
    public static let maxAnswers = 5
    /// Receipts on their way at once; a flood beyond them stays unread.
    public static let maxReceipts = 500
    /// People remembered as greeted. Beyond it the memory is cleared, and they may be greeted again.
    static let maxKnown = 1000
    /// Longest id, in bytes. Ids of this wire have 36; senders with longer ones are neither answered nor acknowledged.
    static let maxIDBytes = 256

    private struct Answer {
        /// Nil for the greeting.
        var person: String?
        /// The first typing frame.
        var start: MonotonicInstant
        var nextTyping: MonotonicInstant
        var at: MonotonicInstant
        /// It is the first one to the person.
        var isFirst = false
        var text = ""

        init(to person: String? = nil, start: MonotonicInstant) {
            (self.person, self.start, nextTyping) = (person, start, start)
            at = start + StudioScript.typing
        }

        var next: MonotonicInstant { min(nextTyping, at) }
    }

    public let room: String
    private let dialect = EnvelopeDialect()
    private let context: DialectContext
    private var answers: [Answer] = []
    private var receipts: [(id: ChatID, at: MonotonicInstant)] = []
    /// The first of `receipts` that is not sent.
    private var nextReceipt = 0
    /// The names in the pending greeting.
    private var newcomers: [String] = []
    private var knownPeople: Set<String> = []
    private var knownNames: Set<String> = []
    /// They asked it to be: it reads, answers `ping-X`, and waits until it hears its name.
    private var isQuiet = false
    /// How often each topic was answered, to take its texts in turn.
    private var turns: [String: Int] = [:]

    public init(room: String) {
        self.room = room
        context = DialectContext(selfIDs: [Self.id], selfNames: [Self.name], room: room)
    }

    /// When ``timerFired(now:wall:hasCompany:using:)`` is wanted, or nil.
    public var nextDeadline: MonotonicInstant? {
        let receipt = nextReceipt < receipts.count ? receipts[nextReceipt].at : nil
        return answers.reduce(receipt) { least, answer in least.map { min($0, answer.next) } ?? answer.next }
    }

    // MARK: - Events

    /// A person called `name` has joined, or joined again after an outage: only those who are new are greeted.
    public mutating func joined(_ name: String, now: MonotonicInstant, using rng: inout some RandomNumberGenerator) {
        guard !isQuiet, !knownNames.contains(StudioScript.printable(name)) else { return }
        newcomer(name, now: now, using: &rng)
    }

    /// A person called `name` has joined. They will be greeted, again if they were before.
    public mutating func newcomer(_ name: String, now: MonotonicInstant, using rng: inout some RandomNumberGenerator) {
        let name = StudioScript.printable(name)
        guard name != Self.name else { return }
        remember(person: nil, name: name)
        if newcomers.isEmpty {
            answers.append(Answer(start: thoughtOut(from: now, using: &rng)))
        }
        if newcomers.count <= StudioScript.maxGreetedNames, !newcomers.contains(name) { newcomers.append(name) }
    }

    /// A frame of the room; the visitor's own are recognised.
    ///
    /// - Parameter wall: the time of day, for the frames that answer at once.
    /// - Returns: frames to send to the room now.
    public mutating func frameReceived(
        _ frame: UnsafeRawBufferPointer, now: MonotonicInstant, wall: ChatTimestamp,
        using rng: inout some RandomNumberGenerator
    ) -> [[UInt8]] {
        guard let events = dialect.decode(frame, isBinary: false, context: context).events else { return [] }
        var frames: [[UInt8]] = []
        for case .message(let message) in events where !message.isSelf {
            if let id = message.id, id.rawValue.utf8.count <= Self.maxIDBytes,
                receipts.count - nextReceipt < Self.maxReceipts
            {
                receipts.append((id, now + Self.readingTime))
            }
            if let token = StudioScript.pingToken(in: message.text) {
                let name = StudioScript.printable(message.sender.name)
                frames += say(StudioScript.pong(name, token), wall: wall, using: &rng)
            } else {
                answer(message, now: now, wall: wall, using: &rng)
            }
        }
        return frames
    }

    /// - Parameter hasCompany: whether the room has other members. If not, due frames are dropped.
    /// - Returns: frames to send to the room now, oldest first.
    public mutating func timerFired(
        now: MonotonicInstant, wall: ChatTimestamp, hasCompany: Bool, using rng: inout some RandomNumberGenerator
    ) -> [[UInt8]] {
        guard hasCompany else {
            dropDue(now)
            return []
        }
        var frames: [[UInt8]] = []
        while nextReceipt < receipts.count, receipts[nextReceipt].at <= now {
            let receipt = ChatReceipt(state: .read, ids: [receipts[nextReceipt].id], by: Self.person, at: wall)
            frames += encode(.receipt(receipt))
            nextReceipt += 1
        }
        compactReceipts()

        var isTyping = false
        for index in answers.indices where answers[index].next <= now && answers[index].at > now {
            isTyping = true
            answers[index].nextTyping = now + Self.typingInterval
        }
        if isTyping { frames += encode(.typing(typing(wall: wall, using: &rng))) }

        for answer in takeDueAnswers(now) {
            var text = answer.text
            if answer.person == nil {
                text = StudioScript.greeting(StudioScript.list(newcomers), room: room)
                newcomers = []
            }
            frames += say(text, wall: wall, using: &rng)
        }
        return frames
    }

    // MARK: - Answers

    private mutating func answer(
        _ message: ChatMessage, now: MonotonicInstant, wall: ChatTimestamp, using rng: inout some RandomNumberGenerator
    ) {
        guard let person = message.sender.id?.canonical ?? message.sender.name,
            person.utf8.count <= Self.maxIDBytes
        else { return }
        let begun = answers.firstIndex { $0.person == person }
        guard begun != nil || answers.count(where: { $0.person != nil }) < Self.maxAnswers else { return }
        if isQuiet {
            guard StudioScript.calls(Self.name, in: message.text) else { return }
            isQuiet = false
        }
        let name = StudioScript.printable(message.sender.name)
        var answer =
            begun.map { answers.remove(at: $0) } ?? Answer(to: person, start: thoughtOut(from: now, using: &rng))
        if remember(person: person, name: name) { answer.isFirst = true }
        let row = StudioScript.row(for: message.text)
        if row.topic == StudioScript.quietTopic { isQuiet = true }
        let turn = turns[row.topic, default: 0]
        turns[row.topic] = (turn + 1) % row.texts.count
        let facts = StudioScript.Facts(name: name, room: room, time: StudioScript.timeOfDay(wall.milliseconds))
        answer.text = (answer.isFirst && !row.greets ? StudioScript.preface(name) : "") + row.texts[turn](facts)
        answer.at = max(answer.at, answer.start + row.typing)
        answers.append(answer)
    }

    private func thoughtOut(
        from now: MonotonicInstant, using rng: inout some RandomNumberGenerator
    ) -> MonotonicInstant {
        now + Self.thinkingTime
            + .nanoseconds(Int64.random(in: 0...Self.thinkingJitter.wholeNanoseconds, using: &rng))
    }

    /// Whether neither the person nor the name was known.
    @discardableResult
    private mutating func remember(person: String?, name: String) -> Bool {
        if knownPeople.count + knownNames.count >= Self.maxKnown {
            knownPeople = []
            knownNames = []
        }
        let isNewName = knownNames.insert(name).inserted
        guard let person else { return isNewName }
        return knownPeople.insert(person).inserted && isNewName
    }

    private mutating func takeDueAnswers(_ now: MonotonicInstant) -> [Answer] {
        let due = answers.filter { $0.at <= now }.sorted { $0.at < $1.at }
        answers.removeAll { $0.at <= now }
        return due
    }

    private mutating func dropDue(_ now: MonotonicInstant) {
        while nextReceipt < receipts.count, receipts[nextReceipt].at <= now { nextReceipt += 1 }
        compactReceipts()
        // People who left during the typing are not greeted.
        if answers.contains(where: { $0.person == nil && $0.next <= now }) { newcomers = [] }
        answers.removeAll { $0.next <= now }
    }

    private mutating func compactReceipts() {
        guard nextReceipt == receipts.count || nextReceipt >= Self.maxReceipts else { return }
        receipts.removeFirst(nextReceipt)
        nextReceipt = 0
    }

    // MARK: - Frames

    private static let person = ChatPerson(id: id, name: name)

    private func say(_ text: String, wall: ChatTimestamp, using rng: inout some RandomNumberGenerator) -> [[UInt8]] {
        encode(.message(ChatMessage(id: Self.freshID(using: &rng), sender: Self.person, text: text, at: wall)))
    }

    private func typing(wall: ChatTimestamp, using rng: inout some RandomNumberGenerator) -> ChatTyping {
        ChatTyping(state: .start, sender: Self.person, id: Self.freshID(using: &rng), at: wall)
    }

    private func encode(_ command: ChatCommand) -> [[UInt8]] {
        guard let frames = dialect.encode(command, context: context).frames else { return [] }
        return frames.map(\.bytes)
    }

    /// A random UUID in upper case, as the clients of this wire make them.
    ///
    /// Source: RFC 9562 §5.4.
    private static func freshID(using rng: inout some RandomNumberGenerator) -> ChatID {
        let high = rng.next() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000
        let low = rng.next() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        var text = ""
        for (index, shift) in stride(from: 60, through: 0, by: -4).enumerated() {
            if index == 8 || index == 12 { text += "-" }
            text += digit(high >> UInt64(shift))
        }
        text += "-"
        for (index, shift) in stride(from: 60, through: 0, by: -4).enumerated() {
            if index == 4 { text += "-" }
            text += digit(low >> UInt64(shift))
        }
        return ChatID(text)
    }

    private static func digit(_ value: UInt64) -> String { String(value & 15, radix: 16, uppercase: true) }
}

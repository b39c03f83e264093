import BridgeTypes
import ChatModel
import IRCProtocol
import Media
import Rooms
import WireBytes

/// What was said in a room before a client entered, on its way to that client: what it missed, or the last lines.
///
/// | phase     | meaning                                                     | leaves by                                           |
/// |-----------|-------------------------------------------------------------|-----------------------------------------------------|
/// | announced | waits behind the answer to the JOIN                         | that is written → reading                            |
/// | reading   | the store was asked for a page                              | answer → writing; failure, time-out → writing a word about it |
/// | writing   | lines go out as the client's queue drains                   | page at its end → reading; last one → releasing      |
/// | releasing | live lines that waited go out                               | none is left → over                                 |
///
/// While it reads, other answers go on and the client is heard. Lines of the room are held from the JOIN to the
/// end, so the client gets everything in the order of the room: what was said before the JOIN by this, what after it live.
final class Backlog {
    /// Messages in one answer of the store: about as many as fill a client's window. Pages are cut by messages and not by
    /// places, since there may be any number of places between two messages.
    static let pageCount = 100
    /// Bytes of live lines held for one client. Beyond it the client is let go; what it missed comes when it returns.
    static let maxHeldBytes = 1024 * 1024
    /// How long a disk may take for its part before the client gets the room without what was said before.
    static let patience: Duration = .seconds(30)

    enum Kind {
        /// Everything behind the client's cursor: it gets each message once, however often it comes.
        case missed
        /// The newest messages, for a client without a cursor in the room.
        case lastLines
    }

    enum Phase {
        case announced
        case reading(StoreReadID, Question)
        case writing
        case releasing
    }

    enum Question {
        /// Whether anything lies in front of ``Backlog/position``.
        case leftOut
        /// The first ones behind ``Backlog/position``.
        case page
        /// Whether anything is kept of what the client had, with what was read behind it.
        case begin([StoredMessage])
    }

    let room: RoomID
    let kind: Kind
    /// The client's cursor when it entered; of last lines nobody asks what lies before them.
    let start: Int64
    /// The newest message before the client entered.
    let through: Int64
    /// Everything up to here was read.
    private(set) var position: Int64
    /// Whether there is more than is shown, where that is known, and how much.
    private(set) var isMoreLeftOut: Bool?
    let leftOut: Int?
    /// When what the client had last was said, where that is remembered.
    let startedAt: ChatTimestamp?
    private(set) var phase = Phase.announced
    /// The disk's time is over then.
    private(set) var deadline: MonotonicInstant?
    /// Every message up to here was written whole.
    private(set) var written: Int64
    /// The message of which the lines are being written, or were last.
    private var rowInHand: Int64?
    /// The rows of the page that are not rendered yet, the last one first.
    private var rows: [StoredMessage] = []
    /// Lines to write, the last one first.
    private var lines: [IRCMessage] = []
    /// The reference of the open batch.
    private(set) var batch: String?
    /// Nothing can be read; what is left comes another time.
    private(set) var hasFailed = false
    /// Live lines, the oldest first; those before `releasedCount` are gone.
    private var held: [ByteSlice] = []
    private var releasedCount = 0

    init(
        room: RoomID, kind: Kind = .missed, start: Int64, from position: Int64, through: Int64, leftOut: Int?,
        isMoreLeftOut: Bool?, startedAt: ChatTimestamp? = nil
    ) {
        self.room = room
        self.kind = kind
        self.start = start
        written = start
        self.position = position
        self.through = through
        self.leftOut = leftOut
        self.isMoreLeftOut = isMoreLeftOut
        self.startedAt = startedAt
    }

    /// Whether what was read first does not follow on what the client had: it may be that what was between is kept no more.
    func mayHaveHole(before page: [StoredMessage]) -> Bool {
        // Who had nothing yet had nothing that could be gone.
        guard !hasRead, isMoreLeftOut == false, start >= 0 else { return false }
        return page.first.map { $0.sequence > start &+ 1 } ?? (start < through)
    }

    private var hasRead = false

    // MARK: - Phases

    /// The store was asked.
    func ask(_ id: StoreReadID, _ question: Question, now: MonotonicInstant) {
        deadline = deadline ?? now + Self.patience
        phase = .reading(id, question)
    }

    /// The store answers: to what; nil: that is waited for no longer.
    func answered(_ id: StoreReadID) -> Question? {
        guard case .reading(id, let question) = phase else { return nil }
        deadline = nil
        return question
    }

    /// Whether there is more in front of what is shown is known now.
    func found(moreLeftOut isMore: Bool) { isMoreLeftOut = isMore }

    /// There are lines to write.
    func beginWriting() { phase = .writing }

    /// All is written, and what waited behind it goes out.
    func beginReleasing() { phase = .releasing }

    /// It cannot be read. False: it is read already, or not asked for yet.
    func fail() -> Bool {
        deadline = nil
        guard case .reading = phase else { return false }
        hasFailed = true
        forgetPage()
        return true
    }

    /// The batch of what was missed is open.
    func opened(batch reference: String) { batch = reference }

    /// The reference of the open batch, which ends now.
    func takeBatch() -> String? {
        defer { batch = nil }
        return batch
    }

    // MARK: - Pages

    /// A page came. Rows that the page should not have are not for this client.
    func take(_ page: [StoredMessage]) {
        hasRead = true
        rows = page.filter { $0.sequence > position && $0.sequence <= through }.sorted { $0.sequence > $1.sequence }
        position = page.count < Self.pageCount ? through : rows.first?.sequence ?? through
    }

    /// It has not begun: what the client is told of the room otherwise comes first.
    var isAnnounced: Bool { if case .announced = phase { true } else { false } }

    func put(_ line: IRCMessage) { lines.insert(line, at: 0) }

    /// The next line; nil at the end of what was read.
    ///
    /// - Parameter render: makes the lines of one message; none where the client does not get it.
    func nextLine(_ render: (StoredMessage) -> [IRCMessage]) -> IRCMessage? {
        while lines.isEmpty, let row = rows.popLast() {
            rowInHand = row.sequence
            lines = render(row).reversed()
        }
        defer { if lines.isEmpty { written = max(written, rowInHand ?? written) } }
        return lines.popLast()
    }

    /// What ends a message's own batch, of which the beginning is written and this is not.
    var innerEnd: IRCMessage? {
        guard let end = lines.first, end.command == "BATCH", let next = lines.last,
            !(next.command == "BATCH" && next.params.first?.hasPrefix("+") == true)
        else { return nil }
        return end
    }

    private func forgetPage() {
        rowInHand = nil
        rows = []
        lines = []
    }

    func hold(_ line: ByteSlice) { held.append(line) }

    func nextHeld() -> ByteSlice? {
        guard releasedCount < held.count else {
            held = []
            releasedCount = 0
            return nil
        }
        defer { releasedCount += 1 }
        return held[releasedCount]
    }
}

/// Makes the lines of a stored message: as it was shown when it was said, or as near as the client's capabilities allow.
struct BacklogRenderer {
    let channel: String
    let serverName: String
    let limits: LimitSettings
    let files: RoomFileLinks?
    /// Without server-time the time stands in front of the words.
    let showsTime: Bool
    let now: ChatTimestamp
    let caps: IRCCapabilitySet
    /// Whom the words of a reply answer, for clients without tags.
    let address: (StoredMessage) -> String?
    /// Names a batch for a message of several lines.
    let reference: () -> String

    /// Older than this, the time alone says too little.
    private static let day: Int64 = 24 * 3600 * 1000

    func lines(of message: StoredMessage) -> [IRCMessage] {
        guard !message.isTakenBack else { return [] }
        var tags = [
            .time(message.at), IRCTag("msgid", message.msgid),
        ]
        switch message.kind {
        // Only for who asks for it.
        case .event: return []
        case .gap:
            if let from = message.gapFrom {
                tags.append(.gap(from, message.backendAt ?? message.at))
            }
            let text = message.text.hasPrefix("*** ") ? message.text : "*** " + message.text
            return [
                IRCMessage(
                    tags: tags, source: serverName, command: "NOTICE", params: [channel, stamp(message.at) + text])
            ]
        case .message, .notice, .change:
            if let account = message.account { tags.append(IRCTag("account", account)) }
            let head = IRCMessage(
                tags: tags + self.tags(of: message), source: message.source,
                command: message.kind == .message ? "PRIVMSG" : "NOTICE", params: [channel])
            return said(message, head)?.messages(for: caps, reference: reference) ?? []
        }
    }

    private func tags(of message: StoredMessage) -> [IRCTag] {
        var tags = message.clientTags.tags
        guard let target = message.replyTo else { return tags }
        for name in ["+reply", "+draft/reply"] where !tags.contains(where: { $0.name == name }) {
            // An IRC user's own tags go as they came.
            if message.author == nil || !tags.contains(where: { ["+reply", "+draft/reply"].contains($0.name) }) {
                tags.append(IRCTag(name, target))
            }
        }
        return tags
    }

    private func said(_ message: StoredMessage, _ head: IRCMessage) -> IRCUtterance? {
        let stamp = stamp(message.at)
        let address = address(message)
        guard message.author != nil else {
            let budget =
                IRCTextSplitter.budget(source: message.source, command: "PRIVMSG", target: channel) - stamp.utf8.count
                - (address?.utf8.count ?? 0)
            let lines = MessageRendering.lines(
                text: message.text, attachments: message.attachments, isEncrypted: message.isEncrypted, budget: budget,
                limits: limits, msgid: message.msgid, files: files)
            return lines.isEmpty ? nil : stamped(IRCUtterance(head: head, lines: lines, address: address), stamp)
        }
        return stamped(
            MessageRendering.utterance(
                head,
                SpokenText(
                    text: message.attachments.isEmpty
                        ? message.text : files?.renewed(message.text, message.attachments) ?? message.text),
                address: address, margin: stamp.utf8.count),
            stamp)
    }

    /// The time stands in front of every line, but in front of a batch once.
    private func stamped(_ said: IRCUtterance, _ stamp: String) -> IRCUtterance {
        guard !stamp.isEmpty else { return said }
        var said = said
        // The time comes first.
        if let address = said.address, !caps.contains(.messageTags) {
            if let first = said.lines.firstIndex(where: { !$0.text.isEmpty }) {
                said.lines[first].text = address + said.lines[first].text
            }
            said.address = nil
        }
        let isBatch = said.lines.count > 1 && caps.contains(.multiline) && caps.contains(.batch)
        for index in said.lines.indices where index == 0 || !isBatch && !said.lines[index].text.isEmpty {
            said.lines[index].text = stamp + said.lines[index].text
        }
        return said
    }

    /// `[HH:MM] `, UTC, with the date when that is more than a day ago; nothing for clients that see the time anyway.
    func stamp(_ at: ChatTimestamp) -> String {
        guard showsTime else { return "" }
        let text = Array(IRCServerTime.format(milliseconds: at.milliseconds).utf8)
        guard text.count >= 16 else { return "" }
        let date =
            now.milliseconds - at.milliseconds > Self.day ? String(decoding: text[5..<10], as: UTF8.self) + " " : ""
        return "[" + date + String(decoding: text[11..<16], as: UTF8.self) + "] "
    }
}

import BridgeTypes
import ChatModel
import IRCProtocol
import Media
import Rooms
import WireBytes

/// Backlog of a room on its way to a client that has entered: missed messages, or the last lines.
///
/// | phase     | meaning                                   | leaves by                                              |
/// |-----------|-------------------------------------------|--------------------------------------------------------|
/// | announced | waits behind the reply to the JOIN        | reply written → reading                                |
/// | reading   | a page is being read from the store       | answer → writing; failure, time-out → writing a notice |
/// | writing   | lines go out as the client's queue drains | page written → reading; last page written → releasing  |
/// | releasing | held live lines go out                    | none left → over                                       |
///
/// While it reads, other answers and the client's input are processed. Live lines of the room are held from the JOIN to
/// the end of the backlog, so the client gets everything in the order of the room: earlier messages from the backlog,
/// later ones live.
final class Backlog {
    /// Messages in one answer of the store: about as many as fill a client's window. Pages are limited by messages and
    /// not by sequence numbers, since there may be gaps of any size between two messages.
    static let pageCount = 100
    /// Bytes of live lines held for one client. Beyond it the client is disconnected, and gets the messages on its
    /// return.
    static let maxHeldBytes = 1024 * 1024
    /// Time-out of the store; then the client gets the room without the backlog.
    static let patience: Duration = .seconds(30)

    enum Kind {
        /// Everything behind the client's delivery cursor: each message is delivered once, over all its connections.
        case missed
        /// The newest messages, for a client without a delivery cursor in the room.
        case lastLines
    }

    enum Phase {
        case announced
        case reading(StoreReadID, Question)
        case writing
        case releasing
    }

    enum Question {
        /// Whether there are messages before ``Backlog/position``.
        case leftOut
        /// The first messages after ``Backlog/position``.
        case page
        /// Whether the store still has messages up to the client's cursor; with the page that was read behind it.
        case begin([StoredMessage])
    }

    let room: RoomID
    let kind: Kind
    /// The client's cursor when it entered; last lines do not need it.
    let start: Int64
    /// The newest message before the client entered.
    let through: Int64
    /// Everything up to here has been read.
    private(set) var position: Int64
    /// Whether older messages are left out, and how many; nil: not known.
    private(set) var isMoreLeftOut: Bool?
    let leftOut: Int?
    /// The time of the last message that the client received; nil: not known.
    let startedAt: ChatTimestamp?
    private(set) var phase = Phase.announced
    /// Deadline of the store's answer.
    private(set) var deadline: MonotonicInstant?
    /// All messages up to here were written completely.
    private(set) var written: Int64
    /// The message whose lines are being written, or were written last.
    private var rowInHand: Int64?
    /// Rows of the page that are not rendered yet, in reverse order.
    private var rows: [StoredMessage] = []
    /// Lines to write, in reverse order.
    private var lines: [IRCMessage] = []
    /// The reference of the open batch.
    private(set) var batch: String?
    /// The read failed; the rest is delivered another time.
    private(set) var hasFailed = false
    /// Held live lines, oldest first; those before `releasedCount` were released.
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

    /// Whether the first page does not follow on the client's cursor: messages in between may have been purged.
    func mayHaveHole(before page: [StoredMessage]) -> Bool {
        // A client that has received nothing has no such gap.
        guard !hasRead, isMoreLeftOut == false, start >= 0 else { return false }
        return page.first.map { $0.sequence > start &+ 1 } ?? (start < through)
    }

    private var hasRead = false

    // MARK: - Phases

    /// The store was queried.
    func ask(_ id: StoreReadID, _ question: Question, now: MonotonicInstant) {
        deadline = deadline ?? now + Self.patience
        phase = .reading(id, question)
    }

    /// The query that an answer of the store belongs to; nil: no longer pending.
    func answered(_ id: StoreReadID) -> Question? {
        guard case .reading(id, let question) = phase else { return nil }
        deadline = nil
        return question
    }

    /// It is known whether older messages are left out.
    func found(moreLeftOut isMore: Bool) { isMoreLeftOut = isMore }

    /// There are lines to write.
    func beginWriting() { phase = .writing }

    /// Everything is written; the held lines follow.
    func beginReleasing() { phase = .releasing }

    /// The read failed. False: it is complete, or not requested yet.
    func fail() -> Bool {
        deadline = nil
        guard case .reading = phase else { return false }
        hasFailed = true
        forgetPage()
        return true
    }

    /// The batch of missed messages is open.
    func opened(batch reference: String) { batch = reference }

    /// The reference of the open batch, which is being ended.
    func takeBatch() -> String? {
        defer { batch = nil }
        return batch
    }

    // MARK: - Pages

    /// A page was read. Rows outside its range are ignored.
    func take(_ page: [StoredMessage]) {
        hasRead = true
        rows = page.filter { $0.sequence > position && $0.sequence <= through }.sorted { $0.sequence > $1.sequence }
        position = page.count < Self.pageCount ? through : rows.first?.sequence ?? through
    }

    /// It has not begun: other lines about the room come first.
    var isAnnounced: Bool { if case .announced = phase { true } else { false } }

    func put(_ line: IRCMessage) { lines.insert(line, at: 0) }

    /// The next line; nil at the end of the rows read.
    ///
    /// - Parameter render: makes the lines of one message; empty if the client does not get it.
    func nextLine(_ render: (StoredMessage) -> [IRCMessage]) -> IRCMessage? {
        while lines.isEmpty, let row = rows.popLast() {
            rowInHand = row.sequence
            lines = render(row).reversed()
        }
        defer { if lines.isEmpty { written = max(written, rowInHand ?? written) } }
        return lines.popLast()
    }

    /// The end of a message's own batch whose beginning is written and whose end is not.
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

/// Renders a stored message: as it was shown live, or as closely as the client's capabilities allow.
struct BacklogRenderer {
    let channel: String
    let serverName: String
    let limits: LimitSettings
    let files: RoomFileLinks?
    /// Without server-time the time is prepended to the text.
    let showsTime: Bool
    let now: ChatTimestamp
    let caps: IRCCapabilitySet
    /// The addressee of a reply, for clients without tags.
    let address: (StoredMessage) -> String?
    /// Makes the reference of a batch for a message of several lines.
    let reference: () -> String

    /// Beyond this age the date is shown with the time.
    private static let day: Int64 = 24 * 3600 * 1000

    func lines(of message: StoredMessage) -> [IRCMessage] {
        guard !message.isTakenBack else { return [] }
        var tags = [
            .time(message.at), IRCTag("msgid", message.msgid),
        ]
        switch message.kind {
        // Sent on request only.
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
            // Tags of an IRC user are relayed unchanged.
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

    /// Prepends the time to every line, but in a batch to the first only.
    private func stamped(_ said: IRCUtterance, _ stamp: String) -> IRCUtterance {
        guard !stamp.isEmpty else { return said }
        var said = said
        // The time precedes the address.
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

    /// `[HH:MM] `, UTC, with the date when more than a day ago; empty for clients with server-time.
    func stamp(_ at: ChatTimestamp) -> String {
        guard showsTime else { return "" }
        let text = Array(IRCServerTime.format(milliseconds: at.milliseconds).utf8)
        guard text.count >= 16 else { return "" }
        let date =
            now.milliseconds - at.milliseconds > Self.day ? String(decoding: text[5..<10], as: UTF8.self) + " " : ""
        return "[" + date + String(decoding: text[11..<16], as: UTF8.self) + "] "
    }
}

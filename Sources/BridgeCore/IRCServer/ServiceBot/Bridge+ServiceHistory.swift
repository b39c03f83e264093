import ChatModel
import HTTPProtocol
import IRCProtocol
import WireBytes

// What was said before, in the service's words: history, search and show. The messages come the way of CHATHISTORY and
// SEARCH (Bridge+History); what differs is how they are told.

/// How the service words an answer about the past.
struct ServiceReading {
    enum Kind {
        case history(limit: Int)
        case search
        /// A message from this byte on.
        case show(msgid: String, from: Int)
    }

    /// Messages without a number.
    static let usualCount = 10
    /// Messages that a search shows: about as many as somebody looks through.
    static let maxFound = 20
    /// Lines of one message in a list of several.
    static let maxLinesInList = 3
    /// Lines and bytes of a message at a time.
    static let maxLines = 100
    static let maxBytes = 16 * 1024

    var kind: Kind
    /// Rooms in which a message is looked for when the others do not have it, the next one last.
    var roomsLeft: [RoomID] = []
    /// Messages told so far.
    var shownCount = 0
    /// Messages left out, of people who were muted.
    var mutedCount = 0
    /// The oldest one told.
    var firstMsgid: String?

    /// `HH:MM`, UTC, with the date in front when that is more than a day ago.
    static func time(_ at: ChatTimestamp, now: ChatTimestamp) -> String {
        let text = Array(IRCServerTime.format(milliseconds: at.milliseconds).utf8)
        guard text.count >= 16 else { return "" }
        let (age, over) = now.milliseconds.subtractingReportingOverflow(at.milliseconds)
        let isOld = over || age > 24 * 3600 * 1000
        let date = isOld ? String(decoding: text[0..<10], as: UTF8.self) + " " : ""
        return date + String(decoding: text[11..<16], as: UTF8.self)
    }

    /// The line of `text` that holds what was looked for, or as much of it as `budget` bytes are; nil: it is not found near
    /// the beginning.
    static func passage(of text: String, holding words: String, budget: Int) -> String? {
        func isLineEnd(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") }
        let clean = MessageRendering.cleanBody(String(decoding: text.utf8.prefix(4 * maxBytes), as: UTF8.self))
        let bytes = Array(clean.utf8)
        guard let place = bytes.withUnsafeBytes(TextPattern(words).firstIndex) else { return nil }
        var start = (bytes[..<place].lastIndex(where: isLineEnd) ?? -1) + 1
        var mark = ""
        if place - start + words.utf8.count > budget {
            mark = "…"
            start = max(start, place - budget / 4)
            while start < place, bytes[start] & 0xC0 == 0x80 { start += 1 }
        }
        let end = bytes[place...].firstIndex(where: isLineEnd) ?? bytes.count
        return NickMaker.prefix(of: mark + String(decoding: bytes[start..<end], as: UTF8.self), maxBytes: budget)
    }

    /// Lines of `text` from a byte on, as many as are shown at a time; and where the next ones begin, if there are any.
    ///
    /// - Parameter budget: bytes of a line.
    static func page(of text: String, from start: Int, budget: Int) -> (lines: [String], next: Int?) {
        let all = text.utf8
        guard start < all.count else { return ([], nil) }
        // More than is shown: where it is cut is behind all that is.
        var window = Array(all.dropFirst(start).prefix(maxBytes + 2 * budget))
        // A number from outside may lie within a character.
        let skipped = window.prefix(3).prefix { $0 & 0xC0 == 0x80 }.count
        window.removeFirst(skipped)
        let begin = start + skipped
        let isCut = begin + window.count < all.count
        if isCut {
            while let last = window.last, last & 0xC0 == 0x80 { window.removeLast() }
            if let last = window.last, last >= 0xC0 { window.removeLast() }
        }
        for index in window.indices where window[index] == UInt8(ascii: "\r") { window[index] = UInt8(ascii: "\n") }
        var lines: [String] = []
        var position = 0
        for line in window.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            guard lines.count < maxLines, position < maxBytes else { return (lines, begin + position) }
            if !line.isEmpty {
                for piece in IRCTextSplitter.split(String(decoding: line, as: UTF8.self), budget: budget) {
                    guard lines.count < maxLines, position < maxBytes else { return (lines, begin + position) }
                    lines.append(piece)
                    position += piece.utf8.count
                }
            }
            position += 1
        }
        return (lines, isCut ? begin + min(position, window.count) : nil)
    }
}

extension Bridge {
    // MARK: - Questions

    func readHistory(_ words: [String], _ row: ServiceCommandTable.Row, _ session: IRCSession) {
        guard let room = readableRoom(words[0], session) else { return }
        var limit = ServiceReading.usualCount
        if words.count > 1 {
            guard let wanted = Int(words[1].prefix(9)), wanted > 0 else {
                return say("Usage: \(row.usage)", to: session)
            }
            limit = min(wanted, settings.limits.historyLimit)
        }
        var before: StoredReference?
        if words.count > 2 {
            guard words.count == 4, IRCCasemapping.ascii.fold(words[2]) == "before" else {
                return say("Usage: \(row.usage)", to: session)
            }
            before = .message(words[3])
        }
        let query = StoredPageQuery(.newest(after: nil, before: before), limit: limit)
        begin(
            .page(room.id, subcommand: "LATEST", target: room.channel, query),
            as: ServiceReading(kind: .history(limit: limit)), session)
    }

    func readFound(_ rest: String, _ row: ServiceCommandTable.Row, _ session: IRCSession) {
        let parts = rest.split(separator: " ", maxSplits: 1)
        var places = rooms.filter { mayReadHistory(of: $0, session) }.map(\.id)
        var words = rest
        if let name = parts.first, name.hasPrefix("#") {
            guard let room = readableRoom(String(name), session) else { return }
            places = [room.id]
            words = parts.count > 1 ? String(parts[1]) : ""
        }
        let text = String(words.drop { $0 == " " })
        guard !text.isEmpty else { return say("Usage: \(row.usage)", to: session) }
        guard !places.isEmpty else { return say("You are in no room.", to: session) }
        begin(
            .search(StoredSearch(text: text, limit: ServiceReading.maxFound)), as: ServiceReading(kind: .search),
            rooms: places, session)
    }

    func readMessage(_ words: [String], _ row: ServiceCommandTable.Row, _ session: IRCSession) {
        var from = 0
        if words.count > 1 {
            guard let wanted = Int(words[1].prefix(9)), wanted >= 0 else {
                return say("Usage: \(row.usage)", to: session)
            }
            from = wanted
        }
        let msgid = words[0]
        // The room that is known to have it is asked first.
        var places = rooms.filter { mayReadHistory(of: $0, session) }
        if let index = places.firstIndex(where: { $0.recent.entry(msgid: msgid) != nil }) {
            places = [places[index]]
        }
        var left = Array(places.map(\.id).reversed())
        guard let first = left.popLast() else { return say("You are in no room.", to: session) }
        begin(
            messageQuestion(msgid, in: first),
            as: ServiceReading(kind: .show(msgid: msgid, from: from), roomsLeft: left), session)
    }

    private func messageQuestion(_ msgid: String, in room: RoomID) -> HistoryAnswer.Question {
        .page(
            room, subcommand: "AROUND", target: self.room(room)?.channel ?? "*",
            StoredPageQuery(.around(.message(msgid)), limit: 1, withTakenBack: true))
    }

    private func readableRoom(_ name: String, _ session: IRCSession) -> Room? {
        guard let room = serviceRoom(name, session) else { return nil }
        guard mayReadHistory(of: room, session) else {
            say("What was said in \(room.channel) is for those who are there; JOIN it first.", to: session)
            return nil
        }
        return room
    }

    private func begin(
        _ question: HistoryAnswer.Question, as reading: ServiceReading, rooms: [RoomID] = [], _ session: IRCSession
    ) {
        let answer = HistoryAnswer(session.id, question, batch: [], label: nil)
        answer.reading = reading
        answer.placesLeft = rooms.reversed().map { .room($0) }
        append(answer, session)
    }

    // MARK: - Answers

    /// The next room in which a message may be, when the last one did not have it.
    func looksElsewhere(_ answer: HistoryAnswer) -> Bool {
        guard case .show(let msgid, _)? = answer.reading?.kind, let next = answer.reading?.roomsLeft.popLast() else {
            return false
        }
        answer.question = messageQuestion(msgid, in: next)
        answer.phase = .begun
        return true
    }

    func serviceLines(about refusal: HistoryRefusal, _ session: IRCSession) -> [IRCMessage] {
        [serviceLine(refusal.text + ".", to: session)].compactMap { $0 }
    }

    /// A message as the service tells it; nothing of people whom the client muted.
    func serviceLines(of row: HistoryAnswer.Row, _ answer: HistoryAnswer, _ session: IRCSession) -> [IRCMessage] {
        guard case .room(let id) = row.place, let room = room(id), let reading = answer.reading else { return [] }
        let texts: [String]
        switch reading.kind {
        case .show(let msgid, let from): texts = whole(row.message, msgid, from: from, in: room, session)
        case .history, .search:
            guard !isMuted(row.message, in: room, for: session) else {
                answer.reading?.mutedCount += 1
                return []
            }
            texts = excerpt(row.message, in: room, answer, session)
            if answer.reading?.firstMsgid == nil { answer.reading?.firstMsgid = row.message.msgid }
        }
        answer.reading?.shownCount += 1
        return texts.compactMap { serviceLine($0, to: session) }
    }

    /// What ends the answer.
    func serviceEnd(of answer: HistoryAnswer, _ session: IRCSession) -> [IRCMessage] {
        guard let reading = answer.reading else { return [] }
        var texts: [String] = []
        switch (reading.kind, answer.question) {
        case (.history(let limit), .page(let id, _, _, _)):
            let channel = room(id)?.channel ?? "*"
            if reading.shownCount == 0 {
                texts = ["Nothing that was said there is known here."]
            } else if reading.shownCount + reading.mutedCount >= limit, let msgid = reading.firstMsgid {
                texts = ["For what was said before that: history \(channel) \(limit) before \(msgid)"]
            } else {
                texts = ["That is all that is known of \(channel)."]
            }
        case (.search, _):
            let count = reading.shownCount
            texts = [
                count == 0
                    ? "Nothing was found."
                    : Self.counted(count, "message", "messages")
                        + (count >= ServiceReading.maxFound ? ", the newest." : ".")
            ]
            if answer.isSearchCut { texts.append("Not everything was looked through; name a room, or other words.") }
        default: break
        }
        if reading.mutedCount > 0 {
            texts.append(
                "\(Self.counted(reading.mutedCount, "message", "messages")) of people whom you muted left out.")
        }
        return texts.compactMap { serviceLine($0, to: session) }
    }

    /// `[12:01] <Remy> words`, some lines of a message.
    private func excerpt(
        _ message: StoredMessage, in room: Room, _ answer: HistoryAnswer, _ session: IRCSession
    ) -> [String] {
        let isFound = answer.isSearch
        let stamp = "[\(ServiceReading.time(message.at, now: context.now.wall))] "
        guard StoredMessage.Kind.ofWords.contains(message.kind) else { return [stamp + message.text] }
        let action = MessageRendering.action(message.text)
        var speaker = action == nil ? "<\(message.nick)> " : "* \(message.nick) "
        // It tells by itself of whom.
        if message.kind == .change { speaker = "" }
        let head = (isFound ? room.channel + " " : "") + stamp + speaker
        let tail = isFound ? " (\(message.msgid))" : ""
        var limits = settings.limits
        limits.multilineMaxLines = min(limits.multilineMaxLines, ServiceReading.maxLinesInList)
        let budget = max(64, serviceBudget(for: session) - head.utf8.count - tail.utf8.count)
        var bodies = MessageRendering.lines(
            text: action ?? message.text, attachments: message.attachments, isEncrypted: message.isEncrypted,
            budget: budget, limits: limits, msgid: isFound ? nil : message.msgid
        ).map(\.text).filter { !$0.isEmpty }
        if isFound {
            var passage: String?
            if case .search(let search) = answer.question, let words = search.text {
                passage = ServiceReading.passage(of: action ?? message.text, holding: words, budget: budget)
            }
            bodies = (passage ?? bodies.first).map { [$0] } ?? []
        }
        if bodies.isEmpty { bodies = ["[empty message]"] }
        return bodies.map { head + $0 + tail }
    }

    /// A message with all that is known of it.
    private func whole(
        _ message: StoredMessage, _ msgid: String, from start: Int, in room: Room, _ session: IRCSession
    ) -> [String] {
        // The id of a topic or a kick stands for a place between messages.
        guard message.msgid == msgid else { return ["That is no message."] }
        let time = IRCServerTime.format(milliseconds: message.at.milliseconds)
        guard !message.isTakenBack else { return ["This message in \(room.channel), of \(time), was taken back."] }
        guard StoredMessage.Kind.ofWords.contains(message.kind) else { return ["\(time): \(message.text)"] }
        let isOurs = message.author != nil
        let action = isOurs ? MessageRendering.action(message.text) : nil
        let text = MessageRendering.cleanBody(action.map { "* \(message.nick) \($0)" } ?? message.text)
        let size = text.utf8.count
        let (body, next) = ServiceReading.page(of: text, from: start, budget: serviceBudget(for: session))
        var lines = [(message.kind == .change ? "In " : "\(message.nick) in ") + "\(room.channel), \(time):"]
        if message.isEncrypted, text.isEmpty { lines.append("[encrypted message]") }
        lines += body.filter { !$0.isEmpty }
        if let next {
            lines.append("… \(Self.counted(size - next, "more byte", "more bytes")): show \(msgid) \(next)")
        } else {
            if start >= size, start > 0 { lines.append("The message ends before that, after \(size) bytes.") }
            lines += MessageRendering.lines(
                of: message.attachments, budget: serviceBudget(for: session)
            ).map(\.text)
            if let target = message.replyTo { lines.append("It answers \(target).") }
        }
        return lines
    }
}

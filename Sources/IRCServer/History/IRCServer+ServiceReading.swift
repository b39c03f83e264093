import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms

// Answers of the service about the history.

extension IRCServer {
    /// Continues in the next room that may have the message; false: there is none.
    func looksElsewhere(_ answer: HistoryAnswer) -> Bool {
        guard case .show(let msgid, _)? = answer.reading?.kind, let next = answer.nextRoom() else { return false }
        answer.beginAgain(messageQuestion(msgid, in: next))
        return true
    }

    func messageQuestion(_ msgid: String, in room: RoomID) -> HistoryAnswer.Question {
        .page(
            room, subcommand: "AROUND", target: self.room(room)?.channel ?? "*",
            StoredPageQuery(.around(.message(msgid)), limit: 1, withTakenBack: true))
    }

    func serviceLines(about refusal: HistoryRefusal, _ session: IRCSession) -> [IRCMessage] {
        [serviceLine(refusal.text + ".", to: session)].compactMap { $0 }
    }

    /// A message in the service's form; no lines for a muted author.
    func serviceLines(of row: HistoryAnswer.Row, _ answer: HistoryAnswer, _ session: IRCSession) -> [IRCMessage] {
        guard case .room(let id) = row.place, let room = room(id), let reading = answer.reading else { return [] }
        let texts: [String]
        switch reading.kind {
        case .show(let msgid, let from):
            texts = whole(row.message, msgid, from: from, in: room, session)
            answer.told(row.message.msgid, isInList: false)
        case .history, .search:
            guard !isMuted(row.message, in: room, for: session) else {
                answer.leftOut()
                return []
            }
            texts = excerpt(row.message, in: room, answer, session)
            answer.told(row.message.msgid, isInList: true)
        }
        return texts.compactMap { serviceLine($0, to: session) }
    }

    /// The last lines of the answer.
    func serviceEnd(of answer: HistoryAnswer, _ session: IRCSession) -> [IRCMessage] {
        guard let reading = answer.reading else { return [] }
        var texts: [String] = []
        switch (reading.kind, answer.question) {
        case (.history(let limit), .page(let id, _, _, _)):
            let channel = room(id)?.channel ?? "*"
            if reading.shownCount == 0 {
                texts = ["Nothing that was said there is known here."]
            } else if reading.shownCount + reading.mutedCount >= limit, let msgid = reading.firstMsgid {
                let most = limit < settings.limits.historyLimit ? "" : "That is the most at once. "
                texts = [most + "For what was said before that: history \(channel) \(limit) before \(msgid)"]
            } else {
                texts = ["That is all that is known of \(channel)."]
            }
        case (.search, _):
            let count = reading.shownCount
            texts = [
                count == 0
                    ? "Nothing was found with the words as they stand."
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
    func excerpt(
        _ message: StoredMessage, in room: Room, _ answer: HistoryAnswer, _ session: IRCSession
    ) -> [String] {
        let isFound = answer.isSearch
        let stamp = "[\(ServiceReading.time(message.at, now: context.now.wall))] "
        guard StoredMessage.Kind.ofWords.contains(message.kind) else { return [stamp + message.text] }
        let action = MessageText.action(message.text)
        var speaker = action == nil ? "<\(message.nick)> " : "* \(message.nick) "
        // Its text names the author.
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

    /// A message with all its known attributes.
    func whole(
        _ message: StoredMessage, _ msgid: String, from start: Int, in room: Room, _ session: IRCSession
    ) -> [String] {
        // The id of a topic or a kick denotes a position between messages.
        guard message.msgid == msgid else { return ["That is no message."] }
        let time = IRCServerTime.format(milliseconds: message.at.milliseconds)
        guard !message.isTakenBack else { return ["This message in \(room.channel), of \(time), was taken back."] }
        guard StoredMessage.Kind.ofWords.contains(message.kind) else { return ["\(time): \(message.text)"] }
        let isOurs = message.author != nil
        let action = isOurs ? MessageText.action(message.text) : nil
        let text = MessageText.cleanBody(action.map { "* \(message.nick) \($0)" } ?? message.text)
        let size = text.utf8.count
        let (body, next) = ServiceReading.page(of: text, from: start, budget: serviceBudget(for: session))
        var lines = [(message.kind == .change ? "In " : "\(message.nick) in ") + "\(room.channel), \(time):"]
        if message.isEncrypted, text.isEmpty { lines.append("[encrypted message]") }
        lines += body.filter { !$0.isEmpty }
        if let next {
            lines.append("… \(Self.counted(size - next, "more byte", "more bytes")): show \(msgid) \(next)")
        } else {
            if start >= size, start > 0 { lines.append("The message ends before that, after \(size) bytes.") }
            lines += MessageRendering.lines(of: message.attachments, budget: serviceBudget(for: session)).map(\.text)
            if let target = message.replyTo { lines.append("It answers \(target).") }
        }
        return lines
    }
}

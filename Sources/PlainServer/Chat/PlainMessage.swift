import ChatModel
import IRCProtocol

/// A message, as people read it.
struct PlainMessage {
    let nick: String
    /// A room, or the person it is for.
    let place: String
    let id: String?
    /// As the server writes times.
    let stamp: String
    let at: ChatTimestamp
    let text: String
    /// `/me waves`.
    let isAction: Bool
    let isNotice: Bool
    /// The id of the message that it answers.
    let answered: String?

    /// Nil: nothing for people.
    init?(_ message: IRCMessage, now: ChatTimestamp) {
        guard let source = message.source, message.params.count > 1 else { return nil }
        nick = PlainNames.nick(of: source)
        place = message.params[0]
        id = message.tag("msgid")?.value
        stamp = message.tag("time")?.value ?? IRCServerTime.format(milliseconds: now.milliseconds)
        at = ChatTimestamp(milliseconds: IRCServerTime.parse(stamp) ?? now.milliseconds)
        isNotice = message.command == "NOTICE"
        answered = (message.tag("+reply") ?? message.tag("+draft/reply"))?.value
        isAction = message.params[1].hasPrefix("\u{1}")
        guard isAction else {
            text = message.params[1]
            return
        }
        let inner = message.params[1].dropFirst().prefix { $0 != "\u{1}" }
        // Other CTCP messages are for programs.
        guard inner.hasPrefix("ACTION ") else { return nil }
        text = String(inner.dropFirst(7))
    }

    /// What the screen shows, the lines of the text each in one of its own.
    ///
    /// - Parameters:
    ///   - time: of the day.
    ///   - isOwn: of the person's own.
    ///   - isFront: in the room in front; nil: in no room.
    ///   - original: the message that this answers, where it is known.
    func lines(time: String, isOwn: Bool, isFront: Bool?, original: PlainRoom.Message?) -> [ScreenText] {
        let style = isOwn ? ScreenText.Style.bold : .person(PlainNames.number(nick))
        var head = ScreenText(time + " ", .dim)
        if let isFront {
            if !isFront { head.append(place + " ", .dim) }
            head.append(isAction ? "* " : "<", isAction ? .plain : .dim)
            head.append(nick, style)
            head.append(isAction ? " " : isNotice ? "> (notice) " : "> ", isAction ? .plain : .dim)
        } else {
            head.append(isOwn ? "[→ \(place)] " : "[\(nick)] ", .bold)
            if isAction { head.append("* \(nick) ") }
        }
        if answered != nil {
            head.append(original.map { "(to \($0.nick): \"\(PlainNames.excerpt($0.text))\") " } ?? "(an answer) ", .dim)
        }
        return text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().map { index, line in
            (index == 0 ? head : ScreenText("      ", .dim)).appending(String(line))
        }
    }
}

import BridgeTypes
import ChatModel
import IRCProtocol
import WireBytes

// What is said, in both directions, as people read it.

extension PlainSession {
    private static let quietGap: Int64 = 5 * 60 * 1000
    /// Of the text in one line to the server, with room for its command and the room's name.
    private static let maxLineBytes = 380

    // MARK: - Out

    func speak(_ text: String, tags: [IRCTag] = []) {
        guard let current, !text.trimming.isEmpty else { return }
        speak(text, to: current, tags: tags)
    }

    func speak(_ text: String, to target: String, tags: [IRCTag] = [], isAction: Bool = false) {
        lastLabel += 1
        let label = "p\(lastLabel)"
        pending.append((label, text, now.monotonic))
        var tags = tags
        tags.append(IRCTag("label", label))
        let pieces = IRCTextSplitter.split(text, budget: Self.maxLineBytes)
        guard pieces.count > 1, !isAction, enabled.contains("draft/multiline") else {
            let text = isAction ? "\u{1}ACTION \(text)\u{1}" : text
            return say(IRCMessage(tags: tags, command: "PRIVMSG", params: [target, text]))
        }
        say(IRCMessage(tags: tags, command: "BATCH", params: ["+" + label, "draft/multiline", target]))
        for (index, piece) in pieces.enumerated() {
            var tags = [IRCTag("batch", label)]
            if index > 0 { tags.append(IRCTag("draft/multiline-concat")) }
            say(IRCMessage(tags: tags, command: "PRIVMSG", params: [target, piece]))
        }
        say("BATCH", "-" + label)
    }

    func request(_ verb: String, _ params: [String]) {
        lastLabel += 1
        let label = "p\(lastLabel)"
        requests.insert(label)
        say(IRCMessage(tags: [IRCTag("label", label)], command: verb, params: params))
    }

    // MARK: - In

    func said(_ message: IRCMessage) {
        guard let source = message.source, message.params.count > 1 else { return }
        let label = message.tag("label")?.value
        let isConfirmed = label.flatMap { label in pending.firstIndex { $0.label == label } }
        if let isConfirmed { pending.remove(at: isConfirmed) }
        guard source.contains("!") else { return told(message) }
        show(message, isTyped: isConfirmed != nil, isHistory: false)
    }

    /// A notice of the server.
    private func told(_ message: IRCMessage) {
        var text = message.params[1]
        if text.hasPrefix("*** ") { text.removeFirst(4) }
        let place = message.params[0]
        let isElsewhere = place.hasPrefix("#") && !(current.map { PlainNames.areSame($0, place) } ?? true)
        line(ScreenText((isElsewhere ? place + " " : "") + "* " + text, .dim))
    }

    /// - Parameter isTyped: the person's own words, which a terminal in line mode shows already.
    private func show(_ message: IRCMessage, isTyped: Bool, isHistory: Bool) {
        guard let source = message.source, message.params.count > 1 else { return }
        let who = nick(of: source)
        let isOwn = isOwn(who)
        let place = message.params[0]
        let stamp = message.tag("time")?.value ?? IRCServerTime.format(milliseconds: now.wall.milliseconds)
        let at = ChatTimestamp(milliseconds: IRCServerTime.parse(stamp) ?? now.wall.milliseconds)
        var words = message.params[1]
        var isAction = false
        if words.hasPrefix("\u{1}") {
            let inner = words.dropFirst().prefix { $0 != "\u{1}" }
            // Other CTCP messages are for programs.
            guard inner.hasPrefix("ACTION ") else { return }
            (words, isAction) = (String(inner.dropFirst(7)), true)
        }
        let id = message.tag("msgid")?.value
        let answered = (message.tag("+reply") ?? message.tag("+draft/reply"))?.value
        let room = index(of: place)
        var text = ScreenText()
        if let room {
            let isFront = front == room
            if !isFront {
                if !isHistory { rooms[room].unread += 1 }
                text.append(place + " ", .dim)
            }
            rooms[room].stopTyping(who)
            rooms[room].enter(who)
            if rooms[room].oldest == nil || (isHistory && stamp < rooms[room].oldest?.time ?? "") {
                rooms[room].oldest = (id, stamp)
            }
            if stamp > rooms[room].newest ?? "" { rooms[room].newest = stamp }
            if isOwn, !isHistory { quietNews = nil }
            if isAction {
                text.append("* ")
                text.append(who, style(of: who))
                text.append(" ")
            } else {
                text.append("<", .dim)
                text.append(who, style(of: who))
                text.append(message.command == "NOTICE" ? "> (notice) " : "> ", .dim)
            }
        } else {
            text.append(isOwn ? "[→ \(place)] " : "[\(who)] ", .bold)
            if isAction { text.append("* \(who) ") }
        }
        if let answered {
            let original = room.flatMap { rooms[$0].message(answered) }
            text.append(original.map { "(to \($0.nick): \"\(PlainNames.excerpt($0.text))\") " } ?? "(an answer) ", .dim)
        }
        let lines = words.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        if let room, let id {
            rooms[room].remember(PlainRoom.Message(id: id, nick: who, text: words), isOwn: isOwn && !isHistory)
        }
        if isTyped, screen.mode == .lines {
            shown = (at, LocalTime(at, offset: settings.offset(at)))
            return
        }
        let time = divide(at)
        for (index, part) in lines.enumerated() {
            var whole = ScreenText(index == 0 ? time + " " : "      ", .dim)
            if index == 0 { for piece in text.pieces { whole.append(piece.text, piece.style) } }
            whole.append(part)
            line(whole)
        }
        if !isHistory || room == front { planMark() }
    }

    private func style(of nick: String) -> ScreenText.Style {
        isOwn(nick)
            ? .bold : .person(nick.lowercased().unicodeScalars.reduce(0) { ($0 &* 31 &+ Int($1.value)) & 0xFFFF })
    }

    /// A divider where a day or some quiet minutes have passed; the time of the line.
    private func divide(_ at: ChatTimestamp) -> String {
        let time = LocalTime(at, offset: settings.offset(at))
        if let shown {
            if shown.time.date != time.date {
                line(ScreenText("──── \(time.day) ────", .dim))
            } else if at.milliseconds - shown.at.milliseconds > Self.quietGap {
                line(ScreenText("──── \(time.time) ────", .dim))
            }
        } else if time.date != LocalTime(now.wall, offset: settings.offset(now.wall)).date {
            line(ScreenText("──── \(time.day) ────", .dim))
        }
        shown = (at, time)
        return time.time
    }

    /// Shows a line, with news that waited for one.
    func line(_ text: ScreenText) {
        if let news = quietNews {
            quietNews = nil
            screen.show(news)
        }
        screen.show(text)
    }

    /// About a room, where it is in front.
    func news(_ text: String, in place: String?) {
        guard let place, let current, PlainNames.areSame(place, current) else { return }
        line(ScreenText(text, .dim))
    }

    // MARK: - About messages

    func passed(_ message: IRCMessage) {
        guard let source = message.source, let place = message.params.first else { return }
        let who = nick(of: source)
        guard let room = index(of: place) else { return }
        if let state = (message.tag("+typing") ?? message.tag("+draft/typing"))?.value, !isOwn(who) {
            if state == "active" {
                rooms[room].type(who, until: now.monotonic + Self.typingLasts)
            } else {
                rooms[room].stopTyping(who)
            }
        }
        let read = message.tag("+draft/read")?.value
        if let id = read ?? message.tag("+draft/delivered")?.value,
            rooms[room].receipt(of: id, by: who, isRead: read != nil), read != nil,
            screen.mode == .lines || !screen.abilities.hasCursor
        {
            quietNews = Self.tick(rooms[room].receipts).map { ScreenText($0, .dim) }
        }
        let added = message.tag("+draft/react")?.value
        if let emoji = added ?? message.tag("+draft/unreact")?.value,
            let id = (message.tag("+reply") ?? message.tag("+draft/reply"))?.value
        {
            let original = rooms[room].message(id)
            let what = original.map {
                "\(PlainNames.areSame($0.nick, nick) ? "your" : $0.nick + "'s") \"\(PlainNames.excerpt($0.text))\""
            }
            let who = isOwn(who) ? "You" : who
            news(
                "\(who) \(added == nil ? "took back" : "reacted") \(emoji) \(added == nil ? "from" : "to") \(what ?? "a message")",
                in: place)
        }
    }

    func tookBack(_ message: IRCMessage) {
        guard let source = message.source, message.params.count > 1 else { return }
        let original = index(of: message.params[0]).flatMap { rooms[$0].message(message.params[1]) }
        let what = original.map { ": \"\(PlainNames.excerpt($0.text))\"" } ?? ""
        news("\(nick(of: source)) took back a message\(what)", in: message.params[0])
    }

    // MARK: - Said before

    func showHistory(_ batch: IRCBatches.Batch) {
        let label = batch.head.tag("label")?.value
        let isAsked = label.flatMap { requests.remove($0) } != nil
        let lines = batch.lines.filter { $0.command == "PRIVMSG" || $0.command == "NOTICE" }
        if isAsked {
            guard !lines.isEmpty else { return line(ScreenText("Nothing was said before that.", .dim)) }
            line(ScreenText("── earlier ──", .dim))
            shown = nil
        }
        for message in lines { show(message, isTyped: false, isHistory: true) }
        if isAsked {
            line(ScreenText("── now ──", .dim))
            shown = nil
        }
    }

    func showFound(_ batch: IRCBatches.Batch) {
        if let label = batch.head.tag("label")?.value { requests.remove(label) }
        let lines = batch.lines.filter { $0.command == "PRIVMSG" || $0.command == "NOTICE" }
        guard !lines.isEmpty else { return line(ScreenText("Nothing was found.", .dim)) }
        for message in lines {
            guard let source = message.source, message.params.count > 1 else { continue }
            let at = ChatTimestamp(milliseconds: message.tag("time")?.value.flatMap(IRCServerTime.parse) ?? 0)
            let time = LocalTime(at, offset: settings.offset(at))
            line(
                ScreenText("\(time.date) \(time.time) ", .dim).appending("<\(nick(of: source))> ")
                    .appending(message.params[1]))
        }
        line(ScreenText("\(lines.count) found.", .dim))
    }
}

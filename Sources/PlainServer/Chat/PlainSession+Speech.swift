import BridgeTypes
import ChatModel
import IRCProtocol
import WireBytes

// What is said and done in a room, in both directions, as people read it.

extension PlainSession {
    /// Of the text in one line to the server, with room for its command and the room's name.
    private static let maxLineBytes = 380

    // MARK: - Out

    func speak(_ text: String, tags: [IRCTag] = []) {
        guard let current = rooms.current, !text.trimming.isEmpty else { return }
        speak(text, to: current, tags: tags)
    }

    func speak(_ text: String, to target: String, tags: [IRCTag] = [], isAction: Bool = false) {
        let label = sent.message(text, now: now.monotonic)
        var tags = tags
        tags.append(IRCTag("label", label))
        let pieces = IRCTextSplitter.split(text, budget: Self.maxLineBytes)
        guard pieces.count > 1, !isAction, registration.hasEnabled("draft/multiline") else {
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

    /// Others see typing where the keys are seen by us.
    func noteTyping() {
        guard registration.hasEnabled("message-tags") else { return }
        guard terminal.isTypingMessage else { return stopTyping() }
        if presence.types(now: now.monotonic) { sayTyping("active") }
    }

    func stopTyping() { if presence.stopsTyping() { sayTyping("done") } }

    private func sayTyping(_ state: String) {
        guard let current = rooms.current else { return }
        say(IRCMessage(tags: [IRCTag("+typing", state)], command: "TAGMSG", params: [current]))
    }

    /// Has what is on the screen marked as read, while the person is there.
    func planMark() {
        guard rooms.front?.unmarked != nil, registration.hasEnabled("draft/read-marker") else { return }
        presence.planMark(now: now.monotonic)
    }

    func mark() {
        guard let front = rooms.front, let time = front.unmarked else { return }
        rooms.update(front.name) { $0.mark(time) }
        say("MARKREAD", front.name, "timestamp=" + time)
    }

    // MARK: - In

    func said(_ message: IRCMessage) {
        guard let source = message.source, message.params.count > 1 else { return }
        let isConfirmed = sent.takeMessage(message.tag("label")?.value) != nil
        if source.contains("!") { show(message, isTyped: isConfirmed) } else { told(message) }
    }

    /// A notice of the server.
    private func told(_ message: IRCMessage) {
        var text = message.params[1]
        if text.hasPrefix("*** ") { text.removeFirst(4) }
        let place = message.params[0]
        let isElsewhere = place.hasPrefix("#") && rooms.current != nil && !rooms.isInFront(place)
        terminal.show(ScreenText((isElsewhere ? place + " " : "") + "* " + text, .dim))
    }

    /// - Parameters:
    ///   - isTyped: the person's own words, which a terminal in line mode shows already.
    ///   - isHistory: said before.
    private func show(_ message: IRCMessage, isTyped: Bool = false, isHistory: Bool = false) {
        guard let said = PlainMessage(message, now: now.wall) else { return }
        let isOwn = registration.isOwn(said.nick)
        let room = rooms[said.place]
        let isFront = room.map { rooms.isInFront($0.name) }
        if let room {
            if isFront == false, !isHistory { rooms.update(room.name) { $0.countUnread() } }
            if isOwn, !isHistory { terminal.hold(nil) }
            rooms.update(room.name) { $0.said(said, isOwn: isOwn && !isHistory, isHistory: isHistory) }
        }
        if isTyped, terminal.showsOwnLines { return dividers.shown(said.at) }
        if let divider = dividers.divider(before: said.at, now: now.wall) { terminal.show(divider) }
        dividers.shown(said.at)
        let original = said.answered.flatMap { room?.message($0) }
        let time = dividers.time(said.at).time
        for line in said.lines(time: time, isOwn: isOwn, isFront: isFront, original: original) { terminal.show(line) }
        if !isHistory || isFront == true { planMark() }
    }

    /// About a room, where it is in front.
    func news(_ text: String, in place: String?) {
        if let place, rooms.isInFront(place) { terminal.show(ScreenText(text, .dim)) }
    }

    // MARK: - About messages

    /// A line of tags only: typing, receipts, reactions.
    func tagged(_ message: IRCMessage) {
        guard let source = message.source, let place = message.params.first, rooms[place] != nil else { return }
        let who = PlainNames.nick(of: source)
        if let state = (message.tag("+typing") ?? message.tag("+draft/typing"))?.value, !registration.isOwn(who) {
            rooms.update(place) {
                if state == "active" {
                    $0.type(who, until: now.monotonic + PlainPresence.typingLasts)
                } else {
                    $0.stopTyping(who)
                }
            }
        }
        let read = message.tag("+draft/read")?.value
        if let id = read ?? message.tag("+draft/delivered")?.value {
            var isNews = false
            rooms.update(place) { isNews = $0.receipt(of: id, by: who, isRead: read != nil) }
            if isNews, read != nil { terminal.hold(rooms[place]?.tick.map { ScreenText($0, .dim) }) }
        }
        let added = message.tag("+draft/react")?.value
        if let emoji = added ?? message.tag("+draft/unreact")?.value,
            let id = (message.tag("+reply") ?? message.tag("+draft/reply"))?.value
        {
            let what = rooms[place]?.message(id).map {
                "\(registration.isOwn($0.nick) ? "your" : $0.nick + "'s") \"\(PlainNames.excerpt($0.text))\""
            }
            let who = registration.isOwn(who) ? "You" : who
            news(
                "\(who) \(added == nil ? "took back" : "reacted") \(emoji) \(added == nil ? "from" : "to") \(what ?? "a message")",
                in: place)
        }
    }

    func tookBack(_ message: IRCMessage) {
        guard let source = message.source, message.params.count > 1 else { return }
        let original = rooms[message.params[0]]?.message(message.params[1])
        let what = original.map { ": \"\(PlainNames.excerpt($0.text))\"" } ?? ""
        news("\(PlainNames.nick(of: source)) took back a message\(what)", in: message.params[0])
    }

    // MARK: - Said before

    func showHistory(_ batch: IRCBatches.Batch) {
        let isAsked = sent.takeRequest(batch.head.tag("label")?.value)
        let lines = batch.lines.filter { $0.command == "PRIVMSG" || $0.command == "NOTICE" }
        if isAsked {
            guard !lines.isEmpty else { return terminal.show(ScreenText("Nothing was said before that.", .dim)) }
            terminal.show(ScreenText("── earlier ──", .dim))
            dividers.restart()
        }
        for message in lines { show(message, isHistory: true) }
        if isAsked {
            terminal.show(ScreenText("── now ──", .dim))
            dividers.restart()
        }
    }

    func showFound(_ batch: IRCBatches.Batch) {
        _ = sent.takeRequest(batch.head.tag("label")?.value)
        let found = batch.lines.compactMap { PlainMessage($0, now: now.wall) }
        guard !found.isEmpty else { return terminal.show(ScreenText("Nothing was found.", .dim)) }
        for message in found {
            let time = dividers.time(message.at)
            let name = message.isAction ? "* \(message.nick) " : "<\(message.nick)> "
            terminal.show(ScreenText("\(time.date) \(time.time) ", .dim).appending(name).appending(message.text))
        }
        terminal.show(ScreenText("\(found.count) found.", .dim))
    }

    // MARK: - The moment

    /// For the row above the line being typed.
    var momentText: ScreenText {
        guard state == .chatting, rooms.state == .inFront, let front = rooms.front else { return ScreenText() }
        var words: [String] = []
        if sent.isSlow(now: now.monotonic) {
            let count = sent.messageCount
            words.append(count == 1 ? "… sending" : "… sending \(count) messages")
        } else if let tick = front.tick {
            words.append(tick)
        }
        let typing = front.typing.map(\.nick)
        if !typing.isEmpty {
            words.append("… \(PlainNames.list(typing)) \(typing.count == 1 ? "is" : "are") typing")
        }
        let elsewhere = rooms.all.filter { $0.unread > 0 }.map { "\($0.name) \($0.unread)" }
        if !elsewhere.isEmpty { words.append("new: " + elsewhere.joined(separator: ", ")) }
        return ScreenText(words.joined(separator: "   "), .dim)
    }
}

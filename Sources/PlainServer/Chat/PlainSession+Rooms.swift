import BridgeTypes
import ChatModel
import IRCProtocol
import WireBytes

// The rooms of the person, and which is in front.

extension PlainSession {
    func index(of name: String) -> Int? { rooms.firstIndex { PlainNames.areSame($0.name, name) } }

    var front: Int? { current.flatMap(index) }

    func with(_ name: String, _ change: (inout PlainRoom) -> Void) {
        if let index = index(of: name) { change(&rooms[index]) }
    }

    /// A room's name as the person writes it, with or without `#`.
    func roomName(_ word: some StringProtocol) -> String { word.hasPrefix("#") ? String(word) : "#" + word }

    func choose(_ line: String) {
        let word = line.trimming
        let wanted = word.isEmpty ? listed.first ?? "" : roomName(word.split(separator: " ").first ?? "")
        guard !wanted.isEmpty else { return askRoom() }
        join(wanted)
    }

    func join(_ name: String) {
        if let index = index(of: name) { return bringToFront(index) }
        joining = name
        state = .joining
        say("JOIN", name)
    }

    func entered(_ name: String) {
        if index(of: name) == nil { rooms.append(PlainRoom(name)) }
        guard let index = index(of: name) else { return }
        rooms[index].forgetMembers()
        rooms[index].enter(nick)
        let isAnswer = joining.map { PlainNames.areSame($0, name) } ?? false
        if isAnswer { joining = nil }
        // While the list of rooms is on its way, a room of the account is a beginning.
        if isAnswer || current == nil { bringToFront(index) }
        if isAnswer || state == .choosing { state = .chatting }
    }

    func bringToFront(_ index: Int) {
        stopTyping()
        current = rooms[index].name
        rooms[index].unread = 0
        screen.isSecret = false
        screen.prompt = "\(rooms[index].name)> "
        var text = ScreenText("── ", .dim)
        text.append(rooms[index].name, .bold)
        text.append(" ──", .dim)
        line(text)
        shown = nil
        if state == .joining, joining == nil, !listed.isEmpty { state = .chatting }
        planMark()
    }

    func leftRoom(_ index: Int) {
        let name = rooms.remove(at: index).name
        guard let current, PlainNames.areSame(current, name) else { return }
        self.current = nil
        if rooms.isEmpty { return askRoom() }
        bringToFront(rooms.count - 1)
    }

    // MARK: - Typing

    /// A key was pressed.
    func noteTyping() {
        let isMessage = !editor.isEmpty && (!editor.text.hasPrefix("/") || editor.text.hasPrefix("/me "))
        guard state == .chatting, screen.mode == .characters, enabled.contains("message-tags") else { return }
        guard isMessage else { return stopTyping() }
        typedAt = now.monotonic
        if let typingSentAt, now.monotonic - typingSentAt < Self.typingInterval { return }
        typingSentAt = now.monotonic
        sayTyping("active")
    }

    func stopTyping() {
        typedAt = nil
        guard typingSentAt != nil else { return }
        typingSentAt = nil
        sayTyping("done")
    }

    private func sayTyping(_ state: String) {
        guard let current else { return }
        say(IRCMessage(tags: [IRCTag("+typing", state)], command: "TAGMSG", params: [current]))
    }

    // MARK: - Reading

    /// Has what is on the screen marked as read, while somebody sits there.
    func planMark() {
        guard let front, rooms[front].newest != nil, rooms[front].newest != rooms[front].marked, markAt == nil,
            now.monotonic - activeAt < Self.activity, enabled.contains("draft/read-marker")
        else { return }
        markAt = now.monotonic + Self.markDelay
    }

    func mark() {
        markAt = nil
        guard let front, let newest = rooms[front].newest, newest != rooms[front].marked else { return }
        rooms[front].marked = newest
        say("MARKREAD", rooms[front].name, "timestamp=" + newest)
    }

    func markerMoved(_ params: [String]) {
        guard params.count > 1, params[1].hasPrefix("timestamp=") else { return }
        let time = String(params[1].dropFirst("timestamp=".count))
        with(params[0]) { if time >= $0.marked ?? "" { $0.marked = time } }
    }

    // MARK: - The moment

    func refreshStatus() {
        screen.status = ScreenText(momentWords.joined(separator: "   "), .dim)
    }

    private var momentWords: [String] {
        guard state == .chatting, let front else { return [] }
        var words: [String] = []
        if let first = pending.first, now.monotonic - first.at >= Self.sendingPatience {
            words.append(pending.count == 1 ? "… sending" : "… sending \(pending.count) messages")
        } else if let tick = Self.tick(rooms[front].receipts) {
            words.append(tick)
        }
        let typing = rooms[front].typing.map(\.nick)
        if !typing.isEmpty {
            words.append("… \(PlainNames.list(typing)) \(typing.count == 1 ? "is" : "are") typing")
        }
        let elsewhere = rooms.filter { $0.unread > 0 }.map { "\($0.name) \($0.unread)" }
        if !elsewhere.isEmpty { words.append("new: " + elsewhere.joined(separator: ", ")) }
        return words
    }

    static func tick(_ receipts: PlainRoom.Receipts) -> String? {
        if !receipts.read.isEmpty { return "✓✓ read by \(PlainNames.list(receipts.read))" }
        if !receipts.delivered.isEmpty { return "✓✓ delivered to \(PlainNames.list(receipts.delivered))" }
        return receipts.id == nil ? nil : "✓ sent"
    }
}

extension StringProtocol {
    /// Without white space at both ends.
    var trimming: String {
        let start = drop(while: \.isWhitespace)
        guard let last = start.lastIndex(where: { !$0.isWhitespace }) else { return "" }
        return String(start[...last])
    }
}

import BridgeTypes
import IRCProtocol

// What the commands that a person types do, and the Tab key.

extension PlainSession {
    private static let historyCount = 20
    private static let maxHistoryCount = 100

    func command(_ line: String) {
        let words = line.dropFirst().split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        // Two slashes say one.
        if line.hasPrefix("//") { return speak(String(line.dropFirst())) }
        let name = words.first.map { $0.lowercased() } ?? ""
        guard let row = PlainCommand.all.first(where: { $0.name == name }) else {
            let near = NearestName.suggestion(for: name, among: PlainCommand.all.map(\.name))
            let hint = near.map { " Did you mean /\($0)?" } ?? " /help lists what there is."
            return terminal.show(ScreenText("There is no /\(name).\(hint)", .failure))
        }
        row.run(self, words.count > 1 ? words[1].trimming : "")
        // A question stays open until it is answered.
        if state == .chatting, rooms.state == .choosing { askRoom() }
    }

    private func complain(_ text: String) { terminal.show(ScreenText(text, .failure)) }

    private func inRoom() -> String? {
        if rooms.current == nil { complain("You are in no room; /join ROOM enters one.") }
        return rooms.current
    }

    // MARK: - Rooms

    func askRoom() { terminal.ask("Which room\(rooms.listed.first.map { " [\($0)]" } ?? "")? ") }

    /// The answer to that.
    func choose(_ line: String) {
        let words = line.split(whereSeparator: \.isWhitespace)
        guard let word = words.first.map(String.init) ?? rooms.listed.first else { return askRoom() }
        // Of a password that was typed ahead for an account that is none, no room is made, and nothing is said.
        guard word.hasPrefix("#") || rooms.isListed(PlainRooms.name(word)) else {
            refuse("There is no such room in the list; the name of another one begins with #.")
            return askRoom()
        }
        join(PlainRooms.name(word))
    }

    private func join(_ name: String) {
        if let room = rooms[name] { return bringToFront(room.name) }
        rooms.beginJoining(name)
        say("JOIN", name)
    }

    func bringToFront(_ name: String) {
        stopTyping()
        rooms.bringToFront(name)
        guard let name = rooms.current else { return }
        terminal.talk(in: name)
        var text = ScreenText("── ", .dim)
        text.append(name, .bold)
        text.append(" ──", .dim)
        terminal.show(text)
        dividers.restart()
        planMark()
    }

    func joinCommand(_ rest: String) {
        guard let word = rest.split(separator: " ").first else { return complain("Which room? /rooms lists them.") }
        join(PlainRooms.name(word))
    }

    func partCommand(_ rest: String) {
        guard let room = rest.isEmpty ? inRoom() : PlainRooms.name(rest) else { return }
        say("PART", room)
    }

    func roomsCommand(_ rest: String) {
        rooms.beginListing()
        say("LIST")
    }

    func whoCommand(_ rest: String) {
        guard let room = inRoom() else { return }
        // Its answer accepts what was typed before.
        say("PING", room)
    }

    /// The server has taken what came before a PING for a room.
    func taken(_ token: String) {
        guard rooms[token] != nil else { return }
        rooms.askMembers(of: token)
        say("NAMES", token)
    }

    // MARK: - Messages

    func meCommand(_ rest: String) {
        guard let room = inRoom() else { return }
        guard !rest.isEmpty else { return complain("What do you do? /me waves") }
        speak(rest, to: room, isAction: true)
    }

    func replyCommand(_ rest: String) {
        guard inRoom() != nil, let front = rooms.front else { return }
        let words = rest.split(separator: " ", maxSplits: 1)
        guard !words.isEmpty else { return complain("What do you answer? /reply TEXT") }
        var text = rest
        var original = front.newest(by: nil, but: registration.nick)
        if words.count > 1, let named = front.newest(by: String(words[0].drop { $0 == "@" }), but: registration.nick) {
            (original, text) = (named, String(words[1]))
        }
        guard let original else { return complain("There is nothing to answer yet.") }
        speak(text, tags: [IRCTag("+reply", original.id), IRCTag("+draft/reply", original.id)])
    }

    func reactCommand(_ rest: String) {
        guard let room = inRoom(), let front = rooms.front else { return }
        let words = rest.split(separator: " ", maxSplits: 1)
        guard let emoji = words.first else { return complain("With what? /react 👍") }
        guard let original = front.newest(by: words.count > 1 ? String(words[1]) : nil, but: registration.nick) else {
            return complain("There is nothing to react to yet.")
        }
        say(
            IRCMessage(
                tags: [
                    IRCTag("+reply", original.id), IRCTag("+draft/reply", original.id),
                    IRCTag("+draft/react", String(emoji)),
                ], command: "TAGMSG", params: [room]))
    }

    func msgCommand(_ rest: String) {
        let words = rest.split(separator: " ", maxSplits: 1)
        guard words.count > 1 else { return complain("To whom, and what? /msg NAME TEXT") }
        speak(String(words[1]), to: String(words[0]))
    }

    func historyCommand(_ rest: String) {
        guard let room = inRoom(), let front = rooms.front else { return }
        guard rest.isEmpty || Int(rest) != nil else { return complain("How many messages? /history 50") }
        let count = min(max(Int(rest) ?? Self.historyCount, 1), Self.maxHistoryCount)
        let reference = front.oldest.map { oldest in
            oldest.id.map { "msgid=" + $0 } ?? "timestamp=" + oldest.time
        }
        if let reference {
            request("CHATHISTORY", ["BEFORE", room, reference, String(count)])
        } else {
            request("CHATHISTORY", ["LATEST", room, "*", String(count)])
        }
    }

    func searchCommand(_ rest: String) {
        guard let room = inRoom() else { return }
        guard !rest.isEmpty else { return complain("For what? /search TEXT") }
        // Source: IRCv3 message-tags, "Escaping values", which SEARCH uses.
        let escaped = rest.replacing("\\", with: "\\\\").replacing(";", with: "\\:").replacing(" ", with: "\\s")
        request("SEARCH", ["in=\(room);text=\(escaped)"])
    }

    private func request(_ verb: String, _ params: [String]) {
        say(IRCMessage(tags: [IRCTag("label", sent.request())], command: verb, params: params))
    }

    // MARK: - Others

    func nickCommand(_ rest: String) {
        guard let word = rest.split(separator: " ").first else { return complain("What do you want to be called?") }
        say("NICK", String(word))
    }

    func helpCommand(_ rest: String) {
        for row in PlainCommand.all {
            let call = "/\(row.name)\(row.takes.isEmpty ? "" : " " + row.takes)"
            terminal.show(
                ScreenText("  " + call + String(repeating: " ", count: max(2, 22 - call.count)), .bold)
                    .appending(row.summary))
        }
        terminal.show(ScreenText("Everything else is said in the room; // begins a message with a slash.", .dim))
        if !terminal.showsOwnLines {
            terminal.show(
                ScreenText("Tab completes names, the arrows bring back what you typed, Ctrl-C clears the line.", .dim))
        }
    }

    // MARK: - The Tab key

    func complete() {
        let (word, before) = terminal.wordAtCursor
        guard !word.isEmpty || rooms.state == .choosing else { return }
        let isFirst = before.isEmpty
        let found: [String]
        let end: String
        if rooms.state == .choosing || before.hasPrefix("/join ") {
            found = Self.matches(PlainRooms.name(word), rooms.listed + rooms.all.map(\.name))
            end = ""
        } else if isFirst, word.hasPrefix("/") {
            found = Self.matches(word, PlainCommand.all.map { "/" + $0.name })
            end = " "
        } else {
            let isAt = word.hasPrefix("@")
            let people = (rooms.front?.members ?? []).filter { !registration.isOwn($0) }
            found = Self.matches(word, people.map { isAt ? "@" + $0 : $0 })
            end = isFirst ? ": " : " "
        }
        guard let first = found.first else { return terminal.beep() }
        if found.count == 1 { return terminal.replaceWord(by: first + end) }
        let common = found.dropFirst().reduce(first) { common, name in
            String(zip(common, name).prefix { $0.lowercased() == $1.lowercased() }.map(\.0))
        }
        if common.count > word.count { return terminal.replaceWord(by: common) }
        terminal.show(ScreenText(found.prefix(30).joined(separator: "  "), .dim))
    }

    private static func matches(_ word: String, _ names: [String]) -> [String] {
        let typed = word.lowercased()
        return Set(names.filter { $0.lowercased().hasPrefix(typed) }).sorted()
    }
}

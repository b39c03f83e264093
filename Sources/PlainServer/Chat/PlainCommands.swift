import BridgeTypes
import IRCProtocol

/// A command that a person types: one row with what it takes, what it does, and its handler.
struct PlainCommand: Sendable {
    let name: String
    let takes: String
    let summary: String
    let run: @Sendable (PlainSession, String) -> Void

    static let all: [PlainCommand] = [
        PlainCommand(name: "join", takes: "ROOM", summary: "enter a room, or bring it to the front") {
            $0.joinCommand($1)
        },
        PlainCommand(name: "part", takes: "", summary: "leave the room in front") { $0.partCommand($1) },
        PlainCommand(name: "rooms", takes: "", summary: "which rooms there are") { $0.roomsCommand($1) },
        PlainCommand(name: "who", takes: "", summary: "who is in the room") { $0.whoCommand($1) },
        PlainCommand(name: "me", takes: "TEXT", summary: "say what you do") { $0.meCommand($1) },
        PlainCommand(name: "reply", takes: "[NAME] TEXT", summary: "answer the newest message, or that of somebody") {
            $0.replyCommand($1)
        },
        PlainCommand(name: "react", takes: "EMOJI [NAME]", summary: "react to it") { $0.reactCommand($1) },
        PlainCommand(name: "msg", takes: "NAME TEXT", summary: "say something to one person") { $0.msgCommand($1) },
        PlainCommand(name: "history", takes: "[COUNT]", summary: "what was said before") { $0.historyCommand($1) },
        PlainCommand(name: "search", takes: "WORDS", summary: "look for something that was said") {
            $0.searchCommand($1)
        },
        PlainCommand(name: "nick", takes: "NAME", summary: "be called otherwise") { $0.nickCommand($1) },
        PlainCommand(name: "help", takes: "", summary: "this list") { $0.helpCommand($1) },
        PlainCommand(name: "quit", takes: "[TEXT]", summary: "leave the chat") { $0.quit($1) },
    ]
}

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
            return self.line(ScreenText("There is no /\(name).\(hint)", .failure))
        }
        row.run(self, words.count > 1 ? words[1].trimming : "")
        // A question stays open until it is answered.
        if state == .choosing { askRoom() }
    }

    private func complain(_ text: String) { line(ScreenText(text, .failure)) }

    private func inRoom() -> String? {
        if current == nil { complain("You are in no room; /join ROOM enters one.") }
        return current
    }

    func joinCommand(_ rest: String) {
        guard let word = rest.split(separator: " ").first else { return complain("Which room? /rooms lists them.") }
        join(roomName(word))
    }

    func partCommand(_ rest: String) {
        guard let room = rest.isEmpty ? inRoom() : roomName(rest) else { return }
        say("PART", room)
    }

    func roomsCommand(_ rest: String) {
        listed = []
        joining = nil
        let before = state
        state = .joining
        say("LIST")
        if before == .choosing { current = nil }
    }

    func whoCommand(_ rest: String) {
        guard let room = inRoom() else { return }
        namesAsked.insert(room)
        with(room) { $0.forgetMembers() }
        say("NAMES", room)
    }

    func meCommand(_ rest: String) {
        guard let room = inRoom() else { return }
        guard !rest.isEmpty else { return complain("What do you do? /me waves") }
        speak(rest, to: room, isAction: true)
    }

    func replyCommand(_ rest: String) {
        guard inRoom() != nil, let front else { return }
        let words = rest.split(separator: " ", maxSplits: 1)
        guard !words.isEmpty else { return complain("What do you answer? /reply TEXT") }
        var text = rest
        var original = rooms[front].newest(by: nil, but: nick)
        if words.count > 1, let named = rooms[front].newest(by: String(words[0].drop { $0 == "@" }), but: nick) {
            (original, text) = (named, String(words[1]))
        }
        guard let original else { return complain("There is nothing to answer yet.") }
        speak(text, tags: [IRCTag("+reply", original.id), IRCTag("+draft/reply", original.id)])
    }

    func reactCommand(_ rest: String) {
        guard let room = inRoom(), let front else { return }
        let words = rest.split(separator: " ", maxSplits: 1)
        guard let emoji = words.first else { return complain("With what? /react 👍") }
        guard let original = rooms[front].newest(by: words.count > 1 ? String(words[1]) : nil, but: nick) else {
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
        guard let room = inRoom(), let front else { return }
        guard rest.isEmpty || Int(rest) != nil else { return complain("How many messages? /history 50") }
        let count = min(max(Int(rest) ?? Self.historyCount, 1), Self.maxHistoryCount)
        let reference = rooms[front].oldest.map { oldest in
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
        guard !rest.isEmpty else { return complain("For what? /search WORDS") }
        // Source: IRCv3 message-tags, "Escaping values", which SEARCH uses.
        let escaped = rest.replacing("\\", with: "\\\\").replacing(";", with: "\\:").replacing(" ", with: "\\s")
        request("SEARCH", ["in=\(room);text=\(escaped)"])
    }

    func nickCommand(_ rest: String) {
        guard let word = rest.split(separator: " ").first else { return complain("What do you want to be called?") }
        say("NICK", String(word))
    }

    func helpCommand(_ rest: String) {
        for row in PlainCommand.all {
            let call = "/\(row.name)\(row.takes.isEmpty ? "" : " " + row.takes)"
            line(
                ScreenText("  " + call + String(repeating: " ", count: max(2, 22 - call.count)), .bold)
                    .appending(row.summary))
        }
        line(ScreenText("Everything else is said in the room; // begins a message with a slash.", .dim))
        if screen.mode == .characters {
            line(ScreenText("Tab completes names, the arrows bring back what you typed, Ctrl-C clears the line.", .dim))
        }
    }

    func quit(_ reason: String = "") {
        guard state != .leaving else { return }
        state = .leaving
        screen.prompt = ""
        screen.isSecret = false
        line(ScreenText("Goodbye\(nick.isEmpty ? "" : ", \(nick)").", .dim))
        if reason.isEmpty { say("QUIT") } else { say("QUIT", reason) }
    }

    // MARK: - The Tab key

    func complete() {
        guard !screen.isSecret else { return }
        let characters = editor.characters
        let cursor = editor.cursor
        let start = characters[..<cursor].lastIndex(of: " ").map { $0 + 1 } ?? 0
        let word = String(characters[start..<cursor])
        guard !word.isEmpty || state == .choosing else { return }
        let isFirst = start == 0
        let found: [String]
        let end: String
        if state == .choosing || String(characters.prefix(6)) == "/join " {
            found = Self.matches(roomName(word), listed + rooms.map(\.name))
            end = ""
        } else if isFirst, word.hasPrefix("/") {
            found = Self.matches(word, PlainCommand.all.map { "/" + $0.name })
            end = " "
        } else {
            let isAt = word.hasPrefix("@")
            let people = (front.map { rooms[$0].members } ?? []).filter { !isOwn($0) }.map { isAt ? "@" + $0 : $0 }
            found = Self.matches(word, people)
            end = isFirst ? ": " : " "
        }
        guard let first = found.first else { return screen.beep() }
        if found.count == 1 { return editor.replace(start..<cursor, by: first + end) }
        let common = found.dropFirst().reduce(first) { common, name in
            String(zip(common, name).prefix { $0.lowercased() == $1.lowercased() }.map(\.0))
        }
        if common.count > word.count { return editor.replace(start..<cursor, by: common) }
        line(ScreenText(found.prefix(30).joined(separator: "  "), .dim))
    }

    private static func matches(_ word: String, _ names: [String]) -> [String] {
        let typed = word.lowercased()
        return Set(names.filter { $0.lowercased().hasPrefix(typed) }).sorted()
    }
}

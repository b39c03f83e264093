import IRCProtocol
import JSONText
import WireBytes

// Answers of the bridge as lines for people.

/// Lines of `reload`: what is different now, and what is not yet.
enum ReloadText {
    private static let deferred = "keys-deferred"

    static func lines(_ done: JSONValue) -> [String] {
        let lists = done.object ?? []
        if lists.isEmpty { return ["the configuration is the same"] }
        return lists.map { list in
            let names = (list.value.array ?? []).compactMap(\.string).joined(separator: ", ")
            let title =
                list.key == deferred ? "in force after a restart" : list.key.replacing("-", with: " ")
            return TextScreen.clean("\(title): \(names)")
        }
    }
}

/// What `forget` asks and says.
enum ForgetText {
    private static func person(_ answer: JSONValue) -> String {
        let kind = answer["kind"]?.string == "account" ? "the account " : ""
        let nick = answer["nick"]?.string.map { ", now \($0)" } ?? ""
        let unknown = answer["known"]?.bool == false ? " (not known at present)" : ""
        return TextScreen.clean("\(kind)\(answer["user"]?.string ?? "")\(nick)\(unknown)")
    }

    static func question(_ answer: JSONValue) -> String {
        "Erase \(person(answer)) and all that they said? It cannot be undone. [y/N] "
    }

    private static let counts = [
        ("messages", "message", "messages"), ("actions", "reaction or change", "reactions and changes"),
        ("conversations", "private conversation", "private conversations"),
        ("records", "other record", "other records"), ("tokens", "token file", "token files"),
    ]

    static func lines(_ done: JSONValue) -> [String] {
        let erased = counts.compactMap { key, one, many in
            done[key]?.integer.flatMap { $0 == 0 ? nil : "\($0) \($0 == 1 ? one : many)" }
        }
        let what = erased.isEmpty ? "nothing was there" : erased.joined(separator: ", ")
        var lines = ["erased \(person(done)): \(what)"]
        if let waiting = done["waiting"]?.integer, waiting > 0 {
            lines.append(
                "\(waiting) message\(waiting == 1 ? " waits" : "s wait") for the backend: sent when it can be, then erased"
            )
        }
        lines.append("not reached: the backend, logs of IRC clients and of the bridge, copies by backup and export")
        return lines
    }
}

/// Lines of `tail`: time, room, border and direction, and what crossed it.
struct TailText {
    let screen: TextScreen
    /// When words of IRC users came in, for the time that they took to come out again.
    private var saidAt: [String: Int64] = [:]
    /// Words that wait for their return; the backend may never send them round.
    private static let maxRemembered = 1000

    init(screen: TextScreen) { self.screen = screen }

    private static let flows: [TailFlow: (label: String, style: TextScreen.Style)] = [
        .fromIRC: ("irc →", .cyan), .toBackend: ("→ backend", .blue), .fromBackend: ("backend →", .magenta),
        .toIRC: ("→ irc", .green), .frameIn: ("frame ←", .faint), .frameOut: ("frame →", .faint),
    ]

    mutating func line(_ item: JSONValue) -> String {
        if let missed = item["missed"]?.integer {
            return screen.styled("… \(missed) lines left out: this terminal reads too slowly", .red)
        }
        let at = item["at"]?.integer ?? 0
        // `HH:MM:SS.mmm` of the format of IRCv3.
        let time = String(IRCServerTime.format(milliseconds: at).dropFirst(11).dropLast())
        let flow = TailFlow(rawValue: item["flow"]?.string ?? "")
        let (label, style) = flow.flatMap { Self.flows[$0] } ?? ("?", .plain)
        let room = TextScreen.clean(item["room"]?.string ?? "")
        let account = item["account"]?.string.map { " (\($0)'s link)" } ?? ""
        return screen.styled(time, .faint) + "  " + padded(room, to: 10) + "  "
            + screen.styled(padded(label, to: 9), style) + "  " + TextScreen.clean(words(item, flow) + account)
            + latency(item, flow, at)
    }

    private func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private func words(_ item: JSONValue, _ flow: TailFlow?) -> String {
        let (kind, who, text) = (item["kind"]?.string ?? "", item["who"]?.string, item["text"]?.string)
        if flow == .frameIn || flow == .frameOut {
            return text ?? "(\(item["bytes"]?.integer ?? 0) bytes, not shown)"
        }
        let speaker = who.map { kind == "message" || kind == "notice" ? "\($0):" : $0 }
        return ([padded(kind, to: 8), speaker, text] as [String?]).compactMap(\.self).joined(separator: " ")
    }

    /// How long a message took from its client to the backend and back to all clients.
    private mutating func latency(_ item: JSONValue, _ flow: TailFlow?, _ at: Int64) -> String {
        guard item["kind"]?.string == "message", let who = item["who"]?.string, let text = item["text"]?.string else {
            return ""
        }
        let key = "\(item["room"]?.string ?? "")\n\(who)\n\(text)"
        if flow == .fromIRC {
            if saidAt.count >= Self.maxRemembered { saidAt = [:] }
            saidAt[key] = at
        } else if flow == .toIRC, let began = saidAt.removeValue(forKey: key) {
            return screen.styled("  +\(max(0, at - began)) ms", .faint)
        }
        return ""
    }
}

/// Lines of `history`.
enum HistoryText {
    static func lines(_ item: JSONValue, _ screen: TextScreen) -> [String] {
        let at = item["at"]?.string.flatMap(IRCServerTime.parse) ?? 0
        let time = screen.styled(CivilTime.text(milliseconds: at), .faint)
        let nick = screen.styled(TextScreen.clean(item["nick"]?.string ?? ""), .strong)
        if item["deleted"]?.bool == true { return ["\(time)  \(nick)  \(screen.styled("(deleted)", .faint))"] }
        var text = item["text"]?.string ?? ""
        for file in item["attachments"]?.array ?? [] {
            let name = file["name"]?.string ?? file["url"]?.string ?? ""
            text += (text.isEmpty ? "" : "\n") + "[\(file["type"]?.string ?? "file")] \(name)"
        }
        let isAction = text.hasPrefix("\u{1}ACTION ")
        if isAction { text = String(text.dropFirst(8).prefix { $0 != "\u{1}" }) }
        let rows = text.split(separator: "\n", omittingEmptySubsequences: false).map { TextScreen.clean(String($0)) }
        let head = item["kind"]?.string == "message" ? (isAction ? "* \(nick) " : "\(nick)  ") : ""
        // Further lines stand below the first.
        return ["\(time)  \(head)\(rows.first ?? "")"]
            + rows.dropFirst().map { String(repeating: " ", count: 21) + $0 }
    }
}

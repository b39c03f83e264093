import IRCProtocol
import JSONText

/// What `status`, `rooms` and `clients` show of the answer to `status`.
struct StatusScreen {
    let status: JSONValue
    /// An earlier answer, for rates; nil: totals are shown.
    var earlier: JSONValue?

    private var now: Int64 { Self.time(status["at"]) ?? 0 }

    private static func time(_ value: JSONValue?) -> Int64? { value?.string.flatMap(IRCServerTime.parse) }

    /// Without the fraction; 0 beyond what fits, which no bridge gives.
    private static func whole(_ number: Double) -> Int64 { Int64(exactly: number.rounded(.towardZero)) ?? 0 }

    private func span(since value: JSONValue?) -> String? {
        Self.time(value).map { ShortSpan.text(seconds: (now - $0) / 1000) }
    }

    private var rooms: [JSONValue] { status["rooms"]?.array ?? [] }
    private var clients: [JSONValue] { status["clients"]?.array ?? [] }

    // MARK: - Lines

    /// The first screen: a line about the bridge, a table of rooms, and what is wrong.
    func lines(_ screen: TextScreen) -> [String] {
        let mirrors = status["mirrors"]?.array?.isEmpty == false ? mirrorLines(screen) : []
        return [headline(screen)] + roomLines(screen) + mirrors + notes(screen)
    }

    private func headline(_ screen: TextScreen) -> String {
        let ready = status["ready"]?.bool == true
        let up = rooms.count { $0["state"]?.string == "up" }
        let words = [
            "chatbridge \(status["version"]?.string ?? "")", "up \(span(since: status["started_at"]) ?? "0s")",
            "instance \(Self.short(status["instance"]?.string ?? ""))", "\(up) of \(rooms.count) rooms up",
            "\(clients.count) client\(clients.count == 1 ? "" : "s")",
        ]
        let state = ready ? "ready" : status["running"]?.bool == false ? "stopping" : "not ready"
        return words.map(TextScreen.clean).joined(separator: "  ") + "  "
            + screen.styled(state, ready ? .green : .red)
    }

    /// Generated ids are as long as a UUID.
    private static func short(_ id: String) -> String { id.utf8.count == 36 ? String(id.prefix(8)) : id }

    private func notes(_ screen: TextScreen) -> [String] {
        let troubles = status["troubles"]?.array ?? []
        func has(_ kind: StatusTrouble.Kind, _ room: String) -> Bool {
            troubles.contains { $0["kind"]?.string == kind.rawValue && $0["subject"]?.string == "room \(room)" }
        }
        func age(_ seconds: JSONValue?) -> String {
            seconds?.double.map { ", the oldest for \(ShortSpan.text(seconds: Self.whole($0)))" } ?? ""
        }
        var notes: [String] = []
        for reason in status["reasons"]?.array ?? [] {
            if let text = reason.string { notes.append("not ready: \(text)") }
        }
        for room in rooms {
            let name = room["name"]?.string ?? ""
            if let reason = room["reason"]?.string, room["state"]?.string != "up", !has(.link, name) {
                notes.append("\(name): \(reason)")
            }
            let unconfirmed = room["unconfirmed"]?.integer ?? 0
            if let queued = room["queued"]?.integer, queued > unconfirmed, !has(.queue, name), !has(.rate, name) {
                notes.append(
                    "\(name): \(queued) message\(queued == 1 ? " waits" : "s wait")" + age(room["oldest_queued_for"]))
            }
            if unconfirmed > 0 {
                notes.append(
                    "\(name): \(unconfirmed) sent message\(unconfirmed == 1 ? " waits" : "s wait") for the backend's "
                        + "confirmation" + age(room["oldest_unconfirmed_for"]))
            }
            if let end = Self.time(room["token_ends_at"]), end > now, !has(.token, name) {
                notes.append("\(name): token ends in \(ShortSpan.text(seconds: (end - now) / 1000))")
            }
            if let count = room["undecodable"]?.integer, count > 0 {
                notes.append("\(name): \(count) frame\(count == 1 ? "" : "s") not understood")
            }
        }
        return troubles.flatMap { lines(of: $0, screen) }
            + notes.map { screen.styled(screen.fitted(TextScreen.clean($0)), .yellow) }
    }

    /// A trouble, and what to do about it.
    private func lines(of trouble: JSONValue, _ screen: TextScreen) -> [String] {
        let words = [trouble["subject"], trouble["text"]].map { TextScreen.clean($0?.string ?? "") }
        let isError = trouble["level"]?.string == StatusTrouble.Level.error.rawValue
        return [
            screen.styled(screen.fitted("! " + words.joined(separator: ": ")), isError ? .red : .yellow),
            screen.styled(screen.fitted("  " + TextScreen.clean(trouble["remedy"]?.string ?? "")), .faint),
        ]
    }

    func mirrorLines(_ screen: TextScreen) -> [String] {
        let mirrors = status["mirrors"]?.array ?? []
        var table = TextTable([
            TextTable.Column(title: "MIRROR", least: 8), TextTable.Column(title: "TYPE"),
            TextTable.Column(title: "STATE"), TextTable.Column(title: "ROOMS", least: 8, omission: 3),
            TextTable.Column(title: "POSTED", isNumber: true), TextTable.Column(title: "WAITING", isNumber: true),
            TextTable.Column(title: "LOST", isNumber: true, omission: 2),
            TextTable.Column(title: "ARRIVED", isNumber: true, omission: 1),
        ])
        for mirror in mirrors {
            let state = mirror["state"]?.string ?? ""
            let age = span(since: mirror["since"]).map { " \($0)" } ?? ""
            let lost = ["refused", "given_up", "arrivals_refused"].reduce(0) { $0 + (mirror[$1]?.integer ?? 0) }
            table.append([
                TextTable.Cell(mirror["name"]?.string ?? ""), TextTable.Cell(mirror["type"]?.string ?? ""),
                TextTable.Cell(
                    state + age, state == "closed" ? .red : state == "away" || state == "connecting" ? .yellow : .green),
                TextTable.Cell((mirror["rooms"]?.array ?? []).compactMap(\.string).joined(separator: " ")),
                TextTable.Cell("\(mirror["posted"]?.integer ?? 0)"),
                TextTable.Cell("\(mirror["waiting"]?.integer ?? 0)"),
                TextTable.Cell("\(lost)"), TextTable.Cell("\(mirror["arrived"]?.integer ?? 0)"),
            ])
        }
        return mirrors.isEmpty ? ["There is no mirror."] : table.lines(screen)
    }

    func roomLines(_ screen: TextScreen) -> [String] {
        let unit = earlier == nil ? "" : "/min"
        var table = TextTable([
            TextTable.Column(title: "ROOM", least: 8), TextTable.Column(title: "STATE"),
            TextTable.Column(title: "UPSTREAM", least: 12), TextTable.Column(title: "RTT", isNumber: true, omission: 3),
            TextTable.Column(title: "IN\(unit)", isNumber: true), TextTable.Column(title: "OUT\(unit)", isNumber: true),
            TextTable.Column(title: "USERS", isNumber: true, omission: 2),
            TextTable.Column(title: "CLIENTS", isNumber: true, omission: 1),
            TextTable.Column(title: "LAST", omission: 4),
        ])
        for room in rooms {
            let state = state(of: room)
            let roundTrip = room["round_trip"]?.double.map {
                $0 < 1 ? "\(Self.whole(($0 * 1000).rounded())) ms" : "\(Self.whole($0.rounded())) s"
            }
            table.append([
                TextTable.Cell(room["name"]?.string ?? ""), state, TextTable.Cell(room["host"]?.string ?? ""),
                TextTable.Cell(roundTrip ?? "-"), TextTable.Cell(count(room, "messages_in")),
                TextTable.Cell(count(room, "messages_out")), TextTable.Cell(count(room, "upstream_users")),
                TextTable.Cell(count(room, "clients")),
                TextTable.Cell(span(since: room["last_message_at"]).map { "\($0) ago" } ?? "-"),
            ])
        }
        return rooms.isEmpty ? ["There is no room."] : table.lines(screen)
    }

    private func state(of room: JSONValue) -> TextTable.Cell {
        let failures = room["failures"]?.integer ?? 0
        let tries = failures > 0 ? " (\(failures))" : ""
        if room["disabled"]?.bool == true { return TextTable.Cell("disabled", .yellow) }
        switch room["state"]?.string {
        case "up": return TextTable.Cell("up \(span(since: room["since"]) ?? "")", .green)
        case "waiting":
            let wait = room["retry_in"]?.double.map { " in \(ShortSpan.text(seconds: Self.whole($0.rounded(.up))))" }
            return TextTable.Cell("retry\(wait ?? "")\(tries)", .red)
        case "stopped" where room["on_demand"]?.bool == true: return TextTable.Cell("on demand", .faint)
        case let other: return TextTable.Cell((other ?? "-") + tries, .yellow)
        }
    }

    /// A total, or how much it grew within a minute.
    private func count(_ room: JSONValue, _ key: String) -> String {
        guard let value = room[key]?.integer else { return "-" }
        guard key.hasPrefix("messages"), let earlier, let before = Self.time(earlier["at"]), now > before,
            let old = earlier["rooms"]?.array?.first(where: { $0["name"] == room["name"] })?[key]?.integer
        else { return String(value) }
        return String((max(0, value - old) * 60_000 + (now - before) / 2) / (now - before))
    }

    func clientLines(_ screen: TextScreen) -> [String] {
        var table = TextTable([
            TextTable.Column(title: "ID", isNumber: true), TextTable.Column(title: "NICK", least: 8),
            TextTable.Column(title: "ACCOUNT", omission: 1), TextTable.Column(title: "ADDRESS", least: 9),
            TextTable.Column(title: "OVER", omission: 3), TextTable.Column(title: "SINCE", omission: 2),
            TextTable.Column(title: "IDLE"), TextTable.Column(title: "ROOMS", least: 8),
        ])
        for client in clients {
            let names = (client["rooms"]?.array ?? []).compactMap(\.string).joined(separator: " ")
            let isRegistered = client["registered"]?.bool == true
            table.append([
                TextTable.Cell(client["id"]?.integer.map { String($0) } ?? ""),
                TextTable.Cell(client["nick"]?.string ?? "-", isRegistered ? .plain : .faint),
                TextTable.Cell(client["account"]?.string ?? "-"), TextTable.Cell(client["address"]?.string ?? ""),
                TextTable.Cell(client["transport"]?.string ?? ""),
                TextTable.Cell(span(since: client["connected_at"]) ?? "-"),
                TextTable.Cell(span(since: client["idle_since"]) ?? "-"), TextTable.Cell(names),
            ])
        }
        return clients.isEmpty ? ["There is no client."] : table.lines(screen)
    }
}

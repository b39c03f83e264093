import ChatModel
import IRCProtocol

// Lines of the server.

extension PlainSession {
    func heard(_ message: IRCMessage) {
        if message.command == "BATCH" {
            if let batch = batches.received(message) { ended(batch) }
            return
        }
        if batches.take(message) { return }
        take(message)
    }

    private func ended(_ batch: IRCBatches.Batch) {
        switch batch.kind {
        case .multiline: if let whole = batch.message { heard(whole) }
        case .history: showHistory(batch)
        case .search: showFound(batch)
        case .labeledResponse:
            for var line in batch.lines {
                line.tags.removeAll { $0.name == "batch" }
                if let label = batch.head.tag("label")?.value { line.setTag("label", label) }
                heard(line)
            }
        case .joins: moved(batch.lines, "came")
        case .leaves: moved(batch.lines, "left")
        }
    }

    private func take(_ message: IRCMessage) {
        let params = message.params
        switch message.command {
        case "PING": pinged(params.last ?? "")
        case "CAP": capReceived(message)
        case "AUTHENTICATE": authenticateReceived()
        case "PRIVMSG", "NOTICE": said(message)
        case "TAGMSG": passed(message)
        case "REDACT": tookBack(message)
        case "JOIN": joined(message)
        case "PART", "KICK", "QUIT": left(message)
        case "NICK": renamed(message)
        case "TOPIC": topicChanged(message)
        case "MODE":
            if let source = message.source {
                news("\(nick(of: source)) set \(params.dropFirst().joined(separator: " "))", in: params.first)
            }
        case "INVITE":
            if params.count > 1 { line(ScreenText("You are invited to \(params[1]): /join \(params[1])", .dim)) }
        case "FAIL": failed(message)
        case "WARN", "NOTE": line(ScreenText(params.last ?? "", .dim))
        case "ERROR": closed(params.last ?? "")
        case "MARKREAD": markerMoved(params)
        default: if message.command.utf8.count == 3 { numeric(message) }
        }
    }

    private func numeric(_ message: IRCMessage) {
        let params = message.params
        switch message.command {
        case "001": welcomed(params.first ?? wishedNick)
        case "322": listEntry(params)
        case "323": listEnded()
        case "331", "333", "422": break
        case "332": if params.count > 2 { topicTold(params[1], params[2]) }
        case "353": if params.count > 3 { namesTold(params[2], params[3]) }
        case "366": if params.count > 1 { namesEnded(params[1]) }
        case "432": nickAnswer(message) { nickRefused(ScreenText.printable(params.last ?? "")) }
        case "433", "436", "437": nickAnswer(message) { nickTaken() }
        case "903": loggedIn()
        case "902", "904", "905", "906": loginRefused(params.last ?? "")
        default:
            // Errors; the others are about the server, and for programs.
            if message.command.hasPrefix("4") || message.command.hasPrefix("5") { failed(message) }
        }
    }

    private func nickAnswer(_ message: IRCMessage, _ registering: () -> Void) {
        if state == .registering { registering() } else { failed(message) }
    }

    private func closed(_ reason: String) {
        guard state != .leaving else { return }
        state = .leaving
        line(ScreenText("The connection ends: \(reason)", .failure))
    }

    /// A request was refused, or a message of the person's.
    private func failed(_ message: IRCMessage) {
        if state == .proving || state == .registering, message.params.dropFirst().first == "ACCOUNT_REQUIRED" { return }
        let reason = message.params.last ?? ""
        let label = message.tag("label")?.value
        if let label { requests.remove(label) }
        if let label, let index = pending.firstIndex(where: { $0.label == label }) {
            let text = pending.remove(at: index).text
            line(ScreenText("Not sent: \"\(PlainNames.excerpt(text))\": \(reason)", .failure))
        } else {
            // Which of several things it is about.
            let about = message.params.count > 2 && message.command != "FAIL" ? message.params[1] + ": " : ""
            line(ScreenText(about + reason, .failure))
        }
        if state == .joining { joinRefused() }
    }

    // MARK: - People

    func nick(of source: String) -> String { ScreenText.printable(String(source.prefix { $0 != "!" })) }

    func isOwn(_ nick: String) -> Bool { PlainNames.areSame(nick, self.nick) }

    private func joined(_ message: IRCMessage) {
        guard let source = message.source, let name = message.params.first else { return }
        let who = nick(of: source)
        if isOwn(who) { return entered(name) }
        with(name) { $0.enter(who) }
        news("→ \(who) is here", in: name)
    }

    private func left(_ message: IRCMessage) {
        guard let source = message.source else { return }
        let isKick = message.command == "KICK"
        let who = isKick ? message.params.dropFirst().first ?? "" : nick(of: source)
        let reason = message.params.dropFirst(message.command == "QUIT" ? 0 : isKick ? 2 : 1).first ?? ""
        let why = reason.isEmpty ? "" : " (\(reason))"
        let places = message.command == "QUIT" ? rooms.map(\.name) : Array(message.params.prefix(1))
        let action = isKick ? "was removed by \(nick(of: source))" : "left"
        for place in places {
            guard let index = index(of: place) else { continue }
            if isOwn(who) {
                line(ScreenText("You \(isKick ? "were removed from" : "left") \(place)\(isKick ? why : "").", .dim))
                leftRoom(index)
            } else if message.command != "QUIT" || rooms[index].has(who) {
                rooms[index].leave(who)
                news("← \(who) \(action)\(why)", in: place)
            }
        }
    }

    /// Many at once.
    private func moved(_ lines: [IRCMessage], _ verb: String) {
        var people: [String: [String]] = [:]
        for message in lines {
            guard let source = message.source else { continue }
            let who = nick(of: source)
            for room in message.command == "QUIT" ? rooms.map(\.name) : Array(message.params.prefix(1)) {
                with(room) { if message.command == "JOIN" { $0.enter(who) } else { $0.leave(who) } }
                people[room, default: []].append(who)
            }
        }
        for (room, who) in people.sorted(by: { $0.key < $1.key }) {
            news("\(verb == "came" ? "→" : "←") \(PlainNames.list(who, atMost: 5)) \(verb)", in: room)
        }
    }

    private func renamed(_ message: IRCMessage) {
        guard let source = message.source, let other = message.params.first else { return }
        let who = nick(of: source)
        for index in rooms.indices { rooms[index].rename(who, to: other) }
        if isOwn(who) { nick = other }
        line(ScreenText(isOwn(other) ? "You are called \(other) now." : "\(who) is called \(other) now.", .dim))
    }

    // MARK: - Rooms

    private func listEntry(_ params: [String]) {
        guard params.count > 1, listed.count < 1000 else { return }
        listed.append(params[1])
        if state == .joining, joining == nil || listed.count <= 15 { roomLine(params) }
    }

    private func roomLine(_ params: [String]) {
        let people = params.count > 2 ? Int(params[2]) ?? 0 : 0
        var text = ScreenText("  \(params[1])")
        text.append("  \(people == 1 ? "1 person" : "\(people) people")", .dim)
        if params.count > 3, !params[3].isEmpty { text.append("  \(PlainNames.excerpt(params[3]))", .dim) }
        line(text)
    }

    private func listEnded() {
        guard state == .joining, joining == nil else { return }
        // An account may be in its rooms already.
        if current != nil { state = .chatting } else { askRoom() }
    }

    func askRoom() {
        state = .choosing
        let first = listed.first.map { " [\($0)]" } ?? ""
        ask("Which room\(first)? ")
    }

    private func joinRefused() {
        guard joining != nil else { return }
        joining = nil
        if current == nil { askRoom() } else { state = .chatting }
    }

    private func namesTold(_ name: String, _ list: String) {
        for entry in list.split(separator: " ") {
            let nick = String(entry.drop { $0 == "@" || $0 == "+" })
            with(name) { $0.enter(nick) }
        }
    }

    private func namesEnded(_ name: String) {
        guard let index = index(of: name) else { return }
        let names = rooms[index].members
        if namesAsked.remove(name) != nil {
            line(ScreenText("In \(name): ", .dim).appending(names.sorted().joined(separator: ", ")))
        } else {
            let others = names.filter { !isOwn($0) }
            let text = others.isEmpty ? "You are alone here." : "Here with you: \(PlainNames.list(others, atMost: 12))."
            line(ScreenText(text, .dim))
        }
    }

    private func topicTold(_ name: String, _ topic: String) {
        with(name) { $0.topic = topic }
        line(ScreenText("Topic: ", .dim).appending(topic))
    }

    private func topicChanged(_ message: IRCMessage) {
        guard message.params.count > 1, let source = message.source else { return }
        with(message.params[0]) { $0.topic = message.params[1] }
        news("\(nick(of: source)) changed the topic to: \(message.params[1])", in: message.params[0])
    }
}

import BridgeTypes
import ChatModel
import IRCProtocol

// Lines of the server.

extension PlainSession {
    func heard(_ event: ServerLines.Event) {
        switch event {
        case .line(let message): take(message)
        case .history(let batch): showHistory(batch)
        case .found(let batch): showFound(batch)
        case .came(let lines): moved(lines, "→", "came")
        case .left(let lines): moved(lines, "←", "left")
        }
    }

    private func take(_ message: IRCMessage) {
        let params = message.params
        switch message.command {
        case "PING":
            let token = params.last ?? ""
            if !terminal.confirmsReceipt(of: token) { say("PONG", token) }
        case "PONG": taken(params.last ?? "")
        case "CAP": register { $0.capReceived(message) }
        case "AUTHENTICATE": register { $0.authenticateReceived() }
        case "PRIVMSG", "NOTICE": said(message)
        case "TAGMSG": tagged(message)
        case "REDACT": tookBack(message)
        case "JOIN": joined(message)
        case "PART", "KICK", "QUIT": left(message)
        case "NICK": renamed(message)
        case "TOPIC": topicChanged(message)
        case "MODE":
            if let source = message.source {
                let modes = params.dropFirst().joined(separator: " ")
                news("\(PlainNames.nick(of: source)) set \(modes)", in: params.first)
            }
        case "INVITE":
            if params.count > 1 {
                terminal.show(ScreenText("You are invited to \(params[1]): /join \(params[1])", .dim))
            }
        case "FAIL": failed(message)
        case "WARN", "NOTE": terminal.show(ScreenText(params.last ?? "", .dim))
        case "ERROR": closed(params.last ?? "")
        case "MARKREAD": markerMoved(params)
        default: if message.command.utf8.count == 3 { numeric(message) }
        }
    }

    private func numeric(_ message: IRCMessage) {
        let params = message.params
        switch message.command {
        case "001": welcomed(params.first)
        case "322": listEntry(params)
        case "323": if rooms.endListing() { askRoom() }
        case "331", "333", "422": break
        case "332": if params.count > 2 { terminal.show(ScreenText("Topic: ", .dim).appending(params[2])) }
        case "353": if params.count > 3 { namesTold(params[2], params[3]) }
        case "366": if params.count > 1 { namesEnded(params[1]) }
        case "432": nickAnswered(message) { $0.nickRefused() }
        case "433", "436", "437": nickAnswered(message) { $0.nickTaken() }
        case "903": register { $0.loggedIn() }
        case "902", "904", "905", "906": register { $0.loginRefused(params.last ?? "") }
        // ERROR follows, and says the same.
        case "464" where state == .registering: break
        default:
            // Errors; the others are about the server, and for programs.
            if message.command.hasPrefix("4") || message.command.hasPrefix("5") { failed(message) }
        }
    }

    /// Something that is for the registration, while there is one.
    private func register(_ tell: (inout PlainRegistration) -> Void) {
        guard state == .registering else { return }
        tell(&registration)
        takeSteps()
    }

    private func nickAnswered(_ message: IRCMessage, _ tell: (inout PlainRegistration) -> Void) {
        if registration.state == .registering { register(tell) } else { failed(message) }
    }

    /// A request was refused, or a message of the person's.
    private func failed(_ message: IRCMessage) {
        if state == .registering, message.params.dropFirst().first == "ACCOUNT_REQUIRED" { return }
        // As the command is called here.
        let reason = (message.params.last ?? "").replacing("LIST shows them", with: "/rooms shows them")
        let label = message.tag("label")?.value
        if let text = sent.takeMessage(label) {
            // Some reasons end with the text, or with its beginning.
            let end = reason.ranges(of: ": " + text.prefix(20)).last?.lowerBound ?? reason.endIndex
            terminal.show(
                ScreenText("Not sent: \"\(PlainNames.excerpt(text))\": \(reason[..<end])", .failure))
            return
        }
        let isOfRequest = sent.takeRequest(label)
        // Which of several things it is about.
        let about = message.params.count > 2 && message.command != "FAIL" ? message.params[1] + ": " : ""
        guard !isOfRequest, rooms.isJoining else { return terminal.show(ScreenText(about + reason, .failure)) }
        refuse(about + reason)
        if rooms.endJoining() { askRoom() }
    }

    // MARK: - People

    private func joined(_ message: IRCMessage) {
        guard let source = message.source, let name = message.params.first else { return }
        let who = PlainNames.nick(of: source)
        if registration.isOwn(who) {
            if rooms.entered(name, as: who) { bringToFront(name) }
            return
        }
        rooms.update(name) { $0.enter(who) }
        news("→ \(who) is here", in: name)
    }

    private func left(_ message: IRCMessage) {
        guard let source = message.source else { return }
        let isKick = message.command == "KICK"
        let actor = PlainNames.nick(of: source)
        let who = isKick ? message.params.dropFirst().first ?? "" : actor
        let reason = message.params.dropFirst(message.command == "QUIT" ? 0 : isKick ? 2 : 1).first ?? ""
        let why = reason.isEmpty ? "" : " (\(reason))"
        let action = isKick ? "was removed by \(actor)" : "left"
        for room in places(of: message) {
            if registration.isOwn(who) {
                let done = isKick ? "were removed from" : "left"
                terminal.show(ScreenText("You \(done) \(room.name)\(isKick ? why : "").", .dim))
                leftRoom(room.name)
            } else if message.command != "QUIT" || room.has(who) {
                rooms.update(room.name) { $0.leave(who) }
                news("← \(who) \(action)\(why)", in: room.name)
            }
        }
    }

    /// The rooms that a line of leaving is about: a QUIT about all.
    private func places(of message: IRCMessage) -> [PlainRoom] {
        message.command == "QUIT" ? rooms.all : message.params.first.flatMap { rooms[$0] }.map { [$0] } ?? []
    }

    /// Many at once.
    private func moved(_ lines: [IRCMessage], _ arrow: String, _ verb: String) {
        var people: [String: [String]] = [:]
        for message in lines {
            guard let source = message.source else { continue }
            let who = PlainNames.nick(of: source)
            for room in places(of: message) {
                rooms.update(room.name) { if message.command == "JOIN" { $0.enter(who) } else { $0.leave(who) } }
                people[room.name, default: []].append(who)
            }
        }
        for (room, who) in people.sorted(by: { $0.key < $1.key }) {
            news("\(arrow) \(PlainNames.list(who, atMost: 5)) \(verb)", in: room)
        }
    }

    private func renamed(_ message: IRCMessage) {
        guard let source = message.source, let other = message.params.first else { return }
        let who = PlainNames.nick(of: source)
        rooms.updateAll { $0.rename(who, to: other) }
        if registration.isOwn(who) { registration.renamed(to: other) }
        let isOwn = registration.isOwn(other)
        terminal.show(ScreenText(isOwn ? "You are called \(other) now." : "\(who) is called \(other) now.", .dim))
    }

    // MARK: - Rooms

    private func listEntry(_ params: [String]) {
        guard params.count > 1, rooms.take(listed: params[1]) else { return }
        let people = params.count > 2 ? Int(params[2]) ?? 0 : 0
        var text = ScreenText("  \(params[1])")
        text.append("  \(people == 1 ? "1 person" : "\(people) people")", .dim)
        if params.count > 3, !params[3].isEmpty { text.append("  \(PlainNames.excerpt(params[3]))", .dim) }
        terminal.show(text)
    }

    private func leftRoom(_ name: String) {
        switch rooms.leave(name) {
        case .background: break
        case .next(let other): bringToFront(other)
        case .last: askRoom()
        }
    }

    private func namesTold(_ name: String, _ list: String) {
        for entry in list.split(separator: " ") {
            let nick = String(entry.drop { $0 == "@" || $0 == "+" })
            rooms.update(name) { $0.enter(nick) }
        }
    }

    private func namesEnded(_ name: String) {
        guard let names = rooms[name]?.members else { return }
        if rooms.takeMembersAsked(name) {
            terminal.show(ScreenText("In \(name): ", .dim).appending(names.sorted().joined(separator: ", ")))
        } else {
            let others = names.filter { !registration.isOwn($0) }
            // The one in front has its heading above this.
            let (alone, with) = rooms.isInFront(name) ? ("here", "Here") : ("in \(name)", "In \(name)")
            let text =
                others.isEmpty
                ? "You are alone \(alone)." : "\(with) with you: \(PlainNames.list(others, atMost: 12))."
            terminal.show(ScreenText(text, .dim))
        }
    }

    private func topicChanged(_ message: IRCMessage) {
        guard message.params.count > 1, let source = message.source else { return }
        news("\(PlainNames.nick(of: source)) changed the topic to: \(message.params[1])", in: message.params[0])
    }

    private func markerMoved(_ params: [String]) {
        guard params.count > 1, params[1].hasPrefix("timestamp=") else { return }
        let time = String(params[1].dropFirst("timestamp=".count))
        rooms.update(params[0]) { $0.mark(time) }
    }
}

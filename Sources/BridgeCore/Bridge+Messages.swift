import ChatModel
import IRCProtocol
import WireBytes

// PRIVMSG, NOTICE and TAGMSG.

extension Bridge {
    func message(
        _ verb: MessageVerb, targets: [String], text: String?, tags: [IRCTag], _ session: IRCSession
    ) {
        guard !targets.isEmpty else { return }
        guard targets.count <= IRCSession.maxTargets else {
            return refuse(verb, session.numeric(.errTooManyTargets, targets[0], "Too many targets"), session)
        }
        guard let personID = session.person, let person = context.identities[personID] else { return }
        guard phase == .running else {
            guard let text, verb == .privmsg else { return }
            return reply(
                .fail(
                    "PRIVMSG", "CANNOT_DELIVER",
                    NickMaker.prefix(of: UpstreamSession.printable(targets[0]), maxBytes: 100),
                    text: "Not taken, the server is stopping: " + MessageRendering.excerpt(text),
                    source: settings.serverName), session)
        }
        if verb == .tagmsg {
            guard session.tagBudget.take(now: context.now.monotonic) else { return }
        } else {
            session.lastSpokeAt = context.now.wall
        }
        let clientTags = tags.filter { IRCClientTags.isAllowed($0.name) }
        // An echo can answer one label only.
        let label = targets.count == 1 ? session.response?.label : nil
        for target in targets {
            if target.hasPrefix("#") {
                toRoom(verb, target, text, clientTags, label: label, session)
            } else {
                toPerson(verb, target, text, clientTags, from: person, session)
            }
        }
    }

    private func refuse(_ verb: MessageVerb, _ answer: IRCMessage, _ session: IRCSession) {
        // A NOTICE is never answered: RFC 2812 §3.3.2.
        if verb != .notice { reply(answer, session) }
    }

    // MARK: - To a room

    private func toRoom(
        _ verb: MessageVerb, _ channel: String, _ text: String?, _ clientTags: [IRCTag], label: String?,
        _ session: IRCSession
    ) {
        guard let room = room(channel: channel) else {
            let shown = NickMaker.prefix(of: UpstreamSession.printable(channel), maxBytes: 100)
            return refuse(verb, session.numeric(.errNoSuchChannel, shown, "No such room"), session)
        }
        guard session.rooms.contains(room.id) else {
            return refuse(
                verb, session.numeric(.errCannotSendToChan, room.channel, "Join the room before you speak in it"),
                session)
        }
        switch verb {
        case .tagmsg: tagMessage(clientTags, room, session)
        case .notice: _ = room.sendLocally("NOTICE", text ?? "", clientTags: clientTags, from: session.id, context)
        case .privmsg:
            let text = text ?? ""
            if MessageRendering.isForeignCTCP(text) {
                _ = room.sendLocally("PRIVMSG", text, clientTags: clientTags, from: session.id, context)
            } else {
                submit(text, clientTags, room, label: label, session)
            }
        }
    }

    private func submit(
        _ text: String, _ clientTags: [IRCTag], _ room: Room, label: String?, _ session: IRCSession
    ) {
        let replyTo = clientTags.first { $0.name == "+reply" || $0.name == "+draft/reply" }?.value
        let waitsForEcho = label != nil && session.caps.contains(.echoMessage)
        // Set before: a backend that confirms nothing lets the echo come at once.
        if waitsForEcho { session.response?.isDeferred = true }
        let refusal = room.submit(
            Submission(
                text: text, clientTags: clientTags, replyTo: replyTo, label: waitsForEcho ? label : nil),
            from: session.id, context)
        if refusal == nil, context.isDurable {
            session.lastKept = context.ledger.next
            session.lastAccepted = context.ledger.next
        }
        guard refusal == .queueFull else { return }
        session.response?.isDeferred = false
        reply(
            .fail(
                "PRIVMSG", "QUEUE_FULL", room.channel,
                text: "Not taken, too many messages wait for the backend: " + MessageRendering.excerpt(text),
                source: settings.serverName), session)
    }

    private func tagMessage(_ clientTags: [IRCTag], _ room: Room, _ session: IRCSession) {
        guard !clientTags.isEmpty else { return }
        if let state = clientTags.first(where: { $0.name == "+typing" || $0.name == "+draft/typing" })?.value {
            room.typed(session.id, isTyping: state == "active", context)
        }
        if react(clientTags, room, session) { return }
        _ = room.sendLocally("TAGMSG", nil, clientTags: clientTags, from: session.id, context)
    }

    // MARK: - To a person

    private func toPerson(
        _ verb: MessageVerb, _ nick: String, _ text: String?, _ clientTags: [IRCTag], from person: Person,
        _ session: IRCSession
    ) {
        guard let (_, target) = context.identities.person(nick: nick) else {
            let shown = NickMaker.prefix(of: UpstreamSession.printable(nick), maxBytes: 64)
            return refuse(verb, session.numeric(.errNoSuchNick, shown, "No such nick"), session)
        }
        guard isLocal(target) else { return refusePrivate(verb, target, text, session) }
        let msgid = context.messageID(backend: settings.instanceID, room: "", sender: nil, id: nil)
        var tags = [
            IRCTag("time", IRCServerTime.format(milliseconds: context.now.wall.milliseconds)), IRCTag("msgid", msgid),
        ]
        if let account = person.account { tags.append(IRCTag("account", account)) }
        let line = IRCMessage(
            tags: tags + clientTags, source: person.source, command: verb.rawValue,
            params: [target.nick] + (text.map { [$0] } ?? []))
        let pieces = MessageRendering.pieces(of: line)
        // What comes to oneself is no answer to the labeled line; its echo is.
        outsideResponse(session) {
            for client in target.clients { for piece in pieces { deliver(piece, to: client, label: nil) } }
        }
        echo(pieces, to: session.id, label: nil)
        // The same person's other clients: a line from oneself to another is understood only by who asked for such.
        for other in sessions(of: session.person) where other !== session && !target.clients.contains(other.id) {
            guard other.caps.contains(.echoMessage) || other.caps.contains(.selfMessage) else { continue }
            for piece in pieces { deliver(piece, to: other.id, label: nil) }
        }
        if verb == .privmsg, let away = target.away {
            reply(session.numeric(.rplAway, target.nick, away), session)
        }
    }

    /// No wire of this bridge carries private messages to people upstream; saying so beats silence.
    private func refusePrivate(_ verb: MessageVerb, _ target: Person, _ text: String?, _ session: IRCSession) {
        let why = "This person is on \(target.host), which takes no private messages from here"
        if session.caps.contains(.standardReplies) {
            let excerpt = text.map { ": " + MessageRendering.excerpt($0) } ?? ""
            refuse(
                verb,
                .fail(
                    verb.rawValue, "CANNOT_DELIVER", target.nick, text: why + excerpt, source: settings.serverName),
                session)
        } else {
            refuse(verb, session.numeric(.errNoSuchNick, target.nick, why), session)
        }
    }
}

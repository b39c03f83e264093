import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms
import Upstream

// PRIVMSG, NOTICE, TAGMSG and RELAYMSG.

extension IRCServer {
    func textReceived(_ verb: MessageVerb, _ message: IRCMessage, _ session: IRCSession) {
        if takeBatchedLine(message, session) { return }
        guard let targets = message.params.first, !targets.isEmpty else {
            return refuse(verb, session.numeric(.errNoRecipient, "No recipient given (\(verb.rawValue))"), session)
        }
        guard message.params.count > 1, !message.params[1].isEmpty else {
            return refuse(verb, session.numeric(.errNoTextToSend, "No text to send"), session)
        }
        self.message(
            verb, targets: IRCSession.list(targets), words: SpokenText(text: message.params[1]), tags: message.tags,
            session)
    }

    func tagsReceived(_ message: IRCMessage, _ session: IRCSession) {
        if takeBatchedLine(message, session) { return }
        self.message(.tagmsg, targets: IRCSession.list(message.params[0]), words: nil, tags: message.tags, session)
    }

    func message(
        _ verb: MessageVerb, targets: [String], words: SpokenText?, tags: [IRCTag], _ session: IRCSession
    ) {
        guard !targets.isEmpty else { return }
        guard let personID = session.person else { return }
        guard lifecycle.isServing else {
            guard let text = words?.text, verb == .privmsg else { return }
            return fail(
                "PRIVMSG", "CANNOT_DELIVER", [PrintableText.of(targets[0], maxBytes: 100)],
                "Not taken, the server is stopping: " + MessageText.excerpt(text), session)
        }
        if verb == .tagmsg {
            guard session.tagBudget.take(now: context.now.monotonic) else { return }
        } else {
            session.spoke(at: context.now.wall)
        }
        let clientTags = IRCClientTags.relayed(tags)
        // An echo can answer one label only.
        let label = targets.count == 1 ? session.response?.label : nil
        for target in targets {
            if target.utf8.first == UInt8(ascii: "#") {
                toRoom(verb, target, words, clientTags, label: label, session)
            } else if let person = context.identities[personID] {
                toPerson(verb, target, words, clientTags, from: person, session)
            }
        }
    }

    // MARK: - To a room

    private func toRoom(
        _ verb: MessageVerb, _ channel: String, _ words: SpokenText?, _ clientTags: [IRCTag], label: String?,
        _ session: IRCSession
    ) {
        guard let room = room(channel: channel, for: session) else {
            let shown = PrintableText.of(channel, maxBytes: 100)
            return refuse(verb, session.numeric(.errNoSuchChannel, shown, "No such room"), session)
        }
        guard session.rooms.contains(room.id) else {
            return refuse(
                verb, session.numeric(.errCannotSendToChan, room.channel, "Join the room before you speak in it"),
                session)
        }
        if let why = silence(in: room, session) {
            // Typing is repeated every few seconds; a refusal of each would be a flood.
            return verb == .tagmsg ? () : refuse(verb, why, session)
        }
        if hasPassed(room, clientTags) { return }
        switch verb {
        case .tagmsg: tagMessage(clientTags, room, session)
        case .notice:
            room.handle(.pass(words, annotations: clientTags.annotations, isNotice: true), from: session.id, context)
        case .privmsg:
            let words = words ?? SpokenText(text: "")
            if MessageRendering.isForeignCTCP(words.text) {
                room.handle(.pass(words, annotations: clientTags.annotations), from: session.id, context)
            } else if MessageText.isBlank(words.text) {
                reply(.errNoTextToSend, "No text to send", to: session)
            } else {
                submit(words, clientTags, room, label: label, session)
            }
        }
    }

    /// Whether a message comes back to a room that it has passed: another bridge's mirror is the client, and says it here.
    private func hasPassed(_ room: Room, _ clientTags: [IRCTag]) -> Bool {
        guard clientTags.contains(where: { $0.name == OriginChain.tag }) else { return false }
        return OriginChain(tags: clientTags.annotations).contains(
            OriginChain.Place(room: room.settings.name, of: settings.instanceID))
    }

    private func submit(
        _ words: SpokenText, _ clientTags: [IRCTag], _ room: Room, label: String?, _ session: IRCSession
    ) {
        let replyTo = clientTags.first { $0.name == "+reply" || $0.name == "+draft/reply" }?.value
        let refusal = submitting(words.text, label: label, session) { label in
            room.handle(
                .submit(
                    Submission(
                        words: words, annotations: clientTags.annotations, replyTo: replyTo, label: label,
                        network: session.account == nil ? addressLimits.network(of: session.origin) : nil)),
                from: session.id, context)
        }
        if let refusal { fail("PRIVMSG", "QUEUE_FULL", [room.channel], refusal, session) }
    }

    /// Submits a client's message to a room. The echo answers its label, where the client gets one.
    ///
    /// - Returns: the refusal to send; nil: accepted, or the room reports it.
    private func submitting(
        _ text: String, label: String?, _ session: IRCSession, _ submit: (String?) -> RoomReply
    ) -> String? {
        let label = session.caps.contains(.echoMessage) ? label : nil
        // Deferred first: with a backend without confirmations the echo comes at once.
        if label != nil { session.deferResponse() }
        let reply = submit(label)
        if reply == .done, context.isDurable { session.accepted(under: context.ledger.next) }
        guard reply == .queueFull else { return nil }
        session.answerNow()
        return "Not taken, too many messages wait for the backend: " + MessageText.excerpt(text)
    }

    private func tagMessage(_ clientTags: [IRCTag], _ room: Room, _ session: IRCSession) {
        guard !clientTags.isEmpty else { return }
        if let state = clientTags.first(where: { $0.name == "+typing" || $0.name == "+draft/typing" })?.value {
            let isRelayed = clientTags.contains { $0.name == OriginChain.tag }
            room.handle(.type(state == "active", isRelayed: isRelayed), from: session.id, context)
        }
        if react(clientTags, room, session) { return }
        let isEvent = clientTags.contains { $0.name == IRCClientTags.persist }
        room.handle(.pass(nil, annotations: clientTags.annotations, isEvent: isEvent), from: session.id, context)
    }

    // MARK: - To a person

    private func toPerson(
        _ verb: MessageVerb, _ nick: String, _ words: SpokenText?, _ clientTags: [IRCTag], from person: Person,
        _ session: IRCSession
    ) {
        guard let (id, target) = context.identities.person(nick: nick) else {
            let shown = PrintableText.of(nick, maxBytes: 64)
            return refuse(verb, session.numeric(.errNoSuchNick, shown, "No such nick"), session)
        }
        guard id != service else { return toService(verb, words, clientTags, from: person, session) }
        guard target.isLocal else { return toUpstreamPerson(verb, target, words?.text, session) }
        guard verb != .tagmsg || !clientTags.isEmpty else { return }
        if verb == .tagmsg, let gone = reactsToTakenBack(clientTags) {
            return reply(
                ActionRefusal.unknownMessage.line("TAGMSG", target.nick, gone, from: settings.serverName), session)
        }
        let msgid = context.messageID(backend: settings.instanceID, room: "", sender: nil, id: nil)
        let tags = RoomSpeaker(person).tags(at: context.now.wall, msgid: msgid)
        let pair = keepPrivate(verb, words, clientTags, msgid: msgid, from: person, to: target, session)
        if verb != .tagmsg, let author = session.person {
            rememberPrivate(msgid: msgid, from: author, person, to: id, target, in: pair)
        }
        let head = IRCMessage(
            tags: tags + clientTags, source: person.source, command: verb.rawValue, params: [target.nick])
        let said = words.map { MessageRendering.utterance(head, $0) }
        func send(to client: ClientID) {
            if let said { deliver(said, to: client) } else { deliver(head, to: client) }
        }
        // A message to oneself is not part of the labeled response; its echo is.
        outbound.outsideResponse(session) {
            let deaf = clientsMuting(person)
            for client in target.clients where !deaf.contains(client) { send(to: client) }
        }
        if let said {
            outbound.echo(said, to: session.id, label: nil)
        } else {
            outbound.echo([head], to: session.id, label: nil)
        }
        // The person's other clients: a line from oneself to another person is understood only with these capabilities.
        for other in sessions(of: session.person) where other !== session && !target.clients.contains(other.id) {
            guard other.caps.contains(.echoMessage) || other.caps.contains(.selfMessage) else { continue }
            send(to: other.id)
        }
        if verb == .privmsg, let away = target.away {
            reply(.rplAway, target.nick, away, to: session)
        }
    }

    // MARK: - Multiline messages

    /// A PRIVMSG, NOTICE or TAGMSG of a batch; false: it is not part of one.
    func takeBatchedLine(_ message: IRCMessage, _ session: IRCSession) -> Bool {
        guard let step = session.batchedLine(message) else { return false }
        carryOut(step, session)
        return true
    }

    func carryOut(_ step: BatchStep, _ session: IRCSession) {
        switch step {
        case .taken: break
        case .refused(let line): reply(line, session)
        case .complete(let batch): multiline(batch, session)
        }
    }

    private func multiline(_ batch: IncomingBatch, _ session: IRCSession) {
        var penalty = IRCSession.penalty(lineCount: batch.lineCount)
        // A service command in a batch costs the same as in one line.
        if isService(batch.target) { penalty += servicePenalty(of: batch.words.text) - 1 }
        _ = session.budget.take(Double(penalty), now: context.now.monotonic)
        if let label = batch.label {
            // The line that ends the batch may have a label too; no other line answers it.
            outbound.finishResponse(session)
            session.response = IRCSession.LabeledResponse(label: label)
        }
        message(.privmsg, targets: [batch.target], words: batch.words, tags: batch.tags, session)
    }

    func squery(_ service: String?, _ text: String?, _ session: IRCSession) {
        if let service, let text, isService(service), !text.isEmpty {
            return message(.privmsg, targets: [service], words: SpokenText(text: text), tags: [], session)
        }
        let name = service.map { PrintableText.of($0, maxBytes: 64) } ?? "*"
        reply(.errNoSuchService, name.isEmpty ? "*" : name, "No such service", to: session)
    }

    // MARK: - RELAYMSG

    /// Source: Ergo, draft/relaymsg.
    func relay(_ channel: String, as name: String, _ text: String, _ tags: [IRCTag], _ session: IRCSession) {
        func refuse(_ code: String, _ text: String) {
            fail("RELAYMSG", code, [], text, session)
        }
        guard let room = room(channel: channel, for: session) else { return noSuchChannel(channel, session) }
        guard session.account?.mayRelay == true else {
            return refuse("PRIVS_NEEDED", "Your account may not say things under others' names")
        }
        guard session.rooms.contains(room.id) else {
            return notInRoom(room, session)
        }
        if let why = silence(in: room, session) { return reply(why, session) }
        if hasPassed(room, tags) { return }
        guard IRCNames.isValidNickname(name, maxBytes: settings.nicks.maxBytes, utf8: settings.nicks.utf8),
            RelayedName.isOne(name), context.identities.person(nick: name) == nil
        else {
            return refuse("INVALID_NICK", "A relayed name is name/network, legal as a nick, and nobody's nick")
        }
        guard !MessageText.isBlank(text), !MessageRendering.isForeignCTCP(text) else {
            return refuse("BLANK_MSG", "There is no text to relay")
        }
        guard lifecycle.isServing else { return refuse("CANNOT_DELIVER", "Not taken, the server is stopping") }
        session.spoke(at: context.now.wall)
        let label = session.response?.label
        let refusal = submitting(text, label: label, session) { label in
            room.submitRelayed(
                name, text, annotations: IRCClientTags.relayed(tags).annotations, label: label, from: session.id,
                context)
        }
        if let refusal { refuse("QUEUE_FULL", refusal) }
    }
}

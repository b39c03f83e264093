import ChatModel
import Dialects
import IRCProtocol

// What an account says under another's name: RELAYMSG, for bots that mirror a room of some other network.
//
// | who speaks upstream            | how the name goes up                                                   |
// |--------------------------------|------------------------------------------------------------------------|
// | each for themselves            | as a person of that name, with an id that follows from it              |
// | the one account, with a place for names | in that place                                                 |
// | the one account, without       | in front of the text, as other IRC users' nicks                        |
// | the relaying account itself    | in front of the text: `<name> `                                        |

/// A name of RELAYMSG.
enum RelayedName {
    /// What may stand between the name and where it comes from; one of them must.
    static let separators = "/"
    /// The tag that says who relayed.
    static let tag = "draft/relaymsg"

    static func isOne(_ name: String) -> Bool { name.contains { separators.contains($0) } }
}

extension Room {
    /// Takes a message for the backend under a name that is nobody's nick.
    func submitRelayed(
        _ name: String, _ text: String, annotations: [StoredTag], label: String?, from client: ClientID,
        _ context: BridgeContext
    ) -> SubmitRefusal? {
        guard let member = locals[client], let person = context.identities[member.person] else { return .notInRoom }
        let lane = lane(of: person)
        guard lane.outbox.count < settings.queueMaxMessages else { return .queueFull }
        context.noteChat("up", room: settings.name, nick: name, text)
        let puppet = context.identities.puppetID(nick: name, backend: settings.backend)
        let (sender, prefix) = relayedSender(name, puppet, over: lane, person)
        if settings.identity == .puppet, lane === self.lane { remember(author: puppet) }
        // An action names its author already.
        let action = MessageRendering.action(text)
        let words = MessageRendering.withoutFormatting(action.map { "* \(name) \($0)" } ?? text)
        let message = ChatMessage(
            id: context.freshChatID(), room: settings.upstreamRoom, sender: sender,
            text: action == nil ? prefix + words : words, at: context.now.wall)
        let tags = [StoredTag(name: RelayedName.tag, value: person.nick)] + annotations
        var entry = OutboxEntry(
            message: message,
            origin: OutboxEntry.Origin(
                client: client, person: nil, puppet: puppet, source: "\(name)!\(person.ident)@\(person.host)",
                nick: name, account: nil, text: text, clientTags: tags.map { ($0.name, $0.value) }, label: label,
                clientName: nil),
            acceptedAt: context.now.monotonic)
        entry.saidAfter = recent.lastSequence
        entry.line = .relay(person.nick)
        if context.isDurable {
            entry.state = .accepting(context.ledger.next)
            accept(entry, over: lane, context)
        }
        lane.outbox.append(entry)
        pump(lane, context)
        return nil
    }

    private func relayedSender(
        _ name: String, _ puppet: ChatID, over lane: SendLane, _ person: Person
    ) -> (sender: ChatPerson, prefix: String) {
        if lane !== self.lane { return (upstreamPerson(person, puppet), "<\(name)> ") }
        guard settings.identity == .single else { return (ChatPerson(id: puppet, name: name), "") }
        if traits.sendsSenderName { return (ChatPerson(id: accountPerson.id, name: name), "") }
        let prefix = settings.singlePrefix.replacing("{nick}", with: name)
        return (accountPerson, prefix.isEmpty ? "<\(name)> " : prefix)
    }
}

extension Bridge {
    /// RELAYMSG.
    ///
    /// Source: Ergo, draft/relaymsg.
    func relay(_ channel: String, as name: String, _ text: String, _ tags: [IRCTag], _ session: IRCSession) {
        func refuse(_ code: String, _ text: String) {
            reply(
                IRCMessage(source: settings.serverName, command: "FAIL", params: ["RELAYMSG", code, text]), session)
        }
        guard let room = room(channel: channel, for: session) else { return noSuchChannel(channel, session) }
        guard session.account?.mayRelay == true else {
            return refuse("PRIVS_NEEDED", "Your account may not say things under others' names")
        }
        guard session.rooms.contains(room.id) else {
            return reply(session.numeric(.errNotOnChannel, room.channel, "You're not in that room"), session)
        }
        if let why = silence(in: room, session) { return reply(why, session) }
        guard IRCNames.isValidNickname(name, maxBytes: settings.nicks.maxBytes, utf8: settings.nicks.utf8),
            RelayedName.isOne(name), context.identities.person(nick: name) == nil
        else {
            return refuse(
                "INVALID_NICK", "A relayed name is name/network, legal as a nick, and nobody's nick")
        }
        guard !MessageRendering.withoutFormatting(text).isEmpty, !MessageRendering.isForeignCTCP(text) else {
            return refuse("BLANK_MSG", "There is no text to relay")
        }
        guard phase == .running else { return refuse("CANNOT_DELIVER", "Not taken, the server is stopping") }
        session.lastSpokeAt = context.now.wall
        let label = session.caps.contains(.echoMessage) ? session.response?.label : nil
        if label != nil { session.response?.isDeferred = true }
        let refusal = room.submitRelayed(
            name, text, annotations: IRCClientTags.relayed(tags).annotations, label: label,
            from: session.id, context)
        if refusal == nil, context.isDurable {
            session.lastKept = context.ledger.next
            session.lastAccepted = context.ledger.next
        }
        guard refusal == .queueFull else { return }
        session.response?.isDeferred = false
        refuse("QUEUE_FULL", "Not taken, too many messages wait for the backend: " + MessageRendering.excerpt(text))
    }
}

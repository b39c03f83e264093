import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream

// RELAYMSG: messages under another name, for bots that mirror a room of another network.
//
// | upstream sender                | transmission of the name                                               |
// |--------------------------------|------------------------------------------------------------------------|
// | each IRC user                  | as a person of that name, with an id derived from it                   |
// | the one account, with a name field | in that field                                                      |
// | the one account, without       | in front of the text, as other IRC users' nicks                        |
// | the relaying account itself    | in front of the text: `<name> `                                        |

/// A name of RELAYMSG.
package enum RelayedName {
    /// Separators between the name and its network; one is required.
    package static let separators = "/"
    /// The tag with the relaying user.
    package static let tag = "draft/relaymsg"

    package static func isOne(_ name: String) -> Bool { name.contains { separators.contains($0) } }
}

/// A message under a name that is no user's nick.
package struct RelayedMessage {
    /// `name/network`.
    package var name: String
    /// As IRC users see it, CTCP ACTION and formatting included.
    package var text: String
    /// Client-only tags.
    package var annotations: [StoredTag]
    /// The msgid that it answers.
    package var replyTo: String?
    package var attachments: [ChatAttachment]
    /// At the end of the text upstream, invisible.
    package var mark: String

    package init(
        name: String, text: String, annotations: [StoredTag] = [], replyTo: String? = nil,
        attachments: [ChatAttachment] = [], mark: String = ""
    ) {
        self.name = name
        self.text = text
        self.annotations = annotations
        self.replyTo = replyTo
        self.attachments = attachments
        self.mark = mark
    }
}

extension Room {
    /// Submits a message of a client to the backend under another name.
    package func submitRelayed(
        _ name: String, _ text: String, annotations: [StoredTag], label: String?, from client: ClientID,
        _ context: RoomsContext
    ) -> RoomReply {
        guard let member = locals[client], let person = context.identities[member.person] else { return .notInRoom }
        let lane = lane(of: person)
        return relay(
            RelayedMessage(name: name, text: text, annotations: annotations), over: lane,
            by: (person.nick, person.ident, person.host), from: client, label: label, context
        ) {
            lane === self.lane ? relayedSender(name, $0) : (upstreamPerson(person, $0), "<\(name)> ")
        }
    }

    func relay(
        _ relayed: RelayedMessage, over lane: SendLane, by carrier: (nick: String, ident: String, host: String),
        from client: ClientID? = nil, label: String? = nil, _ context: RoomsContext,
        sender: (_ puppet: ChatID) -> (person: ChatPerson, prefix: String)
    ) -> RoomReply {
        guard !lane.isFull else { return .queueFull }
        let (name, text) = (relayed.name, relayed.text)
        context.noteChat("up", room: settings.name, nick: name, text)
        let puppet = context.identities.puppetID(nick: name, backend: settings.backend)
        let (person, prefix) = sender(puppet)
        if settings.identity == .puppet, lane === self.lane { remember(author: puppet) }
        // An action names its author already.
        let action = MessageText.action(text)
        let words = MessageText.withoutFormatting(action.map { "* \(name) \($0)" } ?? text)
        var whole = action == nil ? prefix + words : words
        let answered = relayed.replyTo.flatMap { recent.entry(msgid: $0) }.flatMap { $0.isTakenBack ? nil : $0 }
        let replyTo = carriesReplies ? answered?.upstreamID : nil
        if replyTo == nil, let answered { whole = "<\(answered.nick)> \(answered.excerpt)\n" + whole }
        let message = ChatMessage(
            id: context.freshMessageID(traits), room: settings.upstreamRoom, sender: person, text: whole + relayed.mark,
            at: context.now.wall, attachments: relayed.attachments, replyTo: replyTo)
        var tags = [StoredTag(name: RelayedName.tag, value: carrier.nick)] + relayed.annotations
        if let original = relayed.replyTo {
            tags += [StoredMessage.replyTag, "+draft/reply"].map { StoredTag(name: $0, value: original) }
        }
        let entry = OutboxEntry(
            message: message,
            origin: OutboxEntry.Origin(
                client: client, puppet: puppet,
                who: RoomSpeaker(nick: name, source: "\(name)!\(carrier.ident)@\(carrier.host)"), text: text,
                clientTags: tags.map { ($0.name, $0.value) }, label: label),
            acceptedAt: context.now.monotonic, saidAfter: recent.lastSequence, line: .relayed(tags, by: carrier.nick))
        lane.submit(entry, context)
        pump(lane, context)
        return .done
    }

    /// Over the room's link.
    func relayedSender(_ name: String, _ puppet: ChatID) -> (person: ChatPerson, prefix: String) {
        guard settings.identity == .single else { return (ChatPerson(id: puppet, name: name), "") }
        if traits.sendsSenderName { return (ChatPerson(id: accountPerson.id, name: name), "") }
        let prefix = settings.singlePrefix.replacing("{nick}", with: name)
        return (accountPerson, prefix.isEmpty ? "<\(name)> " : prefix)
    }
}

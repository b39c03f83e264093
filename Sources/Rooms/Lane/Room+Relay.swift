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

extension Room {
    /// Submits a message to the backend under a name that is not a nick.
    package func submitRelayed(
        _ name: String, _ text: String, annotations: [StoredTag], label: String?, from client: ClientID,
        _ context: RoomsContext
    ) -> RoomReply {
        guard let member = locals[client], let person = context.identities[member.person] else { return .notInRoom }
        let lane = lane(of: person)
        guard !lane.isFull else { return .queueFull }
        context.noteChat("up", room: settings.name, nick: name, text)
        let puppet = context.identities.puppetID(nick: name, backend: settings.backend)
        let (sender, prefix) = relayedSender(name, puppet, over: lane, person)
        if settings.identity == .puppet, lane === self.lane { remember(author: puppet) }
        // An action names its author already.
        let action = MessageText.action(text)
        let words = MessageText.withoutFormatting(action.map { "* \(name) \($0)" } ?? text)
        let message = ChatMessage(
            id: context.freshChatID(), room: settings.upstreamRoom, sender: sender,
            text: action == nil ? prefix + words : words, at: context.now.wall)
        let tags = [StoredTag(name: RelayedName.tag, value: person.nick)] + annotations
        let entry = OutboxEntry(
            message: message,
            origin: OutboxEntry.Origin(
                client: client, person: nil, puppet: puppet, source: "\(name)!\(person.ident)@\(person.host)",
                nick: name, account: nil, text: text, clientTags: tags.map { ($0.name, $0.value) }, label: label,
                clientName: nil),
            acceptedAt: context.now.monotonic, saidAfter: recent.lastSequence, line: .relay(person.nick))
        lane.submit(entry, context)
        pump(lane, context)
        return .done
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

import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms

// REDACT, and TAGMSG with a reaction.

extension IRCServer {
    /// Source: IRCv3 message-redaction.
    func redact(_ channel: String, _ msgid: String, reason: String?, _ session: IRCSession) {
        guard channel.hasPrefix("#") else { return redactPrivate(channel, msgid, reason: reason, session) }
        guard let room = room(channel: channel, for: session), session.rooms.contains(room.id) else {
            return fail(
                "REDACT", "INVALID_TARGET", [PrintableText.word(channel)],
                "Messages can be taken back only in a room that you are in", session)
        }
        let right: RedactionRight
        if let person = session.person, operators.contains(person) {
            right = .ofEveryone
        } else {
            right = mayModerate(room, session) ? .ofIRCUsers : .own
        }
        answer("REDACT", room, msgid, session) { .takeBack(msgid, reason: reason, right: right, label: $0) }
    }

    /// Carries out the reaction in a TAGMSG; false when there is none. One without a target is an ordinary tag.
    ///
    /// Source: IRCv3 react (client-only tags +draft/react and +draft/unreact).
    func react(_ clientTags: [IRCTag], _ room: Room, _ session: IRCSession) -> Bool {
        guard let tag = clientTags.first(where: { $0.name == "+draft/react" || $0.name == "+draft/unreact" }),
            let target = clientTags.first(where: { $0.name == "+reply" || $0.name == "+draft/reply" })?.value
        else { return false }
        answer("TAGMSG", room, target, session) {
            .react(
                tag.value ?? "", tag.name == "+draft/react" ? .add : .remove, on: target,
                annotations: clientTags.annotations, label: $0)
        }
        return true
    }

    /// Answers an action now, or leaves its label to the later answer.
    private func answer(
        _ verb: String, _ room: Room, _ msgid: String, _ session: IRCSession,
        _ command: (_ label: String?) -> RoomCommand
    ) {
        // Without echo-message no line could carry the label on success.
        let label = session.caps.contains(.echoMessage) ? session.response?.label : nil
        switch room.handle(command(label), from: session.id, context) {
        case .done, .unchanged, .notInRoom, .queueFull: break
        case .refused(let refusal): reply(refusal.line(verb, room.channel, msgid, from: settings.serverName), session)
        case .later: if label != nil { session.deferResponse() }
        }
    }
}

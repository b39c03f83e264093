import ChatModel
import IRCProtocol

// REDACT, and TAGMSG with a reaction.

extension Bridge {
    /// Source: IRCv3 message-redaction.
    func redact(_ channel: String, _ msgid: String, reason: String?, _ session: IRCSession) {
        func refuse(_ code: String, _ params: [String], _ text: String) {
            reply(
                IRCMessage(source: settings.serverName, command: "FAIL", params: ["REDACT", code] + params + [text]),
                session)
        }
        guard let room = room(channel: channel), session.rooms.contains(room.id) else {
            // Private messages go from one IRC client to another and are kept nowhere.
            return refuse(
                "INVALID_TARGET", [Self.word(channel)], "Messages can be taken back only in a room that you are in")
        }
        guard phase == .running else {
            return refuse(
                "CANNOT_DELIVER", [room.channel, Self.word(msgid)], "Not taken back, the server is stopping")
        }
        let isAdmin = session.account?.isAdmin == true
        if let refusal = room.redact(msgid, reason: reason, from: session.id, isAdmin: isAdmin, context) {
            refuse(refusal.code, [room.channel, Self.word(msgid)], refusal.text)
        }
    }

    /// Carries out the reaction in a TAGMSG, if there is one. False when it was refused, and nobody is to see it.
    ///
    /// Source: IRCv3 react (client-only tags +draft/react and +draft/unreact).
    func react(_ clientTags: [IRCTag], _ room: Room, _ session: IRCSession) -> Bool {
        guard let tag = clientTags.first(where: { $0.name == "+draft/react" || $0.name == "+draft/unreact" }) else {
            return true
        }
        let target = clientTags.first { $0.name == "+reply" || $0.name == "+draft/reply" }?.value
        let refusal: ActionRefusal?
        if let target {
            refusal = room.react(
                tag.value ?? "", tag.name == "+draft/react" ? .add : .remove, on: target, from: session.id, context)
        } else {
            refusal = ActionRefusal(code: "UNKNOWN_MSGID", text: "A reaction names its message with +reply")
        }
        guard let refusal else { return true }
        reply(
            .fail(
                "TAGMSG", refusal.code, room.channel, Self.word(target ?? "*"), text: refusal.text,
                source: settings.serverName), session)
        return false
    }

    /// What a client named, fit to be one parameter of an answer.
    private static func word(_ text: String) -> String {
        let shown = NickMaker.prefix(of: UpstreamSession.printable(text), maxBytes: 100)
        return shown.isEmpty || shown.contains(" ") || shown.hasPrefix(":") ? "*" : shown
    }
}

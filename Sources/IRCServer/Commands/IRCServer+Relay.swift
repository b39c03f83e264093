import Accounts
import BridgeTypes
import IRCProtocol
import Identities
import Rooms

// RELAYMSG: who may say things under others' names, and how they are answered.

extension IRCServer {
    /// RELAYMSG.
    ///
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
        guard IRCNames.isValidNickname(name, maxBytes: settings.nicks.maxBytes, utf8: settings.nicks.utf8),
            RelayedName.isOne(name), context.identities.person(nick: name) == nil
        else {
            return refuse("INVALID_NICK", "A relayed name is name/network, legal as a nick, and nobody's nick")
        }
        guard !MessageText.withoutFormatting(text).isEmpty, !MessageRendering.isForeignCTCP(text) else {
            return refuse("BLANK_MSG", "There is no text to relay")
        }
        guard lifecycle.phase == .running else { return refuse("CANNOT_DELIVER", "Not taken, the server is stopping") }
        session.spoke(at: context.now.wall)
        let label = session.response?.label
        let refusal = submitting(text, label: label, session) { label in
            room.handle(
                .relay(as: name, text: text, annotations: IRCClientTags.relayed(tags).annotations, label: label),
                from: session.id, context)
        }
        if let refusal { refuse("QUEUE_FULL", refusal) }
    }
}

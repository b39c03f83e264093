import ChatModel
import IRCProtocol

// Who is away. A person with several clients is here while one of them is: away is what the last of them says.

/// That a client of an account is away.
struct ClientAway {
    /// The text of a client that is as good as not there: it says nothing about the person while others do.
    ///
    /// Source: IRCv3 pre-away.
    static let absent = "*"

    var text: String
    /// Later ones are greater.
    var order: UInt64
}

extension Bridge {
    func awayReceived(_ text: String?, _ session: IRCSession) {
        let text = text.map { NickMaker.prefix(of: $0, maxBytes: IRCSession.maxAwayBytes) }
        guard session.person != nil else {
            session.earlyAway = text ?? ""
            return
        }
        setAway(text?.isEmpty == false ? text : nil, session)
    }

    func setAway(_ text: String?, _ session: IRCSession) {
        guard let personID = session.person else { return }
        let clean = text.map { IdentityMap.realname($0, maxBytes: IRCSession.maxAwayBytes) }
        if text == nil {
            reply(session.numeric(.rplUnAway, "You are no longer marked as being away"), session)
        } else {
            reply(session.numeric(.rplNowAway, "You have been marked as being away"), session)
        }
        guard session.account != nil else { return awayChanged(of: personID, to: clean, session) }
        setClientAway(clean, session)
        settleAway(of: personID, by: session)
    }

    func setClientAway(_ text: String?, _ session: IRCSession) {
        lastAway += 1
        session.away = text.map { ClientAway(text: $0, order: lastAway) }
    }

    /// Draws the conclusion for a person of an account from what each client says.
    ///
    /// - Parameter session: the one that said something, or came; nil: one went.
    func settleAway(of personID: PersonID, by session: IRCSession? = nil) {
        let clients = sessions(of: personID)
        let away = clients.compactMap(\.away)
        let told = away.filter { $0.text != ClientAway.absent }
        let newest = (told.isEmpty ? away : told).max { $0.order < $1.order }
        let text = away.count == clients.count ? newest?.text : nil
        if let session { return awayChanged(of: personID, to: text, session) }
        guard let other = clients.first else { return }
        awayChanged(of: personID, to: text, other, isToldToo: true)
    }

    /// - Parameter isToldToo: it is news to `session` as well.
    private func awayChanged(of personID: PersonID, to text: String?, _ session: IRCSession, isToldToo: Bool = false) {
        guard let person = context.identities[personID], text != person.away else { return }
        context.identities.modify(personID) { $0.away = text }
        for id in session.rooms { room(id)?.awayChanged(of: personID, context) }
        let line = IRCMessage(
            tags: stamp(person), source: person.source, command: "AWAY", params: text.map { [$0] } ?? [])
        tellPeers(of: session, line)
        if isToldToo { deliver(line, to: session.id, amid: session.rooms) }
    }
}

import BridgeTypes
import IRCProtocol
import Identities
import Rooms

// AWAY. A person with several clients is away once all of them are, with the text of the last.

extension IRCServer {
    func awayReceived(_ text: String?, _ session: IRCSession) {
        let text = text.map { PrintableText.prefix(of: $0, maxBytes: IRCSession.maxAwayBytes) }
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
            reply(.rplUnAway, "You are no longer marked as being away", to: session)
        } else {
            reply(.rplNowAway, "You have been marked as being away", to: session)
        }
        guard session.account != nil else { return awayChanged(of: personID, to: clean, session) }
        session.setAway(clean)
        settleAway(of: personID, by: session)
    }

    /// Derives the away state of an account's person from those of its clients.
    ///
    /// - Parameter session: the client that changed its state or connected; nil: one disconnected.
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

    /// Sets a person's away state, and notifies peers.
    ///
    /// - Parameter isToldToo: `session` is notified as well.
    private func awayChanged(of personID: PersonID, to text: String?, _ session: IRCSession, isToldToo: Bool = false) {
        guard let person = context.identities[personID], text != person.away else { return }
        context.identities.setAway(personID, text)
        for id in session.rooms { room(id)?.awayChanged(of: personID, context) }
        let line = line("AWAY", by: person, text.map { [$0] } ?? [])
        tellPeers(of: session, line)
        if isToldToo { deliver(line, to: session.id, amid: session.rooms) }
    }
}

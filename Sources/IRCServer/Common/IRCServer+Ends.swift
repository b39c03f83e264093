import Accounts
import BridgeTypes
import IRCProtocol
import Identities
import Rooms
import WireBytes

// How it ends for a client, and what others see of that.

extension IRCServer {
    /// Tells a client why, and closes.
    ///
    /// - Parameter isPassing: the client may come back at once.
    func close(_ session: IRCSession, reason: String, isPassing: Bool = false) {
        guard session.state != .closed else { return }
        if !isPassing || session.origin.isToldPassingEnds {
            deliver(
                IRCMessage(command: "ERROR", params: ["Closing Link: \(session.origin.address) (\(reason))"]),
                to: session.id)
        }
        outbound.finishResponse(session)
        quit(session, reason: reason)
        emit(.closeClient(session.id))
    }

    /// Takes the client out of everything and tells who saw them.
    func quit(_ session: IRCSession, reason: String) {
        if let personID = session.person, let person = context.identities[personID] {
            guard person.clients == [session.id] else { return quitAmongOthers(session, personID, reason) }
            let line = line("QUIT", by: person, [PrintableText.of(reason)])
            tellPeers(of: session, line)
            for id in session.rooms { room(id)?.handle(.leave, from: session.id, context) }
            whowas.record(person, at: context.now.wall)
            forgetPrivateMarkers(of: personID)
            context.identities.remove(personID)
            operators.forget(personID)
            counts.left()
        }
        noteEnd(of: session, reason)
        forget(session)
    }

    /// One client of a person goes; nobody else sees it while the person has others.
    private func quitAmongOthers(_ session: IRCSession, _ personID: PersonID, _ reason: String) {
        for id in session.rooms { room(id)?.handle(.leave, from: session.id, context) }
        context.identities.remove(session.id, from: personID)
        counts.left()
        noteEnd(of: session, reason)
        forget(session)
        settleAway(of: personID)
    }

    private func noteEnd(of session: IRCSession, _ reason: String) {
        context.note(
            .debug, "client-closed", "a client is gone",
            [
                "address": session.origin.address, "nick": session.nick ?? "",
                "reason": PrintableText.of(reason),
            ])
    }

    /// Nothing is left of the client, and no timer of its comes.
    func forget(_ session: IRCSession) {
        session.closed()
        outbound.remove(session.id)
        answeredLast(session)
        newcomers.forget(session.id)
        directory.forget(session.id)
        outbound.stopFollowing(session)
        monitors.forget(session.id)
        metadata.forget(session.id)
        choices.remove(session.id)
        logins.remove(session.id)
        privateMessages.forget(session.id)
        context.timers.cancel(.clientLiveness(session.id))
        context.timers.cancel(.clientBudget(session.id))
        context.timers.cancel(.history(session.id))
        context.timers.cancel(.autoJoin(session.id))
        context.timers.cancel(.loginAnswer(session.id))
        context.timers.cancel(.registration(session.id))
        addressLimits.closed(session.origin)
    }

    /// The client needs no more time before the bridge stops.
    func answeredLast(_ session: IRCSession) {
        guard lifecycle.answered(session.id) else { return }
        // Not at once: its input is being read.
        context.timers.set(.shutdown, at: context.now.monotonic)
    }

    /// Everything it sent is carried out, or has taken too long.
    func letGo(_ session: IRCSession) {
        quit(session, reason: "Connection closed")
        emit(.closeClient(session.id))
    }
}

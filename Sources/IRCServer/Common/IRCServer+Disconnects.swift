import Accounts
import BridgeTypes
import IRCProtocol
import Identities
import Rooms
import WireBytes

// Disconnecting a client, and the QUIT that others see.

extension IRCServer {
    /// Sends the reason, and closes.
    ///
    /// - Parameter isPassing: the client may reconnect at once.
    func close(_ session: IRCSession, reason: String, _ end: ClientTraffic.End = .error, isPassing: Bool = false) {
        guard session.state != .closed else { return }
        if !isPassing || session.origin.isToldPassingEnds {
            deliver(
                IRCMessage(command: "ERROR", params: ["Closing Link: \(session.origin.address) (\(reason))"]),
                to: session.id)
        }
        outbound.finishResponse(session)
        quit(session, reason: reason, end)
        emit(.closeClient(session.id))
    }

    /// Removes the client everywhere, and sends QUIT to its peers.
    func quit(_ session: IRCSession, reason: String, _ end: ClientTraffic.End) {
        if let personID = session.person, let person = context.identities[personID] {
            guard person.clients == [session.id] else { return quitAmongOthers(session, personID, reason, end) }
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
        forget(session, end)
    }

    /// Removes one client of a person; others see no QUIT while the person has more clients.
    private func quitAmongOthers(
        _ session: IRCSession, _ personID: PersonID, _ reason: String, _ end: ClientTraffic.End
    ) {
        for id in session.rooms { room(id)?.handle(.leave, from: session.id, context) }
        context.identities.remove(session.id, from: personID)
        counts.left()
        noteEnd(of: session, reason)
        forget(session, end)
        settleAway(of: personID)
    }

    private func noteEnd(of session: IRCSession, _ reason: String) {
        note(
            .debug, "client-closed", "a client is gone", of: session,
            ["nick": session.nick ?? "", "reason": PrintableText.of(reason)])
    }

    /// Releases all state and timers of the client.
    func forget(_ session: IRCSession, _ end: ClientTraffic.End) {
        session.closed()
        traffic.ended(session.origin, end)
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
        context.cancel(.clientLiveness(session.id))
        context.cancel(.clientBudget(session.id))
        context.cancel(.history(session.id))
        context.cancel(.autoJoin(session.id))
        context.cancel(.loginAnswer(session.id))
        context.cancel(.registration(session.id))
        addressLimits.closed(session.origin)
    }

    /// The client needs no more time before the bridge stops.
    func answeredLast(_ session: IRCSession) {
        guard lifecycle.answered(session.id) else { return }
        // Deferred: the client's input is being processed.
        context.set(.shutdown, at: context.now.monotonic)
    }

    /// Removes a half-closed client: its lines are processed, or the time for them is over.
    func letGo(_ session: IRCSession) {
        quit(session, reason: "Connection closed", .closed)
        emit(.closeClient(session.id))
    }

    // MARK: - By an administrator

    /// Closes a client's connection. False: there is none of that number.
    package func disconnect(_ client: ClientID, reason: String) -> Bool {
        guard let session = sessions[client], session.state != .closed else { return false }
        close(session, reason: reason)
        return true
    }

    /// The service `*bridge` as the sender of a message.
    package var serviceSpeaker: RoomSpeaker? { context.identities[service].map { RoomSpeaker($0) } }

    /// An open room by its channel.
    package func openRoom(channel: String) -> Room? { room(channel: channel) }
}

import IRCProtocol
import WireBytes

// How it ends: for one client, and what others see of that; for all of them, when the bridge stops.

extension Bridge {
    // MARK: - Of a client

    /// Tells a client why, and closes.
    ///
    /// - Parameter isPassing: the client may come back at once.
    func close(_ session: IRCSession, reason: String, isPassing: Bool = false) {
        guard session.state != .closed else { return }
        if !isPassing || tellsPassingEnds(session.origin) {
            deliver(
                IRCMessage(command: "ERROR", params: ["Closing Link: \(session.origin.address) (\(reason))"]),
                to: session.id, label: nil)
        }
        finishResponse(session)
        quit(session, reason: reason)
        context.emit(.closeClient(session.id))
    }

    /// Whether a client is told ERROR before it is closed for something that passes. Clients in browsers take ERROR for a word
    /// to stay away, and a Close without one for a reason to come back.
    func tellsPassingEnds(_ origin: ClientOrigin) -> Bool { !origin.isWebSocket }

    /// Takes the client out of everything and tells who saw them.
    func quit(_ session: IRCSession, reason: String) {
        if let personID = session.person, let person = context.identities[personID] {
            guard person.clients == [session.id] else { return quitAmongOthers(session, personID, reason) }
            let line = IRCMessage(
                tags: stamp(person),
                source: person.source, command: "QUIT", params: [UpstreamSession.printable(reason)])
            tellPeers(of: session, line)
            for id in session.rooms { room(id)?.leave(session.id, context) }
            whowas.remember(person, at: context.now.wall)
            forgetPrivateMarkers(of: personID)
            context.identities.remove(personID)
            forgetOperator(personID)
            if let account = person.account.map(AccountBook.fold), accountPeople[account] == personID {
                accountPeople[account] = nil
            }
            registeredCount -= 1
        }
        noteEnd(of: session, reason)
        forget(session)
    }

    /// One client of a person goes; nobody else sees it while the person has others.
    private func quitAmongOthers(_ session: IRCSession, _ personID: PersonID, _ reason: String) {
        for id in session.rooms { room(id)?.leave(session.id, context) }
        context.identities.modify(personID) { $0.clients.removeAll { $0 == session.id } }
        registeredCount -= 1
        noteEnd(of: session, reason)
        forget(session)
        settleAway(of: personID)
    }

    private func noteEnd(of session: IRCSession, _ reason: String) {
        context.note(
            .debug, "client-closed", "a client is gone",
            [
                "address": session.origin.address, "nick": session.nick ?? "",
                "reason": UpstreamSession.printable(reason),
            ])
    }

    /// A line for everybody who shares a room with the client, or is the same person, each once; not for the client
    /// itself.
    func tellPeers(of session: IRCSession, _ line: IRCMessage) {
        defer { tellMonitors(of: session.person, line) }
        if session.rooms.count == 1, let room = room(session.rooms[0]) {
            return broadcast(line, in: room, except: session.id)
        }
        var peers: Set<ClientID> = []
        for id in session.rooms { room(id)?.locals.keys.forEach { peers.insert($0) } }
        for other in sessions(of: session.person) { peers.insert(other.id) }
        peers.remove(session.id)
        for peer in peers.sorted(by: { $0.rawValue < $1.rawValue }) { deliver(line, to: peer, amid: session.rooms) }
    }

    // MARK: - Of the bridge

    /// How long clients have to say what they got. One that hangs gets a part again instead.
    private static let answerPatience: Duration = .seconds(2)

    /// Stops in order: what IRC users said still goes up, at most for the drain time; clients say what they have got, so that
    /// they do not get it again from the next process; then clients and backends are told.
    ///
    /// | phase    | meaning                                                       | leaves by                                     |
    /// |----------|---------------------------------------------------------------|-----------------------------------------------|
    /// | running  | as ever                                                       | shutdown → draining                           |
    /// | draining | nobody is let in, nothing more is taken; queues go up         | they are empty, the time is over → asking     |
    /// | asking   | clients with cursors are asked what they have got; what is said in their rooms now is for the next process to show them | all have answered or are gone, time-out → closing |
    /// | closing  | clients were told and closed, links say goodbye               | all links are gone → stopped                  |
    public func shutdown(now: Now) {
        context.now = now
        guard phase == .running else { return }
        openEverything()
        phase = .draining
        context.timers.set(.shutdown, at: now.monotonic + settings.drain)
        finishIfIdle()
    }

    func beginAsking() {
        guard phase == .draining else { return }
        phase = .asking
        for room in rooms { room.failEverything(why: "the bridge is stopping", context) }
        for session in sessions.values.sorted(by: { $0.id.rawValue < $1.id.rawValue }) {
            guard let following = session.following, following.client != nil else { continue }
            stopShowing(session, following)
            guard !hasEverything(following) else { continue }
            clientsToAnswer.insert(session.id)
            ask(session, following)
        }
        if clientsToAnswer.isEmpty { return beginClosing() }
        context.timers.set(.shutdown, at: context.now.monotonic + min(Self.answerPatience, settings.drain))
    }

    /// The client needs no more time before the bridge stops.
    func answeredLast(_ session: IRCSession) {
        guard phase == .asking, clientsToAnswer.remove(session.id) != nil, clientsToAnswer.isEmpty else { return }
        // Not at once: its input is being read.
        context.timers.set(.shutdown, at: context.now.monotonic)
    }

    func beginClosing() {
        guard phase == .asking else { return }
        phase = .closing
        context.timers.cancel(.shutdown)
        for room in rooms { room.stopCatchingUp(context) }
        for session in sessions.values.sorted(by: { $0.id.rawValue < $1.id.rawValue }) {
            if session.caps.contains(.standardReplies) {
                deliver(
                    .note("*", "SHUTDOWN", text: "The server is restarting; reconnect.", source: settings.serverName),
                    to: session.id, label: nil)
            } else if session.person != nil {
                deliver(
                    IRCMessage(
                        source: settings.serverName, command: "NOTICE",
                        params: [session.displayNick, "The server is restarting; reconnect."]), to: session.id,
                    label: nil)
            }
            if tellsPassingEnds(session.origin) {
                deliver(
                    IRCMessage(
                        command: "ERROR",
                        params: ["Closing Link: \(session.origin.address) (server restarting, reconnect)"]),
                    to: session.id, label: nil)
            }
            context.emit(.closeClient(session.id))
            forget(session)
        }
        for room in rooms {
            room.stopForGood(context)
        }
        for own in context.ownLinks.values.sorted(by: { $0.id.index > $1.id.index }) {
            own.endClosing()
            drive(own.id) { link, _ in link.stop(context) }
        }
    }

    func finishIfIdle() {
        let own = context.ownLinks.values
        if phase == .draining, rooms.allSatisfy({ $0.lanes.allSatisfy(\.outbox.isEmpty) }) { beginAsking() }
        if phase == .closing, rooms.allSatisfy({ $0.link.state == .stopped }),
            own.allSatisfy({ $0.link.state == .stopped })
        {
            phase = .stopped
            context.emit(.stopped)
        }
    }
}

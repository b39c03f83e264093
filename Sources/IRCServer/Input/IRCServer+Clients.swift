import BridgeTypes
import IRCProtocol
import Rooms
import WireBytes

// What happens to clients' connections.

extension IRCServer {
    package func clientOpened(_ id: ClientID, origin: ClientOrigin) {
        if let refusal = refusal(of: origin) {
            context.note(.warn, "client-refused", "a connection was refused: \(refusal)", ["address": origin.address])
            if lifecycle.phase == .running || origin.isToldPassingEnds {
                let line = IRCMessage(command: "ERROR", params: ["Closing Link: \(origin.address) (\(refusal))"])
                IRCEncoder.append(line, to: &context.writer)
                emit(.send(id, context.writer.take()))
            }
            emit(.closeClient(id))
            return
        }
        outbound.insert(
            IRCSession(id: id, origin: origin, offer: offer(for: origin), terms: sessionTerms, now: context.now))
        addressLimits.opened(origin)
        context.timers.set(.clientLiveness(id), at: context.now.monotonic + settings.limits.registrationTimeout)
        context.note(.debug, "client-connected", "a client connected", ["address": origin.address])
    }

    private func refusal(of origin: ClientOrigin) -> String? {
        if lifecycle.phase != .running { return "the server is stopping" }
        if sessions.count >= settings.limits.maxClients { return "too many clients" }
        return addressLimits.refusal(of: origin, now: context.now.monotonic)
    }

    package func clientReceived(_ id: ClientID, _ bytes: UnsafeRawBufferPointer) {
        guard let session = sessions[id], session.state != .closed else { return }
        if let foreign = session.receive(bytes, now: context.now.monotonic) { return turnAway(session, foreign) }
        processInput(session)
    }

    /// The client's queue is empty: long answers go on.
    package func clientDrained(_ id: ClientID) {
        guard let session = sessions[id] else { return }
        session.undrainedBytes = 0
        goOn(session)
    }

    /// The connection is gone. `reason` is shown in the QUIT.
    package func clientClosed(_ id: ClientID, reason: String) {
        guard let session = sessions[id] else { return }
        // What came with a JOIN that waits was heard, too.
        if session.isAwaitingJoin { noteEnd(of: session) }
        if session.hasEnded { return readerGone(session) }
        quit(session, reason: reason)
    }

    // MARK: - The end of what a client sends

    // Clients that say what they have to say, end their sending side, and perhaps read on: scripts, mostly.
    //
    // | what waits when the client ends its sending side | then                                                            |
    // |--------------------------------------------------|-----------------------------------------------------------------|
    // | nothing                                          | it is gone                                                      |
    // | lines, for the flood budget                      | they are carried out at the client's rate; QUIT ends it as ever |
    // | a long answer, or a word of somebody else's      | the same, behind that                                           |
    // | any of these, after ``lastWordsWait``             | it is gone                                                      |
    //
    // A client that does not read any more either is answered in vain, and its lines are carried out all the same: they came.

    /// How long lines that came before a client's end may take. At the usual rate that is more than a script says, and
    /// whoever only wants to go is not seen for long.
    static let lastWordsWait: Duration = .seconds(60)

    /// The client sends no more, and may still read.
    ///
    /// - Returns: something of what it sent is yet to be carried out, so lines go on being sent to it; it is closed by
    ///   ``BridgeAction/closeClient(_:)`` in the end. False: it is gone.
    package func clientEnded(_ id: ClientID) -> Bool {
        guard let session = sessions[id] else { return false }
        noteEnd(of: session)
        processInput(session)
        return session.state != .closed
    }

    func noteEnd(of session: IRCSession) {
        guard session.sendingEnded() else { return }
        context.timers.set(.clientLiveness(session.id), at: context.now.monotonic + Self.lastWordsWait)
    }

    /// It does not read either.
    func readerGone(_ session: IRCSession) {
        session.readingEnded()
        goOn(session)
    }

    // MARK: - Whether it is still there

    package func checkLiveness(_ session: IRCSession) {
        let now = context.now.monotonic
        if session.hasEnded { return letGo(session) }
        guard session.person != nil else {
            return close(session, reason: "Registration timed out")
        }
        if let sent = session.pingSentAt {
            // Whoever we do not read cannot answer.
            if now - sent >= settings.limits.pingTimeout, !session.isReadingPaused {
                return close(session, reason: "Ping timeout", isPassing: true)
            }
            context.timers.set(
                .clientLiveness(session.id), at: max(sent + settings.limits.pingTimeout, now + .seconds(1)))
            return
        }
        let due = session.lastReceivedAt + settings.limits.pingInterval
        if now >= due {
            // What asks whether it has got its lines asks whether it lives.
            if session.following != nil { askForCursors(session) }
            if session.lineReceipts?.isAsking != true {
                deliver(IRCMessage(command: "PING", params: [settings.serverName]), to: session.id)
            }
            session.pingSentAt = now
            context.timers.set(.clientLiveness(session.id), at: now + settings.limits.pingTimeout)
        } else {
            context.timers.set(.clientLiveness(session.id), at: due)
        }
    }
}

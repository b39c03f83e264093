import BridgeTypes
import IRCProtocol
import Rooms
import WireBytes

// Events of client connections.

extension IRCServer {
    package func clientOpened(_ id: ClientID, origin: ClientOrigin) {
        if let refusal = refusal(of: origin) {
            context.note(.warn, "client-refused", "a connection was refused: \(refusal)", ["address": origin.address])
            traffic.limited(.connections)
            if lifecycle.isServing || origin.isToldPassingEnds {
                let line = IRCMessage(command: "ERROR", params: ["Closing Link: \(origin.address) (\(refusal))"])
                context.write { IRCEncoder.append(line, to: &$0) }
                emit(.send(id, context.takeWritten()))
            }
            emit(.closeClient(id))
            return
        }
        let session = IRCSession(
            id: id, origin: origin, offer: offer(for: origin), terms: sessionTerms, now: context.now)
        outbound.insert(session)
        addressLimits.opened(origin)
        traffic.opened(origin)
        context.set(.clientLiveness(id), at: context.now.monotonic + settings.limits.registrationTimeout)
        note(.debug, "client-connected", "a client connected", of: session)
    }

    /// Logs an event of a client, under the number by which `chatbridge clients` lists it. Nil: it is gone.
    func note(
        _ level: BridgeNote.Level, _ event: String, _ text: String, of session: IRCSession?,
        _ metadata: NoteMetadata = [:]
    ) {
        guard let session else { return context.note(level, event, text, metadata) }
        let about: NoteMetadata = ["client": String(session.id.rawValue), "address": session.origin.address]
        context.note(level, event, text, metadata.behind(about))
    }

    private func refusal(of origin: ClientOrigin) -> String? {
        if !lifecycle.isServing { return "the server is stopping" }
        if sessions.count >= settings.limits.maxClients { return "too many clients" }
        return addressLimits.refusal(of: origin, now: context.now.monotonic)
    }

    package func clientReceived(_ id: ClientID, _ bytes: UnsafeRawBufferPointer) {
        guard let session = sessions[id], session.state != .closed else { return }
        if let foreign = session.receive(bytes, now: context.now.monotonic) { return turnAway(session, foreign) }
        processInput(session)
    }

    /// The client's send queue is empty: long answers continue.
    package func clientDrained(_ id: ClientID) {
        guard let session = sessions[id] else { return }
        session.undrainedBytes = 0
        goOn(session)
    }

    /// The connection is closed. `reason` is shown in the QUIT.
    package func clientClosed(_ id: ClientID, reason: String) {
        guard let session = sessions[id] else { return }
        // Lines behind a pending JOIN are still processed.
        if session.isAwaitingJoin { noteEnd(of: session) }
        if session.hasEnded { return readerGone(session) }
        quit(session, reason: reason, .init(connection: reason))
    }

    // MARK: - Half-closed connections

    // The client, usually a script, sends its lines, shuts down its sending side, and may read on.
    //
    // | pending when the client shuts down its sending side | then                                                  |
    // |-----------------------------------------------------|-------------------------------------------------------|
    // | none                                                | it is removed                                         |
    // | lines, for the flood budget                         | processed at the client's rate; QUIT ends the session |
    // | a long answer, or a pending verdict                 | the same, behind that                                 |
    // | any of these, after ``lastWordsWait``               | it is removed                                         |
    //
    // With the reading side closed too, answers are lost, and the lines are processed all the same.

    /// Longest time to process the lines of a half-closed connection. At the usual rate it suffices for a script, and a
    /// client that only disconnects does not stay visible for long.
    static let lastWordsWait: Duration = .seconds(60)

    /// The client sends no more, and may still read.
    ///
    /// - Returns: lines are still to be processed, so output continues until ``BridgeAction/closeClient(_:)``. False:
    ///   the client is removed.
    package func clientEnded(_ id: ClientID) -> Bool {
        guard let session = sessions[id] else { return false }
        noteEnd(of: session)
        processInput(session)
        return session.state != .closed
    }

    func noteEnd(of session: IRCSession) {
        guard session.sendingEnded() else { return }
        context.set(.clientLiveness(session.id), at: context.now.monotonic + Self.lastWordsWait)
    }

    /// The client does not read either.
    func readerGone(_ session: IRCSession) {
        session.readingEnded()
        goOn(session)
    }

    // MARK: - Liveness

    package func checkLiveness(_ session: IRCSession) {
        let now = context.now.monotonic
        if session.hasEnded { return letGo(session) }
        guard session.person != nil else {
            return close(session, reason: "Registration timed out", .login)
        }
        if let sent = session.pingSentAt {
            // While reading is paused, its PONG cannot be received.
            if now - sent >= settings.limits.pingTimeout, !session.isReadingPaused {
                return close(session, reason: "Ping timeout", .ping, isPassing: true)
            }
            context.set(
                .clientLiveness(session.id), at: max(sent + settings.limits.pingTimeout, now + .seconds(1)))
            return
        }
        guard let due = settings.limits.pingInterval.map({ session.lastReceivedAt + $0 }) else { return }
        if now >= due {
            // A ping for delivery acknowledgements also checks liveness.
            if session.following != nil { askForCursors(session) }
            if session.lineReceipts?.isAsking != true {
                deliver(IRCMessage(command: "PING", params: [settings.serverName]), to: session.id)
            }
            session.pingSentAt = now
            context.set(.clientLiveness(session.id), at: now + settings.limits.pingTimeout)
        } else {
            context.set(.clientLiveness(session.id), at: due)
        }
    }
}

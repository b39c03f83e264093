import BridgeTypes
import IRCProtocol
import Rooms
import WireBytes

// What happens to clients' connections.

extension IRCServer {
    package func clientOpened(_ id: ClientID, origin: ClientOrigin) {
        if let refusal = refusal(of: origin) {
            context.note(
                .warn, "client-refused", "a connection was refused: \(refusal)", ["address": origin.address])
            if lifecycle.phase == .running || tellsPassingEnds(origin) {
                let line = IRCMessage(command: "ERROR", params: ["Closing Link: \(origin.address) (\(refusal))"])
                IRCEncoder.append(line, to: &context.writer)
                emit(.send(id, context.writer.take()))
            }
            emit(.closeClient(id))
            return
        }
        outbound.insert(
            IRCSession(id: id, origin: origin, offer: offer(for: origin), terms: sessionTerms, now: context.now))
        addressLimits.opened(countedNetwork(of: origin))
        context.timers.set(.clientLiveness(id), at: context.now.monotonic + settings.limits.registrationTimeout)
        context.note(.debug, "client-connected", "a client connected", ["address": origin.address])
    }

    private func refusal(of origin: ClientOrigin) -> String? {
        if lifecycle.phase != .running { return "the server is stopping" }
        if sessions.count >= settings.limits.maxClients { return "too many clients" }
        return addressLimits.refusal(of: countedNetwork(of: origin), now: context.now.monotonic)
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
        pullLongAnswers(session)
        processInput(session)
    }

    /// The connection is gone. `reason` is shown in the QUIT.
    package func clientClosed(_ id: ClientID, reason: String) {
        guard let session = sessions[id] else { return }
        // What came with a JOIN that waits was heard, too.
        if session.isAwaitingJoin { noteEnd(of: session) }
        if session.hasEnded { return readerGone(session) }
        quit(session, reason: reason)
    }
}

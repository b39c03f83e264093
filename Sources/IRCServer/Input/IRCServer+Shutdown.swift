import BridgeTypes
import IRCProtocol
import Rooms
import WireBytes

// Notifying clients when the bridge stops.

extension IRCServer {
    /// Probes the delivery cursors of clients without full acknowledgement.
    package func askWhatArrived() {
        for session in sessions.values.sorted(by: { $0.id.rawValue < $1.id.rawValue }) {
            guard let following = session.following, following.client != nil else { continue }
            stopShowing(session, following)
            guard !following.hasEverything(newestPlace) else { continue }
            lifecycle.awaitAnswer(of: session.id)
            ask(session, following)
        }
    }

    /// Plans the end of each client's connection.
    ///
    /// - Parameter until: the time for the last one, where there are many.
    package func planDepartures(until end: MonotonicInstant) {
        let clients = sessions.keys.sorted { $0.rawValue < $1.rawValue }
        let plan = context.withTurn { turn in
            let now = turn.now.monotonic
            return turn.draw { Departures(of: clients, now: now, over: max(.zero, end - now), using: &$0) }
        }
        lifecycle.plan(plan)
    }

    /// Notifies and closes the clients whose moment has come.
    ///
    /// - Returns: the moment of the next one; nil: all are gone.
    package func continueDepartures() -> MonotonicInstant? {
        while let id = lifecycle.nextDeparture(context.now.monotonic) {
            if let session = sessions[id] { sayGoodbye(session) }
        }
        return sessions.isEmpty ? nil : lifecycle.departures.next
    }

    private func sayGoodbye(_ session: IRCSession) {
        if session.caps.contains(.standardReplies) {
            deliver(
                .note("*", "SHUTDOWN", text: "The server is restarting; reconnect.", source: settings.serverName),
                to: session.id)
        } else if session.person != nil {
            deliver(
                serverLine("NOTICE", [session.displayNick, "The server is restarting; reconnect."]), to: session.id)
        }
        if session.origin.isToldPassingEnds {
            deliver(
                IRCMessage(
                    command: "ERROR",
                    params: ["Closing Link: \(session.origin.address) (server restarting, reconnect)"]),
                to: session.id)
        }
        emit(.closeClient(session.id))
        forget(session, .drain)
    }
}

import BridgeTypes
import IRCProtocol

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

    /// Notifies all clients, and closes them.
    package func sayGoodbye() {
        for session in sessions.values.sorted(by: { $0.id.rawValue < $1.id.rawValue }) {
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
}

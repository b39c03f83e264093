import BridgeTypes
import IRCProtocol
import Rooms
import WireBytes

// Whether a client is still there.

extension IRCServer {
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
                deliver(IRCMessage(command: "PING", params: [settings.serverName]), to: session.id, label: nil)
            }
            session.pingSentAt = now
            context.timers.set(.clientLiveness(session.id), at: now + settings.limits.pingTimeout)
        } else {
            context.timers.set(.clientLiveness(session.id), at: due)
        }
    }
}

import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms

// Capabilities and values that depend on the connection and the current state: login mechanisms, and account
// registration.

extension IRCServer {
    /// Whether a client of this origin may register an account now.
    func offersRegistration(to origin: ClientOrigin) -> Bool {
        guard keepsAccounts, origin.allowsLogin, context.ledger.condition == .sound else { return false }
        return settings.registration == .everybody || origin.isListenerLocal
    }

    /// The login mechanisms that can succeed on a connection of this origin.
    func mechanisms(for origin: ClientOrigin) -> [SASLMechanism] {
        guard origin.allowsLogin else { return [] }
        return settings.saslMechanisms.filter { mechanism in
            switch mechanism {
            case .plain, .scramSHA256: !accounts.isEmpty || offersRegistration(to: origin)
            case .external: accounts.hasCertificates && origin.security.certificate != nil
            case .oauthBearer: logins.acceptsTokens
            }
        }
    }

    func offer(for origin: ClientOrigin) -> CapabilityOffer {
        offers[
            CapabilityOffer.Grounds(
                mechanisms: mechanisms(for: origin), registers: offersRegistration(to: origin),
                hasAccounts: hasAccounts,
                sts: origin.sts, relays: accounts.mayRelay)]
    }

    /// Announces changed capabilities to connected clients.
    ///
    /// Source: IRCv3 capability-negotiation, "cap-notify".
    package func offersChanged() {
        for session in sessions.values.sorted(by: { $0.id.rawValue < $1.id.rawValue }) {
            let before = session.caps
            for line in session.offered(offer(for: session.origin)) { reply(capLine(line, session), session) }
            if session.caps != before, session.person != nil { capabilitiesChanged(session) }
        }
    }

    func capLine(_ reply: IRCCapabilityNegotiation.Reply, _ session: IRCSession) -> IRCMessage {
        serverLine("CAP", [session.displayNick, reply.subcommand] + reply.params)
    }

    func capabilitiesChanged(_ session: IRCSession) {
        for id in session.rooms {
            guard let room = room(id), let member = room.locals[session.id] else { continue }
            channels[id]?.profileChanged(member, session.caps.renderingProfile, in: room)
            member.showsReadMarkers(session.caps.contains(.readMarker))
        }
    }
}

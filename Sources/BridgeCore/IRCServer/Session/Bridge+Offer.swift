import ChatModel
import Digests
import IRCProtocol

// What a client may negotiate, where that depends on how it came and on what there is at this moment: ways to log in, and
// making an account.

/// What the capabilities of a new session begin with.
struct CapabilityOffer {
    var available: IRCCapabilitySet
    /// What stands behind `name=`.
    var values: [IRCCapability: String]

    /// What decides about it. Few different ones exist, so that sessions share the values.
    struct Grounds: Hashable {
        var mechanisms: [SASLMechanism]
        var registers: Bool
        var hasAccounts: Bool
        var sts: STSAnnouncement?
        var relays: Bool
    }
}

extension Bridge {
    /// Whether people can be somebody here, now or later.
    var hasAccounts: Bool { !accounts.isEmpty || keepsAccounts || bearerBackend != nil }

    /// Whether accounts can be made at all, by whomever.
    private var keepsAccounts: Bool { settings.registration != .nobody && context.isDurable }

    /// Whether a client that came like this may make an account now.
    func offersRegistration(to origin: ClientOrigin) -> Bool {
        guard keepsAccounts, origin.allowsLogin, context.ledger.condition == .sound else { return false }
        return settings.registration == .everybody || origin.isListenerLocal
    }

    /// Whether an account may be made before the client is let in. Not where a password keeps strangers out: whoever makes an
    /// account would not need it.
    var registersBeforeConnect: Bool { settings.registersBeforeConnect && settings.password == nil }

    /// The ways to log in that can succeed on a connection like this.
    func mechanisms(for origin: ClientOrigin) -> [SASLMechanism] {
        guard origin.allowsLogin else { return [] }
        return settings.saslMechanisms.filter { mechanism in
            switch mechanism {
            case .plain, .scramSHA256: !accounts.isEmpty || offersRegistration(to: origin)
            case .external: accounts.hasCertificates && origin.security.certificate != nil
            case .oauthBearer: bearerBackend != nil
            }
        }
    }

    func offer(for origin: ClientOrigin) -> CapabilityOffer {
        let grounds = CapabilityOffer.Grounds(
            mechanisms: mechanisms(for: origin), registers: offersRegistration(to: origin), hasAccounts: hasAccounts,
            sts: origin.sts, relays: accounts.mayRelay)
        if let known = offers[grounds] { return known }
        var offer = CapabilityOffer(available: IRCSession.capabilities, values: sessionTerms.capabilityValues)
        if grounds.hasAccounts { offer.available.formUnion(IRCSession.accountCapabilities) }
        if !grounds.mechanisms.isEmpty {
            offer.available.insert(.sasl)
            offer.values[.sasl] = grounds.mechanisms.map(\.rawValue).joined(separator: ",")
        }
        if let sts = grounds.sts {
            offer.available.insert(.sts)
            offer.values[.sts] = sts.text
        }
        if grounds.relays {
            offer.available.insert(.relaymsg)
            offer.values[.relaymsg] = RelayedName.separators
        }
        if grounds.registers {
            offer.available.insert(.accountRegistration)
            offer.values[.accountRegistration] =
                registersBeforeConnect ? "before-connect,custom-account-name" : "custom-account-name"
        }
        offers[grounds] = offer
        return offer
    }

    /// Something that an offer depends on has changed: whoever is here hears of it.
    ///
    /// Source: IRCv3 capability-negotiation, "cap-notify".
    func offersChanged() {
        for session in sessions.values.sorted(by: { $0.id.rawValue < $1.id.rawValue }) {
            let offer = offer(for: session.origin)
            let before = session.caps
            let replies = session.negotiation.availabilityChanged(to: offer.available, values: offer.values)
            for line in replies {
                reply(capLine(line, session), session)
            }
            if session.caps != before, session.person != nil { capabilitiesChanged(session) }
        }
    }
    // MARK: - CAP

    /// Source: IRCv3 capability-negotiation.
    func negotiate(_ params: [String], _ session: IRCSession) {
        let before = session.caps
        let listBytes = IRCCapabilityNegotiation.listBytes(server: settings.serverName, nick: session.displayNick)
        switch session.negotiation.commandReceived(
            params: params, isRegistered: session.person != nil, listBytes: listBytes)
        {
        case .replies(let replies):
            for line in replies { reply(capLine(line, session), session) }
            if session.caps != before, session.person != nil { capabilitiesChanged(session) }
        case .ended: goOnRegistering(session)
        case .invalid(let subcommand):
            reply(session.numeric(.errInvalidCapCmd, subcommand, "Invalid CAP command"), session)
        case .needMoreParams: needMoreParams("CAP", session)
        }
    }

    private func capLine(_ reply: IRCCapabilityNegotiation.Reply, _ session: IRCSession) -> IRCMessage {
        IRCMessage(
            source: settings.serverName, command: "CAP",
            params: [session.displayNick, reply.subcommand] + reply.params)
    }

    private func capabilitiesChanged(_ session: IRCSession) {
        for id in session.rooms {
            guard let room = room(id), let member = room.locals[session.id] else { continue }
            channels[id]?.profileChanged(member, session.caps.renderingProfile, in: room)
            member.hasReadMarker = session.caps.contains(.readMarker)
        }
    }
}

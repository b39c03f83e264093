import Digests
import IRCProtocol
public import WireBytes

// Gateways that connect for somebody else, with WEBIRC: a web client's server, say, whose users would otherwise all come
// from one address.
//
// Only the address is taken over, for limits, the throttle and the log. Nobody is shown where somebody connects from, so a
// gateway cannot forge what people see; and it does not make anybody local, whatever it says.
//
// Source: IRCv3 webirc.

/// A gateway whose word about the addresses of its users is taken.
public struct GatewaySettings: Equatable, Sendable {
    public var password: ServerPassword
    public var from: [NetworkRange]
    /// Whether it may come over a socket file.
    public var fromUnix: Bool

    public init(password: ServerPassword, from: [NetworkRange], fromUnix: Bool = false) {
        self.password = password
        self.from = from
        self.fromUnix = fromUnix
    }

    func mayConnect(from address: String) -> Bool {
        guard let numeric = NetworkAddress(address) else { return fromUnix && address == ClientOrigin.localName }
        return from.contains { $0.contains(numeric) }
    }
}

extension ClientOrigin {
    /// Stands for the address of whoever comes over a socket file.
    public static let localName = "localhost"
}

/// What a gateway said, while its password is being checked.
struct GatewayTry {
    var name: String
    /// The user's.
    var address: NetworkAddress
    var password: SecretBytes
    /// Which of the settings are still to be tried, the one under way first.
    var candidates: [Int]
}

extension Bridge {
    /// Bytes of a gateway's name that are logged.
    private static let maxGatewayNameBytes = 64

    func isGateway(_ origin: ClientOrigin) -> Bool {
        settings.gateways.contains { $0.mayConnect(from: origin.address) }
    }

    /// A client sent WEBIRC. Whoever may not is told so and closed: going on would count it, and its user, as itself.
    ///
    /// Host name and options are not of use: nobody is shown where somebody connects from, and whether the gateway and its
    /// client have TLS between them decides nothing.
    func announceClient(_ session: IRCSession, password: String, gateway: String, address: String) {
        guard session.person == nil else { return alreadyRegistered(session) }
        guard session.isFresh else {
            return refuseGateway(session, "WEBIRC must come before everything else", gateway)
        }
        let candidates = settings.gateways.indices.filter {
            settings.gateways[$0].mayConnect(from: session.origin.address)
        }
        guard !candidates.isEmpty else { return refuseGateway(session, "You may not use WEBIRC", gateway) }
        guard let numeric = NetworkAddress(address) else {
            return refuseGateway(session, "WEBIRC with an address that is none", gateway)
        }
        session.gatewayTry = GatewayTry(
            name: NickMaker.prefix(of: gateway, maxBytes: Self.maxGatewayNameBytes), address: numeric,
            password: SecretBytes(password.utf8), candidates: candidates)
        checkGateway(session)
    }

    /// Looks for the settings with this password: at once where that is quick, beside the loop where it is not.
    private func checkGateway(_ session: IRCSession) {
        guard var tried = session.gatewayTry else { return }
        // A gateway connects for each of its users: what was right once is remembered, or each would cost a core's second.
        let isKnown = tried.candidates.contains { index in
            if case .plain(let wanted) = settings.gateways[index].password { return wanted == tried.password }
            return knownGatewayPasswords[index].map { $0 == tried.password } ?? false
        }
        if isKnown { return admitGateway(session, tried) }
        while let index = tried.candidates.first {
            if case .hashed(let verifier) = settings.gateways[index].password {
                session.gatewayTry = tried
                return check(tried.password, against: verifier, nil, .gateway, session)
            }
            tried.candidates.removeFirst()
        }
        session.passwordTry = PasswordTry(attempt: 0, purpose: .gateway)
        refuseLater(session)
    }

    func gatewayChecked(_ session: IRCSession, _ verdict: PasswordVerdict) {
        guard var tried = session.gatewayTry else { return }
        switch verdict {
        case .correct:
            if let index = tried.candidates.first { knownGatewayPasswords[index] = tried.password }
            admitGateway(session, tried)
            processInput(session)
        case .wrong:
            tried.candidates.removeFirst()
            session.gatewayTry = tried
            checkGateway(session)
        case .unavailable: close(session, reason: "Too many people log in at this moment; try again")
        }
    }

    private func admitGateway(_ session: IRCSession, _ tried: GatewayTry) {
        let gatewayAddress = session.origin.address
        session.passwordTry = nil
        session.gatewayTry = nil
        session.forgetUnusedLogin()
        loginThrottle.succeeded(gatewayAddress, .gateway)
        var origin = session.origin
        origin.address = tried.address.description
        origin.isLocal = tried.address.isLoopback
        origin.isListenerLocal = false
        if let refusal = move(session, to: origin) {
            context.note(
                .warn, "client-refused", "a connection was refused: \(refusal)",
                ["address": origin.address, "gateway": tried.name])
            return close(session, reason: refusal)
        }
        context.note(
            .debug, "client-gateway", "a gateway connects for a client",
            ["address": origin.address, "gateway": tried.name, "gateway-address": gatewayAddress])
    }

    private func refuseGateway(_ session: IRCSession, _ why: String, _ gateway: String) {
        context.note(
            .warn, "client-gateway-refused", "a client used WEBIRC in vain: \(why)",
            [
                "address": session.origin.address,
                "gateway": UpstreamSession.printable(NickMaker.prefix(of: gateway, maxBytes: Self.maxGatewayNameBytes)),
            ])
        close(session, reason: why)
    }
}

import Accounts
import BridgeTypes
import Digests
import IRCProtocol
import Rooms
import WireBytes

// Gateways that connect for somebody else, with WEBIRC: a web client's server, say, whose users would otherwise all come
// from one address.
//
// Only the address is taken over, for limits, the throttle and the log. Nobody is shown where somebody connects from, so a
// gateway cannot forge what people see; and it does not make anybody local, whatever it says.
//
// Source: IRCv3 webirc.

extension IRCServer {
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
            name: PrintableText.prefix(of: gateway, maxBytes: Self.maxGatewayNameBytes), address: numeric)
        take(
            logins.checkGateway(
                SecretBytes(password.utf8), candidates: candidates, session.id, from: session.origin.address,
                now: context.now.monotonic), session)
    }

    /// The gateway's password was right.
    func admitGateway(_ session: IRCSession) {
        guard let tried = session.gatewayTry else { return }
        let gatewayAddress = session.origin.address
        session.gatewayTry = nil
        session.forgetUnusedLogin()
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
                "gateway": PrintableText.of(PrintableText.prefix(of: gateway, maxBytes: Self.maxGatewayNameBytes)),
            ])
        close(session, reason: why)
    }
}

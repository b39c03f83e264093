import Accounts
import BridgeTypes
import Digests
import IRCProtocol
import Rooms
import Upstream
import WireBytes

// Login commands: AUTHENTICATE, by mechanism, OPER and WEBIRC. Outcomes are in IRCServer+Login.
//
// | mechanism     | client             | bridge                             |
// |---------------|--------------------|------------------------------------|
// | PLAIN         | name and password  | checked off the loop               |
// | SCRAM-SHA-256 | name and nonce     | salt, iterations and nonces        |
// |---------------|--------------------|------------------------------------|
// |---------------|--------------------|------------------------------------|
// | EXTERNAL      | empty, or the name | looks up the certificate's account |
// | OAUTHBEARER   | a token            | asks the backend, as below         |

extension IRCServer {
    /// Source: IRCv3 sasl-3.1, "Numerics used by this extension"; sasl-3.2, "SASL Reauthentication".
    func authenticate(_ param: String, _ session: IRCSession) {
        guard session.caps.contains(.sasl) else {
            return reply(.errSASLFail, "Request the capability sasl first", to: session)
        }
        if logins.isBusy(with: session.id), param != "*" {
            return reply(.errSASLFail, "Wait for the answer to your last try", to: session)
        }
        let offered = mechanisms(for: session.origin)
        // However the client responds to the refusal of its token, the attempt counts.
        let wasRefused = session.isBearerRefused
        let outcome = session.sasl.received(param, offered: offered)
        switch outcome {
        case .needMoreData, .response: break
        // A new exchange too: registration may have ended one in the middle.
        case .challenge, .unknownMechanism, .malformed, .tooLong, .endless, .aborted:
            logins.endExchange(session.id)
            session.isBearerRefused = false
        }
        switch outcome {
        case .challenge: reply(IRCMessage(command: "AUTHENTICATE", params: ["+"]), session)
        case .needMoreData: break
        case .unknownMechanism:
            let mechanisms = offered.map(\.rawValue).joined(separator: ",")
            reply(.rplSASLMechs, mechanisms, "are available SASL mechanisms", to: session)
            reply(.errSASLFail, "SASL authentication failed", to: session)
        case .malformed: saslFailed(session, "The SASL response is malformed")
        case .endless: saslFailed(session, "The SASL response is too long")
        case .tooLong:
            reply(.errSASLTooLong, "SASL message too long", to: session)
            if wasRefused { countFailedTry(session) }
        case .aborted:
            logins.abandon(session.id)
            reply(.errSASLAborted, "SASL authentication aborted", to: session)
            if wasRefused { countFailedTry(session) }
        case .response(.plain, let bytes): plainReceived(bytes, session)
        case .response(.scramSHA256, let bytes): scramReceived(bytes, session)
        case .response(.external, let bytes): externalReceived(bytes, session)
        case .response(.oauthBearer, let bytes): bearerReceived(bytes, session)
        }
    }

    // MARK: - PLAIN

    private func plainReceived(_ bytes: [UInt8], _ session: IRCSession) {
        guard let response = try? SASLPlainResponse(parsing: bytes) else {
            return saslFailed(session, "The SASL response is malformed")
        }
        guard let names = logins.names(authcid: response.authcid, authzid: response.authzid) else {
            return saslFailed(session, "You may only log in as yourself")
        }
        check(SecretBytes(response.password), of: names.account, client: names.client, .sasl, session)
    }

    // MARK: - SCRAM-SHA-256

    private func scramReceived(_ bytes: [UInt8], _ session: IRCSession) {
        take(context.withTurn { logins.scram(bytes, session.id, from: session.origin.address, &$0) }, session)
    }

    // MARK: - EXTERNAL

    private func externalReceived(_ bytes: [UInt8], _ session: IRCSession) {
        guard let authzid = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
            return saslFailed(session, "The SASL response is malformed")
        }
        let certificate = session.origin.security.certificate
        take(logins.showCertificate(certificate, as: authzid, from: session.origin.address), session)
    }

    // MARK: - OAUTHBEARER

    // SASL OAUTHBEARER: the client presents a token of the backend, and the backend identifies its user.
    //
    // | state    | meaning                               | leaves by                                                 |
    // |----------|---------------------------------------|-----------------------------------------------------------|
    // | asking   | the backend checks the client's token | a person → logged in; 401, 403 → refusing; error → failed |
    // | refusing | the refusal is delayed, increasingly  | time → refused                                            |
    // | refused  | the client has the reason             | any response → failed                                     |
    //
    // Source: RFC 7628.

    private func bearerReceived(_ bytes: [UInt8], _ session: IRCSession) {
        guard !session.isBearerRefused else {
            session.isBearerRefused = false
            return saslFailed(session, "SASL authentication failed")
        }
        let response: SASLOAuthBearerResponse
        do throws(SASLOAuthBearerResponse.ParseError) {
            response = try SASLOAuthBearerResponse(parsing: bytes)
        } catch {
            return saslFailed(session, Self.sentence(error))
        }
        take(logins.showToken(response.token, as: response.authzid, session.id, from: session.origin.address), session)
    }

    /// The outcome of a token query. False when `call` is not one.
    package func tokenAnswered(
        _ call: BackendCallID, _ outcome: Result<BackendCallResponse, BackendCallFailure>, _ backend: BackendAccount
    ) -> Bool {
        guard logins.isTokenQuery(call) else { return false }
        let verdict = backend.verdict(on: outcome)
        switch logins.tokenAnswered(call, verdict, now: context.now.monotonic) {
        case .client(let client, let step?):
            if let session = sessions[client] {
                if case .unknown(let failure) = verdict { noteUnknownToken(failure, backend) }
                loginAnswered(step, session)
            }
        case .client, nil: break
        case .upload(let attempt, let answer, let place):
            switch verdict {
            case .belongs: break
            case .refused:
                context.note(
                    .warn, "client-token-refused", "an upload had a token that the backend refuses",
                    ["address": place.visitor, "account": ""])
            case .unknown(let failure): noteUnknownToken(failure, backend)
            }
            emit(.uploadTokenChecked(attempt, answer))
        }
        return true
    }

    private func noteUnknownToken(_ failure: BackendCallFailure, _ backend: BackendAccount) {
        context.note(
            .warn, "backend-call-failed", failure.sentence,
            [
                "backend": backend.settings.name, "call": "whose-token", "room": "",
                "status": failure.status.map(String.init) ?? "",
            ])
    }

    private static func sentence(_ error: SASLOAuthBearerResponse.ParseError) -> String {
        switch error {
        case .channelBindingRequired: "This server binds no channels; use OAUTHBEARER without"
        case .malformed: "The SASL response is malformed"
        case .noBearerToken: "The SASL response has no bearer token"
        }
    }

    // MARK: - OPER

    /// Source: modern.ircdocs.horse, "OPER message".
    func oper(_ account: String, _ password: String, _ session: IRCSession) {
        guard session.origin.allowsLogin else {
            return reply(.errNoOperHost, "A password does not cross this connection; use TLS", to: session)
        }
        guard !logins.isBusy(with: session.id) else {
            return reply(.errPasswdMismatch, "Wait for the answer to your last try", to: session)
        }
        // The account name without the client name.
        check(SecretBytes(password.utf8), of: ClientName.split(account).account, client: nil, .oper, session)
    }

    // MARK: - WEBIRC

    // WEBIRC: gateways, such as a web client's server, that pass on the addresses of their users, who would otherwise
    // share one address.
    //
    // Only the address is adopted, for limits, the throttle and the log. Addresses of clients are never shown to users,
    // so a gateway cannot forge visible hosts; nor does WEBIRC ever make a client local.
    //
    // Source: IRCv3 webirc.

    /// Bytes of a gateway's name in the log.
    private static let maxGatewayNameBytes = 64

    /// Handles WEBIRC. A gateway without permission gets the reason and is closed: otherwise its user would count as
    /// the gateway.
    ///
    /// Host name and options are ignored: addresses of clients are never shown, and TLS between the gateway and its
    /// client decides nothing.
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
        session.gatewayTry = WebIRCAttempt(
            name: PrintableText.prefix(of: gateway, maxBytes: Self.maxGatewayNameBytes), address: numeric)
        take(
            logins.checkGateway(
                SecretBytes(password.utf8), candidates: candidates, session.id, from: session.origin.address,
                now: context.now.monotonic), session)
    }

    private func refuseGateway(_ session: IRCSession, _ why: String, _ gateway: String) {
        note(
            .warn, "client-gateway-refused", "a client used WEBIRC in vain: \(why)", of: session,
            ["gateway": PrintableText.of(PrintableText.prefix(of: gateway, maxBytes: Self.maxGatewayNameBytes))])
        close(session, reason: why)
    }
}

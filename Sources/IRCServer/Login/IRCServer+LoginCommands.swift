import Accounts
import BridgeTypes
import Digests
import IRCProtocol
import Rooms
import Upstream
import WireBytes

// What clients show to log in: AUTHENTICATE, by mechanism, OPER and WEBIRC. What becomes of a login is IRCServer+Login's.
//
// | mechanism     | client                      | bridge                                    |
// |---------------|-----------------------------|-------------------------------------------|
// | PLAIN         | name and password           | checked beside the loop                   |
// | SCRAM-SHA-256 | name and nonce              | salt, iterations and nonces               |
// |               | proof                       | signature, or a refusal that waits        |
// |               | nothing                     | logged in                                 |
// | EXTERNAL      | nothing, or the name        | whose certificate it is                   |
// | OAUTHBEARER   | a token                     | asks the backend, as below                |

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
        // However the client takes it that its token was refused: it was a try.
        let wasRefused = session.isBearerRefused
        let outcome = session.sasl.received(param, offered: offered)
        switch outcome {
        case .needMoreData, .response: break
        // A beginning too: registering may have ended an exchange in the middle.
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
        guard let names = LoginMachine.names(authcid: response.authcid, authzid: response.authzid) else {
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

    // SASL OAUTHBEARER: the client shows a token of the backend's, and the backend says whose it is.
    //
    // | state    | meaning                                       | leaves by                                                  |
    // |----------|-----------------------------------------------|-------------------------------------------------------------|
    // | asking   | the backend is asked with the client's token   | a person → logged in; 401, 403 → refusing; trouble → failed |
    // | refusing | the refusal waits, the longer the more there were | time → refused                                          |
    // | refused  | the client was told why                        | whatever it answers → failed                                |
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

    /// An answer to the question whose token it is. False when `call` is none of these.
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
        // The name without what a client calls itself.
        check(SecretBytes(password.utf8), of: ClientName.split(account).account, client: nil, .oper, session)
    }

    // MARK: - WEBIRC

    // Gateways that connect for somebody else, with WEBIRC: a web client's server, say, whose users would otherwise all come
    // from one address.
    //
    // Only the address is taken over, for limits, the throttle and the log. Nobody is shown where somebody connects from, so a
    // gateway cannot forge what people see; and it does not make anybody local, whatever it says.
    //
    // Source: IRCv3 webirc.

    /// Bytes of a gateway's name that are logged.
    private static let maxGatewayNameBytes = 64

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

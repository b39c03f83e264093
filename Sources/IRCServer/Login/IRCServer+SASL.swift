import Accounts
import BridgeTypes
import Digests
import IRCProtocol
import Rooms
import WireBytes

// SASL: what clients say in `AUTHENTICATE`, by mechanism. What becomes of a login is IRCServer+Login's.
//
// | mechanism     | client                      | bridge                                    |
// |---------------|-----------------------------|-------------------------------------------|
// | PLAIN         | name and password           | checked beside the loop                   |
// | SCRAM-SHA-256 | name and nonce              | salt, iterations and nonces               |
// |               | proof                       | signature, or a refusal that waits        |
// |               | nothing                     | logged in                                 |
// | EXTERNAL      | nothing, or the name        | whose certificate it is                   |
// | OAUTHBEARER   | a token                     | asks the backend, see IRCServer+Bearer       |

extension IRCServer {
    /// Source: IRCv3 sasl-3.1, "Numerics used by this extension"; sasl-3.2, "SASL Reauthentication".
    func authenticate(_ param: String, _ session: IRCSession) {
        guard session.caps.contains(.sasl) else {
            return reply(session.numeric(.errSASLFail, "Request the capability sasl first"), session)
        }
        if logins.isBusy(with: session.id), param != "*" {
            return reply(session.numeric(.errSASLFail, "Wait for the answer to your last try"), session)
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
            reply(session.numeric(.rplSASLMechs, mechanisms, "are available SASL mechanisms"), session)
            reply(session.numeric(.errSASLFail, "SASL authentication failed"), session)
        case .malformed: saslFailed(session, "The SASL response is malformed")
        case .endless: saslFailed(session, "The SASL response is too long")
        case .tooLong:
            reply(session.numeric(.errSASLTooLong, "SASL message too long"), session)
            if wasRefused { countFailedTry(session) }
        case .aborted:
            logins.abandon(session.id)
            reply(session.numeric(.errSASLAborted, "SASL authentication aborted"), session)
            if wasRefused { countFailedTry(session) }
        case .response(.plain, let bytes): plainReceived(bytes, session)
        case .response(.scramSHA256, let bytes): scramReceived(bytes, session)
        case .response(.external, let bytes): externalReceived(bytes, session)
        case .response(.oauthBearer, let bytes): bearerReceived(bytes, session)
        }
    }

    /// Refuses a try that needed no checking.
    func saslFailed(_ session: IRCSession, _ why: String) {
        reply(session.numeric(.errSASLFail, why), session)
        countFailedTry(session)
    }

    /// Closes the connection after too many of them.
    func countFailedTry(_ session: IRCSession) {
        session.failedTries += 1
        if session.failedTries >= Self.maxLoginTries { close(session, reason: "Too many failed logins") }
    }

    // MARK: - PLAIN

    private func plainReceived(_ bytes: [UInt8], _ session: IRCSession) {
        guard let response = try? SASLPlainResponse(parsing: bytes) else {
            return saslFailed(session, "The SASL response is malformed")
        }
        guard let names = LoginDesk.names(authcid: response.authcid, authzid: response.authzid) else {
            return saslFailed(session, "You may only log in as yourself")
        }
        check(SecretBytes(response.password), of: names.account, client: names.client, .sasl, session)
    }

    // MARK: - SCRAM-SHA-256

    private func scramReceived(_ bytes: [UInt8], _ session: IRCSession) {
        take(logins.scram(bytes, session.id, from: session.origin.address, &context.turn), session)
    }

    /// Sends what a mechanism has to say before it hears more.
    func challenge(_ bytes: [UInt8], _ mechanism: SASLMechanism, _ session: IRCSession) {
        session.sasl.expectMore(mechanism)
        for chunk in IRCSASLExchange.chunks(of: bytes) {
            reply(IRCMessage(command: "AUTHENTICATE", params: [chunk]), session)
        }
    }

    // MARK: - EXTERNAL

    private func externalReceived(_ bytes: [UInt8], _ session: IRCSession) {
        guard let authzid = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
            return saslFailed(session, "The SASL response is malformed")
        }
        let certificate = session.origin.security.certificate
        take(logins.showCertificate(certificate, as: authzid, from: session.origin.address), session)
    }

    // MARK: - Refusals

    /// Tells a client why its login came to nothing.
    func tellSASL(_ refusal: LoginRefusal, _ session: IRCSession) {
        switch refusal {
        case .wrongPassword: saslFailed(session, "SASL authentication failed")
        case .tokenRefused: refuseBearer(session)
        // Not the client's fault: neither counts.
        case .busy: reply(session.numeric(.errSASLFail, "Too many people log in at this moment; try again"), session)
        case .unanswered(let place):
            reply(
                session.numeric(.errSASLFail, "\(place) cannot say at the moment whose token that is; try again"),
                session)
        case .ambiguousName:
            saslFailed(session, "Your name there cannot be an account here; ask for an account of your own")
        case .notThemselves: saslFailed(session, "You may only log in as yourself")
        case .noCertificate: saslFailed(session, "No account has your certificate")
        case .malformed: saslFailed(session, "The SASL response is malformed")
        case .channelBindingRequired:
            saslFailed(session, "This server binds no channels; use SCRAM-SHA-256 without")
        case .extensionRequired:
            saslFailed(session, "The SASL response asks for an extension that this server does not know")
        }
    }
}

import Accounts
import BridgeTypes
import Digests
import IRCProtocol
import Identities
import Rooms
import WireBytes

// Outcomes of logins: replies and effects. The commands are in IRCServer+LoginCommands and
// IRCServer+RegistrationCommands; passwords are checked through LoginMachine.

extension IRCServer {
    /// Failed logins of one connection before it is closed.
    static let maxLoginTries = 5

    // MARK: - Checking

    func check(
        _ password: SecretBytes, of name: String, client: String?, _ purpose: LoginPurpose, _ session: IRCSession
    ) {
        take(
            logins.check(password, of: name, client: client, purpose, session.id, from: session.origin.address), session
        )
    }

    /// The verdict on a `.checkPassword`. Verdicts of abandoned attempts are ignored.
    package func passwordChecked(_ id: ClientID, attempt: UInt64, _ verdict: PasswordVerdict) {
        guard let session = sessions[id],
            let step = logins.checked(id, attempt: attempt, verdict, now: context.now.monotonic)
        else { return }
        loginAnswered(step, session)
    }

    /// The delay of an answer is over.
    package func loginAnswerIsDue(_ session: IRCSession) {
        if let step = logins.takeDelayedAnswer(session.id) { loginAnswered(step, session) }
    }

    /// Takes the next step of a login from an asynchronous check, and resumes registration once it is decided.
    func loginAnswered(_ step: LoginStep, _ session: IRCSession) {
        take(step, session)
        if !step.isUnderway { goOnRegistering(session) }
        goOn(session)
    }

    /// Carries out a step of a login, and replies with its outcome.
    func take(_ step: LoginStep, _ session: IRCSession) {
        switch step {
        case .check(let check): emit(.checkPassword(check))
        case .ask(let call, let order): emit(.callBackend(call, order))
        case .answer(let wait, let failed):
            if let failed { note(failed, session) }
            if wait > .zero { traffic.limited(.logins) }
            guard wait > .zero else { return logins.takeDelayedAnswer(session.id).map { take($0, session) } ?? () }
            context.set(.loginAnswer(session.id), at: context.now.monotonic + wait)
        case .challenge(let bytes): challenge(bytes, .scramSHA256, session)
        case .succeeded(let login): succeeded(login, session)
        case .refused(let refusal, let purpose): refused(refusal, purpose, session)
        // An abandoned attempt still counts: otherwise giving up in time would make attempts free.
        case .abandoned(let isFailure): if isFailure { countFailedTry(session) }
        }
    }

    private func note(_ failed: FailedLogin, _ session: IRCSession) {
        note(
            .warn, failed.isToken ? "client-token-refused" : "wrong-password",
            failed.isToken ? "a client gave a token that the backend refuses" : "a client gave a wrong password",
            of: session, ["account": failed.account])
    }

    private func succeeded(_ login: Login, _ session: IRCSession) {
        if let mechanism = mechanism(of: login.purpose, session) { traffic.loggedIn(mechanism, .ok) }
        switch login.purpose {
        case .gateway: admitGateway(session)
        case .oper: becomeOperator(session, login.account)
        case .service:
            loggedIn(session, login)
            if let account = session.account { say("You are logged in as \(account.name).", to: session) }
        case .sasl, .accountPass, .serverPass, .newAccount: loggedIn(session, login)
        }
    }

    private func refused(_ refusal: LoginRefusal, _ purpose: LoginPurpose, _ session: IRCSession) {
        let isBusy = refusal == .busy
        if let mechanism = mechanism(of: purpose, session) { traffic.loggedIn(mechanism, isBusy ? .busy : .refused) }
        let busy = "Too many people log in at this moment; try again"
        switch purpose {
        case .sasl: tellSASL(refusal, session)
        case .oper where isBusy: reply(.errPasswdMismatch, busy, to: session)
        case .oper:
            reply(.errPasswdMismatch, "Password incorrect", to: session)
            countFailedTry(session)
        case .service where isBusy: say(busy + ".", to: session)
        case .service:
            say("Name or password are wrong.", to: session)
            countFailedTry(session)
        case .gateway, .accountPass, .serverPass, .newAccount:
            if !isBusy { reply(.errPasswdMismatch, "Password incorrect", to: session) }
            close(session, reason: isBusy ? busy : "Password incorrect", .login)
        }
    }

    /// As counted; nil: nothing was checked.
    private func mechanism(of purpose: LoginPurpose, _ session: IRCSession) -> String? {
        switch purpose {
        case .sasl: session.sasl.mechanism?.rawValue ?? "SASL"
        case .service: "service"
        case .oper: "OPER"
        case .accountPass, .serverPass: "PASS"
        case .gateway: "WEBIRC"
        case .newAccount: nil
        }
    }

    func loggedIn(_ session: IRCSession, _ login: Login) {
        guard let account = login.account else {
            session.isAdmitted = true
            return
        }
        session.failedTries = 0
        note(.info, "client-login", "a client logged in", of: session, ["account": account.name])
        let person = session.person.flatMap { context.identities[$0] }
        let mask =
            person?.source
            ?? "\(session.displayNick)!\(session.user ?? "*")@\(IdentityMap.hostname(settings.serverName))"
        reply(.rplLoggedIn, mask, account.name, "You are now logged in as \(account.name)", to: session)
        if login.purpose == .sasl {
            reply(.rplSASLSuccess, "SASL authentication successful", to: session)
        }
        // After registration only the ident remains of USER.
        let client = login.clientName ?? person.flatMap { ClientName.clean(String($0.ident.drop { $0 == "~" })) }
        if person != nil, let before = session.account {
            if before.name != account.name { becomeAnother(session, account, clientName: client) }
            return
        }
        session.account = account
        session.setClientName(client)
        moveChoices(of: session, to: account)
        if person != nil { nameLateComer(session) }
        if person != nil { becomeAccount(session, account) }
    }

    /// Whether a client is registered without a password.
    package func needsLogin(_ client: ClientID) -> Bool { sessions[client].map(needsLogin) ?? false }

    func needsLogin(_ session: IRCSession) -> Bool {
        if settings.password != nil { return true }
        switch settings.requireLogin {
        case .never: return false
        case .remote: return !session.origin.isListenerLocal
        case .always: return true
        }
    }

    // MARK: - SASL replies

    /// Sends the reason of a failed login.
    private func tellSASL(_ refusal: LoginRefusal, _ session: IRCSession) {
        switch refusal {
        case .wrongPassword: saslFailed(session, "SASL authentication failed")
        case .tokenRefused: refuseBearer(session)
        // Not the client's fault, so neither counts.
        case .busy: reply(.errSASLFail, "Too many people log in at this moment; try again", to: session)
        case .unanswered(let place):
            reply(.errSASLFail, "\(place) cannot say at the moment whose token that is; try again", to: session)
        case .ambiguousName:
            saslFailed(session, "Your name there cannot be an account here; ask for an account of your own")
        case .authzidMismatch: saslFailed(session, "You may only log in as yourself")
        case .noCertificate: saslFailed(session, "No account has your certificate")
        case .malformed: saslFailed(session, "The SASL response is malformed")
        case .channelBindingRequired:
            saslFailed(session, "This server binds no channels; use SCRAM-SHA-256 without")
        case .extensionRequired:
            saslFailed(session, "The SASL response asks for an extension that this server does not know")
        }
    }

    /// Refuses an attempt that needed no check.
    func saslFailed(_ session: IRCSession, _ why: String) {
        reply(.errSASLFail, why, to: session)
        countFailedTry(session)
    }

    /// Counts a failed attempt; closes the connection after too many.
    func countFailedTry(_ session: IRCSession) {
        session.failedTries += 1
        if session.failedTries >= Self.maxLoginTries { close(session, reason: "Too many failed logins", .login) }
    }

    /// Sends a mechanism's challenge, before the client's next response.
    private func challenge(_ bytes: [UInt8], _ mechanism: SASLMechanism, _ session: IRCSession) {
        session.sasl.expectMore(mechanism)
        for chunk in IRCSASLExchange.chunks(of: bytes) {
            reply(IRCMessage(command: "AUTHENTICATE", params: [chunk]), session)
        }
    }

    /// Sends the mechanism's error message. The client's response to it, a single ^A, ends the exchange.
    ///
    /// Source: RFC 7628 §3.2.2 and §3.2.3.
    private func refuseBearer(_ session: IRCSession) {
        session.isBearerRefused = true
        challenge(SASLOAuthBearerResponse.refusal, .oauthBearer, session)
    }

    // MARK: - Gateways

    /// Adopts the address of a WEBIRC line with the right password.
    private func admitGateway(_ session: IRCSession) {
        guard let tried = session.gatewayTry else { return }
        let gatewayAddress = session.origin.address
        session.gatewayTry = nil
        session.forgetUnusedLogin()
        var origin = session.origin
        origin.address = tried.address.description
        origin.isLocal = tried.address.isLoopback
        origin.isListenerLocal = false
        if let refusal = addressLimits.move(session.origin, to: origin, now: context.now.monotonic) {
            note(
                .warn, "client-refused", "a connection was refused: \(refusal)", of: session,
                ["address": origin.address, "gateway": tried.name])
            return close(session, reason: refusal)
        }
        session.moved(to: origin)
        note(
            .debug, "client-gateway", "a gateway connects for a client", of: session,
            ["gateway": tried.name, "gateway-address": gatewayAddress])
    }
}

import Digests
import IRCProtocol
import WireBytes

// SASL: what clients say in `AUTHENTICATE`, by mechanism. What becomes of a login is Bridge+Login's.
//
// | mechanism     | client                      | bridge                                    |
// |---------------|-----------------------------|-------------------------------------------|
// | PLAIN         | name and password           | checked beside the loop                   |
// | SCRAM-SHA-256 | name and nonce              | salt, iterations and nonces               |
// |               | proof                       | signature, or a refusal that waits        |
// |               | nothing                     | logged in                                 |
// | EXTERNAL      | nothing, or the name        | whose certificate it is                   |
// | OAUTHBEARER   | a token                     | asks the backend, see Bridge+Bearer       |

/// Where a login with SCRAM stands.
enum SCRAMStep {
    /// The challenge was sent; the proof is awaited.
    case challenged(SCRAMServerExchange, AccountSettings?, name: String, clientName: String?)
    /// The proof was right and answered; the client has to say, with an empty response, that it believes us too.
    case proven(AccountSettings, clientName: String?)
}

extension Bridge {
    /// Source: IRCv3 sasl-3.1, "Numerics used by this extension"; sasl-3.2, "SASL Reauthentication".
    func authenticate(_ param: String, _ session: IRCSession) {
        guard session.caps.contains(.sasl) else {
            return reply(session.numeric(.errSASLFail, "Request the capability sasl first"), session)
        }
        let isWaiting = session.passwordTry.map { $0.purpose == .sasl && !$0.isAbandoned } ?? false
        if session.passwordTry != nil, param != "*" {
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
            session.scram = nil
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
            if isWaiting { session.passwordTry?.isAbandoned = true }
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

    /// Whose account it is, and which of that person's clients, by the two names that a login may give: whom to act as, and who
    /// logs in. Nil: somebody wants to act as somebody else.
    private func names(authcid: String, authzid: String) -> (account: String, client: String?)? {
        let (account, client) = ClientName.split(authcid)
        let (wanted, wantedClient) = ClientName.split(authzid)
        guard authzid.isEmpty || AccountBook.fold(wanted) == AccountBook.fold(account) else { return nil }
        return (account, client ?? wantedClient)
    }

    // MARK: - PLAIN

    private func plainReceived(_ bytes: [UInt8], _ session: IRCSession) {
        guard let response = try? SASLPlainResponse(parsing: bytes) else {
            return saslFailed(session, "The SASL response is malformed")
        }
        guard let names = names(authcid: response.authcid, authzid: response.authzid) else {
            return saslFailed(session, "You may only log in as yourself")
        }
        check(SecretBytes(response.password), of: names.account, client: names.client, .sasl, session)
    }

    // MARK: - SCRAM-SHA-256

    private func scramReceived(_ bytes: [UInt8], _ session: IRCSession) {
        let step = session.scram
        session.scram = nil
        switch step {
        case nil: scramBegun(bytes, session)
        case .challenged(let exchange, let account, let name, let client):
            do throws(SCRAMFailure) {
                let signature = try exchange.finish(bytes)
                // Nobody can prove to be an account that does not exist, or has no password.
                guard let account, account.password != nil else { return scramRefused(nil, name, session) }
                session.scram = .proven(account, clientName: client)
                lastAttempt &+= 1
                session.passwordTry = PasswordTry(
                    attempt: lastAttempt, purpose: .sasl, account: account, signature: signature)
                if isRightLater(session) { return }
                session.passwordTry = nil
                challenge(signature, .scramSHA256, session)
            } catch {
                guard error == .wrongProof else { return saslFailed(session, Self.sentence(error)) }
                scramRefused(account, name, session)
            }
        case .proven(let account, let client):
            guard bytes.isEmpty else { return saslFailed(session, "The SASL response is malformed") }
            let tried = PasswordTry(attempt: 0, purpose: .sasl, account: account, clientName: client)
            loginThrottle.succeeded(session.origin.address, tried.target)
            loggedIn(session, tried)
        }
    }

    private func scramBegun(_ bytes: [UInt8], _ session: IRCSession) {
        let first: SCRAMClientFirst
        do throws(SCRAMFailure) {
            first = try SCRAMClientFirst(parsing: bytes)
        } catch {
            return saslFailed(session, Self.sentence(error))
        }
        guard let names = names(authcid: first.name, authzid: first.authzid) else {
            return saslFailed(session, "You may only log in as yourself")
        }
        let account = account(named: names.account)
        let verifier =
            account?.password
            ?? .imitation(
                of: AccountBook.fold(names.account), key: unknownAccountsKey,
                iterations: accounts.decoyIterations(names.account, key: unknownAccountsKey))
        let exchange = SCRAMServerExchange(
            first, verifier: verifier, randomness: context.randomBytes(SCRAMServerExchange.nonceByteCount))
        session.scram = .challenged(exchange, account, name: names.account, clientName: names.client)
        challenge(exchange.challenge, .scramSHA256, session)
    }

    /// What names that are none are given is made of, so that it is the same each time.
    private var unknownAccountsKey: [UInt8] { Array("\(settings.instanceID)/unknown-accounts".utf8) }

    /// Sends what a mechanism has to say before it hears more.
    func challenge(_ bytes: [UInt8], _ mechanism: SASLMechanism, _ session: IRCSession) {
        session.sasl.expectMore(mechanism)
        for chunk in IRCSASLExchange.chunks(of: bytes) {
            reply(IRCMessage(command: "AUTHENTICATE", params: [chunk]), session)
        }
    }

    /// The proof was of another password: as with PLAIN, the answer waits the longer the more of them there were.
    private func scramRefused(_ account: AccountSettings?, _ name: String, _ session: IRCSession) {
        lastAttempt &+= 1
        session.passwordTry = PasswordTry(
            attempt: lastAttempt, purpose: .sasl, account: account,
            name: String(name.prefix(LoginThrottle.longestName)))
        refuseLater(session)
    }

    private static func sentence(_ failure: SCRAMFailure) -> String {
        switch failure {
        case .channelBindingRequired: "This server binds no channels; use SCRAM-SHA-256 without"
        case .extensionRequired: "The SASL response asks for an extension that this server does not know"
        case .malformed, .channelBindingDiffers, .nonceDiffers, .wrongProof: "The SASL response is malformed"
        }
    }

    // MARK: - EXTERNAL

    private func externalReceived(_ bytes: [UInt8], _ session: IRCSession) {
        guard let authzid = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
            return saslFailed(session, "The SASL response is malformed")
        }
        guard let certificate = session.origin.security.certificate,
            let account = accounts.account(certificate: certificate)
        else { return saslFailed(session, "No account has your certificate") }
        guard let names = names(authcid: account.name, authzid: authzid) else {
            return saslFailed(session, "You may only log in as yourself")
        }
        let tried = PasswordTry(attempt: 0, purpose: .sasl, account: account, clientName: names.client)
        loginThrottle.succeeded(session.origin.address, tried.target)
        loggedIn(session, tried)
    }
}

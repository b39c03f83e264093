import BridgeTypes
import ChatModel
import Digests
import Identities
import Upstream
import WireBytes

// Ways to log in that are more than a name and a password.
//
// | way            | client          | bridge                                    |
// |----------------|-----------------|-------------------------------------------|
// | SCRAM-SHA-256  | name and nonce  | salt, iterations and nonces               |
// |                | proof           | signature, or a refusal that waits        |
// |                | nothing         | logged in                                 |
// | certificate    | nothing, a name | whose certificate it is                   |
// | backend's token| a token         | asks the backend                          |
//
// A token stands in the one call and is kept nowhere. Whoever's it is has the account of the configuration that names them,
// else the one that their messages from the backend bear, `<id>@<backend>`; no account of the bridge's own can be called so.

/// Where a login with SCRAM stands.
enum SCRAMStep {
    /// The challenge was sent; the proof is awaited.
    case challenged(SCRAMServerExchange, AccountSettings?, name: String, clientName: String?)
    /// The proof was right and answered; the client has to say, with an empty response, that it believes us too.
    case proven(AccountSettings, clientName: String?)
}

extension LoginDesk {
    /// Whose account it is, and which of that person's clients, by the two names that a login may give: whom to act as, and who
    /// logs in. Nil: somebody wants to act as somebody else.
    package static func names(authcid: String, authzid: String) -> (account: String, client: String?)? {
        let (account, client) = ClientName.split(authcid)
        let (wanted, wantedClient) = ClientName.split(authzid)
        guard authzid.isEmpty || AccountName.fold(wanted) == AccountName.fold(account) else { return nil }
        return (account, client ?? wantedClient)
    }

    /// An account whose owner needs no further proof is here.
    private func admit(_ account: AccountSettings, clientName: String?, from address: String) -> LoginStep {
        throttle.succeeded(address, .account(AccountName.fold(account.name)))
        return .right(Login(.sasl, account, clientName: clientName))
    }

    // MARK: - SCRAM-SHA-256

    /// What the client says, from its first message on.
    package func scram(_ bytes: [UInt8], _ client: ClientID, from address: String, _ turn: inout Turn) -> LoginStep {
        switch exchanges.removeValue(forKey: client) {
        case nil: return beginSCRAM(bytes, client, &turn)
        case .challenged(let exchange, let account, let name, let clientName):
            var tried = LoginTry(client, from: address, .sasl, account: account)
            do throws(SCRAMFailure) {
                let signature = try exchange.finish(bytes)
                // Nobody can prove to be an account that does not exist, or has no password.
                guard let account, account.password != nil else {
                    tried.account = nil
                    tried.name = String(name.prefix(LoginThrottle.longestName))
                    return fail(tried, now: turn.now.monotonic)
                }
                exchanges[client] = .proven(account, clientName: clientName)
                return answerLater(tried, .signature(signature), now: turn.now.monotonic) ?? .challenge(signature)
            } catch {
                guard error == .wrongProof else { return .refused(LoginRefusal(error), .sasl) }
                // As with a password, the answer waits the longer the more of them there were.
                tried.name = String(name.prefix(LoginThrottle.longestName))
                return fail(tried, now: turn.now.monotonic)
            }
        case .proven(let account, let clientName):
            guard bytes.isEmpty else { return .refused(.malformed, .sasl) }
            return admit(account, clientName: clientName, from: address)
        }
    }

    private func beginSCRAM(_ bytes: [UInt8], _ client: ClientID, _ turn: inout Turn) -> LoginStep {
        let first: SCRAMClientFirst
        do throws(SCRAMFailure) {
            first = try SCRAMClientFirst(parsing: bytes)
        } catch {
            return .refused(LoginRefusal(error), .sasl)
        }
        guard let names = Self.names(authcid: first.name, authzid: first.authzid) else {
            return .refused(.notThemselves, .sasl)
        }
        let account = book[names.account]
        let verifier =
            account?.password
            ?? .imitation(
                of: AccountName.fold(names.account), key: decoyKey,
                iterations: book.decoyIterations(names.account, key: decoyKey))
        let exchange = SCRAMServerExchange(
            first, verifier: verifier, randomness: turn.randomBytes(SCRAMServerExchange.nonceByteCount))
        exchanges[client] = .challenged(exchange, account, name: names.account, clientName: names.client)
        return .challenge(exchange.challenge)
    }

    // MARK: - Certificates

    /// - Parameter authzid: whom the client wants to act as; empty: whoever's certificate it is.
    package func showCertificate(_ certificate: String?, as authzid: String, from address: String) -> LoginStep {
        guard let certificate, let account = book.account(certificate: certificate) else {
            return .refused(.noCertificate, .sasl)
        }
        guard let names = Self.names(authcid: account.name, authzid: authzid) else {
            return .refused(.notThemselves, .sasl)
        }
        return admit(account, clientName: names.client, from: address)
    }

    // MARK: - Tokens of a backend

    /// Whether a backend is asked whose a token is.
    package var asksForTokens: Bool { tokenBackend != nil }

    /// - Parameter authzid: whom the client wants to act as; empty: whoever's token it is.
    package func showToken(
        _ token: String, as authzid: String, _ client: ClientID, from address: String
    ) -> LoginStep {
        guard case .ask(let call, let order) = question(about: token) else { return .refused(.busy, .sasl) }
        var tried = LoginTry(client, from: address, .sasl)
        tried.isToken = true
        tried.attempt = nextAttempt()
        tries[client] = tried
        questions[call] = .client(client, attempt: tried.attempt, authzid: authzid)
        return .ask(call, order)
    }

    /// The call that asks whose a token is.
    func question(about token: String) -> TokenQuestion.Beginning {
        let order = tokenBackend?.orderForOwner(
            of: token, timeout: TokenQuestion.timeout, maxAnswerBytes: TokenQuestion.maxAnswerBytes)
        guard let order else { return .impossible }
        return questions.count < TokenQuestion.maxUnderway ? .ask(upstream.nextCall(), order) : .busy
    }

    /// What the backend said of a client's token. Nil: nobody waits for it.
    func answered(
        _ verdict: TokenVerdict, _ client: ClientID, attempt: UInt64, authzid: String, now: MonotonicInstant
    ) -> LoginStep? {
        guard let tried = tries[client], tried.isToken, tried.attempt == attempt, let backend = tokenBackend else {
            return nil
        }
        switch verdict {
        case .belongs(let person):
            guard case .right = succeed(tried) else { return .abandoned(isFailure: false) }
            return admit(person, as: authzid, backend.settings.name, from: tried.address)
        case .refused: return fail(tried, now: now)
        case .unknown: return refuse(tried, .unanswered(backend.place))
        }
    }

    private func admit(_ person: ChatPerson, as authzid: String, _ backend: String, from address: String) -> LoginStep {
        let vouched = IdentityMap.accountName(of: person, backend: backend) ?? "-"
        // Two people of the backend must never be one here.
        guard let account = account(of: person, backend) else { return .refused(.ambiguousName, .sasl) }
        let names = [account.name, vouched, person.id?.rawValue, person.name].compactMap(\.self)
        guard let client = Self.client(wanted: authzid, of: names) else { return .refused(.notThemselves, .sasl) }
        return admit(account, clientName: client.isEmpty ? nil : client, from: address)
    }

    /// The account of a person of the backend; nil where two people would have one.
    func account(of person: ChatPerson, _ backend: String) -> AccountSettings? {
        if let known = book.account(of: person) { return known }
        guard IdentityMap.isAccountName(person, backend: backend) else { return nil }
        return AccountSettings(name: IdentityMap.accountName(of: person, backend: backend) ?? "-", password: nil)
    }

    /// Which of a person's clients it is, where they act as `wanted`; empty: it has no name. Nil: `wanted` is somebody else.
    private static func client(wanted: String, of names: [String]) -> String? {
        let folded = AccountName.fold(wanted)
        if wanted.isEmpty || names.contains(where: { AccountName.fold($0) == folded }) { return "" }
        for name in names where folded.hasPrefix(AccountName.fold(name) + "@") {
            return ClientName.clean(String(decoding: wanted.utf8.dropFirst(name.utf8.count + 1), as: UTF8.self)) ?? ""
        }
        return nil
    }
}

extension LoginRefusal {
    fileprivate init(_ failure: SCRAMFailure) {
        switch failure {
        case .channelBindingRequired: self = .channelBindingRequired
        case .extensionRequired: self = .extensionRequired
        case .malformed, .channelBindingDiffers, .nonceDiffers, .wrongProof: self = .malformed
        }
    }
}

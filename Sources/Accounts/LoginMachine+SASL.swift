import BridgeTypes
import ChatModel
import Digests
import Identities
import Upstream
import WireBytes

// SASL mechanisms other than PLAIN.
//
// | way            | client          | bridge                                    |
// |----------------|-----------------|-------------------------------------------|
// | SCRAM-SHA-256  | name and nonce  | salt, iterations and nonces               |
// |                | proof           | signature, or a refusal that waits        |
// |                | nothing         | logged in                                 |
// | certificate    | nothing, a name | looks up the account of the certificate   |
// | backend's token| a token         | asks the backend                          |
//
// A token is part of one call and is not stored. Its owner gets the configured account that lists the owner's id, else the
// account of the owner's messages, `<id>@<backend>`; registered accounts cannot have such names.

/// The state of a SCRAM exchange.
enum SCRAMStep {
    /// The challenge was sent; the client's proof is pending.
    case challenged(SCRAMServerExchange, AccountSettings?, name: String, clientName: String?)
    /// The signature was sent; the client's empty response, which accepts it, is pending.
    case proven(AccountSettings, clientName: String?)
}

extension LoginMachine {
    /// Account and client name from the authentication and authorization identities. Nil: they name different accounts.
    package func names(authcid: String, authzid: String) -> (account: String, client: String?)? {
        let (account, client) = ClientName.split(authcid)
        let (wanted, wantedClient) = ClientName.split(authzid)
        guard authzid.isEmpty || accounts.fold(wanted) == accounts.fold(account) else { return nil }
        return (account, client ?? wantedClient)
    }

    /// Logs in to an account whose owner is authenticated.
    private func admit(_ account: AccountSettings, clientName: String?, from address: String) -> LoginStep {
        throttle.recordSuccess(address, .account(AccountName.fold(account.name)))
        return .succeeded(Login(.sasl, account, clientName: clientName))
    }

    // MARK: - SCRAM-SHA-256

    /// Handles a client message of SCRAM, from the first on.
    package func scram(_ bytes: [UInt8], _ client: ClientID, from address: String, _ turn: inout Turn) -> LoginStep {
        switch exchanges.removeValue(forKey: client) {
        case nil: return beginSCRAM(bytes, client, &turn)
        case .challenged(let exchange, let account, let name, let clientName):
            var tried = LoginAttempt(client, from: address, .sasl, account: account)
            do throws(SCRAMFailure) {
                let signature = try exchange.finish(bytes)
                // Without an account or a password there is no valid proof.
                guard let account, account.password != nil else {
                    tried.account = nil
                    tried.name = String(name.prefix(LoginThrottle.maxNameLength))
                    return fail(tried, now: turn.now.monotonic)
                }
                exchanges[client] = .proven(account, clientName: clientName)
                return delayAnswer(tried, .signature(signature), now: turn.now.monotonic) ?? .challenge(signature)
            } catch {
                guard error == .wrongProof else { return .refused(LoginRefusal(error), .sasl) }
                // As with a password, the delay grows with the number of failures.
                tried.name = String(name.prefix(LoginThrottle.maxNameLength))
                return fail(tried, now: turn.now.monotonic)
            }
        case .proven(let account, let clientName):
            guard bytes.isEmpty else { return .refused(.malformed, .sasl) }
            guard let account = present(account) else { return .refused(.wrongPassword, .sasl) }
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
        guard let names = names(authcid: first.name, authzid: first.authzid) else {
            return .refused(.authzidMismatch, .sasl)
        }
        let account = accounts[names.account]
        let verifier =
            account?.password
            ?? .imitation(
                of: accounts.fold(names.account), key: decoyKey,
                iterations: accounts.decoyIterations(names.account, key: decoyKey))
        let exchange = SCRAMServerExchange(
            first, verifier: verifier, randomness: turn.randomBytes(SCRAMServerExchange.nonceByteCount))
        exchanges[client] = .challenged(exchange, account, name: names.account, clientName: names.client)
        return .challenge(exchange.challenge)
    }

    // MARK: - Certificates

    /// - Parameter authzid: the authorization identity; empty: the certificate's account.
    package func showCertificate(_ certificate: String?, as authzid: String, from address: String) -> LoginStep {
        guard let certificate, let account = accounts.account(certificate: certificate) else {
            return .refused(.noCertificate, .sasl)
        }
        guard let names = names(authcid: account.name, authzid: authzid) else {
            return .refused(.authzidMismatch, .sasl)
        }
        return admit(account, clientName: names.client, from: address)
    }

    // MARK: - Tokens of a backend

    /// Whether a backend identifies the owners of tokens.
    package var acceptsTokens: Bool { tokenBackend != nil }

    /// - Parameter authzid: the authorization identity; empty: the token's owner.
    package func showToken(
        _ token: String, as authzid: String, _ client: ClientID, from address: String
    ) -> LoginStep {
        guard case .ask(let call, let order) = query(owner: token) else { return .refused(.busy, .sasl) }
        var tried = LoginAttempt(client, from: address, .sasl)
        tried.isToken = true
        tried.attempt = nextAttempt()
        attempts[client] = tried
        queries[call] = .client(client, attempt: tried.attempt, authzid: authzid)
        return .ask(call, order)
    }

    /// The call that identifies the owner of a token.
    func query(owner token: String) -> TokenQuery.Start {
        let order = tokenBackend?.ownerRequest(
            of: token, timeout: TokenQuery.timeout, maxAnswerBytes: TokenQuery.maxAnswerBytes)
        guard let order else { return .impossible }
        return queries.count < TokenQuery.maxUnderway ? .ask(upstream.nextCall(), order) : .busy
    }

    /// Handles the backend's verdict on a client's token. Nil: the attempt is gone.
    func answered(
        _ verdict: TokenVerdict, _ client: ClientID, attempt: UInt64, authzid: String, now: MonotonicInstant
    ) -> LoginStep? {
        guard let tried = attempts[client], tried.isToken, tried.attempt == attempt, let backend = tokenBackend else {
            return nil
        }
        switch verdict {
        case .belongs(let person):
            guard case .succeeded = succeed(tried) else { return .abandoned(isFailure: false) }
            return admit(person, as: authzid, backend.settings.name, from: tried.address)
        case .refused: return fail(tried, now: now)
        case .unknown: return refuse(tried, .unanswered(backend.place))
        }
    }

    private func admit(_ person: ChatPerson, as authzid: String, _ backend: String, from address: String) -> LoginStep {
        let vouched = IdentityMap.accountName(of: person, backend: backend) ?? "-"
        // Two users of the backend must never share an account.
        guard let account = account(of: person, backend) else { return .refused(.ambiguousName, .sasl) }
        let names = [account.name, vouched, person.id?.rawValue, person.name].compactMap(\.self)
        guard let client = Self.client(wanted: authzid, of: names) else { return .refused(.authzidMismatch, .sasl) }
        return admit(account, clientName: client.isEmpty ? nil : client, from: address)
    }

    /// The account of a user of the backend; nil: two users would share it.
    func account(of person: ChatPerson, _ backend: String) -> AccountSettings? {
        if let known = accounts.account(of: person) { return known }
        guard IdentityMap.isAccountName(person, backend: backend) else { return nil }
        return AccountSettings(name: IdentityMap.accountName(of: person, backend: backend) ?? "-", password: nil)
    }

    /// The client name in the authorization identity `wanted`; empty: none. Nil: `wanted` names another account.
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

import BridgeTypes
import Digests
import Upstream
import WireBytes

// Log-in: from credentials to a verdict. Replies to the client are the front end's.
//
// | state    | meaning                                            | verb → next                                              |
// |----------|----------------------------------------------------|------------------------------------------------------------|
// | none     | no attempt                                         | credentials → checking, none (verdict known at once)     |
// | checking | a password is checked on another thread, or the    | verdict → waiting, none (answered at once), checking     |
// |          | backend is asked for the owner of a token          | (the text may also be the server's password)             |
// | waiting  | the verdict is known, its answer delayed           | delay over → none                                        |
//
// What was proven counts for the account as it is when the log-in succeeds: a configuration may be read again while a password is
// checked, an answer delayed, or a client thinks. An account that is gone by then, or has another password, is refused.
//
// A client has at most one attempt. A failed attempt lasts until its answer was sent, so aborting and trying again does not
// avoid the delay.

/// The log-in attempts of all clients.
package final class LoginMachine {
    let accounts: AccountTable
    /// The backend that identifies the owners of clients' tokens; nil: tokens are not accepted.
    let tokenBackend: BackendAccount?
    let upstream: UpstreamShared
    private let serverPassword: ServerPassword?
    private let gateways: [ServerPassword]
    /// Key of the imitated SCRAM parameters of names without an account, which must not vary.
    let decoyKey: [UInt8]

    var attempts: [ClientID: LoginAttempt] = [:]
    /// The SCRAM exchanges in progress.
    var exchanges: [ClientID: SCRAMStep] = [:]
    var throttle = LoginThrottle()
    /// Separate, so that failed uploads do not evict failures of IRC clients.
    var uploadThrottle = LoginThrottle()
    /// Pending queries for the owners of tokens.
    var queries: [BackendCallID: TokenQuery] = [:]
    /// The verified passwords of gateways configured with a hash, by their index in the settings.
    private var knownGatewayPasswords: [Int: SecretBytes] = [:]
    private var lastAttempt: UInt64 = 0

    package init(
        _ accounts: AccountTable, serverPassword: ServerPassword?, gateways: [ServerPassword], instanceID: String,
        tokenBackend: BackendAccount?, _ upstream: UpstreamShared
    ) {
        self.accounts = accounts
        self.serverPassword = serverPassword
        self.gateways = gateways
        self.decoyKey = Array("\(instanceID)/unknown-accounts".utf8)
        self.tokenBackend = tokenBackend.flatMap { $0.canVerifyTokens ? $0 : nil }
        self.upstream = upstream
    }

    // MARK: - State

    /// Whether the client has an attempt, checked or with a delayed answer.
    package func isBusy(with client: ClientID) -> Bool { !attempts.isEmpty && attempts[client] != nil }

    /// Whether a verdict is pending. A delayed answer does not count: otherwise the reply to the client's next line would
    /// reveal the verdict.
    package func isChecking(_ client: ClientID, for purpose: LoginPurpose) -> Bool {
        guard !attempts.isEmpty, let tried = attempts[client] else { return false }
        return tried.purpose == purpose && tried.answer == nil
    }

    /// Removes the state of a closed connection.
    package func remove(_ client: ClientID) {
        attempts[client] = nil
        exchanges[client] = nil
    }

    /// Ends the SCRAM exchange of a client that begins another log-in or aborts this one.
    package func endExchange(_ client: ClientID) { exchanges[client] = nil }

    /// Marks a SASL exchange as aborted. The attempt still counts.
    package func abandon(_ client: ClientID) {
        if attempts[client]?.purpose == .sasl { attempts[client]?.abandon() }
    }

    // MARK: - Credentials

    /// Checks a name and a password.
    package func check(
        _ password: SecretBytes, of name: String, client clientName: String?, _ purpose: LoginPurpose,
        _ client: ClientID, from address: String
    ) -> LoginStep {
        let account = accounts[name]
        var tried = LoginAttempt(client, from: address, purpose, account: account)
        tried.clientName = clientName
        tried.name = String(name.prefix(LoginThrottle.maxNameLength))
        return check(password, against: account?.password ?? .unmatchable(iterations: accounts.passwordCost), tried)
    }

    /// Checks the parameter of PASS: `account:password`, else the server's password. Nil: no password is required.
    ///
    /// - Parameter canBeAccount: the connection is secure enough for an account's password.
    package func checkPass(
        _ text: String, canBeAccount: Bool, _ client: ClientID, from address: String, now: MonotonicInstant
    ) -> LoginStep? {
        if canBeAccount, !accounts.isEmpty, let colon = text.firstIndex(of: ":"), colon != text.startIndex {
            let (account, clientName) = ClientName.split(String(text[..<colon]))
            return check(
                SecretBytes(text[text.index(after: colon)...].utf8), of: account, client: clientName,
                .accountPass(whole: text), client, from: address)
        }
        return serverPassword.map {
            check(text, against: $0, LoginAttempt(client, from: address, .serverPass), now: now)
        }
    }

    private func check(
        _ text: String, against wanted: ServerPassword, _ tried: LoginAttempt, now: MonotonicInstant
    ) -> LoginStep {
        let given = SecretBytes(text.utf8)
        switch wanted {
        case .hashed(let verifier): return check(given, against: verifier, tried)
        case .plain(let wanted):
            guard given == wanted else { return fail(tried, now: now) }
            if let later = delayAnswer(tried, .success, now: now) { return later }
            attempts[tried.client] = nil
            return .succeeded(Login(tried.purpose, nil))
        }
    }

    private func check(_ password: SecretBytes, against verifier: SCRAMVerifier, _ tried: LoginAttempt) -> LoginStep {
        var tried = tried
        tried.attempt = nextAttempt()
        attempts[tried.client] = tried
        return .check(
            PasswordCheck(
                client: tried.client, attempt: tried.attempt, verifier: verifier, password: password,
                cost: accounts.passwordCost))
    }

    func nextAttempt() -> UInt64 {
        lastAttempt &+= 1
        return lastAttempt
    }

    // MARK: - Gateways

    /// Checks a gateway's password against the settings with these indices.
    package func checkGateway(
        _ password: SecretBytes, candidates: [Int], _ client: ClientID, from address: String, now: MonotonicInstant
    ) -> LoginStep {
        var tried = LoginAttempt(client, from: address, .gateway)
        tried.gateway = LoginAttempt.Gateway(password: password, candidates: candidates)
        return checkGateway(tried, now: now)
    }

    /// Looks for the settings with this password: plain ones at once, hashed ones on another thread.
    private func checkGateway(_ tried: LoginAttempt, now: MonotonicInstant) -> LoginStep {
        var tried = tried
        guard let gateway = tried.gateway else { return fail(tried, now: now) }
        // A gateway connects for each of its users. Without this cache each connection would cost a second of CPU time.
        let isKnown = gateway.candidates.contains { index in
            if case .plain(let wanted) = gateways[index] { return wanted == gateway.password }
            return knownGatewayPasswords[index].map { $0 == gateway.password } ?? false
        }
        if isKnown { return succeed(tried) }
        while let index = tried.gateway?.candidates.first {
            if case .hashed(let verifier) = gateways[index] { return check(gateway.password, against: verifier, tried) }
            tried.gateway?.candidates.removeFirst()
        }
        return fail(tried, now: now)
    }

    // MARK: - Verdicts

    /// Handles the verdict on a ``LoginStep/check(_:)``. Nil: the attempt is gone.
    package func checked(
        _ client: ClientID, attempt: UInt64, _ verdict: PasswordVerdict, now: MonotonicInstant
    ) -> LoginStep? {
        guard var tried = attempts[client], tried.attempt == attempt, tried.answer == nil else { return nil }
        switch (verdict, tried.purpose) {
        case (.unavailable, _): return refuse(tried, .busy)
        case (.correct, .gateway):
            if let gateway = tried.gateway, let index = gateway.candidates.first {
                knownGatewayPasswords[index] = gateway.password
            }
            return succeed(tried)
        case (.correct, _): return delayAnswer(tried, .success, now: now) ?? succeed(tried)
        case (.wrong, .gateway):
            tried.gateway?.candidates.removeFirst()
            return checkGateway(tried, now: now)
        case (.wrong, .accountPass(let whole)):
            guard let serverPassword else { return fail(tried, now: now) }
            var again = LoginAttempt(client, from: tried.address, .serverPass)
            again.triedAccount = tried.account
            return check(whole, against: serverPassword, again, now: now)
        case (.wrong, _): return fail(tried, now: now)
        }
    }

    /// Delays the answer to a success while that to an earlier failure is still delayed. Nil: no delay.
    func delayAnswer(_ tried: LoginAttempt, _ answer: LoginAttempt.Answer, now: MonotonicInstant) -> LoginStep? {
        let wait = throttle.successDelay(tried.address, tried.target, now: now)
        guard wait > .zero else { return nil }
        var tried = tried
        tried.answer = answer
        attempts[tried.client] = tried
        return .answer(in: wait, nil)
    }

    func succeed(_ tried: LoginAttempt) -> LoginStep {
        var tried = tried
        if let account = tried.account {
            guard let present = present(account) else { return refuse(tried, .wrongPassword) }
            tried.account = present
        }
        throttle.recordSuccess(tried.address, tried.target)
        attempts[tried.client] = nil
        if tried.isAbandoned { return .abandoned(isFailure: false) }
        return .succeeded(Login(tried.purpose, tried.account, clientName: tried.clientName))
    }

    /// The account as it is now; nil: it is gone, or has another password than the one that was proven.
    func present(_ proven: AccountSettings) -> AccountSettings? {
        accounts[proven.name].flatMap { $0.password == proven.password ? $0 : nil }
    }

    /// Records a failure. Its answer is delayed by the number of failures of that address or account.
    func fail(_ tried: LoginAttempt, now: MonotonicInstant) -> LoginStep {
        var tried = tried
        tried.answer = .refusal
        attempts[tried.client] = tried
        let wait = throttle.recordFailure(tried.address, tried.failureTarget, now: now)
        return .answer(in: wait, FailedLogin(isToken: tried.isToken, account: tried.account?.name ?? ""))
    }

    func refuse(_ tried: LoginAttempt, _ why: LoginRefusal) -> LoginStep {
        attempts[tried.client] = nil
        if tried.isAbandoned { return .abandoned(isFailure: why == .wrongPassword || why == .tokenRefused) }
        return .refused(why, tried.purpose)
    }

    /// Ends the delay of ``LoginStep/answer(in:_:)``. Nil: no answer is delayed.
    package func takeDelayedAnswer(_ client: ClientID) -> LoginStep? {
        guard let tried = attempts[client], let answer = tried.answer else { return nil }
        switch answer {
        case .refusal: return refuse(tried, tried.isToken ? .tokenRefused : .wrongPassword)
        case .success: return succeed(tried)
        case .signature(let signature):
            attempts[client] = nil
            return tried.isAbandoned ? .abandoned(isFailure: false) : .challenge(signature)
        }
    }
}

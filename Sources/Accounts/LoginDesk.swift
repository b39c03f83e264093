import BridgeTypes
import Digests
import Upstream
import WireBytes

// Logging in: what clients show, on its way to a verdict. What is said to them about it is the front end's.
//
// | state    | meaning                                            | verb → next                                              |
// |----------|----------------------------------------------------|------------------------------------------------------------|
// | none     | nothing of the client is looked at                 | something is shown → checking, none (known at once)      |
// | checking | a password is checked beside the loop, or the      | verdict → waiting, none (told at once), checking (the    |
// |          | backend is asked whose a token is                  | same words may be another password)                      |
// | waiting  | the verdict is known, and its answer waits         | answer is due → none                                     |
//
// A client has at most one try underway, and a failed one is underway until its answer was given, so the wait cannot be dodged
// by giving up and trying again.

package final class LoginDesk {
    let book: AccountBook
    /// The backend that says whose a client's token is; nil: none is asked.
    let tokenBackend: BackendAccount?
    let upstream: UpstreamShared
    private let serverPassword: ServerPassword?
    private let gateways: [ServerPassword]
    /// What names that are none are given is made of, so that it is the same each time.
    let decoyKey: [UInt8]

    /// What clients show, by the client.
    var tries: [ClientID: LoginTry] = [:]
    /// Where logins with SCRAM stand.
    var exchanges: [ClientID: SCRAMStep] = [:]
    var throttle = LoginThrottle()
    /// Of its own: whoever fails there many times makes nobody's failures here forgotten.
    var uploadThrottle = LoginThrottle()
    /// Tokens that a backend is asked about.
    var questions: [BackendCallID: TokenQuestion] = [:]
    /// The right passwords of gateways whose settings have only a hash, by their place in the settings.
    private var knownGatewayPasswords: [Int: SecretBytes] = [:]
    private var lastAttempt: UInt64 = 0

    package init(
        _ book: AccountBook, serverPassword: ServerPassword?, gateways: [ServerPassword], instanceID: String,
        tokenBackend: BackendAccount?, _ upstream: UpstreamShared
    ) {
        self.book = book
        self.serverPassword = serverPassword
        self.gateways = gateways
        self.decoyKey = Array("\(instanceID)/unknown-accounts".utf8)
        self.tokenBackend = tokenBackend.flatMap { $0.knowsTokens ? $0 : nil }
        self.upstream = upstream
    }

    // MARK: - How it stands

    /// Whether something of the client is looked at, or its answer waits.
    package func isBusy(with client: ClientID) -> Bool { !tries.isEmpty && tries[client] != nil }

    /// Whether a verdict is awaited. The wait before it is told counts for nothing, or a client would see by its next answer
    /// which verdict it is.
    package func isChecking(_ client: ClientID, for purpose: LoginPurpose) -> Bool {
        guard !tries.isEmpty, let tried = tries[client] else { return false }
        return tried.purpose == purpose && tried.answer == nil
    }

    /// The connection is gone.
    package func forget(_ client: ClientID) {
        tries[client] = nil
        exchanges[client] = nil
    }

    /// The client begins another login, or has enough of this one.
    package func endExchange(_ client: ClientID) { exchanges[client] = nil }

    /// The client goes on without the answer to what it showed in a dialogue. A try it was all the same.
    package func abandon(_ client: ClientID) {
        if tries[client]?.purpose == .sasl { tries[client]?.abandon() }
    }

    // MARK: - What clients show

    /// A name and a password.
    package func check(
        _ password: SecretBytes, of name: String, client clientName: String?, _ purpose: LoginPurpose,
        _ client: ClientID, from address: String
    ) -> LoginStep {
        let account = book[name]
        var tried = LoginTry(client, from: address, purpose, account: account)
        tried.clientName = clientName
        tried.name = String(name.prefix(LoginThrottle.longestName))
        return check(password, against: account?.password ?? .unmatchable(iterations: book.passwordCost), tried)
    }

    /// What a client gives to come in: `account:password`, else the server's password. Nil: nothing has to be given.
    ///
    /// - Parameter canBeAccount: an account's password may cross the connection.
    package func checkPass(
        _ text: String, canBeAccount: Bool, _ client: ClientID, from address: String, now: MonotonicInstant
    ) -> LoginStep? {
        if canBeAccount, !book.isEmpty, let colon = text.firstIndex(of: ":"), colon != text.startIndex {
            let (account, clientName) = ClientName.split(String(text[..<colon]))
            return check(
                SecretBytes(text[text.index(after: colon)...].utf8), of: account, client: clientName,
                .accountPass(whole: text), client, from: address)
        }
        return serverPassword.map { check(text, against: $0, LoginTry(client, from: address, .serverPass), now: now) }
    }

    private func check(
        _ text: String, against wanted: ServerPassword, _ tried: LoginTry, now: MonotonicInstant
    ) -> LoginStep {
        let given = SecretBytes(text.utf8)
        switch wanted {
        case .hashed(let verifier): return check(given, against: verifier, tried)
        case .plain(let wanted):
            guard given == wanted else { return fail(tried, now: now) }
            if let later = answerLater(tried, .success, now: now) { return later }
            tries[tried.client] = nil
            return .right(Login(tried.purpose, nil))
        }
    }

    private func check(_ password: SecretBytes, against verifier: SCRAMVerifier, _ tried: LoginTry) -> LoginStep {
        var tried = tried
        tried.attempt = nextAttempt()
        tries[tried.client] = tried
        return .check(
            PasswordCheck(
                client: tried.client, attempt: tried.attempt, verifier: verifier, password: password,
                cost: book.passwordCost))
    }

    func nextAttempt() -> UInt64 {
        lastAttempt &+= 1
        return lastAttempt
    }

    // MARK: - Gateways

    /// A gateway's password, which is that of one of these settings, by their places.
    package func checkGateway(
        _ password: SecretBytes, candidates: [Int], _ client: ClientID, from address: String, now: MonotonicInstant
    ) -> LoginStep {
        var tried = LoginTry(client, from: address, .gateway)
        tried.gateway = LoginTry.Gateway(password: password, candidates: candidates)
        return checkGateway(tried, now: now)
    }

    /// Looks for the settings with this password: at once where that is quick, beside the loop where it is not.
    private func checkGateway(_ tried: LoginTry, now: MonotonicInstant) -> LoginStep {
        var tried = tried
        guard let gateway = tried.gateway else { return fail(tried, now: now) }
        // A gateway connects for each of its users: what was right once is remembered, or each would cost a core's second.
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

    /// The verdict on a ``LoginStep/check(_:)``. Nil: nobody waits for it.
    package func checked(
        _ client: ClientID, attempt: UInt64, _ verdict: PasswordVerdict, now: MonotonicInstant
    ) -> LoginStep? {
        guard var tried = tries[client], tried.attempt == attempt, tried.answer == nil else { return nil }
        switch (verdict, tried.purpose) {
        case (.unavailable, _): return refuse(tried, .busy)
        case (.correct, .gateway):
            if let gateway = tried.gateway, let index = gateway.candidates.first {
                knownGatewayPasswords[index] = gateway.password
            }
            return succeed(tried)
        case (.correct, _): return answerLater(tried, .success, now: now) ?? succeed(tried)
        case (.wrong, .gateway):
            tried.gateway?.candidates.removeFirst()
            return checkGateway(tried, now: now)
        case (.wrong, .accountPass(let whole)):
            guard let serverPassword else { return fail(tried, now: now) }
            var again = LoginTry(client, from: tried.address, .serverPass)
            again.triedAccount = tried.account
            return check(whole, against: serverPassword, again, now: now)
        case (.wrong, _): return fail(tried, now: now)
        }
    }

    /// What was right is told later where the answer to what was wrong still waits. Nil: it does not.
    func answerLater(_ tried: LoginTry, _ answer: LoginTry.Answer, now: MonotonicInstant) -> LoginStep? {
        let wait = throttle.owed(tried.address, tried.target, now: now)
        guard wait > .zero else { return nil }
        var tried = tried
        tried.answer = answer
        tries[tried.client] = tried
        return .answer(in: wait, nil)
    }

    func succeed(_ tried: LoginTry) -> LoginStep {
        throttle.succeeded(tried.address, tried.target)
        tries[tried.client] = nil
        if tried.isAbandoned { return .abandoned(isFailure: false) }
        return .right(Login(tried.purpose, tried.account, clientName: tried.clientName))
    }

    /// It was wrong, which is told the later the more there were from that address, or for that account.
    func fail(_ tried: LoginTry, now: MonotonicInstant) -> LoginStep {
        var tried = tried
        tried.answer = .refusal
        tries[tried.client] = tried
        let wait = throttle.failed(tried.address, tried.failed, now: now)
        return .answer(in: wait, FailedLogin(isToken: tried.isToken, account: tried.account?.name ?? ""))
    }

    func refuse(_ tried: LoginTry, _ why: LoginRefusal) -> LoginStep {
        tries[tried.client] = nil
        if tried.isAbandoned { return .abandoned(isFailure: why == .wrongPassword || why == .tokenRefused) }
        return .refused(why, tried.purpose)
    }

    /// The wait of ``LoginStep/answer(in:_:)`` is over. Nil: nobody waits.
    package func answerIsDue(_ client: ClientID) -> LoginStep? {
        guard let tried = tries[client], let answer = tried.answer else { return nil }
        switch answer {
        case .refusal: return refuse(tried, tried.isToken ? .tokenRefused : .wrongPassword)
        case .success: return succeed(tried)
        case .signature(let signature):
            tries[client] = nil
            return tried.isAbandoned ? .abandoned(isFailure: false) : .challenge(signature)
        }
    }
}

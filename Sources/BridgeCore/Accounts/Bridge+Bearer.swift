import ChatModel
import Dialects
import Digests
import IRCProtocol

// SASL OAUTHBEARER: the client shows a token of the backend's, and the backend says whose it is.
//
// | state    | meaning                                       | leaves by                                                  |
// |----------|-----------------------------------------------|-------------------------------------------------------------|
// | asking   | the backend is asked with the client's token   | a person → logged in; 401, 403 → refusing; trouble → failed |
// | refusing | the refusal waits, the longer the more there were | time → refused                                          |
// | refused  | the client was told why                        | whatever it answers → failed                                |
//
// The token stands in the one call and is kept nowhere. Whoever's it is has the account of the configuration that names them,
// else the one that their messages from the backend bear, `<id>@<backend>`; no account of the bridge's own can be called so.
//
// Source: RFC 7628.

/// A token on its way to a verdict; the token itself is with the call.
struct BearerTry {
    var client: ClientID
    /// Names the session's ``PasswordTry``.
    var attempt: UInt64
    /// Whom the client wants to act as; empty: whoever's token it is.
    var authzid: String
}

/// What a backend says of a token.
enum TokenVerdict {
    case belongs(to: ChatPerson)
    case refused
    /// It could not be asked, or gave no answer to that. A sentence for the log.
    case unknown(BackendCallFailure)
}

extension Bridge {
    /// Tokens that are being looked at at a time. A backend answers in milliseconds; with more it has trouble of its own.
    static let maxBearerTries = 16
    /// Longest wait for the backend's word. WeeChat gives up a login after 15 s.
    static let bearerTimeout: Duration = .seconds(10)
    /// Bytes of the backend's answer: one person.
    static let maxBearerAnswerBytes = 64 * 1024

    func bearerReceived(_ bytes: [UInt8], _ session: IRCSession) {
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
        guard bearerTries.count + uploadTokens.count < Self.maxBearerTries,
            let order = bearerBackend?.orderForOwner(
                of: response.token, timeout: Self.bearerTimeout, maxAnswerBytes: Self.maxBearerAnswerBytes)
        else {
            return reply(
                session.numeric(.errSASLFail, "Too many people log in at this moment; try again"), session)
        }
        lastAttempt &+= 1
        session.passwordTry = PasswordTry(attempt: lastAttempt, purpose: .sasl, account: nil, isBearer: true)
        let call = context.nextBackendCall()
        bearerTries[call] = BearerTry(client: session.id, attempt: lastAttempt, authzid: response.authzid)
        context.emit(.callBackend(call, order))
    }

    /// An answer to the question whose token it is. False when `call` is none of these.
    func bearerAnswered(
        _ call: BackendCallID, _ outcome: Result<BackendAnswered, BackendCallFailure>, _ backend: BackendAccount
    ) -> Bool {
        guard let asked = bearerTries.removeValue(forKey: call) else {
            return uploadTokenAnswered(call, outcome, backend)
        }
        guard let session = sessions[asked.client], let tried = session.passwordTry, tried.isBearer,
            tried.attempt == asked.attempt
        else { return true }
        switch backend.verdict(on: outcome) {
        case .belongs(let person):
            loginThrottle.succeeded(session.origin.address, tried.target)
            session.passwordTry = nil
            if !tried.isAbandoned { bearerIs(person, as: asked.authzid, backend, session) }
            goOnRegistering(session)
        case .refused: refuseLater(session)
        case .unknown(let failure):
            noteUnknownToken(failure, backend)
            session.passwordTry = nil
            if !tried.isAbandoned {
                reply(
                    session.numeric(
                        .errSASLFail, "\(backend.place) cannot say at the moment whose token that is; try again"),
                    session)
            }
            goOnRegistering(session)
        }
        pullLongAnswers(session)
        processInput(session)
        return true
    }

    func noteUnknownToken(_ failure: BackendCallFailure, _ backend: BackendAccount) {
        context.note(
            .warn, "backend-call-failed", failure.sentence,
            [
                "backend": backend.settings.name, "call": "whose-token", "room": "",
                "status": failure.status.map(String.init) ?? "",
            ])
    }

    /// The account of a person of the backend; nil where two people would have one.
    func bearerAccount(of person: ChatPerson, _ backend: BackendAccount) -> AccountSettings? {
        if let known = accounts.account(of: person) { return known }
        guard IdentityMap.isAccountName(person, backend: backend.settings.name) else { return nil }
        return AccountSettings(
            name: IdentityMap.accountName(of: person, backend: backend.settings.name) ?? "-",
            password: nil)
    }

    private func bearerIs(
        _ person: ChatPerson, as authzid: String, _ backend: BackendAccount, _ session: IRCSession
    ) {
        let vouched = IdentityMap.accountName(of: person, backend: backend.settings.name) ?? "-"
        guard let account = bearerAccount(of: person, backend) else {
            // Two people of the backend must never be one here.
            return saslFailed(session, "Your name there cannot be an account here; ask for an account of your own")
        }
        let names = [account.name, vouched, person.id?.rawValue, person.name].compactMap(\.self)
        guard let client = Self.client(wanted: authzid, of: names) else {
            return saslFailed(session, "You may only log in as yourself")
        }
        let tried = PasswordTry(
            attempt: 0, purpose: .sasl, account: account, clientName: client.isEmpty ? nil : client)
        loginThrottle.succeeded(session.origin.address, tried.target)
        loggedIn(session, tried)
    }

    /// Which of a person's clients it is, where they act as `wanted`; empty: it has no name. Nil: `wanted` is somebody else.
    private static func client(wanted: String, of names: [String]) -> String? {
        let folded = AccountBook.fold(wanted)
        if wanted.isEmpty || names.contains(where: { AccountBook.fold($0) == folded }) { return "" }
        for name in names where folded.hasPrefix(AccountBook.fold(name) + "@") {
            return ClientName.clean(String(decoding: wanted.utf8.dropFirst(name.utf8.count + 1), as: UTF8.self)) ?? ""
        }
        return nil
    }

    /// Says why, as the mechanism has it. What the client answers, a single ^A, ends the exchange.
    ///
    /// Source: RFC 7628 §3.2.2 and §3.2.3.
    func refuseBearer(_ session: IRCSession) {
        session.isBearerRefused = true
        challenge(SASLOAuthBearerResponse.refusal, .oauthBearer, session)
    }

    private static func sentence(_ error: SASLOAuthBearerResponse.ParseError) -> String {
        switch error {
        case .channelBindingRequired: "This server binds no channels; use OAUTHBEARER without"
        case .malformed: "The SASL response is malformed"
        case .noBearerToken: "The SASL response has no bearer token"
        }
    }
}

extension BackendAccount {
    /// The call that asks whose a token is, which shows that token and nothing of ours; nil where there is none such.
    func orderForOwner(of token: String, timeout: Duration, maxAnswerBytes: Int) -> BackendCallOrder? {
        guard settings.httpBase != nil,
            let request = settings.dialect.calls?.request(for: .whoAmI, context: DialectContext(room: ""))
        else { return nil }
        var shown = UpstreamCredentials.Item(name: "Authorization", value: "Bearer " + token)
        if case .header(let name, let format)? = settings.login?.sendAs {
            shown = .init(name: name, value: format.replacing("{token}", with: token))
        }
        var order = BackendCallOrder(
            backend: id, request: request, authorization: UpstreamCredentials(headers: [shown]), timeout: timeout,
            maxAnswerBytes: maxAnswerBytes)
        order.carriesClientTokenOnly = true
        return order
    }

    /// What the answer to that call says. Of the answer's words nothing is repeated: they could hold the token.
    func verdict(on outcome: Result<BackendAnswered, BackendCallFailure>) -> TokenVerdict {
        let answer: BackendAnswer
        switch outcome {
        case .failure(let failure): return .unknown(failure)
        case .success(let answered): answer = answered.answer
        }
        func unknown(_ sentence: String) -> TokenVerdict {
            .unknown(BackendCallFailure(sentence: sentence, status: answer.status))
        }
        switch answer.status {
        case 200..<300:
            let reply = settings.dialect.calls?.reply(to: .whoAmI, answer: answer, context: DialectContext(room: ""))
            guard case .person(var person)? = reply, person.id != nil || person.name != nil else {
                return unknown("\(place) does not say whose a token is")
            }
            // As messages of this person have it.
            if settings.dialect.traits.namesAreIDs, person.name != nil { person.id = nil }
            return .belongs(to: person)
        case 401, 403: return .refused
        default: return unknown("the question whose a token is was answered \(answer.status) by \(place)")
        }
    }
}

import Accounts
import BridgeTypes
import IRCProtocol
import Rooms
import Upstream

// SASL OAUTHBEARER: the client shows a token of the backend's, and the backend says whose it is.
//
// | state    | meaning                                       | leaves by                                                  |
// |----------|-----------------------------------------------|-------------------------------------------------------------|
// | asking   | the backend is asked with the client's token   | a person → logged in; 401, 403 → refusing; trouble → failed |
// | refusing | the refusal waits, the longer the more there were | time → refused                                          |
// | refused  | the client was told why                        | whatever it answers → failed                                |
//
// Source: RFC 7628.

extension IRCServer {
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
        take(
            logins.showToken(response.token, as: response.authzid, session.id, from: session.origin.address), session)
    }

    /// An answer to the question whose token it is. False when `call` is none of these.
    package func tokenAnswered(
        _ call: BackendCallID, _ outcome: Result<BackendAnswered, BackendCallFailure>, _ backend: BackendAccount
    ) -> Bool {
        guard logins.isQuestion(call) else { return false }
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

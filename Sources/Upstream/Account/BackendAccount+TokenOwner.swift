import BridgeTypes
import ChatModel
import Dialects

/// The backend's verdict on a client's token.
package enum TokenVerdict {
    case belongs(to: ChatPerson)
    case refused
    /// The backend could not be asked, or gave no verdict.
    case unknown(BackendCallFailure)
}

extension BackendAccount {
    /// Whether the backend can name the owner of a token.
    package var canVerifyTokens: Bool { offers(.whoAmI) }

    /// The call that asks for the owner of a token, authorised by that token alone; nil where there is none such.
    package func ownerRequest(of token: String, timeout: Duration, maxAnswerBytes: Int) -> BackendCallRequest? {
        guard settings.httpBase != nil,
            let request = settings.dialect.calls?.request(for: .whoAmI, context: DialectContext(room: ""))
        else { return nil }
        var shown = UpstreamCredentials.Item(name: "Authorization", value: "Bearer " + token)
        if case .header(let name, let format)? = settings.login?.sendAs {
            shown = .init(name: name, value: format.replacing("{token}", with: token))
        }
        return BackendCallRequest(
            backend: id, request: request, authorization: UpstreamCredentials(headers: [shown]), timeout: timeout,
            maxAnswerBytes: maxAnswerBytes, carriesClientTokenOnly: true)
    }

    /// The verdict in the answer to that call. The answer's text is never repeated: it could hold the token.
    package func verdict(on outcome: Result<BackendCallResponse, BackendCallFailure>) -> TokenVerdict {
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

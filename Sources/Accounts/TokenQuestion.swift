import BridgeTypes
import Upstream

/// A question to the backend whose a token is, under way. The token itself is with the call.
enum TokenQuestion {
    /// - Parameters:
    ///   - attempt: names the client's try.
    ///   - authzid: whom the client wants to act as; empty: whoever's token it is.
    case client(ClientID, attempt: UInt64, authzid: String)
    case upload(attempt: UInt64, UploadPlace)

    /// Whether it can be put.
    enum Beginning {
        case ask(BackendCallID, BackendCallOrder)
        /// There is nobody to ask.
        case impossible
        /// Too many are under way.
        case busy
    }

    /// Tokens that are being looked at at a time. A backend answers in milliseconds; with more it has trouble of its own.
    static let maxUnderway = 16
    /// Longest wait for the backend's word. WeeChat gives up a login after 15 s.
    static let timeout: Duration = .seconds(10)
    /// Bytes of the backend's answer: one person.
    static let maxAnswerBytes = 64 * 1024
}

/// What a backend's word on a token means.
package enum TokenAnswer {
    /// For a client; nil: nobody waits for it.
    case client(ClientID, LoginStep?)
    case upload(attempt: UInt64, UploadTokenVerdict, from: UploadPlace)
}

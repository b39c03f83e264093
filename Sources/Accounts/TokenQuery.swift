import BridgeTypes
import Upstream

/// A pending call that identifies the owner of a token. The token itself is in the call.
enum TokenQuery {
    /// - Parameters:
    ///   - attempt: identifies the client's attempt.
    ///   - authzid: the authorization identity; empty: the token's owner.
    case client(ClientID, attempt: UInt64, authzid: String)
    case upload(attempt: UInt64, UploadSource)

    /// The outcome of beginning a query.
    enum Start {
        case ask(BackendCallID, BackendCallRequest)
        /// No backend identifies owners.
        case impossible
        /// Too many are pending.
        case busy
    }

    /// Limit of pending queries. A backend answers in milliseconds; with more pending it is overloaded.
    static let maxUnderway = 16
    /// Time-out of the call. WeeChat aborts a log-in after 15 s.
    static let timeout: Duration = .seconds(10)
    /// Limit of the answer in bytes: one user.
    static let maxAnswerBytes = 64 * 1024
}

/// The effect of a backend's verdict on a token.
package enum TokenAnswer {
    /// For a client; nil: the attempt is gone.
    case client(ClientID, LoginStep?)
    case upload(attempt: UInt64, UploadTokenVerdict, from: UploadSource)
}

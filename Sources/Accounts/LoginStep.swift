import BridgeTypes
import Digests
import Upstream

/// The purpose of a password or token.
package enum LoginPurpose: Equatable {
    /// WEBIRC: to connect on behalf of others.
    case gateway
    /// SASL; the client may abort it.
    case sasl
    /// Log-in by a command to the service.
    case service
    /// OPER.
    case oper
    /// PASS with an account. If that fails, the whole text is checked against the server's password.
    case accountPass(whole: String)
    /// PASS with the server's password.
    case serverPass
    /// The account was registered just now; nothing is checked.
    case newAccount
}

/// The next step of a log-in, or its outcome.
package enum LoginStep {
    /// Check a password on another thread.
    case check(PasswordCheck)
    /// Ask the backend for the owner of a token.
    case ask(BackendCallID, BackendCallRequest)
    /// The answer is known and delayed by that time.
    case answer(in: Duration, FailedLogin?)
    /// Send this to the client, which continues the exchange.
    case challenge([UInt8])
    case succeeded(Login)
    case refused(LoginRefusal, LoginPurpose)
    /// The client had aborted the exchange and gets no answer.
    case abandoned(isFailure: Bool)

    /// Whether the outcome is pending or its answer delayed.
    package var isUnderway: Bool {
        switch self {
        case .check, .ask: true
        case .answer(let wait, _): wait > .zero
        case .challenge, .succeeded, .refused, .abandoned: false
        }
    }
}

/// A login that succeeded.
package struct Login {
    package var purpose: LoginPurpose
    /// Nil: the server's password, or a gateway's.
    package var account: AccountSettings?
    /// The client name, where the log-in gave one.
    package var clientName: String?

    package init(_ purpose: LoginPurpose, _ account: AccountSettings?, clientName: String? = nil) {
        self.purpose = purpose
        self.account = account
        self.clientName = clientName
    }
}

/// A login that failed, for the log.
package struct FailedLogin: Equatable {
    package var isToken: Bool
    /// The account's name; empty: none.
    package var account: String
}

/// Reasons to refuse a log-in.
package enum LoginRefusal: Equatable {
    case wrongPassword
    case tokenRefused
    /// Too many checks are pending.
    case busy
    /// The named backend did not identify the token's owner.
    case unanswered(String)
    /// Two users of the backend would share one account.
    case ambiguousName
    /// The authorization identity differs from the authenticated account.
    case authzidMismatch
    case noCertificate
    case malformed
    case channelBindingRequired
    case extensionRequired
}

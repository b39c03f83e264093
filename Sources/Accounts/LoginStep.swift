import BridgeTypes
import Digests
import Upstream

/// What somebody wants who shows a password or a token.
package enum LoginPurpose: Equatable {
    /// To connect for others.
    case gateway
    /// To log in, by a dialogue that can be given up.
    case sasl
    /// To log in, as a wish said to the service.
    case service
    /// To become an operator.
    case oper
    /// To come in, as an account. When that fails, the whole may still be the server's password.
    case accountPass(whole: String)
    /// To come in, without an account.
    case serverPass
    /// Nothing any more: the account was made just now.
    case newAccount
}

/// What comes of a login: what is to be done for it next, or how it ended.
package enum LoginStep {
    /// A password is to be checked beside the loop.
    case check(PasswordCheck)
    /// A backend is to be asked whose a token is.
    case ask(BackendCallID, BackendCallOrder)
    /// The answer is known, and is due after that time.
    case answer(in: Duration, FailedLogin?)
    /// The client is to hear this, and to go on.
    case challenge([UInt8])
    case right(Login)
    case refused(LoginRefusal, LoginPurpose)
    /// The client had gone on without, and need not be told.
    case abandoned(isFailure: Bool)

    /// Whether something has to happen before the client hears of it.
    package var isUnderway: Bool {
        switch self {
        case .check, .ask: true
        case .answer(let wait, _): wait > .zero
        case .challenge, .right, .refused, .abandoned: false
        }
    }
}

/// A login that succeeded.
package struct Login {
    package var purpose: LoginPurpose
    /// Nil: the server's password, or a gateway's, was right.
    package var account: AccountSettings?
    /// What the account calls this client, where the login said so.
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
    /// As which account; empty: none.
    package var account: String
}

/// Why a login came to nothing.
package enum LoginRefusal: Equatable {
    case wrongPassword
    case tokenRefused
    /// Too many wait already.
    case busy
    /// The backend cannot say whose the token is; by its name.
    case unanswered(String)
    /// Two people of the backend would have one account.
    case ambiguousName
    /// Somebody wants to act as somebody else.
    case notThemselves
    case noCertificate
    case malformed
    case channelBindingRequired
    case extensionRequired
}

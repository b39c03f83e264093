import BridgeTypes
import Digests

/// A client's password or token that is being checked.
struct LoginAttempt {
    enum Answer {
        case refusal
        case success
        /// The server signature that ends a SCRAM exchange.
        case signature([UInt8])
    }

    /// The search for the gateway with that password.
    struct Gateway {
        var password: SecretBytes
        /// Indices into the settings that are still to be checked, the current one first.
        var candidates: [Int]
    }

    let client: ClientID
    /// The client's address.
    let address: String
    var purpose: LoginPurpose
    /// Identifies the current check; 0: none.
    var attempt: UInt64 = 0
    var account: AccountSettings?
    /// The name given by the client, also of an account that does not exist.
    var name: String?
    var clientName: String?
    /// The client aborted the exchange and gets no answer.
    var isAbandoned = false
    /// A token, checked by the backend, instead of a password.
    var isToken = false
    /// The account for which the same text was checked before and failed; a failure counts against it.
    var triedAccount: AccountSettings?
    var gateway: Gateway?
    /// The verdict, while its answer is delayed.
    var answer: Answer?

    init(_ client: ClientID, from address: String, _ purpose: LoginPurpose, account: AccountSettings? = nil) {
        self.client = client
        self.address = address
        self.purpose = purpose
        self.account = account
    }

    /// Marks the exchange as aborted by the client.
    mutating func abandon() { isAbandoned = true }

    /// The throttle target of a failure.
    var failureTarget: LoginThrottle.Target { triedAccount.map { .account(AccountName.fold($0.name)) } ?? target }

    /// The throttle target of the attempt.
    var target: LoginThrottle.Target {
        if isToken { return .token }
        switch purpose {
        case .gateway: return .gateway
        case .serverPass: return .server
        case .sasl, .service, .oper, .accountPass, .newAccount:
            return (account?.name ?? name).map { .account(AccountName.fold($0)) } ?? .unknown
        }
    }
}

import BridgeTypes
import Digests

/// A password or a token of a client on its way to a verdict.
struct LoginTry {
    enum Answer {
        case refusal
        case success
        /// What a SCRAM exchange ends with.
        case signature([UInt8])
    }

    /// What is looked through for a gateway's password.
    struct Gateway {
        var password: SecretBytes
        /// Which of the settings are still to be tried, the one under way first.
        var candidates: [Int]
    }

    let client: ClientID
    /// Where it came from.
    let address: String
    var purpose: LoginPurpose
    /// Names the check that is under way; 0: none is.
    var attempt: UInt64 = 0
    var account: AccountSettings?
    /// The name under which somebody tried to log in, whether or not there is such an account.
    var name: String?
    var clientName: String?
    /// The client went on without; nobody waits for the answer.
    var isAbandoned = false
    /// No password but a token, which the backend is asked about.
    var isToken = false
    /// The account that the same words were tried for before, in vain: they were meant for it rather than for everybody.
    var triedAccount: AccountSettings?
    var gateway: Gateway?
    /// The verdict is there, and waits to be told.
    var answer: Answer?

    init(_ client: ClientID, from address: String, _ purpose: LoginPurpose, account: AccountSettings? = nil) {
        self.client = client
        self.address = address
        self.purpose = purpose
        self.account = account
    }

    /// The client goes on without the answer.
    mutating func abandon() { isAbandoned = true }

    /// What a failure counts for.
    var failed: LoginThrottle.Target { triedAccount.map { .account(AccountName.fold($0.name)) } ?? target }

    /// What it is tried for.
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

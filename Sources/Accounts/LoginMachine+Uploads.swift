import BridgeTypes
import ChatModel
import Digests
import Upstream
import WireBytes

// Authentication of uploads, by password or by a token whose owner the backend identifies.
//
// Source: RFC 6750 §2.1; soju.im/filehost.

/// The origin of the credentials of an upload.
public struct UploadSource: Hashable, Sendable {
    /// The driver's key for a visitor: an address, one customer's network, or a shared one.
    public var visitor: String
    /// Groups failures; one check at a time runs for each.
    public var failures: String
}

/// The authenticated account of an upload.
public struct Uploader: Equatable, Sendable {
    package let account: AccountSettings
    /// The key of the account's own limits.
    public var name: String { account.name }

    public static func == (a: Self, b: Self) -> Bool { a.account.name == b.account.name }
}

/// The outcome of checking an upload's token.
public enum UploadTokenVerdict: Equatable, Sendable {
    case belongs(to: Uploader)
    /// - Parameter wait: the delay of the refusal.
    case refused(wait: Duration)
    /// The backend could not be reached, or did not identify the owner.
    case unknown
}

/// The next step for an upload's token.
package enum UploadTokenStep {
    case ask(attempt: UInt64, BackendCallID, BackendCallRequest)
    /// It is no token, or no backend identifies owners.
    case impossible
    /// Too many checks are pending.
    case busy
}

extension LoginMachine {
    // MARK: - Passwords

    /// The source of an upload's password. Failures are grouped by visitor and account, so that guesses do not delay other
    /// accounts; all names without an account share one group.
    ///
    /// - Parameter name: of an account, with or without a client name.
    package func uploadSource(_ name: String, from visitor: String) -> UploadSource {
        UploadSource(
            visitor: visitor,
            failures: "\(visitor) account \(uploader(name).map { AccountName.fold($0.name) } ?? "*")")
    }

    /// The account of an upload's user name, with or without a client name.
    package func uploader(_ name: String) -> Uploader? {
        accounts[ClientName.split(name).account].map { Uploader(account: $0) }
    }

    /// The uploader as it is now, once its password was checked; nil: it is gone, or has another password.
    package func present(_ uploader: Uploader) -> Uploader? {
        present(uploader.account).map { Uploader(account: $0) }
    }

    /// The check of an upload's password; its verdict goes to ``uploadChecked(at:_:now:)``.
    package func uploadCheck(_ name: String, _ password: [UInt8]) -> PasswordCheck {
        PasswordCheck(
            client: ClientID(rawValue: 0), attempt: nextAttempt(),
            verifier: uploader(name)?.account.password ?? .unmatchable(iterations: accounts.passwordCost),
            password: SecretBytes(password), cost: accounts.passwordCost)
    }

    /// - Returns: the delay of the refusal; nil: the password is correct.
    package func uploadChecked(at place: UploadSource, _ verdict: PasswordVerdict, now: MonotonicInstant) -> Duration? {
        switch verdict {
        case .correct:
            uploadThrottle.recordSuccess(at: place.failures)
            return nil
        case .unavailable: return .zero
        case .wrong: return uploadThrottle.recordFailure(at: place.failures, now: now)
        }
    }

    // MARK: - Tokens

    /// The source of an upload's token. All tokens of a visitor share one group of failures: invented tokens cost nothing,
    /// and each costs the backend a call.
    package static func uploadTokenSource(from visitor: String) -> UploadSource {
        UploadSource(visitor: visitor, failures: "\(visitor) token")
    }

    /// Begins to identify the owner of `token`.
    ///
    /// - Parameter token: as after `Bearer `.
    package func checkUploadToken(_ token: String, at place: UploadSource) -> UploadTokenStep {
        let body = token.utf8.prefix { ASCII.isLetter($0) || ASCII.isDigit($0) || "-._~+/".utf8.contains($0) }
        guard !body.isEmpty, token.utf8.dropFirst(body.count).allSatisfy({ $0 == UInt8(ascii: "=") }) else {
            return .impossible
        }
        switch query(owner: token) {
        case .impossible: return .impossible
        case .busy: return .busy
        case .ask(let call, let order):
            let attempt = nextAttempt()
            queries[call] = .upload(attempt: attempt, place)
            return .ask(attempt: attempt, call, order)
        }
    }

    // MARK: - The backend's answers

    /// Whether `call` identifies the owner of a token.
    package func isTokenQuery(_ call: BackendCallID) -> Bool { queries[call] != nil }

    /// Handles the answer to a query for the owner of a token. Nil: `call` is no such query.
    package func tokenAnswered(_ call: BackendCallID, _ verdict: TokenVerdict, now: MonotonicInstant) -> TokenAnswer? {
        switch queries.removeValue(forKey: call) {
        case nil: return nil
        case .client(let client, let attempt, let authzid):
            return .client(client, answered(verdict, client, attempt: attempt, authzid: authzid, now: now))
        case .upload(let attempt, let place):
            return .upload(attempt: attempt, verdictOnUpload(verdict, at: place, now: now), from: place)
        }
    }

    private func verdictOnUpload(
        _ verdict: TokenVerdict, at place: UploadSource, now: MonotonicInstant
    ) -> UploadTokenVerdict {
        switch verdict {
        case .belongs(let person):
            uploadThrottle.recordSuccess(at: place.failures)
            // Two users of the backend must never share an account.
            return tokenBackend.flatMap { account(of: person, $0.settings.name) }
                .map { .belongs(to: Uploader(account: $0)) } ?? .refused(wait: .zero)
        case .refused: return .refused(wait: uploadThrottle.recordFailure(at: place.failures, now: now))
        case .unknown: return .unknown
        }
    }
}

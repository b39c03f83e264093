import BridgeTypes
import ChatModel
import Digests
import Upstream
import WireBytes

// Who uploads, shown by a password or by a token of the backend's: that of those who log in with one comes with the upload
// too, and the backend says whose it is.
//
// Source: RFC 6750 §2.1; soju.im/filehost.

/// Where the password or the token of an upload comes from.
public struct UploadPlace: Hashable, Sendable {
    /// As the driver tells visitors apart: an address, a network that one customer has, or what stands for many.
    public var visitor: String
    /// Whose failures count together, and who has one try at a time.
    public var failures: String
}

/// Whose upload it is, shown by a password or a token.
public struct Uploader: Equatable, Sendable {
    package let account: AccountSettings
    /// What counts as theirs alone.
    public var name: String { account.name }

    public static func == (a: Self, b: Self) -> Bool { a.account.name == b.account.name }
}

/// What came of a token that was shown with an upload.
public enum UploadTokenVerdict: Equatable, Sendable {
    case belongs(to: Uploader)
    /// - Parameter wait: how long the refusal waits.
    case refused(wait: Duration)
    /// The backend could not be asked, or gave no answer to that.
    case unknown
}

/// What is to be done about a token that came with an upload.
package enum UploadTokenStep {
    case ask(attempt: UInt64, BackendCallID, BackendCallOrder)
    /// It is no token, or nobody could be asked.
    case impossible
    /// Too many are being looked at.
    case busy
}

extension LoginDesk {
    // MARK: - Passwords

    /// Where a password comes from that is shown with an upload. Each account has its own failures there, so that somebody's
    /// guesses keep nobody else waiting, and all names that are none have theirs in common.
    ///
    /// - Parameters:
    ///   - name: of an account, with or without the name of a client behind it.
    ///   - visitor: compared as it is.
    package func uploadPlace(_ name: String, from visitor: String) -> UploadPlace {
        UploadPlace(
            visitor: visitor,
            failures: "\(visitor) account \(uploader(name).map { AccountName.fold($0.name) } ?? "*")")
    }

    /// The account of a name that comes with an upload, with or without the name of a client behind it.
    package func uploader(_ name: String) -> Uploader? {
        book[ClientName.split(name).account].map { Uploader(account: $0) }
    }

    /// The check of a password that came with an upload; its verdict goes to ``uploadChecked(at:_:now:)``.
    package func uploadCheck(_ name: String, _ password: [UInt8]) -> PasswordCheck {
        PasswordCheck(
            client: ClientID(rawValue: 0), attempt: nextAttempt(),
            verifier: uploader(name)?.account.password ?? .unmatchable(iterations: book.passwordCost),
            password: SecretBytes(password), cost: book.passwordCost)
    }

    /// - Returns: nil: the password is right. Else how long the refusal waits.
    package func uploadChecked(at place: UploadPlace, _ verdict: PasswordVerdict, now: MonotonicInstant) -> Duration? {
        switch verdict {
        case .correct:
            uploadThrottle.succeeded(at: place.failures)
            return nil
        case .unavailable: return .zero
        case .wrong: return uploadThrottle.failed(at: place.failures, now: now)
        }
    }

    // MARK: - Tokens

    /// Where tokens come from that are shown with uploads. All of one visitor have their failures in common: a new one is
    /// made up at once, and each costs the backend a question.
    ///
    /// - Parameter visitor: compared as it is.
    package static func uploadTokenPlace(from visitor: String) -> UploadPlace {
        UploadPlace(visitor: visitor, failures: "\(visitor) token")
    }

    /// Has the backend asked whose `token` is.
    ///
    /// - Parameter token: as after `Bearer `.
    package func checkUploadToken(_ token: String, at place: UploadPlace) -> UploadTokenStep {
        let body = token.utf8.prefix { ASCII.isLetter($0) || ASCII.isDigit($0) || "-._~+/".utf8.contains($0) }
        guard !body.isEmpty, token.utf8.dropFirst(body.count).allSatisfy({ $0 == UInt8(ascii: "=") }) else {
            return .impossible
        }
        switch question(about: token) {
        case .impossible: return .impossible
        case .busy: return .busy
        case .ask(let call, let order):
            let attempt = nextAttempt()
            questions[call] = .upload(attempt: attempt, place)
            return .ask(attempt: attempt, call, order)
        }
    }

    // MARK: - What the backend says

    /// Whether `call` asks whose a token is.
    package func isQuestion(_ call: BackendCallID) -> Bool { questions[call] != nil }

    /// The answer to a question whose a token is. Nil: `call` is none.
    package func tokenAnswered(_ call: BackendCallID, _ verdict: TokenVerdict, now: MonotonicInstant) -> TokenAnswer? {
        switch questions.removeValue(forKey: call) {
        case nil: return nil
        case .client(let client, let attempt, let authzid):
            return .client(client, answered(verdict, client, attempt: attempt, authzid: authzid, now: now))
        case .upload(let attempt, let place):
            return .upload(attempt: attempt, verdictOnUpload(verdict, at: place, now: now), from: place)
        }
    }

    private func verdictOnUpload(
        _ verdict: TokenVerdict, at place: UploadPlace, now: MonotonicInstant
    ) -> UploadTokenVerdict {
        switch verdict {
        case .belongs(let person):
            uploadThrottle.succeeded(at: place.failures)
            // Two people of the backend must never be one here.
            return tokenBackend.flatMap { account(of: person, $0.settings.name) }
                .map { .belongs(to: Uploader(account: $0)) } ?? .refused(wait: .zero)
        case .refused: return .refused(wait: uploadThrottle.failed(at: place.failures, now: now))
        case .unknown: return .unknown
        }
    }
}

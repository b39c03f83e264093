import ChatModel
import Dialects
import Digests
import WireBytes

// Uploads of those who log in on IRC with a token of the backend's (OAUTHBEARER): the token comes with the upload too, and
// the backend says whose it is. As on IRC it stands in the one call and is kept nowhere; the file goes up as everybody's
// does.
//
// Source: RFC 6750 §2.1; soju.im/filehost.

/// Whose upload it is, shown by a password or a token.
public struct Uploader: Equatable, Sendable {
    let account: AccountSettings
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

/// A token that is being looked at.
struct UploadTokenTry {
    var attempt: UInt64
    /// Whose failures count together.
    var place: String
}

extension Bridge {
    /// Whether a backend is asked whose a token is.
    public var takesUploadTokens: Bool { bearerBackend != nil }

    /// Whose failures count together, as ``uploadPlace(_:address:isShared:)``; behind a proxy each token's own.
    public func uploadPlace(token: String, address: String, isShared: Bool) -> String {
        guard isShared else { return LoginThrottle.network(of: address) }
        return "token " + Base64.encodeURLSafe(Array(SHA256.hash(Array(token.utf8)).prefix(12)))
    }

    /// Has the backend asked whose `token` is; answered with `.uploadTokenChecked`.
    ///
    /// - Parameter token: as after `Bearer `.
    /// - Returns: the attempt; nil: it is no token, or too many are being looked at.
    public func uploadTokenCheck(_ token: String, from place: String, now: Now) -> UInt64? {
        context.now = now
        let body = token.utf8.prefix { ASCII.isLetter($0) || ASCII.isDigit($0) || "-._~+/".utf8.contains($0) }
        guard !body.isEmpty, token.utf8.dropFirst(body.count).allSatisfy({ $0 == UInt8(ascii: "=") }),
            bearerTries.count + uploadTokens.count < Self.maxBearerTries,
            let order = bearerBackend?.orderForOwner(
                of: token, timeout: Self.bearerTimeout, maxAnswerBytes: Self.maxBearerAnswerBytes)
        else { return nil }
        lastAttempt &+= 1
        let call = context.nextBackendCall()
        uploadTokens[call] = UploadTokenTry(attempt: lastAttempt, place: place)
        context.emit(.callBackend(call, order))
        return lastAttempt
    }

    /// An answer to that question. False when `call` is none of these.
    func uploadTokenAnswered(
        _ call: BackendCallID, _ outcome: Result<BackendAnswered, BackendCallFailure>, _ backend: BackendAccount
    ) -> Bool {
        guard let asked = uploadTokens.removeValue(forKey: call) else { return false }
        func tell(_ verdict: UploadTokenVerdict) { context.emit(.uploadTokenChecked(asked.attempt, verdict)) }
        switch backend.verdict(on: outcome) {
        case .belongs(let person):
            loginThrottle.succeeded(asked.place)
            // Two people of the backend must never be one here.
            tell(
                bearerAccount(of: person, backend).map { .belongs(to: Uploader(account: $0)) } ?? .refused(wait: .zero))
        case .refused:
            context.note(
                .warn, "client-token-refused", "an upload had a token that the backend refuses",
                ["address": asked.place, "account": ""])
            tell(.refused(wait: loginThrottle.failed(asked.place, now: context.now.monotonic)))
        case .unknown(let failure):
            noteUnknownToken(failure, backend)
            tell(.unknown)
        }
        return true
    }
}

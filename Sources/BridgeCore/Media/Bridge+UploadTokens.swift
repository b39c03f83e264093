import ChatModel
import Dialects
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

/// Whether a backend is asked whose a token is.
public enum UploadTokenCheck: Equatable, Sendable {
    /// Answered with `.uploadTokenChecked`.
    case begun(attempt: UInt64)
    /// It is no token, or nobody could be asked.
    case impossible
    /// Too many are being looked at.
    case busy
}

/// A token that is being looked at.
struct UploadTokenTry {
    var attempt: UInt64
    var place: UploadPlace
}

extension Bridge {
    /// Whether a backend is asked whose a token is.
    public var takesUploadTokens: Bool { bearerBackend != nil }

    /// Where tokens come from that are shown with uploads. All of one visitor have their failures in common: a new one is
    /// made up at once, and each costs the backend a question.
    ///
    /// - Parameter visitor: compared as it is.
    public func uploadTokenPlace(from visitor: String) -> UploadPlace {
        UploadPlace(visitor: visitor, failures: "\(visitor) token")
    }

    /// Has the backend asked whose `token` is.
    ///
    /// - Parameter token: as after `Bearer `.
    public func uploadTokenCheck(_ token: String, at place: UploadPlace, now: Now) -> UploadTokenCheck {
        context.now = now
        let body = token.utf8.prefix { ASCII.isLetter($0) || ASCII.isDigit($0) || "-._~+/".utf8.contains($0) }
        guard !body.isEmpty, token.utf8.dropFirst(body.count).allSatisfy({ $0 == UInt8(ascii: "=") }),
            let order = bearerBackend?.orderForOwner(
                of: token, timeout: Self.bearerTimeout, maxAnswerBytes: Self.maxBearerAnswerBytes)
        else { return .impossible }
        guard bearerTries.count + uploadTokens.count < Self.maxBearerTries else { return .busy }
        lastAttempt &+= 1
        let call = context.nextBackendCall()
        uploadTokens[call] = UploadTokenTry(attempt: lastAttempt, place: place)
        context.emit(.callBackend(call, order))
        return .begun(attempt: lastAttempt)
    }

    /// An answer to that question. False when `call` is none of these.
    func uploadTokenAnswered(
        _ call: BackendCallID, _ outcome: Result<BackendAnswered, BackendCallFailure>, _ backend: BackendAccount
    ) -> Bool {
        guard let asked = uploadTokens.removeValue(forKey: call) else { return false }
        func tell(_ verdict: UploadTokenVerdict) { context.emit(.uploadTokenChecked(asked.attempt, verdict)) }
        switch backend.verdict(on: outcome) {
        case .belongs(let person):
            uploadThrottle.succeeded(at: asked.place.failures)
            // Two people of the backend must never be one here.
            tell(
                bearerAccount(of: person, backend).map { .belongs(to: Uploader(account: $0)) } ?? .refused(wait: .zero))
        case .refused:
            context.note(
                .warn, "client-token-refused", "an upload had a token that the backend refuses",
                ["address": asked.place.visitor, "account": ""])
            tell(.refused(wait: uploadThrottle.failed(at: asked.place.failures, now: context.now.monotonic)))
        case .unknown(let failure):
            noteUnknownToken(failure, backend)
            tell(.unknown)
        }
        return true
    }
}

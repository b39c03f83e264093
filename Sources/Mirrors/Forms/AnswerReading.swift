import BridgeTypes
import HTTPProtocol
import JSONText
import WireBytes

// What the forms have in common in reading answers.

extension MirrorAnswer {
    /// The body as a document, where it is one.
    var json: JSONValue? { try? JSONValue(parsing: body, limits: .hook) }

    /// `Retry-After`, where it is a number of seconds, as the tools send it.
    var retryAfter: Duration? {
        guard let value = headers.first("Retry-After"), value.utf8.allSatisfy(ASCII.isDigit) else { return nil }
        return RetryAfter.delay(value, wallMilliseconds: 0)
    }

    /// What the status means by itself.
    ///
    /// - Parameters:
    ///   - ids: of the posts, for a success.
    ///   - words: the tool's own for it. Nothing else of the body is repeated: pages of proxies repeat the address,
    /// which
    ///     has a secret in it.
    ///
    /// Source: RFC 9110 §15; RFC 6585 §4.
    func outcome(ids: [String?], words: String? = nil, after: Duration? = nil) -> MirrorOutcome {
        let reason = reason(words)
        switch status {
        case 200..<300: return .taken(ids: ids)
        case 408, 425, 429, 500, 502...599: return .later(reason: reason, after: after ?? retryAfter)
        case 300..<400, 401, 403, 404, 410, 501: return .closed(reason: reason)
        default: return .refused(reason: reason)
        }
    }

    func reason(_ words: String?) -> String {
        let words = words.map { PrintableText.of($0, maxBytes: 100) } ?? ""
        return "the answer was \(status)" + (words.isEmpty ? "" : " (\(words))")
    }
}

extension MirrorRequest {
    /// No id for any post.
    var noIDs: [String?] { posts.map { _ in nil } }
}

import ChatModel
import JSONText

/// The REST side of Directus: `{"data": …}` in an answer, `{"errors": […]}` in a refusal.
///
/// There are no calls for rooms, which are but values of a column, and for reading marks, which Directus does not have.
public struct DirectusCalls: DialectCalls {
    let dialect: DirectusDialect

    public func request(for call: BackendCall, context: DialectContext) -> BackendRequest? {
        switch call {
        case .logIn(let user, let password):
            return Self.post("/auth/login") { writer in
                writer.member("email", user)
                writer.member("password", password)
            }
        case .refresh(let token):
            return Self.post("/auth/refresh") { writer in
                writer.member("refresh_token", token)
            }
        case .whoAmI: return BackendRequest(.get, "/users/me?fields=id%2Cfirst_name%2Clast_name")
        case .history(let query): return BackendRequest(.get, history(query))
        case .upload(let file):
            return BackendRequest(.post, "/files", body: .multipart(fields: [], fileField: "file", file: file))
        case .rooms, .markRead: return nil
        }
    }

    /// Both need the answer in the body: otherwise the refresh token comes as a cookie.
    private static func post(_ target: String, _ body: (inout JSONWriter) -> Void) -> BackendRequest {
        var writer = JSONWriter()
        writer.beginObject()
        body(&writer)
        writer.member("mode", word: "json")
        writer.endObject()
        return BackendRequest(.post, target, body: .json(writer.finish()), isAuthorized: false)
    }

    /// Messages with the very time of `since` are included: there may be others within that millisecond, and the known
    /// message in the answer proves that there is no gap.
    private func history(_ query: HistoryQuery) -> String {
        var parts = ["fields=" + CallTarget.encoded(dialect.items.requested.joined(separator: ","))]
        var writer = JSONWriter()
        dialect.writeFilter(query.room, [("_gte", query.since)], to: &writer)
        if writer.count > 0 {
            parts.append("filter=" + CallTarget.encoded(String(decoding: writer.finish(), as: UTF8.self)))
        }
        parts.append("sort=" + CallTarget.encoded(dialect.sortKeys.joined(separator: ",")))
        parts.append("limit=\(query.limit.map { max($0, 1) } ?? DirectusDialect.everything)")
        return "/items/\(CallTarget.encoded(dialect.collection))?" + parts.joined(separator: "&")
    }

    // MARK: - Answers

    public func reply(to call: BackendCall, answer: BackendAnswer, context: DialectContext) -> BackendReply {
        Self.member("data", of: answer.body) { data in
            guard let data, !data.isNull else { return .unusable(.missingField) }
            switch call {
            case .logIn, .refresh: return Self.tokens(data)
            case .whoAmI:
                guard data.kind == .object else { return .unusable(.wrongType) }
                let person = DirectusItems.person(data)
                return person.id == nil ? .unusable(.missingField) : .person(person)
            case .history(let query):
                guard data.kind == .array else { return .unusable(.wrongType) }
                var count = 0
                for _ in data.elements { count += 1 }
                let isAll = query.since == nil && query.limit.map { count < max($0, 1) } ?? true
                return .messages(dialect.items.history(data, context), isComplete: isAll)
            case .upload:
                guard data.kind == .object else { return .unusable(.wrongType) }
                return uploaded(data)
            case .rooms, .markRead: return .unusable(.unsupported)
            }
        } ?? .unusable(.malformed)
    }

    /// Calls `body` with a member of the answer's object, nil when it is not there; nil when the answer is no object.
    private static func member<R>(_ name: StaticString, of body: [UInt8], _ use: (JSONField?) -> R) -> R? {
        body.withUnsafeBytes { bytes in
            do throws(JSONError) {
                // The caller has bounded the answer already.
                var reader = try JSONReader(bytes, limits: JSONLimits(maxBytes: bytes.count))
                guard try reader.enterObject() else { return nil }
                var found: JSONField?
                while let key = try reader.nextKey() {
                    let value = try reader.readValue()
                    if key.equals(name) { found = value }
                }
                try reader.finish()
                return use(found)
            } catch {
                return nil
            }
        }
    }

    private static func tokens(_ data: JSONField) -> BackendReply {
        var access: String?
        var refresh: String?
        var lifetime: Int64?
        for (key, value) in data.members {
            switch key {
            case "access_token": access = FrameText.nonEmpty(value)
            case "refresh_token": refresh = FrameText.nonEmpty(value)
            case "expires": lifetime = FrameNumber.count(value)
            default: break
            }
        }
        guard let access else { return .unusable(.missingField) }
        return .tokens(BackendTokens(access: access, refresh: refresh, lifetimeMilliseconds: lifetime))
    }

    private func uploaded(_ data: JSONField) -> BackendReply {
        guard var attachment = dialect.items.attachment(data) else { return .unusable(.missingField) }
        for (key, value) in data.members {
            if case "id" = key { attachment.fileID = FrameText.name(value) }
        }
        return .attachment(attachment)
    }

    // MARK: - Refusals

    /// Sentences by error code. The server's own messages can repeat request data, so they are not passed on.
    static let complaints: KeyValuePairs<String, String> = [
        "INVALID_CREDENTIALS": "the e-mail address, the password or the token is wrong",
        "INVALID_OTP": "the account wants a one-time password",
        "TOKEN_EXPIRED": "the token has expired",
        "INVALID_TOKEN": "the token is wrong",
        "USER_SUSPENDED": "the account is suspended",
        "INVALID_PROVIDER": "the account logs in elsewhere",
        "FORBIDDEN": "the account may not do this, or it does not exist",
        "INVALID_PAYLOAD": "the server does not understand what was sent",
        "INVALID_QUERY": "the server does not understand the query",
        "INVALID_IP": "this address may not use the account",
        "ROUTE_NOT_FOUND": "there is no Directus at this address",
        "CONTENT_TOO_LARGE": "it is larger than the server takes",
        "UNSUPPORTED_MEDIA_TYPE": "the server does not take this kind of file",
        "REQUESTS_EXCEEDED": "too many requests",
        "LIMIT_EXCEEDED": "a limit of the server is reached",
        "SERVICE_UNAVAILABLE": "a service behind the server is away",
        "INTERNAL_SERVER_ERROR": "the server failed",
    ]

    public func complaint(_ answer: BackendAnswer) -> String? {
        let found: String?? = Self.member("errors", of: answer.body) { errors in
            for error in (errors?.elements).map(Array.init) ?? [] {
                for (key, value) in error.members {
                    guard case "extensions" = key else { continue }
                    for (key, value) in value.members {
                        guard case "code" = key, let code = value.string,
                            let known = Self.complaints.first(where: { $0.key == code })
                        else { continue }
                        return "\(known.value) (\(known.key))"
                    }
                }
            }
            return nil
        }
        return found ?? nil
    }
}

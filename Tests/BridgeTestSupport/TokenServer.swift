import BridgeCore
import ChatModel
public import Dialects
import IRCServer
import JSONText
import Rooms
import Upstream

/// A wire like the envelope with calls beside it, as ``TokenServer`` answers them.
public struct AccountDialect: Dialect {
    private let wire = EnvelopeDialect()
    private let guardsFiles: Bool

    /// - Parameter guardsFiles: the backend wants a token for its files.
    public init(guardsFiles: Bool = false) { self.guardsFiles = guardsFiles }

    public var traits: DialectTraits {
        var traits = wire.traits
        traits.backoff = BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0)
        traits.guardsFiles = guardsFiles
        return traits
    }
    public var calls: (any DialectCalls)? { AccountCalls() }

    public func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame {
        wire.decode(frame, isBinary: isBinary, context: context)
    }

    public func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand {
        wire.encode(command, context: context)
    }
}

public struct AccountCalls: DialectCalls {
    public init() {}

    public func request(for call: BackendCall, context: DialectContext) -> BackendRequest? {
        func body(_ members: KeyValuePairs<String, String>) -> BackendRequest.Body {
            .json(JSONValue.object(members.map { JSONValue.Member($0.key, .string($0.value)) }).bytes)
        }
        switch call {
        case .logIn(let user, let password):
            return BackendRequest(
                .post, "/login", body: body(["user": user, "password": password]), isAuthorized: false)
        case .refresh(let token):
            return BackendRequest(.post, "/refresh", body: body(["refresh": token]), isAuthorized: false)
        case .whoAmI: return BackendRequest(.get, "/me")
        case .rooms: return BackendRequest(.get, "/rooms")
        case .history(let query):
            return BackendRequest(.get, "/history/\(query.room)?limit=\(query.limit.map(String.init) ?? "all")")
        case .markRead(let room): return BackendRequest(.post, "/read/\(room)")
        case .upload(let file):
            return BackendRequest(
                .post, "/files", body: .multipart(fields: [("kind", "chat")], fileField: "file", file: file))
        }
    }

    public func reply(to call: BackendCall, answer: BackendAnswer, context: DialectContext) -> BackendReply {
        guard let json = try? JSONValue(parsing: answer.body) else { return .unusable(.malformed) }
        switch call {
        case .logIn, .refresh:
            guard let access = json["access"]?.string else { return .unusable(.missingField) }
            return .tokens(
                BackendTokens(
                    access: access, refresh: json["refresh"]?.string, lifetimeMilliseconds: json["ms"]?.integer))
        case .whoAmI: return .person(ChatPerson(id: json["id"]?.string.map { ChatID($0) }, name: json["name"]?.string))
        case .rooms:
            return .rooms((json.array ?? []).compactMap(\.string).map { BackendRoom(id: $0, name: $0) })
        case .history:
            let texts = (json.array ?? []).compactMap(\.string)
            return .messages(texts.map { ChatMessage(id: ChatID($0), text: $0) }, isComplete: true)
        case .markRead: return .done
        case .upload: return .attachment(ChatAttachment(kind: .file, url: "/files/1"))
        }
    }

    public func complaint(_ answer: BackendAnswer) -> String? {
        (try? JSONValue(parsing: answer.body))?["detail"]?.string
    }
}

/// A backend that hands out tokens: access tokens end, and each refresh token serves once.
public final class TokenServer {
    public var password = "hunter2-secret"
    /// Milliseconds; nil: the answer does not say.
    public var lifetime: Int64? = 600_000
    /// The one access and the one refresh token that are good.
    public private(set) var access: String?
    public private(set) var refresh: String?
    /// Received calls, as `login`, `refresh`, `/me`.
    public private(set) var log: [String] = []
    /// Answers in place of the usual ones, by path.
    public var trouble: [String: [Result<BackendCallResponse, BackendCallFailure>]] = [:]
    private var count = 0

    public init() {}

    public func takeLog() -> [String] {
        defer { log = [] }
        return log
    }

    /// A token without a log-in.
    public func issue(access token: String) { access = token }
    public func expireAccess() { access = nil }
    public func expireRefresh() { refresh = nil }

    public static func answer(_ status: Int, _ body: String = "", retryAfter: Duration? = nil) -> Result<
        BackendCallResponse, BackendCallFailure
    > {
        .success(BackendCallResponse(BackendAnswer(status: status, body: Array(body.utf8)), retryAfter: retryAfter))
    }

    public func answer(_ call: AccountStage.Call) -> Result<BackendCallResponse, BackendCallFailure> {
        log.append(call.path)
        if var answers = trouble[call.path], !answers.isEmpty {
            let first = answers.removeFirst()
            trouble[call.path] = answers
            return first
        }
        let body = try? JSONValue(parsing: call.body)
        switch call.path {
        case "/login":
            guard body?["password"]?.string == password else {
                return Self.answer(401, "{\"detail\":\"no: \(body?["password"]?.string ?? "")\"}")
            }
            return issue()
        case "/refresh":
            guard let token = body?["refresh"]?.string, token == refresh else {
                return Self.answer(401, "{\"detail\":\"bad token\"}")
            }
            return issue()
        default:
            guard let token = call.token, token == access else {
                return Self.answer(401, "{\"detail\":\"token \(call.token ?? "") is stale\"}")
            }
            switch call.path {
            case "/me": return Self.answer(200, "{\"id\":\"7\",\"name\":\"bridge\"}")
            case "/rooms": return Self.answer(200, "[\"General\",\"Random\"]")
            case let path where path.hasPrefix("/history/"): return Self.answer(200, "[\"m1\",\"m2\"]")
            default: return Self.answer(200, "{}")
            }
        }
    }

    private func issue() -> Result<BackendCallResponse, BackendCallFailure> {
        count += 1
        access = "acc-secret-\(count)"
        refresh = "ref-secret-\(count)"
        let end = lifetime.map { ",\"ms\":\($0)" } ?? ""
        return Self.answer(
            200, "{\"access\":\"acc-secret-\(count)\",\"refresh\":\"ref-secret-\(count)\"\(end)}")
    }
}

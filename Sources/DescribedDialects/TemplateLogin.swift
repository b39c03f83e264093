public import ChatModel
public import Dialects
public import JSONText

/// Logging in as the configuration describes it: where to, with which body, and where the tokens stand in the answer.
///
/// It knows only ``BackendCall/logIn(user:password:)`` and ``BackendCall/refresh(token:)``.
public struct TemplateLogin: DialectCalls {
    /// One member of a JSON body. In the text `{user}`, `{password}` and `{refresh_token}` are replaced.
    public struct Field: Hashable, Sendable {
        public var name: String
        public var text: String

        public init(name: String, text: String) {
            self.name = name
            self.text = text
        }
    }

    /// Whole URLs or paths.
    public var loginTarget: String
    public var loginBody: [Field]
    /// Nil: log in again instead.
    public var refreshTarget: String?
    public var refreshBody: [Field]
    public var accessTokenAt: JSONPointer
    public var refreshTokenAt: JSONPointer
    public var expiresInAt: JSONPointer
    /// Milliseconds in one unit of the value at ``expiresInAt``.
    public var expiresInUnit: Int64

    public init(
        loginTarget: String, loginBody: [Field], refreshTarget: String? = nil, refreshBody: [Field] = [],
        accessTokenAt: JSONPointer = JSONPointer(tokens: ["access_token"]),
        refreshTokenAt: JSONPointer = JSONPointer(tokens: ["refresh_token"]),
        expiresInAt: JSONPointer = JSONPointer(tokens: ["expires_in"]), expiresInUnit: Int64 = 1000
    ) {
        self.loginTarget = loginTarget
        self.loginBody = loginBody
        self.refreshTarget = refreshTarget
        self.refreshBody = refreshBody
        self.accessTokenAt = accessTokenAt
        self.refreshTokenAt = refreshTokenAt
        self.expiresInAt = expiresInAt
        self.expiresInUnit = expiresInUnit
    }

    public func request(for call: BackendCall, context: DialectContext) -> BackendRequest? {
        switch call {
        case .logIn(let user, let password):
            let values = ["user": user, "password": password]
            return BackendRequest(.post, loginTarget, body: .json(Self.body(loginBody, values)), isAuthorized: false)
        case .refresh(let token):
            guard let refreshTarget else { return nil }
            return BackendRequest(
                .post, refreshTarget, body: .json(Self.body(refreshBody, ["refresh_token": token])),
                isAuthorized: false)
        case .whoAmI, .rooms, .history, .markRead, .upload: return nil
        }
    }

    public func reply(to call: BackendCall, answer: BackendAnswer, context: DialectContext) -> BackendReply {
        guard let json = try? JSONValue(parsing: answer.body) else { return .unusable(.malformed) }
        guard let found = json[accessTokenAt] else { return .unusable(.missingField) }
        guard let access = found.string, !access.isEmpty else { return .unusable(.wrongType) }
        var tokens = BackendTokens(access: access, refresh: json[refreshTokenAt]?.string)
        if let number = json[expiresInAt]?.double ?? json[expiresInAt]?.string.flatMap(Double.init) {
            let milliseconds = number * Double(expiresInUnit)
            // Up to a hundred years; anything else says nothing.
            if milliseconds > 0, milliseconds < 3.2e12 { tokens.lifetimeMilliseconds = Int64(milliseconds) }
        }
        return .tokens(tokens)
    }

    public func complaint(_ answer: BackendAnswer) -> String? { CallAnswer.usualComplaint(answer) }

    private static func body(_ fields: [Field], _ values: [String: String]) -> [UInt8] {
        JSONValue.object(fields.map { JSONValue.Member($0.name, .string(filled($0.text, values))) }).bytes
    }

    /// `text` with each `{name}` that has a value replaced. Inserted values are not expanded again.
    static func filled(_ text: String, _ values: [String: String]) -> String {
        var rest = Array(text.utf8)[...]
        var out: [UInt8] = []
        while let byte = rest.first {
            if byte == UInt8(ascii: "{"), let end = rest.firstIndex(of: UInt8(ascii: "}")),
                let value = values[String(decoding: rest[(rest.startIndex + 1)..<end], as: UTF8.self)]
            {
                out.append(contentsOf: value.utf8)
                rest = rest[(end + 1)...]
            } else {
                out.append(byte)
                rest.removeFirst()
            }
        }
        return String(decoding: out, as: UTF8.self)
    }
}

extension TemplateLogin: Redacted {
    public var description: String { "a login described by the configuration" }
}

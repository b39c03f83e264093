import DescribedDialects
import Dialects
import HTTPProtocol
import JSONText

/// Settings of `auth` of type `login` besides name and password. Dialects with login calls need none of it.
package struct LoginConfiguration: Equatable, Sendable {
    package enum ExpiryUnit: String, CaseIterable, Sendable {
        case seconds = "s"
        case milliseconds = "ms"
    }

    /// Whole URLs, or paths below the backend's HTTP base. Nil: the dialect's own call.
    package var url: String?
    package var body: [LoginField]?
    /// Nil: log in again instead.
    package var refreshURL: String?
    package var refreshBody: [LoginField]?
    package var accessTokenAt: String?
    package var refreshTokenAt: String?
    package var expiresInAt: String?
    package var expiresInUnit: ExpiryUnit?
    /// How long before its end a token is renewed.
    package var refreshBefore: Duration?
    /// Statuses of HTTP answers and codes of WebSocket closes that mean that the token is stale.
    package var staleCodes: [Int]?
    package var sendAs: TokenPlacementConfiguration?

    package static let defaultRefreshBefore: Duration = .seconds(60)
    package static let defaultStaleCodes = [401, 403, 1008, 4001, 4003]

    /// Those that mean something for `login` alone.
    static let keys = [
        "login_url", "login_body", "refresh_url", "refresh_body", "access_token_at", "refresh_token_at",
        "expires_in_at", "expires_in_unit", "refresh_before", "reauth_on", "send_as",
    ]

    /// A log-in as it is described here; nil where that is the dialect's business.
    package var template: TemplateLogin? {
        guard let url else { return nil }
        func fields(_ written: [LoginField]?) -> [TemplateLogin.Field] {
            (written ?? []).map { TemplateLogin.Field(name: $0.name, text: $0.text.revealed) }
        }
        func pointer(_ text: String?, _ usual: String) -> JSONPointer {
            text.flatMap { JSONPointer($0) } ?? JSONPointer(tokens: [usual])
        }
        return TemplateLogin(
            loginTarget: url, loginBody: fields(body), refreshTarget: refreshURL, refreshBody: fields(refreshBody),
            accessTokenAt: pointer(accessTokenAt, "access_token"),
            refreshTokenAt: pointer(refreshTokenAt, "refresh_token"),
            expiresInAt: pointer(expiresInAt, "expires_in"), expiresInUnit: expiresInUnit == .milliseconds ? 1 : 1000)
    }

    /// The servers that the URLs name.
    package var servers: [HTTPURL] { [url, refreshURL].compactMap { $0.flatMap { try? HTTPURL(parsing: $0) } } }
}

/// One member of a JSON body. The text may be a password.
package struct LoginField: Hashable, Sendable {
    package var name: String
    package var text: Secret
}

/// Where the token is shown when the socket is opened; nil fields: as the dialect's own clients do it.
package struct TokenPlacementConfiguration: Equatable, Sendable {
    package enum Place: String, CaseIterable, Sendable { case header, query, message }

    package var place: Place?
    /// Of the header or the parameter.
    package var name: String?
    package var format: String?

    package init() {}

    /// The header that is used, where it is known without the dialect.
    package var header: String? { place == .header ? name ?? AuthConfiguration.defaultHeaderName : nil }
}

extension AuthConfiguration {
    /// Whether these credentials log in to a backend.
    ///
    /// - Parameter user: the backend's own `user`, which is as good as one here.
    package func logsIn(user: String?, dialect: any Dialect) -> Bool {
        type == .login || type == .none && !(user ?? "").isEmpty && dialect.calls?.canLogIn ?? false
    }
}

extension DialectCalls {
    /// Whether there is a call for logging in.
    package var canLogIn: Bool {
        request(for: .logIn(user: "u", password: "p"), context: DialectContext(room: "")) != nil
    }
}

// MARK: - Rows and forms

extension LoginConfiguration {
    static let rows: [ConfigurationKey<AuthConfiguration>] = [
        ConfigurationKey(
            "login_url", \.login.url, .optionalString(ConfigurationChecks.callTarget),
            about: "for `login`: a URL, or a path below `http_base`",
            usual: "the dialect's own call", example: #""https://chat.example.com/api/login""#),
        ConfigurationKey(
            "login_body", \.login.body, ConfigurationForm<[LoginField]>.loginFields.optional(from: []),
            about: "for `login`: a JSON object, with `{user}` and `{password}`",
            usual: "the dialect's own call", example: #"{ username = "{user}", password = "{password}" }"#),
        ConfigurationKey(
            "refresh_url", \.login.refreshURL, .optionalString(ConfigurationChecks.callTarget),
            about: "for `login`: the call that renews a token",
            usual: "log in again", example: #""https://chat.example.com/api/refresh""#),
        ConfigurationKey(
            "refresh_body", \.login.refreshBody, ConfigurationForm<[LoginField]>.loginFields.optional(from: []),
            about: "its JSON object, with `{refresh_token}`",
            usual: "log in again", example: #"{ refresh_token = "{refresh_token}" }"#),
        ConfigurationKey(
            "access_token_at", \.login.accessTokenAt, .optionalString(ConfigurationChecks.pointer),
            about: "JSON pointer into the answer: the token",
            usual: "`/access_token`", example: #""/access_token""#),
        ConfigurationKey(
            "refresh_token_at", \.login.refreshTokenAt, .optionalString(ConfigurationChecks.pointer),
            about: "JSON pointer into the answer: the token for the renewal",
            usual: "`/refresh_token`", example: #""/refresh_token""#),
        ConfigurationKey(
            "expires_in_at", \.login.expiresInAt, .optionalString(ConfigurationChecks.pointer),
            about: "JSON pointer into the answer: the lifetime; a JWT contains it",
            usual: "`/expires_in`", example: #""/expires_in""#),
        ConfigurationKey(
            "expires_in_unit", \.login.expiresInUnit, ConfigurationForm<ExpiryUnit>.choice.optional(from: .seconds),
            about: "unit of the lifetime: `s` or `ms`",
            usual: "`s`", example: #""s""#),
        ConfigurationKey(
            "refresh_before", \.login.refreshBefore, ConfigurationForm<Duration>.duration().optional(from: .zero),
            about: "time before expiry at which a token is renewed",
            usual: "`60s`", example: #""60s""#),
        ConfigurationKey(
            "reauth_on", \.login.staleCodes, .codes,
            about: "statuses of calls and handshakes, and close codes of WebSockets, that indicate a stale token",
            usual: "401, 403, 1008, 4001, 4003", example: "[401, 403, 1008, 4001, 4003]"),
        ConfigurationKey(
            "send_as", \.login.sendAs,
            ConfigurationForm<TokenPlacementConfiguration>.section(placement, inline: true).optional(
                from: TokenPlacementConfiguration()),
            about: "placement of a log-in's token",
            usual: "the dialect's", example: #"{ in = "header", name = "Authorization", format = "Bearer {token}" }"#),
    ]

    static let placement: [ConfigurationKey<TokenPlacementConfiguration>] = [
        ConfigurationKey(
            "in", \.place, ConfigurationForm<TokenPlacementConfiguration.Place>.choice.optional(from: .header),
            about: "`header`, `query` or `message`",
            usual: "the dialect's", example: #""header""#),
        ConfigurationKey(
            "name", \.name, .optionalString(ConfigurationChecks.queryName),
            about: "name of the header field or the parameter",
            usual: "the dialect's", example: #""Authorization""#),
        ConfigurationKey(
            "format", \.format, .optionalString(ConfigurationChecks.authFormat),
            about: "its value, with `{token}`",
            usual: "the dialect's", example: #""Bearer {token}""#),
    ]
}

extension ConfigurationForm where Value == [LoginField] {
    static var loginFields: Self {
        map(of: "members", key: \.name) { name, text throws(MapError) in
            guard !name.isEmpty else { throw .key("a member of a JSON object needs a name") }
            return LoginField(name: name, text: Secret(text))
        } print: { _ in
            Secret.blank
        }
    }
}

extension ConfigurationForm where Value == [Int]? {
    /// HTTP statuses and WebSocket close codes.
    static var codes: Self {
        let expected = "a list of statuses (400 to 599) and close codes (1000 to 4999), such as [401, 4001]"
        return Self(expected: expected, shape: .list) { node, value, reader in
            var codes: [Int] = []
            guard case .array = node.content else {
                return reader.report(node.origin, "expected \(expected), found \(node.content.kindName)")
            }
            for element in node.elements {
                guard case .integer(let number) = element.content,
                    (400...599).contains(number) || (1000...4999).contains(number)
                else {
                    reader.report(element.origin, "expected \(expected), found \(element.found)")
                    continue
                }
                codes.append(Int(number))
            }
            value = codes
        } write: { codes in
            codes.map { ConfigurationNode(.array($0.map { ConfigurationNode(.integer(Int64($0))) })) }
        }
    }
}

extension ConfigurationChecks {
    @Sendable static func callTarget(_ text: String) -> String? {
        if text.hasPrefix("/") {
            return text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } ? nil : HTTPURLError.invalidCharacter.sentence
        }
        do throws(HTTPURLError) {
            let url = try HTTPURL(parsing: text)
            return url.scheme == "http" || url.scheme == "https" ? nil : "a call goes to http:// or https://"
        } catch {
            return error.sentence
        }
    }

    @Sendable static func pointer(_ text: String) -> String? {
        JSONPointer(text) == nil || text.isEmpty ? "\"\(text)\" is not a JSON pointer such as \"/access_token\"" : nil
    }
}

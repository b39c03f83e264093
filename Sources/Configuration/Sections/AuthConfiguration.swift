import HTTPProtocol
import WireBytes

/// Credentials of a room for its backend.
package struct AuthConfiguration: Equatable, Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case none
        /// `Authorization: Bearer TOKEN`. Source: RFC 6750 §2.1.
        case bearer
        /// `Authorization: Basic …`. Source: RFC 7617.
        case basic
        /// A parameter of the URL's query.
        case query
        /// A header field of any name.
        case header
        /// A token in the first frame on the socket, where the dialect has such a frame.
        case message
        /// Name and password, for tokens that are renewed: by the dialect's own calls, or by ``LoginConfiguration``.
        case login
        /// The certificate in `tls` and nothing else.
        case clientCertificate = "client-cert"
    }

    package var type = Kind.none
    package var token: SecretSource?
    package var user: String?
    package var password: SecretSource?
    /// Nil: ``defaultParam``.
    package var param: String?
    /// Nil: ``defaultHeaderName``.
    package var headerName: String?
    /// ``tokenPlaceholder`` is the token; nil: nothing but the token.
    package var format: String?
    package var login = LoginConfiguration()

    package static let tokenPlaceholder = "{token}"
    /// Source: RFC 6750 §2.3.
    package static let defaultParam = "access_token"
    package static let defaultHeaderName = "Authorization"

    /// The keys that mean something for each type, for messages.
    static let keys: [Kind: [String]] = [
        .none: [], .bearer: tokenKeys, .basic: ["user"] + passwordKeys, .query: tokenKeys + ["param"],
        .header: tokenKeys + ["name", "format"], .message: tokenKeys,
        .login: ["user"] + passwordKeys + LoginConfiguration.keys, .clientCertificate: [],
    ]
    /// For messages.
    package static let typeNames = "bearer, basic, query, header, message, login or client-cert"
    package static let tokenKeys = ["token", "token_file", "token_credential"]
    package static let passwordKeys = ["password", "password_file", "password_credential"]
}

// MARK: - Keys

extension AuthConfiguration {
    static let rows: [ConfigurationKey<AuthConfiguration>] =
        [
            ConfigurationKey(
                "type", \.type, .choice,
                about: """
                    authentication method: `bearer`, `basic`, `query`, `header`, `message` (a token in the first frame), \
                    `login`, `client-cert` (the certificate in `tls`)
                    """),
            ConfigurationKey(
                "token", \.token, .secretText, group: "token",
                about: "for `bearer`, `query`, `header` and `message`: one of the three", example: #""${TOKEN}""#),
            ConfigurationKey(
                "token_file", \.token, .secretFile, group: "token",
                about: "a file with the token, read for each attempt", example: #""/run/secrets/token""#),
            ConfigurationKey(
                "token_credential", \.token, .secretCredential, group: "token",
                about: "the name of a systemd credential with the token", example: #""token""#),
            ConfigurationKey(
                "user", \.user, .optionalString(ConfigurationChecks.authUser),
                about: "for `basic` and `login`", example: #""bridge""#),
            ConfigurationKey(
                "password", \.password, .secretText, group: "password",
                about: "for `basic` and `login`: one of the three", example: #""${PASSWORD}""#),
            ConfigurationKey(
                "password_file", \.password, .secretFile, group: "password",
                about: "a file with the password, read for each attempt", example: #""/run/secrets/password""#),
            ConfigurationKey(
                "password_credential", \.password, .secretCredential, group: "password",
                about: "the name of a systemd credential with the password", example: #""password""#),
            ConfigurationKey(
                "param", \.param, .optionalString(ConfigurationChecks.queryName),
                about: "for `query`: the parameter's name",
                usual: "`access_token`", example: #""access_token""#),
            ConfigurationKey(
                "name", \.headerName, .optionalString(ConfigurationChecks.authHeader),
                about: "for `header`: the field's name",
                usual: "`Authorization`", example: #""Authorization""#),
            ConfigurationKey(
                "format", \.format, .optionalString(ConfigurationChecks.authFormat),
                about: "for `header`: the field's value, with `{token}`",
                usual: "`{token}`", example: #""{token}""#),
        ]
        + LoginConfiguration.rows
}

extension ConfigurationChecks {
    @Sendable static func authUser(_ text: String) -> String? {
        if text.contains(":") { return "a user name cannot hold a colon here" }
        return headerValue(text)
    }

    @Sendable static func queryName(_ text: String) -> String? {
        !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } ? nil : "a parameter's name is visible ASCII"
    }

    @Sendable static func authHeader(_ text: String) -> String? {
        guard ASCII.isToken(text) else { return "\"\(text)\" is not a header field's name" }
        let lowered = text.lowercased()
        if handshakeHeaders.contains(lowered) || lowered.hasPrefix("sec-websocket-") || lowered == "user-agent" {
            return "\"\(text)\" belongs to the WebSocket handshake and cannot carry a token"
        }
        return nil
    }

    @Sendable static func authFormat(_ text: String) -> String? {
        guard text.contains(AuthConfiguration.tokenPlaceholder) else { return "format has no {token} in it" }
        return headerValue(text)
    }
}

import Dialects
import HTTPProtocol
import WireBytes

/// How a room proves to its backend who it is.
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

/// Where a secret is. Files are read when the secret is needed, so that a new one is used at the next attempt.
package enum SecretSource: Hashable, Sendable {
    case text(Secret)
    case file(String)
    /// A systemd credential and the path under which it is found.
    case credential(String, path: String)

    /// The secret as it is now.
    ///
    /// - Throws: a sentence that names the place, never the contents.
    package func read(_ surroundings: ConfigurationSurroundings) throws(InterpolationError) -> Secret {
        let path: String
        switch self {
        case .text(let secret): return secret
        case .file(let file): path = file
        case .credential(_, let file): path = file
        }
        let text = try FileText.read(path, surroundings: surroundings)
        if let complaint = Self.complaint(about: text) { throw InterpolationError(message: "\"\(path)\" \(complaint)") }
        return Secret(text)
    }

    /// What keeps `text` from being a secret that fits in a line.
    package static func complaint(about text: String) -> String? {
        if text.isEmpty { return "is empty" }
        if text.first == " " || text.last == " " { return "begins or ends with a space" }
        if ConfigurationChecks.headerValue(text) != nil { return "has a line break or another control character" }
        return nil
    }
}

/// The proxy between a room and its backend.
package enum UpstreamProxy: Hashable, Sendable {
    /// As `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    case environment
    case off
    case proxy(HTTPProxy)

    package func rules(environment: HTTPProxyRules) -> HTTPProxyRules {
        switch self {
        case .environment: environment
        case .off: .direct
        case .proxy(let proxy): HTTPProxyRules(always: proxy)
        }
    }
}

// MARK: - Forms

extension ConfigurationForm where Value == SecretSource? {
    static var secretText: Self {
        Self(expected: "a string", shape: .leaf) { node, value, reader in
            guard let text = reader.string(node) else { return }
            guard !text.isEmpty else {
                value = nil
                return
            }
            if let complaint = SecretSource.complaint(about: text) {
                reader.report(node.origin, "this secret \(complaint)")
            } else {
                value = .text(Secret(text))
            }
        } write: { source in
            if case .text = source { ConfigurationNode(.string(Secret.blank)) } else { nil }
        }
    }

    /// A path. It is read now too, so that a wrong one is found before the first attempt.
    static var secretFile: Self {
        Self(expected: "a path", shape: .leaf) { node, value, reader in
            guard let path = reader.string(node), !path.isEmpty else { return }
            accept(.file(path), node, &value, &reader)
        } write: { source in
            if case .file(let path) = source { ConfigurationNode(.string(path)) } else { nil }
        }
    }

    static var secretCredential: Self {
        Self(expected: "the name of a credential", shape: .leaf) { node, value, reader in
            guard let name = reader.string(node), !name.isEmpty,
                let path = reader.credentialPath(name, origin: node.origin)
            else { return }
            accept(.credential(name, path: path), node, &value, &reader)
        } write: { source in
            if case .credential(let name, _) = source { ConfigurationNode(.string(name)) } else { nil }
        }
    }

    @Sendable private static func accept(
        _ source: SecretSource, _ node: ConfigurationNode, _ value: inout SecretSource?,
        _ reader: inout ConfigurationReader
    ) {
        do throws(InterpolationError) {
            _ = try source.read(reader.surroundings)
            value = source
        } catch {
            reader.report(node.origin, error.message)
        }
    }
}

extension ConfigurationReader {
    /// The file of a systemd credential, or nil after reporting why there is none.
    ///
    /// Source: systemd.exec(5), LoadCredential=.
    mutating func credentialPath(_ name: String, origin: ConfigurationOrigin) -> String? {
        guard !name.contains("/"), name != ".", name != ".." else {
            report(origin, "a credential has a name, not a path; there is a key that ends in _file for \"\(name)\"")
            return nil
        }
        guard let directory = surroundings.variables["CREDENTIALS_DIRECTORY"], !directory.isEmpty else {
            report(origin, "there is no $CREDENTIALS_DIRECTORY: no LoadCredential= in the systemd unit?")
            return nil
        }
        return "\(directory)/\(name)"
    }
}

extension ConfigurationForm where Value == UpstreamProxy {
    static var proxy: Self {
        Self(expected: "a proxy such as \"http://127.0.0.1:3128\", \"off\" or \"\"", shape: .leaf) {
            node, value, reader in
            guard let text = reader.string(node) else { return }
            switch text {
            case "": value = .environment
            case "off": value = .off
            default:
                do throws(HTTPProxyError) {
                    value = .proxy(try HTTPProxy(parsing: text))
                } catch {
                    reader.report(node.origin, error.sentence)
                }
            }
        } write: { value in
            switch value {
            case .environment: ConfigurationNode(.string(""))
            case .off: ConfigurationNode(.string("off"))
            case .proxy(let proxy):
                ConfigurationNode(.string("http://\(proxy.hasCredentials ? Secret.blank + "@" : "")\(proxy)"))
            }
        }
    }
}

extension ConfigurationForm where Value == UInt32? {
    /// Permission bits in octal, such as "0660".
    static var permissions: Self {
        text("permissions in octal, such as \"0660\"") { (text: String) throws(AddressError) -> UInt32?? in
            guard (3...4).contains(text.utf8.count), let bits = UInt32(text, radix: 8), bits <= 0o777 else {
                return nil
            }
            return .some(bits)
        } print: { bits in
            guard let bits else { return nil }
            let digits = String(bits, radix: 8)
            return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
        }
    }
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

// MARK: - What goes together

extension ConfigurationCompletion {
    /// - Parameters:
    ///   - path: of the room.
    ///   - auth: where its auth stands; nil: in the room.
    mutating func checkAuth(
        _ room: RoomConfiguration, at path: String, auth: String? = nil, whole: ConfigurationOrigin
    ) {
        let at = auth ?? "\(path).auth"
        let called = auth == nil ? "auth." : ""
        let place = origin(at) ?? whole
        let auth = room.auth
        let written = Set(AuthConfiguration.keys.values.joined()).filter { origin("\(at).\($0)") != nil }
        let useful = AuthConfiguration.keys[auth.type] ?? []
        for key in Set(written).sorted() where !useful.contains(key) && !isRefused("\(at).type") {
            guard let keyOrigin = origin("\(at).\(key)") else { continue }
            reader.report(
                keyOrigin,
                auth.type == .none
                    ? "\(called)\(key) means nothing without a type: \(AuthConfiguration.typeNames)"
                    : "\(called)\(key) means nothing for type = \"\(auth.type.rawValue)\"")
        }
        switch auth.type {
        case .none: return
        case .login: checkLogin(room, at: path, auth: at, place: place)
        case .clientCertificate:
            if room.tls.clientCertificate.isEmpty, !isRefused("\(path).tls.client_cert") {
                reader.report(place, "auth of type \"client-cert\" needs client_cert and client_key in tls")
            }
        case .bearer, .query, .header, .message:
            if auth.type == .message, let dialect = try? DialectTable.dialect(named: room.dialect),
                !dialect.traits.opening.contains(.authenticates)
            {
                reader.report(
                    origin("\(at).type") ?? place,
                    "the dialect \(room.dialect) has no frame for a token; use bearer, query or header")
            }
            if auth.token == nil, !isBroken(AuthConfiguration.tokenKeys, at) {
                reader.report(
                    place, "auth of type \"\(auth.type.rawValue)\" needs token, token_file or token_credential")
            }
        case .basic:
            if (auth.user ?? "").isEmpty, !isBroken(["user"], at) {
                reader.report(place, "auth of type \"basic\" needs a user")
            }
            if auth.password == nil, !isBroken(AuthConfiguration.passwordKeys, at) {
                reader.report(
                    place, "auth of type \"basic\" needs password, password_file or password_credential")
            }
        }
        let field: String? =
            switch auth.type {
            case .bearer, .basic: "Authorization"
            case .header: auth.headerName ?? AuthConfiguration.defaultHeaderName
            case .login: auth.login.sendAs?.header
            case .none, .query, .message, .clientCertificate: nil
            }
        if let field, let double = room.headers.first(where: { $0.name.lowercased() == field.lowercased() }) {
            reader.report(
                origin("\(path).headers.\(double.name)") ?? place,
                "\(double.name) is set in headers and by auth; keep one of them")
        }
    }

    /// Whether one of the keys of `auth`, which stands at `path`, was refused there or in the defaults.
    func isBroken(_ keys: [String], _ path: String) -> Bool {
        keys.contains { isRefused("\(path).\($0)") || isRefused("room_defaults.auth.\($0)") }
    }

    /// The backend whose room this is, or that is checked itself at `path`.
    func backend(of room: RoomConfiguration, at path: String) -> BackendConfiguration? {
        configuration.backends.first { $0.name == room.backend || path == "backends.\($0.name)" }
    }

    /// A proxy of the environment that could not be used is found now, where a room would take it.
    mutating func checkProxy(_ room: RoomConfiguration, at path: String, whole: ConfigurationOrigin) {
        guard room.proxy == .environment, let text = room.url?.text, let url = try? HTTPURL(parsing: text) else {
            return
        }
        let rules = HTTPProxyRules(environment: reader.surroundings.variables)
        if case .unusable(let sentence) = rules.route(to: url) {
            reader.report(origin("\(path).url") ?? whole, "\(sentence) (proxy = \"off\" does without)")
        }
    }
}

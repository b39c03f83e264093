import Transport

/// One listener for supervisors, scrapers and browsers.
package struct HTTPConfiguration: Equatable, Sendable {
    package enum Service: String, CaseIterable, Sendable {
        /// `/healthz` and `/readyz`.
        case health
        /// `/media/…`: uploads, and files under links.
        case media
        /// `/metrics`, for Prometheus.
        case metrics
        /// `/status`, the page for people, and `/status.json`.
        case status
        /// The paths of mirrors, where tools post.
        case hooks

        /// What strangers must not see.
        package var needsToken: Bool { self == .metrics || self == .status }
    }

    package var bind = HTTPListenerAddress(
        scheme: .http, endpoint: HostPort(host: "127.0.0.1", port: HTTPListenerAddress.defaultPort))
    /// Not empty, each at most once.
    package var serve: [Service] = [.health]
    /// Names that are answered to, in lower case. Empty: on loopback only names of this machine, elsewhere any.
    package var hosts: [String] = []
    /// Web servers with a trusted X-Forwarded-For; empty: none.
    package var trustedProxies: [TrustedPeer] = []
    /// Wanted of requests for metrics and status; nil: none is.
    package var token: SecretSource?
    /// Metrics are split by room.
    package var hasRoomLabels = true

    mutating func resolve(_ found: NamedSockets) { bind.resolve(found) }

    /// A shorter token can be guessed.
    static let shortestToken = 16

    /// Paths of PEM files; only for `https://`, which needs both.
    package var certificate = ""
    package var key = ""
    package var minimumTLS = TLSVersion.v12

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "bind", \.bind, .parsed("an address such as \"http://127.0.0.1:9667\""),
            about: """
                `http://` on loopback, `https://` with TLS, `http+insecure://` beyond; `http+fd://NAME`: sockets of systemd
                """),
        ConfigurationKey(
            "cert", \.certificate, .string(),
            about: """
                `https://`: a PEM file, as for listeners, and reloaded like these
                """),
        ConfigurationKey(
            "key", \.key, .string(),
            about: """
                `https://`: a PEM file with the private key
                """),
        ConfigurationKey(
            "min_tls", \.minimumTLS, .choice,
            about: """
                `https://`: oldest accepted version of TLS: `1.2` or `1.3`
                """),
        ConfigurationKey(
            "serve", \.serve, .httpServices,
            about: """
                `health`: `/healthz`, liveness, and `/readyz`, readiness, 503 with the reasons otherwise (a \
                room counts until it was up once, and once it failed, see `give_up_after`), with `?strict` every \
                required room connected; `media`: uploads and files under links, see \
                [media]; `metrics`: `/metrics`; `status`: the page `/status`, and `/status.json`; `hooks`: the \
                paths of [[mirrors]]
                """),
        ConfigurationKey(
            "hosts", \.hosts, .hostNames,
            about: "accepted Host names; listeners on loopback also accept names of this machine",
            usual: "loopback names"),
        ConfigurationKey(
            "trusted_proxies", \.trustedProxies, .list(of: "addresses"),
            about: """
                web servers trusted for `X-Forwarded-For`, as `127.0.0.1`; that of others is ignored, and all their \
                visitors count as one
                """),
        ConfigurationKey(
            "token", \.token, .secretText, group: "token",
            about: "wanted of requests for metrics and status, `Authorization: Bearer`; required beyond loopback",
            example: #""${TOKEN}""#),
        ConfigurationKey(
            "token_file", \.token, .secretFile, group: "token",
            about: "a file with the token", example: #""/run/secrets/chatbridge-http""#),
        ConfigurationKey(
            "token_credential", \.token, .secretCredential, group: "token",
            about: "the name of a systemd credential with the token", example: #""http""#),
        ConfigurationKey(
            "room_labels", \.hasRoomLabels, .boolean,
            about: "`false`: metrics are sums over all rooms, without a label `room`"),
    ]
}

extension HTTPConfiguration {
    /// Nil for listeners without TLS.
    package func tlsSettings(_ source: (String) -> TLSSource = TLSSource.file) -> TLSServerSettings? {
        guard bind.isSecure else { return nil }
        var settings = TLSServerSettings(identity: TLSIdentity(certificate: source(certificate), key: source(key)))
        settings.minimumVersion = minimumTLS
        settings.plainTextAnswer = ListenerConfiguration.plainHTTPAnswer(scheme: "https")
        return settings
    }
}

/// Where HTTP is served.
package struct HTTPListenerAddress: Hashable, ConfigurationText {
    package enum Scheme: String, CaseIterable, Sendable {
        /// Plain text; loopback only.
        case http
        case https
        /// Plain text where others can read it; the name is the consent.
        case httpInsecure = "http+insecure"
    }

    /// Free of well-known uses, and easy to remember beside 6667.
    static let defaultPort = 9667

    package var scheme: Scheme
    package var endpoint: HostPort
    /// Sockets of the service manager, instead of ``endpoint``.
    package private(set) var sockets: NamedSockets?

    package var description: String {
        guard let sockets else { return "\(scheme.rawValue)://\(endpoint)" }
        return "\(scheme.rawValue)\(NamedSockets.schemeSuffix)://\(sockets.name)"
    }
    package var isLoopback: Bool { sockets.map(\.isLoopback) ?? endpoint.isLoopback }
    package var isSecure: Bool { scheme == .https }

    package init(scheme: Scheme, endpoint: HostPort) {
        self.scheme = scheme
        self.endpoint = endpoint
    }

    mutating func resolve(_ found: NamedSockets) { sockets = found }

    /// Parses `http://HOST[:PORT]`, `https://HOST[:PORT]` and `http+insecure://HOST[:PORT]`, each also as `SCHEME+fd://NAME`. Port 0
    /// takes any free port.
    package init(parsing text: String) throws(AddressError) {
        let known = Scheme.allCases.map { "\($0.rawValue)://" }.joined(separator: ", ")
        guard let mark = text.firstRange(of: "://") else {
            throw AddressError("an HTTP listener is written as SCHEME://HOST:PORT; known schemes: \(known)")
        }
        let (word, isNamed) = NamedSockets.split(text[..<mark.lowerBound])
        guard let scheme = Scheme(rawValue: word) else {
            throw AddressError("unknown scheme \"\(text[..<mark.lowerBound])://\"; known schemes: \(known)")
        }
        self.scheme = scheme
        var rest = text[mark.upperBound...]
        if rest.last == "/" { rest.removeLast() }
        if isNamed {
            sockets = try NamedSockets(name: rest)
            endpoint = HostPort(host: "", port: 0)
            return
        }
        endpoint = try HostPort(parsing: rest, defaultPort: Self.defaultPort)
    }
}

// MARK: - Forms

extension ConfigurationForm where Value == [HTTPConfiguration.Service] {
    static var httpServices: Self {
        let form = Self.choices(of: "services", unknown: "is not served")
        return Self(expected: form.expected, shape: form.shape) { node, value, reader in
            let before = reader.problems.count
            form.read(node, &value, &reader)
            if value.isEmpty, reader.problems.count == before {
                reader.report(node.origin, "nothing is served here; leave the table out instead")
            }
        } write: {
            form.write($0)
        }
    }
}

extension ConfigurationForm where Value == [String] {
    /// Names as a Host field has them, without port.
    static var hostNames: Self {
        list(of: "names") { text throws(AddressError) in
            let written = text.utf8.count { $0 == 0x3A } > 1 && !text.hasPrefix("[") ? "[\(text)]" : text
            guard let host = try? HostPort(parsing: written, defaultPort: 0), host.port == 0 else {
                throw AddressError("\"\(text)\" is not a host name or an address (without port)")
            }
            return host.host.lowercased()
        } print: {
            $0
        }
    }
}

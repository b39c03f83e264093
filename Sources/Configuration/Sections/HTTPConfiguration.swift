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

    /// A shorter token can be guessed.
    static let shortestToken = 16

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey("bind", \.bind, .parsed("an address such as \"http://127.0.0.1:9667\"")),
        ConfigurationKey("serve", \.serve, .httpServices),
        ConfigurationKey("hosts", \.hosts, .hostNames),
        ConfigurationKey("trusted_proxies", \.trustedProxies, .list(of: "addresses")),
        ConfigurationKey("token", \.token, .secretText, group: "token"),
        ConfigurationKey("token_file", \.token, .secretFile, group: "token"),
        ConfigurationKey("token_credential", \.token, .secretCredential, group: "token"),
        ConfigurationKey("room_labels", \.hasRoomLabels, .boolean),
    ]
}

/// Where HTTP is served.
package struct HTTPListenerAddress: Hashable, ConfigurationText {
    package enum Scheme: String, CaseIterable, Sendable {
        /// Plain text; loopback only.
        case http
        /// Plain text where others can read it; the name is the consent.
        case httpInsecure = "http+insecure"
    }

    /// Free of well-known uses, and easy to remember beside 6667.
    static let defaultPort = 9667

    package var scheme: Scheme
    package var endpoint: HostPort

    package var description: String { "\(scheme.rawValue)://\(endpoint)" }
    package var isLoopback: Bool { endpoint.isLoopback }

    package init(scheme: Scheme, endpoint: HostPort) {
        self.scheme = scheme
        self.endpoint = endpoint
    }

    /// Parses `http://HOST[:PORT]` and `http+insecure://HOST[:PORT]`. Port 0 takes any free port.
    package init(parsing text: String) throws(AddressError) {
        let known = Scheme.allCases.map { "\($0.rawValue)://" }.joined(separator: ", ")
        guard let mark = text.firstRange(of: "://") else {
            throw AddressError("an HTTP listener is written as SCHEME://HOST:PORT; known schemes: \(known)")
        }
        guard let scheme = Scheme(rawValue: String(text[..<mark.lowerBound])) else {
            throw AddressError("unknown scheme \"\(text[..<mark.lowerBound])://\"; known schemes: \(known)")
        }
        self.scheme = scheme
        var rest = text[mark.upperBound...]
        if rest.last == "/" { rest.removeLast() }
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

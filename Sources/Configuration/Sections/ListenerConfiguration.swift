import Transport
import WireBytes

// IRC listeners: permitted origins of pages, trusted proxies, and STS.

package struct ListenerConfiguration: Equatable, Sendable {
    package var bind = ListenerAddress(
        scheme: .irc, endpoint: HostPort(host: "127.0.0.1", port: ListenerAddress.defaultPort))
    /// Permission bits of a socket file; nil: ``defaultMode``.
    package var mode: UInt32?
    /// The group of a socket file, by name or number; nil: the process's own group.
    package var group: String?
    /// Paths of PEM files; only for `ircs://`, which needs both.
    package var certificate = ""
    package var key = ""
    package var minimumTLS = TLSVersion.v12
    /// A PEM file with the authorities of client certificates; empty: none are requested.
    package var clientAuthorities = ""
    /// Which pages may open a WebSocket.
    package var origins: [OriginPattern] = [.ownHost]
    /// Names by which clients reach the listener, in lower case.
    package var hosts: [String] = []
    /// A folder for browsers that ask for no WebSocket; empty: none.
    package var webRoot = ""
    /// People with a terminal are served in words.
    package var plain = PlainUse.on
    package var proxyProtocol = ProxyProtocolUse.off
    /// Proxies trusted for client addresses.
    package var trustedProxies: [TrustedPeer] = []
    /// Only for `ircs://`.
    package var sts = STSChoice.off
    /// The port that plain listeners lead to; nil: the one that is bound.
    package var stsPort: Int?

    package init() {}

    /// The owner and the group may connect.
    package static let defaultMode: UInt32 = 0o660

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "bind", \.bind, .parsed("an address such as \"irc://127.0.0.1:6667\""),
            about: """
                `irc://` on loopback, `ircs://` with TLS (port 6697), `irc+insecure://` elsewhere, \
                `irc+unix:///PATH` for a socket file; IRC over WebSocket: `ws://HOST:PORT/PATH` on loopback, \
                `wss://`, `ws+insecure://`, `ws+unix:///SOCKET:/PATH`; port 0: any free one
                """),
        ConfigurationKey(
            "mode", \.mode, .permissions,
            about: "permissions of a socket file, in octal",
            usual: "`0660`", example: #""0660""#),
        ConfigurationKey(
            "group", \.group, ConfigurationForm<String>.string(ConfigurationChecks.oneLine).optional(from: ""),
            about: "group of a socket file, by name or number",
            usual: "the process's own", example: #""chat""#),
        ConfigurationKey(
            "cert", \.certificate, .string(),
            about: """
                `ircs://`: a PEM file, own certificate first; it and the key are reloaded on SIGHUP and when they \
                change, for new connections; `chatbridge cert self-signed` makes a pair
                """),
        ConfigurationKey(
            "key", \.key, .string(),
            about: "`ircs://`: a PEM file with the private key, without a passphrase"),
        ConfigurationKey(
            "min_tls", \.minimumTLS, .choice,
            about: "oldest accepted version of TLS: `1.2` or `1.3`"),
        ConfigurationKey(
            "client_ca", \.clientAuthorities, .string(),
            about: "a PEM file: request client certificates signed by these authorities"),
        ConfigurationKey(
            "origins", \.origins, .list(of: "origins"),
            about: """
                `ws://`, `wss://`: pages that may connect: `self` (of the same host), `https://chat.example.com`, \
                `https://*.example.com`, `null` (files), `*`
                """),
        ConfigurationKey(
            "hosts", \.hosts, .hostNames,
            about: """
                `ws://`, `wss://`: accepted Host names, besides addresses, `localhost` and the server's name; \
                `ircs://`: the names with an STS policy, by default any
                """),
        ConfigurationKey(
            "web_root", \.webRoot, .string(),
            about:
                "`ws://`, `wss://`: a folder with a browser client, such as gamja, served on the same port; read at start"
        ),
        ConfigurationKey(
            "plain", \.plain, .choice,
            about: """
                `on`: who begins with anything but IRC, or says nothing for 3 s, is a person with telnet or nc, and is \
                asked for a name and a room; `off`: IRC only
                """),
        ConfigurationKey(
            "proxy_protocol", \.proxyProtocol, .choice,
            about: """
                `v1v2`: every connection begins with a PROXY header, before TLS; then only trusted proxies may \
                connect, limits and log use the client's address, and no client counts as local
                """),
        ConfigurationKey(
            "trusted_proxies", \.trustedProxies, .list(of: "addresses"),
            about: """
                proxies trusted for client addresses, as `10.0.0.0/8` or `unix`: by a PROXY header, or on WebSockets \
                by `X-Forwarded-For`
                """),
        ConfigurationKey(
            "sts", \.sts, .sts,
            about: """
                `ircs://`: STS policy duration such as `30d`, `0s` revokes an earlier policy; plain listeners beyond \
                loopback then announce the policy, and clients use TLS only until it expires: the certificate must \
                be valid for the server's name
                """),
        ConfigurationKey(
            "sts_port", \.stsPort, ConfigurationForm<Int>.integer(1...65_535).optional(from: 0),
            about: "`ircs://`: the TLS port in the policy",
            usual: "the bind's", example: "6697"),
    ]
}

package enum PlainUse: String, CaseIterable, Sendable {
    case on
    case off
}

/// From which pages a browser may open a WebSocket.
///
/// Source: RFC 6454 §6.1 for the form of an origin; RFC 6455 §10.2 for why it is looked at.
package enum OriginPattern: Hashable, ConfigurationText {
    /// Any page, and requests by any host name.
    case any
    /// Pages that come from the host that is asked.
    case ownHost
    /// Pages without an origin of their own: files, sandboxed frames.
    case opaque
    /// `https://chat.example.com`; with `isBelow`, its subdomains, as in `https://*.example.com`.
    case site(scheme: String, host: String, port: Int, isBelow: Bool)

    package var description: String {
        switch self {
        case .any: return "*"
        case .ownHost: return "self"
        case .opaque: return "null"
        case .site(let scheme, let host, let port, let isBelow):
            let place = HostPort(host: (isBelow ? "*." : "") + host, port: port)
            let suffix = port == Self.defaultPort(scheme) ? ":\(port)" : ""
            let text = place.description
            return "\(scheme)://" + (suffix.isEmpty ? text : String(text.dropLast(suffix.count)))
        }
    }

    static func defaultPort(_ scheme: String) -> Int { scheme == "https" ? 443 : 80 }

    /// Parses `*`, `self`, `null`, `SCHEME://HOST[:PORT]` and `SCHEME://*.HOST[:PORT]`, the scheme being http or https.
    package init(parsing text: String) throws(AddressError) {
        switch text {
        case "*": self = .any
        case "self": self = .ownHost
        case "null": self = .opaque
        default:
            guard let mark = text.firstRange(of: "://") else {
                throw AddressError(
                    "\"\(text)\" is not an origin: \"self\", \"*\", \"null\" or one such as \"https://chat.example.com\""
                )
            }
            let scheme = text[..<mark.lowerBound].lowercased()
            guard scheme == "http" || scheme == "https" else {
                throw AddressError("the origin \"\(text)\" begins with http:// or https://")
            }
            var rest = text[mark.upperBound...]
            let isBelow = rest.hasPrefix("*.")
            if isBelow { rest = rest.dropFirst(2) }
            guard !rest.contains("/") else {
                throw AddressError("the origin \"\(text)\" has a path; origins have none, not even \"/\"")
            }
            do throws(AddressError) {
                let place = try HostPort(parsing: rest, defaultPort: Self.defaultPort(scheme))
                self = .site(scheme: scheme, host: place.host.lowercased(), port: place.port, isBelow: isBelow)
            } catch {
                throw AddressError("the origin \"\(text)\" \(error.message)")
            }
        }
    }

    /// Whether the pattern matches `origin` as a browser sends it.
    ///
    /// - Parameter host: the requested host, in lower case, without its port.
    package func matches(_ origin: String, host: String) -> Bool {
        switch self {
        case .any: return true
        case .opaque: return origin == "null"
        case .ownHost:
            guard case .site(_, let theirs, _, false)? = try? OriginPattern(parsing: origin) else { return false }
            return theirs == host
        case .site(let scheme, let mine, let port, let isBelow):
            guard case .site(scheme, let theirs, port, false)? = try? OriginPattern(parsing: origin) else {
                return false
            }
            return isBelow ? theirs.hasSuffix("." + mine) : theirs == mine
        }
    }
}

/// Whether connections begin with a header of a proxy.
package enum ProxyProtocolUse: String, CaseIterable, Sendable {
    case off
    /// Either version; from trusted proxies only, and required from them.
    case v1v2
}

/// STS policy of an `ircs://` listener.
package enum STSChoice: Hashable, Sendable {
    case off
    /// STS policy duration. Zero ends the policy.
    case lasting(Duration)
}

/// A trusted peer.
package enum TrustedPeer: Hashable, ConfigurationText {
    case range(NetworkRange)
    /// Clients of the listener's socket file.
    case unix

    package var description: String {
        switch self {
        case .range(let range): range.description
        case .unix: "unix"
        }
    }

    package init(parsing text: String) throws(AddressError) {
        if text == "unix" {
            self = .unix
        } else if let range = NetworkRange(text) {
            self = .range(range)
        } else {
            throw AddressError("\"\(text)\" is not an address, a range such as \"10.0.0.0/8\", or \"unix\"")
        }
    }
}

extension TrustedPeers {
    package init(_ peers: [TrustedPeer]) {
        let ranges = peers.compactMap { if case .range(let range) = $0 { range } else { nil } }
        self.init(ranges: ranges, unix: peers.contains(.unix))
    }
}

extension ListenerConfiguration {
    /// Whether proxies or gateways name client addresses, so that a loopback bind proves nothing.
    package var isBehindProxy: Bool { !trustedProxies.isEmpty }

    /// Whether only this machine can reach it. Behind a proxy all clients look local.
    package var isLocal: Bool { bind.isLoopback && !isBehindProxy }

    /// Proxies that begin each connection with a PROXY header; nil: none.
    package var announcingProxies: TrustedPeers? { proxyProtocol == .off ? nil : TrustedPeers(trustedProxies) }
}

extension ListenerConfiguration {
    /// The answer to plain text on this port.
    package static let plainTextAnswer =
        "ERROR :This port speaks TLS: turn TLS on in your client, or use the plain port\r\n"

    /// The answer to plain HTTP on a port for `scheme`.
    static func plainHTTPAnswer(scheme: String) -> String {
        let body = "This port speaks TLS: use \(scheme)://\n"
        return "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
            + "Content-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n" + body
    }

    /// Nil for listeners without TLS.
    ///
    /// - Parameter asksForCertificates: clients may have certificates by which accounts are known.
    package func tlsSettings(
        asksForCertificates: Bool = false, _ source: (String) -> TLSSource = TLSSource.file
    ) -> TLSServerSettings? {
        guard bind.isSecure else { return nil }
        var settings = TLSServerSettings(identity: TLSIdentity(certificate: source(certificate), key: source(key)))
        settings.minimumVersion = minimumTLS
        if asksForCertificates { settings.clientCertificates = .welcomed }
        if !clientAuthorities.isEmpty { settings.clientCertificates = .requested(source(clientAuthorities)) }
        settings.plainTextAnswer = bind.isWebSocket ? Self.plainHTTPAnswer(scheme: "wss") : Self.plainTextAnswer
        return settings
    }
}

// MARK: - Forms

extension ConfigurationForm where Value == STSChoice {
    static var sts: Self {
        text("\"off\" or a duration of whole seconds, such as \"30d\"") { text throws(AddressError) in
            if text == "off" { return .off }
            // Only with its unit: "0" is a number elsewhere, and would be a promise here.
            guard text != "0", let duration = DurationText.parse(text), duration.components.attoseconds == 0 else {
                return nil
            }
            return .lasting(duration)
        } print: {
            switch $0 {
            case .off: "off"
            case .lasting(let duration): DurationText.format(duration)
            }
        }
    }
}

import Transport
import WireBytes

// What a listener has besides its address and its certificate: pages that may connect, proxies that may speak for others,
// and what clients are told of TLS.

/// From which pages a browser may open a WebSocket.
///
/// Source: RFC 6454 §6.1 for the form of an origin; RFC 6455 §10.2 for why it is looked at.
package enum OriginPattern: Hashable, Sendable, CustomStringConvertible {
    /// Any page whatever, and requests by any name.
    case any
    /// Pages that come from the host that is asked.
    case ownHost
    /// Pages without an origin of their own: files, sandboxed frames.
    case opaque
    /// `https://chat.example.com`; with `isBelow` what lies under the host, as `https://*.example.com` says.
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

    /// Whether a page of `origin`, as a browser wrote it, is meant.
    ///
    /// - Parameter host: whom the request was for, in lower case, without its port.
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
    /// Either version; from the trusted alone, and from nobody else anything.
    case v1v2
}

/// What an `ircs://` listener tells of itself with the capability `sts`.
package enum STSChoice: Hashable, Sendable {
    case off
    /// So long clients must keep to TLS. Zero tells them that they need not any more.
    case lasting(Duration)
}

/// A gateway that may say for whom it opens a connection, with WEBIRC.
package struct WebIRCConfiguration: Equatable, Sendable {
    /// Nil only until loading has complained.
    package var password: PasswordVerifier?
    package var from: [TrustedPeer] = []
}

/// One of those whose word is taken.
package enum TrustedPeer: Hashable, Sendable, CustomStringConvertible {
    case range(NetworkRange)
    /// Whoever may open a socket file of ours.
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
        self.init()
        for peer in peers {
            switch peer {
            case .range(let range): ranges.append(range)
            case .unix: unix = true
            }
        }
    }
}

extension ListenerConfiguration {
    /// Whether somebody else says where clients come from, so that being bound to loopback proves nothing.
    package var isBehindProxy: Bool { !trustedProxies.isEmpty }

    /// Whether it can be reached from this machine only. A proxy makes everybody local.
    package var isLocal: Bool { bind.isLoopback && !isBehindProxy }

    /// Who begins each connection with a PROXY header; nil: nobody does.
    package var announcingProxies: TrustedPeers? { proxyProtocol == .off ? nil : TrustedPeers(trustedProxies) }
}

// MARK: - Keys

extension ListenerConfiguration {
    static let webKeys: [ConfigurationKey<ListenerConfiguration>] = [
        ConfigurationKey(
            "origins", \.origins, .origins,
            "ws, wss: pages that may connect: \"self\", \"*\", \"https://chat.example.com\""),
        ConfigurationKey(
            "hosts", \.hosts, .hostNames,
            "names by which clients reach it: ws, wss take these besides addresses and the server's name; ircs: for sts"
        ),
    ]

    static let proxyKeys: [ConfigurationKey<ListenerConfiguration>] = [
        ConfigurationKey(
            "proxy_protocol", \.proxyProtocol, .choice, "off | v1v2: every connection begins with a PROXY header"),
        ConfigurationKey(
            "trusted_proxies", \.trustedProxies, .trustedPeers,
            "who may say for whom it connects, as [\"10.0.0.0/8\", \"unix\"]; on ws and wss also by X-Forwarded-For"),
    ]

    static let stsKeys: [ConfigurationKey<ListenerConfiguration>] = [
        ConfigurationKey(
            "sts", \.sts, .sts, "ircs: off, or how long clients must keep to TLS; plain listeners then lead here"),
        ConfigurationKey(
            "sts_port", \.stsPort, ConfigurationForm<Int>.integer(1...65_535).optional(from: 0),
            "ircs: the port that plain listeners lead to; default: the bind's"),
    ]
}

extension WebIRCConfiguration {
    static let keys: [ConfigurationKey<WebIRCConfiguration>] = [
        ConfigurationKey(
            "password", \.password, .password, group: "password",
            "the gateway's, as chatbridge hash-password prints it, or in plain text"),
        ConfigurationKey("password_file", \.password, .passwordFile, group: "password", "a file with it"),
        ConfigurationKey(
            "password_credential", \.password, .passwordCredential, group: "password", "a systemd credential with it"),
        ConfigurationKey("from", \.from, .trustedPeers, "where the gateway connects from, as [\"10.0.0.0/8\"]"),
    ]
}

// MARK: - Forms

extension ConfigurationForm where Value == [OriginPattern] {
    static var origins: Self {
        list(of: "origins") { text throws(AddressError) in
            try OriginPattern(parsing: text)
        } print: {
            $0.description
        }
    }
}

extension ConfigurationForm where Value == [TrustedPeer] {
    static var trustedPeers: Self {
        list(of: "addresses") { text throws(AddressError) in
            try TrustedPeer(parsing: text)
        } print: {
            $0.description
        }
    }
}

extension ConfigurationForm where Value == STSChoice {
    static var sts: Self {
        text("\"off\" or a duration of whole seconds, such as \"30d\"") { text throws(AddressError) in
            if text == "off" { return .off }
            // Only with its unit: "0" means nothing elsewhere, and would be a promise here.
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

// MARK: - Rules

extension ConfigurationCompletion {
    /// What single keys of a listener cannot know, its address and TLS apart.
    mutating func checkDoors(_ listener: ListenerConfiguration, at path: String) {
        let bind = listener.bind
        // A printed configuration writes what nobody wrote.
        if !bind.isWebSocket, listener.origins != ListenerConfiguration().origins,
            let place = origin("\(path).origins")
        {
            reader.report(place, "origins are for browsers: bind = \"ws://…\" or \"wss://…\"")
        }
        if !bind.isWebSocket, listener.sts == .off, !listener.hosts.isEmpty, let place = origin("\(path).hosts") {
            reader.report(place, "hosts mean nothing here: they are for ws:// and wss://, and for ircs:// with sts")
        }
        if listener.proxyProtocol != .off, listener.trustedProxies.isEmpty, isMissing("\(path).trusted_proxies") {
            reader.report(
                origin("\(path).proxy_protocol") ?? .builtIn,
                "proxy_protocol needs trusted_proxies: from others a PROXY header would be a lie")
        }
        if listener.proxyProtocol == .off, !listener.trustedProxies.isEmpty, !bind.isWebSocket,
            let place = origin("\(path).trusted_proxies"), !isRefused("\(path).proxy_protocol")
        {
            reader.report(place, "trusted_proxies mean nothing without proxy_protocol = \"v1v2\"")
        }
        if listener.trustedProxies.contains(.unix) != bind.isUnixSocket, !listener.trustedProxies.isEmpty,
            let place = origin("\(path).trusted_proxies")
        {
            reader.report(
                place,
                bind.isUnixSocket
                    ? "a socket file has no addresses: trusted_proxies = [\"unix\"]"
                    : "\"unix\" is for a listener with a socket file")
        }
        if listener.sts != .off, bind.scheme != .ircs {
            reader.report(
                origin("\(path).sts") ?? .builtIn,
                "sts is said by an ircs:// listener; plain ones then lead to it by themselves")
        }
        if listener.stsPort != nil, listener.sts == .off, !isRefused("\(path).sts"),
            let place = origin("\(path).sts_port")
        {
            reader.report(place, "sts_port means nothing without sts")
        }
        // What a proxy or a gateway speaks for comes from elsewhere, wherever we are bound.
        if bind.isLoopback, listener.isBehindProxy, !isLoginSettled {
            reader.report(
                origin("\(path).trusted_proxies") ?? .builtIn,
                "\(bind) can be reached from other machines through its proxy and nobody needs a password: set "
                    + "password or password_file in [identity], or write require_login = \"never\"")
        }
    }

    /// Whether a list is empty because nobody wrote anything in it: what was written and refused has its own complaint.
    private func isMissing(_ list: String) -> Bool { origin(list) == nil || reader.problems.isEmpty }

    mutating func checkGateways() {
        for (index, gateway) in configuration.identity.webirc.enumerated() {
            let at = "identity.webirc[\(index)]"
            let place = origin(at) ?? .builtIn
            if gateway.password == nil,
                !["password", "password_file", "password_credential"].contains(where: { isRefused("\(at).\($0)") })
            {
                reader.report(place, "this gateway has no password; \"chatbridge hash-password\" makes the hash of one")
            }
            if gateway.from.isEmpty, isMissing("\(at).from") {
                reader.report(place, "this gateway may connect from nowhere; from = [\"10.0.0.1\"] says where it is")
            }
        }
        if !configuration.identity.webirc.isEmpty, reader.problems.isEmpty, !isLoginSettled {
            reader.report(
                origin("identity.webirc") ?? .builtIn,
                "through a gateway people come from other machines and nobody needs a password: set password or "
                    + "password_file in [identity], or write require_login = \"never\"")
        }
    }
}

import HTTPProtocol
import Transport
import WireBytes

/// Why an address in a configuration is refused; the sentence goes behind the position.
package struct AddressError: Error, Equatable {
    package var message: String
    package init(_ message: String) { self.message = message }
}

/// A host and a port as URIs write them.
package struct HostPort: Hashable, Sendable, CustomStringConvertible {
    /// A name or a numeric address, IPv6 without its brackets.
    package var host: String
    package var port: Int

    package var isIPv6Literal: Bool { host.utf8.contains(UInt8(ascii: ":")) }

    package var description: String { isIPv6Literal ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Whether only this machine can reach it: 127.0.0.0/8, ::1 and the name localhost.
    package var isLoopback: Bool {
        if host == "localhost" || host == "::1" || host == "0:0:0:0:0:0:0:1" { return true }
        let octets = host.split(separator: ".", omittingEmptySubsequences: false)
        return octets.count == 4 && octets[0] == "127" && octets.allSatisfy { UInt8($0) != nil }
    }

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Parses `host:port`, `1.2.3.4:port`, `[::1]:port`; the port may be left out where `defaultPort` is given.
    package init(parsing text: some StringProtocol, defaultPort: Int?) throws(AddressError) {
        let host: Substring
        var rest: Substring
        let text = Substring(text)
        if text.first == "[" {
            guard let close = text.firstIndex(of: "]") else { throw AddressError("\"[\" without \"]\" in \(text)") }
            host = text[text.index(after: text.startIndex)..<close]
            rest = text[text.index(after: close)...]
            guard host.contains(":"), host.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." || $0 == "%" }) else {
                throw AddressError("\"\(host)\" is not an IPv6 address")
            }
        } else {
            let end = text.firstIndex(of: ":") ?? text.endIndex
            host = text[..<end]
            rest = text[end...]
            if rest.dropFirst().contains(":") {
                throw AddressError("an IPv6 address goes in brackets, as in [::1]:6667")
            }
            guard !host.isEmpty else { throw AddressError("has no host") }
            guard
                host.utf8.allSatisfy({ ASCII.isLetter($0) || ASCII.isDigit($0) || "-._".utf8.contains($0) })
            else { throw AddressError("\"\(host)\" is not a host name") }
        }
        if rest.isEmpty {
            guard let defaultPort else { throw AddressError("has no port") }
            port = defaultPort
        } else {
            guard rest.removeFirst() == ":", rest.allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(rest),
                number <= 65_535
            else { throw AddressError("\"\(rest)\" is not a port (0 to 65535)") }
            port = number
        }
        self.host = String(host)
    }
}

/// Listening sockets that the service manager hands over under one name: the place of `irc+fd://NAME`.
package struct NamedSockets: Hashable, Sendable {
    package var name: String
    /// Empty until loading has found them, and where only the configuration is checked.
    package var found: [InheritedSocket] = []

    /// Whether only this machine can reach them, as far as is known: judged by the addresses they are bound to.
    package var isLoopback: Bool { found.allSatisfy { $0.address?.isLoopback ?? true } }

    /// The end of a scheme.
    static let schemeSuffix = "+fd"
    /// Longest name in bytes. Source: systemd.socket(5), FileDescriptorName=.
    static let maxNameBytes = 255

    /// Splits `irc+fd` into its scheme and whether the place is a name.
    static func split(_ scheme: Substring) -> (scheme: String, isNamed: Bool) {
        let isNamed = scheme.hasSuffix(schemeSuffix)
        return (String(isNamed ? scheme.dropLast(schemeSuffix.count) : scheme), isNamed)
    }

    init(name: Substring) throws(AddressError) {
        guard !name.isEmpty else {
            throw AddressError("names no socket: irc+fd://NAME, where the socket unit has FileDescriptorName=NAME")
        }
        guard name.utf8.count <= Self.maxNameBytes,
            name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "/") })
        else { throw AddressError("\"\(name)\" is not the name of a socket: visible ASCII without \":\" and \"/\"") }
        self.name = String(name)
    }
}

/// Where IRC clients are let in.
package struct ListenerAddress: Hashable, ConfigurationText {
    package enum Scheme: String, CaseIterable, Sendable {
        /// Plain text; loopback only.
        case irc
        case ircs
        /// Plain text where others can read it; the name is the consent.
        case ircInsecure = "irc+insecure"
        /// A socket file.
        case ircUnix = "irc+unix"
        /// IRC over WebSocket, likewise.
        case ws
        case wss
        case wsInsecure = "ws+insecure"
        case wsUnix = "ws+unix"

        /// The port that IRC clients try first; nil where they expect none. Source: RFC 7194 for TLS.
        var defaultPort: Int? {
            switch self {
            case .irc, .ircInsecure, .ircUnix: ListenerAddress.defaultPort
            case .ircs: 6697
            case .ws, .wss, .wsInsecure, .wsUnix: nil
            }
        }

        /// The same with the consent that others may listen in.
        package var insecure: Scheme { isWebSocket ? .wsInsecure : .ircInsecure }
        /// The same with TLS.
        package var secured: Scheme { isWebSocket ? .wss : .ircs }

        package var isWebSocket: Bool {
            switch self {
            case .ws, .wss, .wsInsecure, .wsUnix: true
            case .irc, .ircs, .ircInsecure, .ircUnix: false
            }
        }
    }

    /// The port of plain IRC.
    static let defaultPort = 6667

    package var scheme: Scheme
    /// For `irc+unix` and `ws+unix` the host is the absolute path of the socket and the port 0.
    package var endpoint: HostPort
    /// Sockets of the service manager, instead of ``endpoint``.
    package var sockets: NamedSockets?
    /// The path of WebSocket requests: begins with a slash. Empty for IRC.
    package var path = ""

    package var description: String {
        let place =
            if let sockets {
                "\(scheme.rawValue)\(NamedSockets.schemeSuffix)://\(sockets.name)"
            } else {
                "\(scheme.rawValue)://" + (isUnixSocket ? endpoint.host : endpoint.description)
            }
        if path.isEmpty || path == "/" { return place }
        return place + (isUnixSocket ? ":" : "") + path
    }
    /// Whether only this machine can reach it.
    package var isLoopback: Bool { isUnixSocket || (sockets.map(\.isLoopback) ?? endpoint.isLoopback) }
    package var isUnixSocket: Bool { scheme == .ircUnix || scheme == .wsUnix }
    package var isWebSocket: Bool { scheme.isWebSocket }
    /// The same with the consent that others may listen in, without its path.
    var insecure: ListenerAddress {
        var address = self
        address.scheme = scheme.insecure
        address.path = ""
        return address
    }
    /// What is bound, for people: the address, or that of a handed over socket.
    var reach: String {
        guard let sockets else { return endpoint.description }
        return sockets.found.compactMap(\.address).first { !$0.isLoopback }.map(\.description) ?? sockets.name
    }
    package var isSecure: Bool { scheme == .ircs || scheme == .wss }
    /// Whether clients may send passwords: the connection is private, or its scheme consents.
    package var allowsLogin: Bool { isLoopback || (scheme != .irc && scheme != .ws) }

    /// Parses `irc://HOST[:PORT]`, `ircs://HOST[:PORT]`, `irc+insecure://HOST[:PORT]`, `irc+unix:///SOCKET`, and
    /// `ws://HOST:PORT[/PATH]`, `wss://HOST:PORT[/PATH]`, `ws+insecure://HOST:PORT[/PATH]`, `ws+unix:///SOCKET[:/PATH]`;
    /// any but the socket files also as `SCHEME+fd://NAME[/PATH]`. Port 0 takes any free port.
    package init(parsing text: String) throws(AddressError) {
        let known = Scheme.allCases.map { "\($0.rawValue)://" }.joined(separator: ", ")
        guard let mark = text.firstRange(of: "://") else {
            throw AddressError("a listener is written as SCHEME://HOST:PORT; known schemes: \(known)")
        }
        let (word, isNamed) = NamedSockets.split(text[..<mark.lowerBound])
        guard let scheme = Scheme(rawValue: word), !isNamed || (scheme != .ircUnix && scheme != .wsUnix) else {
            throw AddressError("unknown scheme \"\(text[..<mark.lowerBound])://\"; known schemes: \(known)")
        }
        self.scheme = scheme
        var rest = text[mark.upperBound...]
        if scheme.isWebSocket {
            (rest, path) = try Self.splitPath(rest, isUnixSocket: scheme == .wsUnix)
        }
        if scheme == .ircUnix || scheme == .wsUnix {
            endpoint = HostPort(host: try UnixSocketPath.checked(rest), port: 0)
            return
        }
        if rest.last == "/" { rest.removeLast() }
        if isNamed {
            sockets = try NamedSockets(name: rest)
            endpoint = HostPort(host: "", port: 0)
            return
        }
        endpoint = try HostPort(parsing: rest, defaultPort: scheme.defaultPort)
    }

    /// Takes the path off a WebSocket listener's address.
    private static func splitPath(_ text: Substring, isUnixSocket: Bool) throws(AddressError) -> (Substring, String) {
        // The path of a socket ends where `:/` begins another.
        let end = isUnixSocket ? text.firstRange(of: ":/")?.lowerBound : text.firstIndex(of: "/")
        guard let end else { return (text, "/") }
        let path = isUnixSocket ? text[end...].dropFirst() : text[end...]
        guard path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), !path.contains("#"), !path.contains("?") else {
            throw AddressError("the path \"\(path)\" is one without query and fragment, percent-encoded")
        }
        return (text[..<end], String(path))
    }

    package init(scheme: Scheme, endpoint: HostPort, path: String = "") {
        self.scheme = scheme
        self.endpoint = endpoint
        self.path = path
    }
}

/// Checks of a socket file's path.
enum UnixSocketPath {
    static func checked(_ path: Substring) throws(AddressError) -> String {
        guard path.first == "/", path.count > 1 else {
            throw AddressError(
                "a socket is written with three slashes and an absolute path, as in irc+unix:///run/x.sock")
        }
        guard path.utf8.count <= SocketAddress.maxUnixPathBytes else {
            throw AddressError("the socket's path is longer than \(SocketAddress.maxUnixPathBytes) bytes")
        }
        guard path.last != "/", !path.utf8.contains(0) else { throw AddressError("\"\(path)\" is not a socket's path") }
        return String(path)
    }
}

/// The WebSocket that a room connects to.
package struct UpstreamURL: Hashable, Sendable, CustomStringConvertible {
    /// Longest URL, in bytes; servers commonly refuse request lines beyond 8 KiB.
    package static let maxByteCount = 4096

    /// Whether it is `wss://`.
    package var isSecure: Bool
    /// For `ws+unix` the host is the absolute path of the socket and the port 0.
    package var endpoint: HostPort
    /// Whether the peer is a socket file.
    package var isUnixSocket = false
    /// Path and query, beginning with a slash; contains any token that the query carries.
    package var resource: Secret

    /// The URL as it is dialled. May contain a token: do not log it.
    package var text: String {
        if isUnixSocket { return "ws+unix://\(endpoint.host):\(resource.revealed)" }
        let authority = endpoint.port == Self.defaultPort(isSecure: isSecure) ? hostText : endpoint.description
        return "\(isSecure ? "wss" : "ws")://\(authority)\(resource.revealed)"
    }

    /// Source: RFC 6455 §3.
    private static func defaultPort(isSecure: Bool) -> Int { isSecure ? 443 : 80 }

    private var hostText: String { endpoint.isIPv6Literal ? "[\(endpoint.host)]" : endpoint.host }

    /// The URL with every query value blanked.
    package var description: String { description(showing: nil) }

    /// The same, where a value that is the room's name is shown.
    package func description(showing room: String?) -> String {
        let room = room.map { HTTPURL.percentEncoded($0) }
        let text = self.text
        guard let mark = text.firstIndex(of: "?") else { return text }
        let fields = text[text.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false)
        let blanked = fields.map { field in
            guard let equals = field.firstIndex(of: "=") else { return Secret.blank }
            if let room, field[field.index(after: equals)...] == room { return String(field) }
            return field[...equals] + Secret.blank
        }
        return text[...mark] + blanked.joined(separator: "&")
    }

    /// Parses `ws://HOST[:PORT][/PATH][?QUERY]`, the same with `wss://`, and `ws+unix:///SOCKET[:/PATH[?QUERY]]`: visible
    /// ASCII, no fragment, no credentials. `{room}` may stand in the path
    /// and the query, for ``filled(room:)``.
    ///
    /// Messages never repeat the path or the query.
    ///
    /// Source: RFC 6455 §3.
    package init(parsing text: String) throws(AddressError) {
        guard text.utf8.count <= Self.maxByteCount else {
            throw AddressError("the URL is longer than \(Self.maxByteCount) bytes")
        }
        guard let mark = text.firstRange(of: "://") else {
            throw AddressError("a URL is written as wss://HOST[:PORT]/PATH")
        }
        switch text[..<mark.lowerBound] {
        case "ws": isSecure = false
        case "wss": isSecure = true
        case "ws+unix":
            isSecure = false
            isUnixSocket = true
        case "http", "https":
            throw AddressError("the URL must be that of the WebSocket and begin with ws:// or wss://")
        case let scheme: throw AddressError("unknown scheme \"\(scheme)://\"; known schemes: ws://, wss://, ws+unix://")
        }
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw AddressError("the URL contains a space, a control or a non-ASCII character; percent-encode it")
        }
        guard !text.contains("#") else { throw AddressError("a WebSocket URL has no fragment (\"#\"); write %23") }

        let rest = text[mark.upperBound...]
        if isUnixSocket {
            let colon = rest.firstIndex(of: ":") ?? rest.endIndex
            endpoint = HostPort(host: try UnixSocketPath.checked(rest[..<colon]), port: 0)
            guard !endpoint.host.contains(where: { $0 == "{" || $0 == "?" }) else {
                throw AddressError("the socket's path has no placeholder and no query; write ws+unix:///SOCKET:/PATH")
            }
            let path = rest[colon...].dropFirst()
            guard path.isEmpty || path.first == "/" else {
                throw AddressError("what follows the socket's path begins with a slash: ws+unix:///SOCKET:/PATH")
            }
            try Self.checkPlaceholders(path)
            resource = Secret(path.isEmpty ? "/" : String(path))
            return
        }
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        guard !rest[..<end].contains("@") else {
            throw AddressError(
                "the URL carries credentials; send them as a header: headers = { Authorization = \"…\" }")
        }
        endpoint = try HostPort(parsing: rest[..<end], defaultPort: Self.defaultPort(isSecure: isSecure))
        guard endpoint.port > 0 else { throw AddressError("port 0 cannot be connected to") }
        let path = rest[end...]
        try Self.checkPlaceholders(path)
        resource = Secret(path.first == "/" ? String(path) : "/" + path)
    }

    private static func checkPlaceholders(_ text: Substring) throws(AddressError) {
        var rest = text
        while let open = rest.firstIndex(where: { $0 == "{" || $0 == "}" }) {
            guard rest[open] == "{", let close = rest[open...].firstIndex(of: "}") else {
                throw AddressError("a single \"\(rest[open])\" in the URL; percent-encode it")
            }
            let name = rest[rest.index(after: open)..<close]
            guard name == "room" else {
                throw AddressError("unknown placeholder {\(name)}; this version knows {room}")
            }
            rest = rest[rest.index(after: close)...]
        }
    }

    /// This URL with `{room}` replaced, percent-encoded.
    package func filled(room: String) -> UpstreamURL {
        var url = self
        url.resource = Secret(resource.revealed.replacing("{room}", with: HTTPURL.percentEncoded(room)))
        return url
    }
}

import WireBytes

/// Why a text is not a usable proxy.
public enum HTTPProxyError: Error, Equatable, Sendable {
    case unsupportedScheme(String)
    case malformed(String)
    case tooLong

    /// The fault, for an operator. Never repeats user or password.
    public var sentence: String {
        switch self {
        case .unsupportedScheme(let scheme):
            "a proxy of the kind \(scheme):// is not supported; only http://USER:PASSWORD@HOST:PORT is"
        case .malformed(let why): "the proxy is written as http://USER:PASSWORD@HOST:PORT: \(why)"
        case .tooLong: "the proxy's URL is longer than \(HTTPProxy.maxTextBytes) bytes"
        }
    }
}

/// An HTTP proxy that opens tunnels with CONNECT, and the credentials for it.
public struct HTTPProxy: Hashable, Sendable {
    /// Longest text that is read, in bytes: a host name, a port, and credentials of a generous size.
    public static let maxTextBytes = 4096

    /// Lower case; an IPv6 address without brackets.
    public let host: String
    public let port: UInt16
    public let isIPv6Literal: Bool
    /// The value of `Proxy-Authorization`; a secret.
    let authorization: String?

    /// Whether the proxy is sent a user and a password.
    public var hasCredentials: Bool { authorization != nil }

    /// Reads `http://[USER[:PASSWORD]@]HOST[:PORT]`; user and password may be percent-encoded. Without a scheme it is
    /// `http://`, as for other programs that read the environment; without a port 80, or `defaultPort`.
    ///
    /// Source: RFC 9110 §9.3.6; RFC 3986 §3.2.
    public init(parsing text: String) throws(HTTPProxyError) {
        guard text.utf8.count <= Self.maxTextBytes else { throw .tooLong }
        var bytes = Array(text.utf8)[...]
        if let mark = Self.schemeEnd(bytes) {
            let scheme = ASCII.lowercased(String(decoding: bytes[..<mark], as: UTF8.self))
            guard ASCII.isToken(scheme) else { throw .malformed("the scheme is none") }
            guard scheme == "http" else { throw .unsupportedScheme(scheme) }
            bytes = bytes[(mark + 3)...]
        }
        // A password may hold an unencoded @; the last one ends it.
        if let at = bytes.lastIndex(of: UInt8(ascii: "@")) {
            authorization = try Self.authorization(bytes[..<at])
            bytes = bytes[(at + 1)...]
        } else {
            authorization = nil
        }
        if bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        guard !bytes.isEmpty else { throw .malformed("it has no host") }
        guard !bytes.contains(where: { "/?#".utf8.contains($0) }) else { throw .malformed("it has no path") }
        do throws(HTTPURLError) {
            let url = try HTTPURL(parsing: "http://" + String(decoding: bytes, as: UTF8.self))
            host = url.host
            port = url.port
            isIPv6Literal = url.isIPv6Literal
        } catch {
            throw .malformed(error.sentence)
        }
    }

    private static func schemeEnd(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else {
            return nil
        }
        return colon
    }

    /// Source: RFC 7617 §2.
    private static func authorization(_ userInfo: ArraySlice<UInt8>) throws(HTTPProxyError) -> String {
        let colon = userInfo.firstIndex(of: UInt8(ascii: ":")) ?? userInfo.endIndex
        guard let user = HTTPURL.percentDecoded(userInfo[..<colon]),
            let password = HTTPURL.percentDecoded(userInfo[colon...].dropFirst())
        else { throw .malformed("user or password has a % that is not followed by two hexadecimal digits") }
        guard !user.contains(UInt8(ascii: ":")) else { throw .malformed("a user name cannot hold a colon") }
        guard !(user + password).contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw .malformed("user or password has a control character")
        }
        return "Basic " + Base64.encode(user + [UInt8(ascii: ":")] + password)
    }
}

extension HTTPProxy: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `host:port`, never the credentials.
    public var description: String { isIPv6Literal ? "[\(host)]:\(port)" : "\(host):\(port)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

/// Selects the proxy, if any, for a URL.
public struct HTTPProxyRules: Sendable {
    public enum Route: Equatable, Sendable {
        case direct
        case proxy(HTTPProxy)
        /// A setting names a proxy that cannot be used; the sentence names it and the reason.
        case unusable(String)
    }

    private var plain = Route.direct
    private var secure = Route.direct
    private var exceptions: [HTTPProxyException] = []
    /// Loopback needs no proxy, unless one is configured for the very room.
    private var sparesLoopback = false

    /// No proxy for anything.
    public static let direct = HTTPProxyRules()

    private init() {}

    /// One proxy for everything but Unix sockets.
    public init(always proxy: HTTPProxy) {
        plain = .proxy(proxy)
        secure = plain
    }

    /// The rules of `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`; the lower-case spelling counts before the
    /// upper-case one, and an empty value as none. There is no RFC for these; curl, Go and Python agree on the forms
    /// read here. Hosts that are `localhost` or a loopback address are reached directly, as in Go.
    public init(environment variables: [String: String]) {
        func value(_ name: String) -> (name: String, text: String)? {
            for name in [ASCII.lowercased(name), name] {
                if let text = variables[name], !text.isEmpty { return (name, text) }
            }
            return nil
        }
        func route(_ names: String...) -> Route {
            for name in names {
                guard let (name, text) = value(name) else { continue }
                do throws(HTTPProxyError) {
                    return .proxy(try HTTPProxy(parsing: text))
                } catch {
                    return .unusable("\(name): \(error.sentence)")
                }
            }
            return .direct
        }
        plain = route("HTTP_PROXY", "ALL_PROXY")
        secure = route("HTTPS_PROXY", "ALL_PROXY")
        exceptions = HTTPProxyException.list(value("NO_PROXY")?.text ?? "")
        sparesLoopback = true
    }

    /// The way to `url`.
    public func route(to url: HTTPURL) -> Route {
        if url.isUnixSocket { return .direct }
        let address = NetworkAddress(url.host)
        if sparesLoopback {
            if url.host == "localhost" || url.host.hasSuffix(".localhost") || address?.isLoopback == true {
                return .direct
            }
            for exception in exceptions where exception.covers(host: url.host, address: address, port: url.port) {
                return .direct
            }
        }
        return url.isSecure ? secure : plain
    }
}

/// One entry of `NO_PROXY`.
enum HTTPProxyException: Equatable {
    case everything
    /// The name itself and, with a dot before it, all names below it. No dots at the ends.
    case domain(String, includesSelf: Bool, port: UInt16?)
    case network(NetworkAddress, prefixBits: Int, port: UInt16?)

    /// Most entries that are read; lists are written by people and generated for clusters, and each link looks at all.
    static let maxEntries = 1000

    /// Entries separated by commas or blanks: `*`, `example.com` (it and its subdomains), `.example.com` and
    /// `*.example.com` (subdomains alone), an address, a network such as `10.0.0.0/8`; names and addresses with a port
    /// where they end in one. Other texts name no host and are skipped.
    static func list(_ text: String) -> [HTTPProxyException] {
        Array(text.utf8).split { $0 == UInt8(ascii: ",") || $0 == 0x20 || $0 == 0x09 }.prefix(maxEntries)
            .compactMap { entry(ASCII.lowercased(String(decoding: $0, as: UTF8.self))) }
    }

    private static func entry(_ text: String) -> HTTPProxyException? {
        if text == "*" { return .everything }
        let bytes = Array(text.utf8)
        if let slash = bytes.firstIndex(of: UInt8(ascii: "/")) {
            guard let address = NetworkAddress(String(decoding: bytes[..<slash], as: UTF8.self)),
                let bits = ASCII.decimal(bytes[(slash + 1)...], maxDigits: 3), bits <= address.bytes.count * 8
            else { return nil }
            return .network(address, prefixBits: bits, port: nil)
        }
        if let address = NetworkAddress(text) {
            return .network(address, prefixBits: address.bytes.count * 8, port: nil)
        }
        var name = bytes[...]
        var port: UInt16?
        if let colon = bytes.lastIndex(of: UInt8(ascii: ":")) {
            guard let number = ASCII.decimal(bytes[(colon + 1)...], maxDigits: 5), let known = UInt16(exactly: number)
            else { return nil }
            port = known
            name = bytes[..<colon]
        }
        if name.first == UInt8(ascii: "["), name.last == UInt8(ascii: "]") { name = name.dropFirst().dropLast() }
        if let address = NetworkAddress(String(decoding: name, as: UTF8.self)) {
            return .network(address, prefixBits: address.bytes.count * 8, port: port)
        }
        if name.starts(with: "*.".utf8) { name = name.dropFirst() }
        let includesSelf = name.first != UInt8(ascii: ".")
        if !includesSelf { name = name.dropFirst() }
        if name.last == UInt8(ascii: ".") { name = name.dropLast() }
        guard !name.isEmpty, !name.contains(UInt8(ascii: "*")) else { return nil }
        return .domain(String(decoding: name, as: UTF8.self), includesSelf: includesSelf, port: port)
    }

    /// - Parameter host: in lower case, an IPv6 address without brackets.
    func covers(host: String, address: NetworkAddress?, port: UInt16) -> Bool {
        switch self {
        case .everything: return true
        case .network(let network, let bits, let wantedPort):
            guard let address else { return false }
            return (wantedPort ?? port) == port && address.isIn(network, prefixBits: bits)
        case .domain(let domain, let includesSelf, let wantedPort):
            guard (wantedPort ?? port) == port, address == nil else { return false }
            let name = host.utf8.last == UInt8(ascii: ".") ? String(host.dropLast()) : host
            return includesSelf && name == domain || name.hasSuffix("." + domain)
        }
    }
}

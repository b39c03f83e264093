import WireBytes

/// Why a text is not a URL to connect to.
public enum HTTPURLError: Error, Equatable, Sendable {
    case unknownScheme(String)
    case userInfoNotAllowed
    case fragmentNotAllowed
    case invalidHost(String)
    case invalidPort(String)
    case invalidCharacter
    case missingSocketPath

    /// The fault, for an operator.
    public var sentence: String {
        switch self {
        case .unknownScheme(let scheme):
            scheme.isEmpty ? "the URL has no scheme such as wss://" : "the scheme \(scheme) is not supported"
        case .userInfoNotAllowed: "a user name or password in a URL is not allowed"
        case .fragmentNotAllowed: "a URL to connect to has no fragment (#)"
        case .invalidHost(let host): host.isEmpty ? "the URL has no host" : "\"\(host)\" is not a host name or address"
        case .invalidPort(let port): "\"\(port)\" is not a port between 1 and 65535"
        case .invalidCharacter: "the URL has a blank, a control or a non-ASCII character; write it percent-encoded"
        case .missingSocketPath: "ws+unix:// needs the absolute path of a socket"
        }
    }
}

/// A URL that names a peer and a resource: `ws`, `wss`, `http`, `https`, or `ws+unix:///socket/path:/resource`.
///
/// Source: RFC 3986 §3; RFC 6455 §3.
public struct HTTPURL: Equatable, Sendable {
    /// Lower case, without `://`.
    public let scheme: String
    /// Lower case; an IPv6 address without brackets. For `ws+unix`, the absolute path of the socket.
    public let host: String
    /// 1...65535; the scheme's default where the text names none; 0 for `ws+unix`.
    public let port: UInt16
    public let isIPv6Literal: Bool
    /// Begins with `/`, never empty, goes on the request line as it is.
    public private(set) var pathAndQuery: String

    public init(parsing text: String) throws(HTTPURLError) {
        let bytes = Array(text.utf8)
        guard bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { throw .invalidCharacter }
        guard !bytes.contains(UInt8(ascii: "#")) else { throw .fragmentNotAllowed }
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes.dropFirst(colon).starts(with: "://".utf8)
        else {
            throw .unknownScheme("")
        }
        let scheme = ASCII.lowercased(String(decoding: bytes[..<colon], as: UTF8.self))
        let rest = bytes[(colon + 3)...]
        self.scheme = scheme
        if scheme == "ws+unix" {
            (host, pathAndQuery) = try Self.parseSocketPath(rest)
            port = 0
            isIPv6Literal = false
            return
        }
        guard let defaultPort = Self.defaultPort(of: scheme) else { throw .unknownScheme(scheme) }
        let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
        let authority = rest[..<end]
        guard !authority.contains(UInt8(ascii: "@")) else { throw .userInfoNotAllowed }
        let resource = String(decoding: rest[end...], as: UTF8.self)
        pathAndQuery = resource.utf8.first == UInt8(ascii: "/") ? resource : "/" + resource

        let hostBytes: ArraySlice<UInt8>
        var portText: ArraySlice<UInt8> = []
        if authority.first == UInt8(ascii: "[") {
            guard let bracket = authority.firstIndex(of: UInt8(ascii: "]")) else {
                throw .invalidHost(String(decoding: authority, as: UTF8.self))
            }
            hostBytes = authority[(authority.startIndex + 1)..<bracket]
            let after = authority[(bracket + 1)...]
            guard after.isEmpty || after.first == UInt8(ascii: ":") else {
                throw .invalidHost(String(decoding: authority, as: UTF8.self))
            }
            portText = after.dropFirst()
            isIPv6Literal = true
        } else {
            let colon = authority.firstIndex(of: UInt8(ascii: ":")) ?? authority.endIndex
            hostBytes = authority[..<colon]
            portText = authority[colon...].dropFirst()
            isIPv6Literal = false
        }
        let host = ASCII.lowercased(String(decoding: hostBytes, as: UTF8.self))
        guard isIPv6Literal ? Self.isIPv6(hostBytes) : Self.isHostName(hostBytes) else { throw .invalidHost(host) }
        self.host = host
        if portText.isEmpty {
            port = defaultPort
        } else {
            guard let number = ASCII.decimal(portText, maxDigits: 5), let port = UInt16(exactly: number), port > 0
            else {
                throw .invalidPort(String(decoding: portText, as: UTF8.self))
            }
            self.port = port
        }
    }

    /// The same peer with another path and query, which begin with a slash and are visible ASCII.
    func withResource(_ pathAndQuery: String) -> HTTPURL {
        var url = self
        url.pathAndQuery = pathAndQuery
        return url
    }

    /// Whether the connection is to be encrypted.
    public var isSecure: Bool { scheme == "wss" || scheme == "https" }

    /// Whether the host is the path of a Unix-domain socket.
    public var isUnixSocket: Bool { scheme == "ws+unix" }

    /// The value of the `Host` header: no default port, brackets around IPv6.
    ///
    /// Source: RFC 9110 §7.2.
    public var hostHeader: String {
        if isUnixSocket { return "localhost" }
        let name = isIPv6Literal ? "[\(host)]" : host
        return port == Self.defaultPort(of: scheme) ? name : "\(name):\(port)"
    }

    /// Source: RFC 6455 §3; RFC 9110 §4.2.
    private static func defaultPort(of scheme: String) -> UInt16? {
        switch scheme {
        case "ws", "http": 80
        case "wss", "https": 443
        default: nil
        }
    }

    /// Splits `/socket/path:/resource`; the resource is `/` where the text names none.
    private static func parseSocketPath(_ bytes: ArraySlice<UInt8>) throws(HTTPURLError) -> (String, String) {
        guard bytes.first == UInt8(ascii: "/") else { throw .missingSocketPath }
        let colon = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        guard colon - bytes.startIndex > 1 else { throw .missingSocketPath }
        let resource = bytes[colon...].dropFirst()
        guard resource.isEmpty || resource.first == UInt8(ascii: "/") else { throw .missingSocketPath }
        let path = String(decoding: bytes[..<colon], as: UTF8.self)
        return (path, resource.isEmpty ? "/" : String(decoding: resource, as: UTF8.self))
    }

    /// Letters, digits, `-`, `_` and dots between non-empty labels; one dot at the end is allowed. At most 253 bytes.
    private static func isHostName(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard !bytes.isEmpty, bytes.count <= 254 else { return false }
        var previous = UInt8(ascii: ".")
        for byte in bytes {
            let isDot = byte == UInt8(ascii: ".")
            guard
                ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
                    || isDot
            else { return false }
            if isDot, previous == UInt8(ascii: ".") { return false }
            previous = byte
        }
        return true
    }

    /// Whether only characters of an IPv6 address occur; the resolver judges the rest.
    private static func isIPv6(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.count >= 2 && bytes.count <= 45 && bytes.contains(UInt8(ascii: ":"))
            && bytes.allSatisfy { ASCII.isHexDigit($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }
    }
}

extension HTTPURL: CustomStringConvertible {
    /// The URL without its query, which may carry a token.
    public var description: String {
        let path = pathAndQuery.utf8.prefix { $0 != UInt8(ascii: "?") }
        let resource = String(decoding: path, as: UTF8.self)
        return isUnixSocket ? "\(scheme)://\(host):\(resource)" : "\(scheme)://\(hostHeader)\(resource)"
    }
}

/// The peer of a connection.
public struct HTTPOrigin: Hashable, Sendable {
    public var scheme: String
    public var host: String
    public var port: UInt16

    public init(_ url: HTTPURL) {
        scheme = url.scheme
        host = url.host
        port = url.port
    }
}

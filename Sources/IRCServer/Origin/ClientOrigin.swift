import Accounts
import WireBytes

/// Where a client comes from, as the driver tells it.
public struct ClientOrigin: Equatable, Sendable {
    /// Numeric address without the port; the path for a unix socket.
    public var address: String
    /// Loopback, unix sockets and proxies whose clients are not known: limits by address do not apply.
    public var isLocal: Bool
    /// Whether the listener can be reached from this machine only. Not the peer's address: a proxy makes everybody local.
    public var isListenerLocal: Bool
    /// Whether a password may cross this connection: TLS, loopback, unix, or a listener that says that it is insecure.
    public var allowsLogin: Bool
    /// Whether the client's lines come over a WebSocket, which tells by itself, in its Close, how a connection ends.
    public var isWebSocket = false
    public var security: Security

    /// Whether a client is told ERROR before it is closed for something that passes. Clients in browsers take ERROR for a word
    /// to stay away, and a Close without one for a reason to come back.
    var isToldPassingEnds: Bool { !isWebSocket }

    /// How the way to the client is protected.
    public enum Security: Equatable, Sendable {
        case plain
        case encrypted
        /// Encrypted, and the client showed that it has this certificate: SHA-256, 64 hexadecimal digits in lower case.
        // Boxed: every client has one of these, and few show a certificate.
        indirect case certified(String)

        public var certificate: String? { if case .certified(let fingerprint) = self { fingerprint } else { nil } }
    }
    /// What the listener says of TLS, with the capability `sts`; nil: nothing.
    public var sts: STSAnnouncement?

    /// - Parameter isListenerLocal: nil: as the address is.
    public init(
        address: String, isLocal: Bool, isListenerLocal: Bool? = nil, allowsLogin: Bool = true,
        security: Security = .plain, sts: STSAnnouncement? = nil
    ) {
        self.address = address
        self.isLocal = isLocal
        self.isListenerLocal = isListenerLocal ?? isLocal
        self.allowsLogin = allowsLogin
        self.security = security
        self.sts = sts
    }
}

/// What a client is told about connecting with TLS.
///
/// Source: IRCv3 sts, "The `port` key" and "The `duration` key".
public enum STSAnnouncement: Hashable, Sendable {
    /// To a client without TLS: the port to come to instead.
    case port(UInt16)
    /// To a client with TLS: so many seconds it must not come without.
    case duration(seconds: UInt32)

    /// The capability's value.
    public var text: String {
        switch self {
        case .port(let port): "port=\(port)"
        case .duration(let seconds): "duration=\(seconds)"
        }
    }
}

/// A gateway whose word about the addresses of its users is taken.
public struct GatewaySettings: Equatable, Sendable {
    public var password: ServerPassword
    public var from: [NetworkRange]
    /// Whether it may come over a socket file.
    public var fromUnix: Bool

    public init(password: ServerPassword, from: [NetworkRange], fromUnix: Bool = false) {
        self.password = password
        self.from = from
        self.fromUnix = fromUnix
    }

    func mayConnect(from address: String) -> Bool {
        guard let numeric = NetworkAddress(address) else { return fromUnix && address == ClientOrigin.localName }
        return from.contains { $0.contains(numeric) }
    }
}

extension ClientOrigin {
    /// Stands for the address of whoever comes over a socket file.
    public static let localName = "localhost"
}

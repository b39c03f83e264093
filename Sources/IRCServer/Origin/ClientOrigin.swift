import Accounts
import WireBytes

/// The origin of a client, as reported by the driver.
public struct ClientOrigin: Equatable, Sendable {
    /// Numeric address without the port; ``localName`` for a unix socket.
    public var address: String
    /// Loopback, unix sockets, and proxies that do not identify their clients: limits by address do not apply.
    public var isLocal: Bool
    /// Whether the listener is reachable from this machine only. Not the peer's address: behind a proxy every client is
    /// local.
    public var isListenerLocal: Bool
    /// Whether a password may cross this connection: TLS, loopback, unix, or a listener that is declared insecure.
    public var allowsLogin: Bool
    /// Whether the client's lines come over a WebSocket, whose Close carries the reason of a disconnect.
    public var isWebSocket = false
    public var isUnixSocket = false
    public var security: Security
    /// The listener's address as configured, for the operator.
    public var listener = ""

    /// What carries the client's lines.
    public enum Transport: String, CaseIterable, Sendable {
        case tcp, tls, ws, unix
    }

    public var transport: Transport {
        if isWebSocket { return .ws }
        if isUnixSocket { return .unix }
        return security == .plain ? .tcp : .tls
    }

    /// Whether the client gets ERROR before a transient disconnect. Clients in browsers take ERROR as a reason not to
    /// reconnect, and a Close without one as a reason to reconnect.
    var isToldPassingEnds: Bool { !isWebSocket }

    /// Protection of the connection to the client.
    public enum Security: Equatable, Sendable {
        case plain
        case encrypted
        /// Encrypted, with this client certificate: SHA-256, 64 hexadecimal digits in lower case.
        // Boxed: every client has one of these, and few present a certificate.
        indirect case certified(String)

        public var certificate: String? { if case .certified(let fingerprint) = self { fingerprint } else { nil } }
    }
    /// The listener's STS policy, for the capability `sts`; nil: none.
    public var sts: STSAnnouncement?

    /// - Parameter isListenerLocal: nil: the same as `isLocal`.
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

/// The STS policy as sent to a client.
///
/// Source: IRCv3 sts, "The `port` key" and "The `duration` key".
public enum STSAnnouncement: Hashable, Sendable {
    /// To a client without TLS: the TLS port.
    case port(UInt16)
    /// To a client with TLS: the policy duration, during which it must not connect without TLS.
    case duration(seconds: UInt32)

    /// The capability's value.
    public var text: String {
        switch self {
        case .port(let port): "port=\(port)"
        case .duration(let seconds): "duration=\(seconds)"
        }
    }
}

/// A gateway that is trusted for its users' addresses (WEBIRC).
public struct WebIRCSettings: Equatable, Sendable {
    public var password: ServerPassword
    public var from: [NetworkRange]
    /// Whether it may connect over a unix socket.
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
    /// The address of clients on unix sockets.
    public static let localName = "localhost"
}

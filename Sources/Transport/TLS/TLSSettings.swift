/// The source of PEM text: a file, or the text itself.
public enum TLSSource: Hashable, Sendable {
    /// Read when it is needed, and again when it has changed.
    case file(String)
    /// `name` stands for the text in error messages.
    case pem([UInt8], name: String = "the given PEM text")
}

/// The oldest version of the protocol that is accepted. Older ones than these are broken.
///
/// Source: RFC 8996.
public enum TLSVersion: String, CaseIterable, Hashable, Sendable {
    case v12 = "1.2"
    case v13 = "1.3"
}

/// A certificate with its chain, own certificate first, and the private key that belongs to it, both PEM and without a
/// passphrase.
public struct TLSIdentity: Hashable, Sendable {
    public var certificate: TLSSource
    public var key: TLSSource

    public init(certificate: TLSSource, key: TLSSource) {
        self.certificate = certificate
        self.key = key
    }
}

/// How an outgoing connection verifies the server and authenticates itself. One `SSL_CTX` is shared by all
/// connections whose ``serverName`` and ``pins`` alone differ.
public struct TLSClientSettings: Hashable, Sendable {
    /// Asked for by SNI and checked against the certificate; nil: the host that is connected to.
    public var serverName: String?
    /// The authorities that are believed; nil: the system's.
    public var authorities: TLSSource?
    /// The client certificate, for servers that ask for one.
    public var identity: TLSIdentity?
    /// SHA-256 digests of public keys, 32 bytes each. When there are any, the server's own key must be one of them;
    /// its issuer is then ignored, while its name and dates still count.
    ///
    /// Source: RFC 7469 §2.4 for the digested bytes (SubjectPublicKeyInfo).
    public var pins: Set<[UInt8]> = []
    public var minimumVersion = TLSVersion.v12
    /// False: nothing is checked, and a man in the middle can read and change everything.
    public var verifiesPeer = true
    /// Offered by ALPN, in order.
    public var protocols: [String] = []

    public init() {}
}

/// How accepted connections are secured.
public struct TLSServerSettings: Hashable, Sendable {
    public enum ClientCertificates: Hashable, Sendable {
        case ignored
        /// Asked for, and accepted whatever its issuer and dates. The peer has proven that it holds the key, and
        /// nothing else is known: for clients that are recognised by their fingerprint.
        case welcomed
        /// Asked for; one that is shown must be signed by these authorities.
        case requested(TLSSource)
        /// As requested, and connections without one are refused.
        case required(TLSSource)
    }

    public var identity: TLSIdentity
    public var minimumVersion = TLSVersion.v12
    public var clientCertificates = ClientCertificates.ignored
    /// Sent, unencrypted, to a peer whose first byte shows that it speaks no TLS, before it is closed.
    public var plainTextAnswer = ""

    public init(identity: TLSIdentity) { self.identity = identity }

    /// The files from which the certificate, key and authorities are read.
    var files: [String] {
        var sources = [identity.certificate, identity.key]
        switch clientCertificates {
        case .ignored, .welcomed: break
        case .requested(let source), .required(let source): sources.append(source)
        }
        return sources.compactMap(\.path)
    }
}

extension TLSClientSettings {
    var files: [String] {
        [authorities, identity?.certificate, identity?.key].compactMap { $0?.path }
    }
}

extension TLSSource {
    var path: String? {
        switch self {
        case .file(let path): path
        case .pem: nil
        }
    }
}

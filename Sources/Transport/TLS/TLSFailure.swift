/// Why a secured connection could not be made or failed, for an operator. All but ``unusable(_:)`` are about the
/// peer, and end that one connection.
public enum TLSFailure: Error, Equatable, Sendable {
    /// The certificate's last day is over; the instant is in UTC.
    case certificateExpired(subject: String, since: String)
    case certificateNotYetValid(subject: String, from: String)
    /// `found` are the names in the certificate, at most ``TLSLimits/namesInSentence``.
    case wrongName(wanted: String, found: [String])
    /// The chain ends in an issuer that is not among the authorities.
    case unknownIssuer(issuer: String)
    case selfSigned(subject: String)
    /// The key is none of the pinned ones; `found` is its pin.
    case notPinned(found: String)
    /// Another fault of the certificate, in OpenSSL's words.
    case certificateRefused(String)
    /// No version that both sides accept.
    case protocolTooOld
    case noCommonCipher
    /// The other side does not speak TLS: a client without it on a TLS port, or a plain port as the target of a
    /// connection.
    case notTLS
    /// The other side wants a client certificate and got none.
    case clientCertificateRequired
    /// The client showed no certificate although it must.
    case clientCertificateMissing
    /// The other side does not accept the local certificate: the reason is its alert's.
    case certificateRefusedByPeer(String)
    /// Another alert of the other side.
    case refusedByPeer(String)
    /// Closed in the middle of the handshake.
    case closedDuringHandshake
    case handshakeTimedOut
    /// The local certificate, key or authorities cannot be used.
    case unusable(TLSSetupError)
    /// The peer's bytes are no TLS, or were changed on their way; in OpenSSL's words.
    case broken(String)
}

extension TLSFailure: CustomStringConvertible {
    /// A sentence without a full stop.
    public var description: String {
        switch self {
        case .certificateExpired(let subject, let since):
            "the certificate of \(subject) expired on \(since)"
        case .certificateNotYetValid(let subject, let from):
            "the certificate of \(subject) is not valid before \(from); is a clock wrong?"
        case .wrongName(let wanted, let found):
            "the certificate is not for \(wanted) but for "
                + (found.isEmpty ? "nobody: it has no names" : found.joined(separator: ", "))
        case .unknownIssuer(let issuer):
            "the certificate was issued by \(issuer), which is not among the trusted authorities"
        case .selfSigned(let subject): "the certificate of \(subject) is self-signed and not trusted"
        case .notPinned(let found): "the server's key is none of the pinned ones; its pin is \(found)"
        case .certificateRefused(let reason): "the certificate is not acceptable: \(reason)"
        case .protocolTooOld: "the two sides have no TLS version in common: one of them is too old"
        case .noCommonCipher: "the two sides have no cipher in common"
        case .notTLS: "the other side does not speak TLS"
        case .clientCertificateRequired: "the other side wants a client certificate, and none was shown"
        case .clientCertificateMissing: "the client showed no certificate, and must"
        case .certificateRefusedByPeer(let reason): "the other side does not accept our certificate: \(reason)"
        case .refusedByPeer(let reason): "the other side refused TLS: \(reason)"
        case .closedDuringHandshake: "the connection was closed during the TLS handshake"
        case .handshakeTimedOut: "the TLS handshake took too long"
        case .unusable(let error): error.description
        case .broken(let reason): "TLS failed: \(reason)"
        }
    }
}

/// Why a certificate, a key or authorities cannot be used. The local side's fault.
public enum TLSSetupError: Error, Hashable, Sendable {
    /// A file cannot be read; the reason is the system's.
    case unreadable(path: String, reason: String)
    case tooLarge(path: String, limit: Int)
    /// No PEM certificate in it.
    case noCertificate(String)
    /// No PEM private key in it.
    case noKey(String)
    case keyHasPassphrase(String)
    /// The key is not that of the certificate.
    case keyDoesNotMatch(key: String, certificate: String)
    /// Another reason, in OpenSSL's words: too short a key, say.
    case refused(what: String, reason: String)
}

extension TLSSetupError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unreadable(let path, let reason): "cannot read \(path): \(reason)"
        case .tooLarge(let path, let limit): "\(path) is larger than \(limit / 1024) KiB"
        case .noCertificate(let source): "\(source) holds no PEM certificate (-----BEGIN CERTIFICATE-----)"
        case .noKey(let source): "\(source) holds no PEM private key (-----BEGIN PRIVATE KEY-----)"
        case .keyHasPassphrase(let source):
            "the key in \(source) has a passphrase; store it without, readable for this program only"
        case .keyDoesNotMatch(let key, let certificate): "the key in \(key) does not belong to \(certificate)"
        case .refused(let what, let reason): "\(what) cannot be used: \(reason)"
        }
    }
}

/// Sizes and times of secured connections, each with its unit and reason.
public enum TLSLimits {
    /// A handshake takes two or three round trips; a slower peer would occupy 40 KiB of memory for nothing. Where we
    /// connect, the attempt's own time counts.
    public static let handshakeTimeout = Duration.seconds(10)
    /// Accepted connections that may be in their handshake at once. More wait in the kernel's backlog.
    public static let handshakesAtOnce = 1024
    /// Of these, from one address beyond this machine; the others are closed. Otherwise one address could take all
    /// places by sending nothing, for ``handshakeTimeout`` at a time.
    public static let handshakesPerAddress = 64
    /// Handshakes advanced in one turn. A step can take a millisecond of CPU for a signature, and the others wait.
    public static let handshakeStepsPerTurn = 32
    /// Interval between checks of certificate files. A renewal happens weeks before the old one ends.
    public static let fileCheckInterval = Duration.seconds(5)
    /// Largest PEM file, in bytes; the bundle of all public authorities has 220 KiB.
    public static let maxFileBytes = 4 * 1024 * 1024
    /// Names of a certificate that a sentence lists; certificates may hold hundreds.
    public static let namesInSentence = 8
    /// Bytes of a name out of a certificate that a sentence repeats.
    public static let nameBytesInSentence = 253
    /// Sessions stored for resumption, one for each host and setting.
    public static let maxSessions = 256
    /// Plain bytes encrypted before the next write to the socket: four full records.
    static let bytesPerEncryption = 64 * 1024
    /// Most plain bytes in a record. Source: RFC 8446 §5.1.
    static let recordBytes = 16 * 1024
    /// Encrypted bytes taken from a socket in one read. With the rest of an unfinished record, the plain bytes still
    /// fit ``TransportLimits/receiveBytes``. Source: RFC 8446 §5.2 for a record's size.
    static let receiveBytes = TransportLimits.receiveBytes - recordBytes - 256 - 5
}

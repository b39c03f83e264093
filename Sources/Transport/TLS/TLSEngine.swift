import CTLS
import Glibc
import WireBytes

/// One side of a TLS connection: bytes in, bytes out, no sockets.
///
/// Bytes from the socket go into ``receive(_:into:_:)``, plain bytes come out; plain bytes go into ``encrypt(_:)``.
/// Bytes for the socket are in ``outbound`` after every call. OpenSSL reaches both through a BIO whose callbacks are
/// below: it reads straight from the caller's bytes and writes straight into the chunk that is sent, so that a
/// connection at rest holds neither.
///
/// All input is always consumed: OpenSSL buffers an unfinished record, and nothing else is left.
final class TLSEngine {
    enum State: Equatable {
        /// Can transition to: open, failed.
        case handshaking
        /// Can transition to: ended, failed.
        case open
        /// The peer sent close_notify. Sending goes on.
        case ended
        /// The alert for the peer, if any, is in ``outbound``.
        case failed(TLSFailure)
    }

    private(set) var state = State.handshaking
    let isServer: Bool
    /// Encrypted bytes for the socket, until ``sent(_:)`` says that they are gone.
    private(set) var outbound = OutboundQueue()
    /// Shared by all engines of a loop; empty but during a call of OpenSSL, so that no engine finds another's bytes
    /// in it.
    private let output: TLSOutput
    /// The first fault of the peer's certificate.
    private var verdict: TLSFailure?
    private let context: TLSContext
    private let ssl: OpaquePointer
    /// Bytes not yet read of the caller's, during ``receive(_:into:_:)``.
    private var input = UnsafeRawBufferPointer(start: nil, count: 0)
    private var hasReceived = false
    private var sentCloseNotify = false

    // MARK: Client only

    private let settings: TLSClientSettings?
    private let wantedName: String
    private let sessions: TLSSessionStore?
    private let sessionKey: TLSSessionStore.Key?

    /// The accepting side.
    init(accepting context: TLSContext, output: TLSOutput) throws(TLSSetupError) {
        self.context = context
        self.output = output
        isServer = true
        settings = nil
        wantedName = ""
        sessions = nil
        sessionKey = nil
        ssl = try Self.makeSSL(context)
        SSL_set_accept_state(ssl)
        try attach()
    }

    /// The connecting side. The first bytes are in ``outbound`` after ``begin()``.
    ///
    /// - Parameters:
    ///   - host: a name or a numeric address, as the operator wrote it.
    ///   - port: with the host, names the place whose session is resumed.
    init(
        connecting context: TLSContext, settings: TLSClientSettings, host: String, port: Int, output: TLSOutput,
        sessions: TLSSessionStore
    ) throws(TLSSetupError) {
        self.context = context
        self.output = output
        isServer = false
        self.settings = settings
        // A name with a dot at its end is the same name, but certificates never have it.
        let written = settings.serverName ?? host
        wantedName = written.hasSuffix(".") ? String(written.dropLast()) : written
        self.sessions = sessions
        let key = TLSSessionStore.Key(place: "\(host):\(port)", settings: settings)
        sessionKey = key
        ssl = try Self.makeSSL(context)
        SSL_set_connect_state(ssl)
        try attach()
        try setName()
        if let session = sessions.session(for: key) { SSL_set_session(ssl, session) }
    }

    deinit {
        // OpenSSL forbids resuming a session whose connection ended without a close_notify. Since TLS 1.1 a cut is no
        // reason to, and a lost link is just when a short handshake is wanted. Source: RFC 5246 §7.2.1.
        if state == .open { SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN) }
        SSL_free(ssl)
    }

    private static func makeSSL(_ context: TLSContext) throws(TLSSetupError) -> OpaquePointer {
        ERR_clear_error()
        guard let ssl = SSL_new(context.pointer) else { throw .refused(what: "TLS", reason: "no memory") }
        return ssl
    }

    private func attach() throws(TLSSetupError) {
        let this = Unmanaged.passUnretained(self).toOpaque()
        guard SSL_set_ex_data(ssl, 0, this) == 1, let method = Self.method, let bio = BIO_new(method) else {
            throw .refused(what: "TLS", reason: "no memory")
        }
        BIO_set_data(bio, this)
        BIO_set_init(bio, 1)
        // One BIO for both ways; the connection takes over this reference.
        SSL_set_bio(ssl, bio, bio)
    }

    private func setName() throws(TLSSetupError) {
        let isAddress = SocketAddress(host: wantedName, port: 0) != nil
        var done: Int32 = 1
        // SNI is for names only. Source: RFC 6066 §3.
        if !isAddress { done = cb_ssl_set_server_name(ssl, wantedName) }
        if done == 1, settings?.verifiesPeer == true {
            if isAddress {
                done = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), wantedName)
            } else {
                SSL_set_hostflags(ssl, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
                done = SSL_set1_host(ssl, wantedName)
            }
        }
        guard done == 1 else { throw .refused(what: "the name \(wantedName)", reason: "it is not a host name") }
    }

    /// The name that the connecting side asked for, in lower case; nil where it asked for none. On the accepting side.
    ///
    /// Source: RFC 6066 §3.
    var requestedName: String? {
        guard isServer, let name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name) else { return nil }
        return String(cString: name).lowercased()
    }

    // MARK: - Verbs

    /// Makes the first bytes of the connecting side. Does nothing on the accepting side, which waits for them.
    func begin() {
        if !isServer { handshake() }
    }

    /// Takes bytes that the socket brought, all of them.
    ///
    /// - Parameters:
    ///   - buffer: room for plain bytes; best as large as what `bytes` can hold, so that they come in one piece.
    ///   - deliver: called with plain bytes, never empty, whenever the buffer is full or the input is used up.
    func receive(
        _ bytes: UnsafeRawBufferPointer, into buffer: UnsafeMutableRawBufferPointer,
        _ deliver: (UnsafeRawBufferPointer) -> Void
    ) {
        guard let first = bytes.first else { return }
        if !hasReceived {
            hasReceived = true
            // Every record of a beginning is a handshake's or an alert. Source: RFC 8446 §5.1.
            if first != 0x16, first != 0x15 { state = .failed(.notTLS) }
        }
        input = bytes
        defer { input = UnsafeRawBufferPointer(start: nil, count: 0) }
        if state == .handshaking { handshake() }
        guard state == .open else { return }
        var filled = 0
        while filled < buffer.count {
            ERR_clear_error()
            let count = SSL_read(ssl, buffer.baseAddress.map { $0 + filled }, Int32(clamping: buffer.count - filled))
            collect()
            if count > 0 {
                filled += Int(count)
                if filled == buffer.count {
                    deliver(UnsafeRawBufferPointer(buffer))
                    filled = 0
                }
                continue
            }
            // Before the end of the stream is noted: these bytes came before it.
            if filled > 0 { deliver(UnsafeRawBufferPointer(rebasing: buffer[..<filled])) }
            judge(SSL_get_error(ssl, count))
            return
        }
    }

    /// Encrypts `bytes` into ``outbound``. Nothing happens unless the connection is open or the peer alone has ended.
    func encrypt(_ bytes: UnsafeRawBufferPointer) {
        guard state == .open || state == .ended, !sentCloseNotify else { return }
        var rest = bytes
        while !rest.isEmpty {
            ERR_clear_error()
            let written = SSL_write(ssl, rest.baseAddress, Int32(clamping: rest.count))
            collect()
            guard written > 0 else { return judge(SSL_get_error(ssl, written)) }
            rest = UnsafeRawBufferPointer(rebasing: rest[min(Int(written), rest.count)...])
        }
    }

    /// Sends one close_notify: nothing more comes, so that the peer can distinguish an end from a cut. Source: RFC
    /// 8446 §6.1.
    func closeNotify() {
        guard canCloseNotify else { return }
        sentCloseNotify = true
        ERR_clear_error()
        _ = SSL_shutdown(ssl)
        collect()
        ERR_clear_error()
    }

    /// The socket took the first `count` bytes of ``outbound``.
    func sent(_ count: Int) { outbound.consume(count) }

    /// Has the peer read bytes that are not encrypted: it speaks no TLS.
    func answerPlainly(_ bytes: ByteSlice) { outbound.append(bytes) }

    /// Drops the outbound bytes: nothing can be sent any more.
    func dropOutbound() { outbound.removeAll() }

    var canCloseNotify: Bool { !sentCloseNotify && (state == .open || state == .ended) }

    // MARK: - Facts

    /// Nil where the peer showed none.
    var peerCertificate: Certificate? { SSL_get1_peer_certificate(ssl).map(Certificate.init(owning:)) }

    /// As `TLSv1.3 TLS_AES_256_GCM_SHA384`.
    var description: String {
        let cipher = SSL_get_current_cipher(ssl).flatMap { SSL_CIPHER_get_name($0) }.map { String(cString: $0) } ?? "?"
        return "\(SSL_get_version(ssl).map { String(cString: $0) } ?? "?") \(cipher)"
    }

    /// Whether the handshake was a short one, on the grounds of an earlier session.
    var isResumed: Bool { SSL_session_reused(ssl) == 1 }

    /// The protocol agreed by ALPN.
    var applicationProtocol: String? {
        var bytes: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &bytes, &count)
        guard let bytes, count > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
    }

    // MARK: - Outcomes

    private func handshake() {
        ERR_clear_error()
        let result = SSL_do_handshake(ssl)
        collect()
        guard result == 1 else { return judge(SSL_get_error(ssl, result)) }
        state = .open
        // A resumed session is not verified anew, so its key is compared here.
        if let settings, settings.verifiesPeer, !settings.pins.isEmpty, let certificate = peerCertificate,
            !settings.pins.contains(certificate.keyDigest)
        {
            state = .failed(.notPinned(found: certificate.pin))
        }
    }

    private func collect() {
        if let made = output.take() { outbound.append(made) }
    }

    private func judge(_ outcome: Int32) {
        switch outcome {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: break
        case SSL_ERROR_ZERO_RETURN: state = .ended
        default:
            let errors = OpenSSLError.drain()
            state = .failed(verdict ?? Self.failure(errors, isServer: isServer))
            if !isServer, let sessionKey { sessions?.remove(sessionKey) }
        }
    }

    private static func failure(_ errors: [OpenSSLError], isServer: Bool) -> TLSFailure {
        guard let error = errors.first(where: { $0.library == ERR_LIB_SSL }) ?? errors.last else {
            return .broken("no reason given")
        }
        guard error.library == ERR_LIB_SSL else { return .broken(error.text) }
        switch error.reason {
        case SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST: return .notTLS
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_VERSION_TOO_LOW, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION,
            SSL_R_NO_PROTOCOLS_AVAILABLE:
            return .protocolTooOld
        case SSL_R_NO_SHARED_CIPHER: return .noCommonCipher
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: return .clientCertificateMissing
        case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED: return .clientCertificateRequired
        case SSL_R_SSLV3_ALERT_NO_CERTIFICATE: return .clientCertificateRequired
        case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
            return .certificateRefusedByPeer("it does not know who issued it")
        case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED: return .certificateRefusedByPeer("it has expired")
        case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED: return .certificateRefusedByPeer("it was revoked")
        case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE: return .certificateRefusedByPeer("it is not a good one")
        case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE: return .certificateRefusedByPeer("it is of a wrong kind")
        case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN: return .certificateRefusedByPeer("it gives no reason")
        // Alerts are reasons above 1000. A client that refuses TLS 1.3 reports a missing certificate like this too.
        case 1000...1255: return .refusedByPeer(error.text)
        default: return .broken(error.text)
        }
    }

    // MARK: - Certificates

    /// Called by OpenSSL for each certificate of the peer's chain, and for each fault of one.
    static let certificateJudged: @convention(c) (Int32, OpaquePointer?) -> Int32 = { isGood, store in
        let ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()).map { OpaquePointer($0) }
        guard let store, let this = ssl.flatMap({ SSL_get_ex_data($0, 0) }) else { return 0 }
        return Unmanaged<TLSEngine>.fromOpaque(this).takeUnretainedValue().accepts(store, isGood: isGood == 1) ? 1 : 0
    }

    private func accepts(_ store: OpaquePointer, isGood: Bool) -> Bool {
        if context.acceptsAnyPeer { return true }
        let error = X509_STORE_CTX_get_error(store)
        if let pins = settings?.pins, !pins.isEmpty, isGood || Self.isAboutTrust(error) {
            // The leaf is pinned; in its place its issuers need not be known.
            guard let leaf = X509_STORE_CTX_get0_cert(store) else { return false }
            X509_up_ref(leaf)
            let certificate = Certificate(owning: leaf)
            if pins.contains(certificate.keyDigest) { return true }
            verdict = verdict ?? .notPinned(found: certificate.pin)
            X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)
            return false
        }
        if isGood { return true }
        verdict = verdict ?? Self.verdict(error, store, wanted: wantedName)
        return false
    }

    private static func isAboutTrust(_ error: Int32) -> Bool {
        switch error {
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_UNTRUSTED:
            true
        default: false
        }
    }

    private static func verdict(_ error: Int32, _ store: OpaquePointer, wanted: String) -> TLSFailure {
        let reason = X509_verify_cert_error_string(Int(error)).map { String(cString: $0) } ?? "error \(error)"
        guard let current = X509_STORE_CTX_get_current_cert(store) else { return .certificateRefused(reason) }
        X509_up_ref(current)
        let certificate = Certificate(owning: current)
        switch error {
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return .certificateExpired(subject: certificate.subject, since: certificate.notAfter)
        case X509_V_ERR_CERT_NOT_YET_VALID:
            return .certificateNotYetValid(subject: certificate.subject, from: certificate.notBefore)
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            return .wrongName(wanted: wanted, found: certificate.names)
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
            return .selfSigned(subject: certificate.subject)
        case _ where isAboutTrust(error):
            return .unknownIssuer(issuer: certificate.issuer)
        default:
            return .certificateRefused("\(reason) (\(certificate.subject))")
        }
    }

    /// Called by OpenSSL when the server offers a session for the next time. 1 means that the reference was taken.
    static let sessionArrived: @convention(c) (OpaquePointer?, OpaquePointer?) -> Int32 = { ssl, session in
        guard let ssl, let session, let this = SSL_get_ex_data(ssl, 0) else { return 0 }
        let engine = Unmanaged<TLSEngine>.fromOpaque(this).takeUnretainedValue()
        guard let sessions = engine.sessions, let key = engine.sessionKey else { return 0 }
        sessions.store(session, for: key)
        return 1
    }

    // MARK: - The BIO

    // Safe to share: made once, never changed afterwards, and OpenSSL only reads it.
    nonisolated(unsafe) private static let method: OpaquePointer? = {
        guard let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "chatbridge") else { return nil }
        BIO_meth_set_read(method) { bio, out, capacity in
            guard let bio, let this = BIO_get_data(bio) else { return -1 }
            cb_bio_clear_retry(bio)
            return Unmanaged<TLSEngine>.fromOpaque(this).takeUnretainedValue().give(bio, out, capacity)
        }
        BIO_meth_set_write(method) { bio, bytes, count in
            guard let bio, let this = BIO_get_data(bio) else { return -1 }
            cb_bio_clear_retry(bio)
            let written = UnsafeRawBufferPointer(start: bytes, count: max(0, Int(count)))
            Unmanaged<TLSEngine>.fromOpaque(this).takeUnretainedValue().output.append(written)
            return count
        }
        BIO_meth_set_ctrl(method) { _, command, _, _ in
            command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP ? 1 : 0
        }
        return method
    }()

    private func give(_ bio: OpaquePointer, _ out: UnsafeMutablePointer<CChar>?, _ capacity: Int32) -> Int32 {
        let count = min(Int(capacity), input.count)
        guard count > 0, let out, let from = input.baseAddress else {
            cb_bio_retry_read(bio)
            return -1
        }
        out.withMemoryRebound(to: UInt8.self, capacity: count) {
            UnsafeMutableRawPointer($0).copyMemory(from: from, byteCount: count)
        }
        input = UnsafeRawBufferPointer(rebasing: input[count...])
        return Int32(count)
    }
}

/// The chunks that the engines of one loop write into.
final class TLSOutput {
    private var writer = ByteWriter()

    func append(_ bytes: UnsafeRawBufferPointer) { writer.append(bytes) }

    /// Everything since the last call, or nil for nothing.
    func take() -> ByteSlice? { writer.count > 0 ? writer.take() : nil }
}

import CTLS
import Glibc

/// The state that connections with the same settings share: versions, ciphers, trusted authorities, the local
/// certificate.
///
/// Immutable once made; a changed certificate is a new context, and connections stay with the one that they began
/// with. Confined to one thread, like the connections that use it.
final class TLSContext {
    /// `SSL_CTX`.
    let pointer: OpaquePointer
    /// The files' marks just before they were read.
    let files: FileMarks
    /// When the own certificate of a server ends, in seconds since 1970.
    private(set) var expiresAt: Int64?
    /// Nothing of a peer's certificate is checked but that the peer has its key.
    let acceptsAnyPeer: Bool

    init(client settings: TLSClientSettings) throws(TLSSetupError) {
        files = FileMarks(settings.files)
        acceptsAnyPeer = !settings.verifiesPeer
        let pointer = try Self.make(TLS_client_method(), settings.minimumVersion)
        self.pointer = pointer
        // ``TLSSessionStore`` caches the sessions: it knows hosts.
        cb_ssl_ctx_set_session_cache_mode(pointer, CB_SSL_CACHE_CLIENT_EXTERNAL)
        SSL_CTX_sess_set_new_cb(pointer, TLSEngine.sessionArrived)
        if settings.verifiesPeer {
            if let authorities = settings.authorities {
                try Self.trust(authorities, in: pointer)
            } else {
                Self.trustSystem(in: pointer)
            }
        }
        SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, TLSEngine.certificateJudged)
        if let identity = settings.identity { try Self.use(identity, in: pointer) }
        let offered = Self.wireFormat(settings.protocols)
        if !offered.isEmpty { SSL_CTX_set_alpn_protos(pointer, offered, UInt32(offered.count)) }
    }

    init(server settings: TLSServerSettings) throws(TLSSetupError) {
        files = FileMarks(settings.files)
        acceptsAnyPeer = settings.clientCertificates == .welcomed
        let pointer = try Self.make(TLS_server_method(), settings.minimumVersion)
        self.pointer = pointer
        // Tickets only: the client stores its session.
        cb_ssl_ctx_set_session_cache_mode(pointer, CB_SSL_CACHE_OFF)
        SSL_CTX_set_num_tickets(pointer, 1)
        let application = Array("chatbridge".utf8)
        SSL_CTX_set_session_id_context(pointer, application, UInt32(application.count))
        expiresAt = try Self.use(settings.identity, in: pointer)
        switch settings.clientCertificates {
        case .ignored: SSL_CTX_set_verify(pointer, SSL_VERIFY_NONE, nil)
        case .welcomed: SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, TLSEngine.certificateJudged)
        case .requested(let authorities):
            try Self.trust(authorities, in: pointer, sendsNames: true)
            SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, TLSEngine.certificateJudged)
        case .required(let authorities):
            try Self.trust(authorities, in: pointer, sendsNames: true)
            SSL_CTX_set_verify(
                pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, TLSEngine.certificateJudged)
        }
    }

    deinit { SSL_CTX_free(pointer) }

    // MARK: - Making

    /// Forward secrecy and authenticated encryption only. TLS 1.3's suites are all of that kind.
    ///
    /// Source: RFC 9325 §4.2.
    private static let ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:DHE+CHACHA20"

    private static func make(
        _ method: OpaquePointer?, _ minimumVersion: TLSVersion
    ) throws(TLSSetupError) -> OpaquePointer {
        ERR_clear_error()
        guard let pointer = SSL_CTX_new(method) else { throw refusal("TLS") }
        let version =
            switch minimumVersion {
            case .v12: TLS1_2_VERSION
            case .v13: TLS1_3_VERSION
            }
        guard cb_ssl_ctx_set_min_version(pointer, version) == 1, SSL_CTX_set_cipher_list(pointer, ciphers) == 1 else {
            SSL_CTX_free(pointer)
            throw refusal("TLS")
        }
        SSL_CTX_set_options(pointer, CB_SSL_OPTIONS)
        cb_ssl_ctx_set_mode(pointer, CB_SSL_MODES)
        return pointer
    }

    /// - Returns: when the certificate ends.
    @discardableResult
    private static func use(_ identity: TLSIdentity, in context: OpaquePointer) throws(TLSSetupError) -> Int64? {
        let chain = try PEM.certificates(identity.certificate, isRequired: true)
        for (index, certificate) in chain.enumerated() {
            let added =
                index == 0
                ? SSL_CTX_use_certificate(context, certificate.pointer)
                : cb_ssl_ctx_add_chain_certificate(context, certificate.pointer)
            guard added == 1 else { throw refusal(identity.certificate.name) }
        }
        try PEM.withKey(identity.key) { (key) throws(TLSSetupError) in
            guard let own = chain.first, X509_check_private_key(own.pointer, key) == 1 else {
                ERR_clear_error()
                throw .keyDoesNotMatch(key: identity.key.name, certificate: identity.certificate.name)
            }
            guard SSL_CTX_use_PrivateKey(context, key) == 1 else { throw refusal(identity.key.name) }
        }
        return chain.first?.expiresAt
    }

    /// - Parameter sendsNames: whether the peer is sent the authorities' names, so that it can pick a certificate.
    private static func trust(
        _ source: TLSSource, in context: OpaquePointer, sendsNames: Bool = false
    ) throws(TLSSetupError) {
        let store = SSL_CTX_get_cert_store(context)
        for certificate in try PEM.certificates(source, isRequired: true) {
            guard X509_STORE_add_cert(store, certificate.pointer) == 1 else { throw refusal(source.name) }
            if sendsNames { SSL_CTX_add_client_CA(context, certificate.pointer) }
        }
    }

    /// The one file in which Debian, and images made from it, have the public authorities.
    private static let systemBundle = "/etc/ssl/certs/ca-certificates.crt"

    private static func trustSystem(in context: OpaquePointer) {
        SSL_CTX_set_default_verify_paths(context)
        // OpenSSL's own folder is looked into when a certificate is checked. An image may have the bundle alone.
        if let folder = X509_get_default_cert_dir(), access(folder, R_OK) != 0,
            getenv(X509_get_default_cert_file_env()) == nil
        {
            SSL_CTX_load_verify_file(context, systemBundle)
        }
        ERR_clear_error()
    }

    private static func refusal(_ what: String) -> TLSSetupError {
        .refused(what: what, reason: OpenSSLError.drain().last?.text ?? "no memory")
    }

    /// Each name behind its length. Source: RFC 7301 §3.1.
    private static func wireFormat(_ protocols: [String]) -> [UInt8] {
        protocols.flatMap { name -> [UInt8] in
            let bytes = Array(name.utf8.prefix(255))
            return bytes.isEmpty ? [] : [UInt8(truncatingIfNeeded: bytes.count)] + bytes
        }
    }
}

/// The identity of files, by which a replacement shows: device, inode, size and time of change. Missing files have a
/// mark too.
struct FileMarks: Equatable {
    private var marks: [[Int]]
    private let paths: [String]

    init(_ paths: [String]) {
        self.paths = paths
        marks = paths.map(Self.mark)
    }

    /// The same files as they are now.
    var renewed: FileMarks { FileMarks(paths) }

    private static func mark(_ path: String) -> [Int] {
        var status = stat()
        // Through links: a renewal usually moves a link.
        guard stat(path, &status) == 0 else { return [Int(errno)] }
        return [
            Int(truncatingIfNeeded: status.st_dev), Int(truncatingIfNeeded: status.st_ino), Int(status.st_size),
            status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
        ]
    }
}

extension TLSClientSettings {
    /// Reads and checks everything that the settings name, and discards it.
    public func check() throws(TLSSetupError) { _ = try TLSContext(client: self) }
}

extension TLSServerSettings {
    /// Reads and checks everything that the settings name, and discards it.
    public func check() throws(TLSSetupError) { _ = try TLSContext(server: self) }
}

// MARK: - Sessions

/// The last session of each host, so that the next handshake is shorter.
final class TLSSessionStore {
    struct Key: Hashable {
        /// As connected to, with the port.
        var place: String
        var settings: TLSClientSettings
    }

    private var sessions: [Key: OpaquePointer] = [:]

    deinit { for session in sessions.values { SSL_SESSION_free(session) } }

    /// Takes over the caller's reference.
    func store(_ session: OpaquePointer, for key: Key) {
        if let old = sessions.updateValue(session, forKey: key) { SSL_SESSION_free(old) }
        if sessions.count > TLSLimits.maxSessions, let other = sessions.keys.first(where: { $0 != key }) {
            remove(other)
        }
    }

    /// Valid until the store is changed; OpenSSL takes a reference when it uses it.
    func session(for key: Key) -> OpaquePointer? { sessions[key] }

    func remove(_ key: Key) {
        if let session = sessions.removeValue(forKey: key) { SSL_SESSION_free(session) }
    }
}

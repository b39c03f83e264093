import CTLS
import Glibc
import WireBytes

/// An X.509 certificate, and the facts of it that people need.
public final class Certificate {
    /// Owns one reference.
    let pointer: OpaquePointer

    /// Takes over the caller's reference.
    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    deinit { X509_free(pointer) }

    /// Reads the first certificate of a PEM file.
    public convenience init(file path: String) throws(TLSSetupError) {
        let source = TLSSource.file(path)
        guard let first = try PEM.certificates(source, isRequired: true).first else {
            throw .noCertificate(source.name)
        }
        X509_up_ref(first.pointer)
        self.init(owning: first.pointer)
    }

    /// The common name, or all of the name where there is none.
    public var subject: String { Self.name(X509_get_subject_name(pointer)) }

    public var issuer: String { Self.name(X509_get_issuer_name(pointer)) }

    /// As `2027-03-01 12:00:00 UTC`.
    public var notBefore: String { Self.text(X509_get0_notBefore(pointer)) }
    public var notAfter: String { Self.text(X509_get0_notAfter(pointer)) }

    /// Whole days until ``notAfter``; negative when it has passed.
    public var daysLeft: Int {
        var (days, seconds): (Int32, Int32) = (0, 0)
        guard ASN1_TIME_diff(&days, &seconds, nil, X509_get0_notAfter(pointer)) == 1 else { return 0 }
        return days == 0 && seconds < 0 ? -1 : Int(days)
    }

    /// ``notAfter`` in seconds since 1970; nil: unreadable.
    public var expiresAt: Int64? {
        var parts = tm()
        guard let time = X509_get0_notAfter(pointer), ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
        return Int64(timegm(&parts))
    }

    /// The DNS names and addresses it is for; the common name counts only where there are none, as for the check itself.
    ///
    /// At most ``TLSLimits/namesInSentence``, then a word about the others.
    public var names: [String] {
        guard let raw = X509_get_ext_d2i(pointer, NID_subject_alt_name, nil, nil) else {
            let name = Self.entry(X509_get_subject_name(pointer), NID_commonName)
            return name.map { [$0] } ?? []
        }
        let all = OpaquePointer(raw)
        defer { GENERAL_NAMES_free(all) }
        var found: [String] = []
        let count = cb_general_name_count(all)
        for index in 0..<max(0, count) {
            guard found.count < TLSLimits.namesInSentence else {
                found.append("\(Int(count) - found.count) more")
                break
            }
            guard let name = cb_general_name(all, index) else { continue }
            switch cb_general_name_type(name) {
            case GEN_DNS: found.append(Self.printable(Self.bytes(cb_general_name_string(name))))
            case GEN_IPADD:
                if let address = Self.address(Self.bytes(cb_general_name_string(name))) { found.append(address) }
            default: break
            }
        }
        return found
    }

    /// SHA-256 of the whole certificate, as 64 hexadecimal digits: a certificate fingerprint on IRC.
    public var fingerprint: String {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard X509_digest(pointer, EVP_sha256(), &digest, &count) == 1 else { return "" }
        return digest.prefix(Int(count)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// SHA-256 of the public key, 32 bytes, for comparison with a pin.
    ///
    /// Source: RFC 7469 §2.4.
    public var keyDigest: [UInt8] {
        var encoded: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(pointer), &encoded)
        guard count > 0, let encoded else { return [] }
        defer { CRYPTO_free(encoded, #file, #line) }
        var digest = [UInt8](repeating: 0, count: 32)
        guard EVP_Digest(encoded, Int(count), &digest, nil, EVP_sha256(), nil) == 1 else { return [] }
        return digest
    }

    /// ``keyDigest`` in base64, as a configuration writes it.
    public var pin: String { Base64.encode(keyDigest) }

    // MARK: - Text

    private static func name(_ name: OpaquePointer?) -> String {
        if let common = entry(name, NID_commonName) { return common }
        if let organization = entry(name, NID_organizationName) { return organization }
        guard let line = X509_NAME_oneline(name, nil, 0) else { return "an unnamed subject" }
        defer { CRYPTO_free(line, #file, #line) }
        let text = String(cString: line)
        return text.isEmpty ? "an unnamed subject" : printable(Array(text.utf8))
    }

    private static func entry(_ name: OpaquePointer?, _ kind: Int32) -> String? {
        let index = X509_NAME_get_index_by_NID(name, kind, -1)
        guard index >= 0, let entry = X509_NAME_get_entry(name, index) else { return nil }
        var utf8: UnsafeMutablePointer<UInt8>?
        let count = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(entry))
        guard count > 0, let utf8 else { return nil }
        defer { CRYPTO_free(utf8, #file, #line) }
        return printable(Array(UnsafeBufferPointer(start: utf8, count: Int(count))))
    }

    private static func bytes(_ string: UnsafePointer<ASN1_STRING>?) -> [UInt8] {
        guard let string, let data = ASN1_STRING_get0_data(string) else { return [] }
        return Array(UnsafeBufferPointer(start: data, count: max(0, Int(ASN1_STRING_length(string)))))
    }

    /// A name out of a certificate goes into logs and to IRC: no controls, and not without end.
    private static func printable(_ bytes: [UInt8]) -> String {
        let text = String(decoding: bytes.prefix(TLSLimits.nameBytesInSentence), as: UTF8.self)
        return String(String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.isVisible ? $0 : "\u{FFFD}" }))
    }

    private static func address(_ bytes: [UInt8]) -> String? {
        func text(_ family: Int32, _ length: Int32) -> String? {
            withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(length)) { buffer in
                inet_ntop(family, bytes, buffer.baseAddress, socklen_t(length)).map { String(cString: $0) }
            }
        }
        switch bytes.count {
        case 4: return text(AF_INET, INET_ADDRSTRLEN)
        case 16: return text(AF_INET6, INET6_ADDRSTRLEN)
        default: return nil
        }
    }

    private static func text(_ time: UnsafePointer<ASN1_TIME>?) -> String {
        var parts = tm()
        guard let time, ASN1_TIME_to_tm(time, &parts) == 1 else { return "an unreadable date" }
        func two(_ number: Int32) -> String { (0..<10 ~= number ? "0" : "") + String(number) }
        return "\(Int(parts.tm_year) + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday)) "
            + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) UTC"
    }
}

extension Unicode.Scalar.Properties {
    fileprivate var isVisible: Bool {
        switch generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: false
        default: true
        }
    }
}

// MARK: - PEM

extension TLSSource {
    /// For sentences.
    var name: String {
        switch self {
        case .file(let path): path
        case .pem(_, let name): name
        }
    }

    func read() throws(TLSSetupError) -> [UInt8] {
        switch self {
        case .pem(let bytes, _): return bytes
        case .file(let path):
            let descriptor = open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw .unreadable(path: path, reason: errorText(errno)) }
            defer { _ = close(descriptor) }
            var bytes: [UInt8] = []
            var piece = [UInt8](repeating: 0, count: 16 * 1024)
            while true {
                let count = Glibc.read(descriptor, &piece, piece.count)
                if count < 0, errno == EINTR { continue }
                guard count >= 0 else { throw .unreadable(path: path, reason: errorText(errno)) }
                if count == 0 { return bytes }
                bytes += piece.prefix(count)
                guard bytes.count <= TLSLimits.maxFileBytes else {
                    throw .tooLarge(path: path, limit: TLSLimits.maxFileBytes)
                }
            }
        }
    }
}

/// Certificates and keys out of PEM text.
enum PEM {
    /// Every certificate of `source`, in its order.
    static func certificates(_ source: TLSSource, isRequired: Bool) throws(TLSSetupError) -> [Certificate] {
        var found: [Certificate] = []
        let bytes = try source.read()
        withMemory(bytes) { memory in
            while let next = PEM_read_bio_X509(memory, nil, refusePassphrase, nil) {
                found.append(Certificate(owning: next))
            }
        }
        // "No more" is an error in the queue too, and so is the text behind the last certificate; neither matters.
        ERR_clear_error()
        guard !found.isEmpty || !isRequired else { throw .noCertificate(source.name) }
        return found
    }

    /// Calls `body` with the private key of `source`.
    static func withKey<R>(
        _ source: TLSSource, _ body: (OpaquePointer) throws(TLSSetupError) -> R
    ) throws(TLSSetupError) -> R {
        let bytes = try source.read()
        ERR_clear_error()
        let key = withMemory(bytes) { PEM_read_bio_PrivateKey($0, nil, refusePassphrase, nil) }
        guard let key else {
            let errors = OpenSSLError.drain()
            let wantsPassphrase = errors.contains {
                $0.library == ERR_LIB_PEM
                    && ($0.reason == PEM_R_BAD_PASSWORD_READ || $0.reason == PEM_R_PROBLEMS_GETTING_PASSWORD)
                    || $0.library == ERR_LIB_CRYPTO && $0.reason == ERR_R_INTERRUPTED_OR_CANCELLED
            }
            throw wantsPassphrase ? .keyHasPassphrase(source.name) : .noKey(source.name)
        }
        defer { EVP_PKEY_free(key) }
        return try body(key)
    }

    /// Calls `body` with a memory BIO that reads `bytes`.
    static func withMemory<R>(_ bytes: [UInt8], _ body: (OpaquePointer?) -> R) -> R {
        bytes.withUnsafeBytes { raw in
            let memory = BIO_new_mem_buf(raw.baseAddress, Int32(clamping: raw.count))
            defer { BIO_free(memory) }
            return body(memory)
        }
    }

    /// The bytes that `write` puts into a memory BIO.
    static func text(_ write: (OpaquePointer?) -> Int32) -> [UInt8]? {
        guard let memory = BIO_new(BIO_s_mem()) else { return nil }
        defer { BIO_free(memory) }
        guard write(memory) == 1 else { return nil }
        var bytes: UnsafeMutablePointer<CChar>?
        let count = cb_bio_memory(memory, &bytes)
        guard count > 0, let bytes else { return nil }
        return Array(UnsafeRawBufferPointer(start: bytes, count: count))
    }

    /// Without it OpenSSL would ask on the terminal.
    private static let refusePassphrase:
        @convention(c) (
            UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?
        ) -> Int32 = { _, _, _, _ in -1 }
}

/// An entry of OpenSSL's queue of errors, which belongs to the thread.
struct OpenSSLError {
    var library: Int32
    var reason: Int32
    var text: String

    /// Takes everything out of the queue, oldest first.
    static func drain() -> [OpenSSLError] {
        var errors: [OpenSSLError] = []
        while true {
            let code = ERR_get_error()
            guard code != 0 else { return errors }
            let text = ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
            errors.append(OpenSSLError(library: ERR_GET_LIB(code), reason: ERR_GET_REASON(code), text: text))
        }
    }
}

import CTLS

/// A certificate with its private key, both PEM.
public struct GeneratedCertificate: Sendable {
    public var certificatePEM: [UInt8]
    public var keyPEM: [UInt8]

    public var identity: TLSIdentity { TLSIdentity(certificate: .pem(certificatePEM), key: .pem(keyPEM)) }
}

/// Makes certificates with a new P-256 key: for a server without an authority, and for tests.
public struct CertificateGenerator: Sendable {
    /// Why a certificate cannot be made.
    public enum GenerationError: Error, Equatable, Sendable {
        /// Not a host name or a numeric address.
        case badName(String)
        /// OpenSSL's words.
        case refused(String)
    }

    /// DNS names (`*.example.org` too) and numeric addresses; the first is also the common name. At least one.
    public var names: [String]
    /// Seconds since 1970.
    public var notBefore: Int64
    public var notAfter: Int64
    /// Whether it may sign others.
    public var isAuthority = false

    public init(names: [String], notBefore: Int64, notAfter: Int64) {
        self.names = names
        self.notBefore = notBefore
        self.notAfter = notAfter
    }

    /// - Parameter issuer: the signer; nil: self-signed.
    public func make(signedBy issuer: GeneratedCertificate? = nil) throws(GenerationError) -> GeneratedCertificate {
        guard let key = cb_generate_key(), let certificate = X509_new() else { throw failure() }
        defer {
            EVP_PKEY_free(key)
            X509_free(certificate)
        }
        try fill(certificate, key: key)
        if let issuer {
            do {
                guard let parent = try PEM.certificates(.pem(issuer.certificatePEM), isRequired: true).first else {
                    throw GenerationError.refused("the issuer has no certificate")
                }
                try PEM.withKey(.pem(issuer.keyPEM)) { (parentKey) throws(TLSSetupError) in
                    do throws(GenerationError) {
                        try finish(certificate, issuer: parent.pointer, issuerKey: parentKey)
                    } catch {
                        throw TLSSetupError.refused(what: "the issuer", reason: "\(error)")
                    }
                }
            } catch {
                throw .refused("\(error)")
            }
        } else {
            try finish(certificate, issuer: certificate, issuerKey: key)
        }
        let text = PEM.text { PEM_write_bio_X509($0, certificate) }
        let keyText = PEM.text { PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) }
        guard let text, let keyText else { throw failure() }
        return GeneratedCertificate(certificatePEM: text, keyPEM: keyText)
    }

    private func fill(_ certificate: OpaquePointer, key: OpaquePointer) throws(GenerationError) {
        guard let first = names.first else { throw .badName("") }
        for name in names where !Self.isName(name) { throw .badName(name) }
        // A random number of 16 bytes, positive. Source: RFC 5280 §4.1.2.2.
        guard let serial = BN_new() else { throw failure() }
        defer { BN_free(serial) }
        let subject = X509_get_subject_name(certificate)
        let common = Array(first.utf8.prefix(64))
        guard X509_set_version(certificate, 2) == 1,
            BN_rand(serial, 127, 0, 0) == 1,
            BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(certificate)) != nil,
            ASN1_TIME_set(X509_getm_notBefore(certificate), Int(notBefore)) != nil,
            ASN1_TIME_set(X509_getm_notAfter(certificate), Int(notAfter)) != nil,
            X509_set_pubkey(certificate, key) == 1,
            X509_NAME_add_entry_by_NID(
                subject, NID_commonName, MBSTRING_UTF8, common, Int32(common.count), -1, 0) == 1
        else { throw failure() }
    }

    private func finish(
        _ certificate: OpaquePointer, issuer: OpaquePointer, issuerKey: OpaquePointer
    ) throws(GenerationError) {
        let alternatives = names.map { Self.isAddress($0) ? "IP:\($0)" : "DNS:\($0)" }.joined(separator: ",")
        var extensions: [(Int32, String)] = [
            (NID_basic_constraints, isAuthority ? "critical,CA:TRUE" : "critical,CA:FALSE"),
            (NID_subject_key_identifier, "hash"),
            (NID_subject_alt_name, alternatives),
        ]
        if isAuthority { extensions.append((NID_key_usage, "critical,keyCertSign,cRLSign")) }
        guard X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 else { throw failure() }
        for (kind, value) in extensions {
            var context = X509V3_CTX()
            X509V3_set_ctx(&context, issuer, certificate, nil, nil, 0)
            guard let made = X509V3_EXT_conf_nid(nil, &context, kind, value) else { throw failure() }
            defer { X509_EXTENSION_free(made) }
            guard X509_add_ext(certificate, made, -1) == 1 else { throw failure() }
        }
        guard X509_sign(certificate, issuerKey, EVP_sha256()) > 0 else { throw failure() }
    }

    private static func isAddress(_ name: String) -> Bool { SocketAddress(host: name, port: 0) != nil }

    /// Whether the text can go into the expression that OpenSSL parses: no commas, no sections.
    private static func isName(_ name: String) -> Bool {
        if isAddress(name) { return !name.contains("%") && !name.contains("[") }
        let letters = name.utf8.allSatisfy {
            ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7A || $0 >= 0x30 && $0 <= 0x39 || "-._* ".utf8.contains($0)
        }
        return letters && !name.isEmpty && name.utf8.count <= 253 && name.first != " " && name.last != " "
    }

    private func failure() -> GenerationError {
        .refused(OpenSSLError.drain().last?.text ?? "no memory")
    }
}

extension CertificateGenerator.GenerationError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .badName(let name):
            name.isEmpty ? "a certificate needs a name" : "\"\(name)\" is not a host name or an address"
        case .refused(let reason): "the certificate cannot be made: \(reason)"
        }
    }
}

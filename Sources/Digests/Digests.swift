import CTLS

// One-shot calls into libcrypto. They fail only when the library on this machine lacks the algorithm or memory, which
// no peer can bring about; that ends the process with a sentence instead of returning a wrong digest.

/// Source: FIPS 180-4; used where RFC 6455 §4.2.2 and RFC 9562 §5.5 name it, never for secrets.
public enum SHA1 {
    public static let byteCount = 20

    /// The 20 bytes of digest.
    public static func hash(_ bytes: [UInt8]) -> [UInt8] { digest(bytes, EVP_sha1(), byteCount: byteCount) }
}

/// Source: FIPS 180-4.
public enum SHA256 {
    public static let byteCount = 32

    /// The 32 bytes of digest.
    public static func hash(_ bytes: [UInt8]) -> [UInt8] { digest(bytes, EVP_sha256(), byteCount: byteCount) }
}

/// SHA-256 of one input after the other. The one-shot call looks the algorithm up and allocates for each; this does neither.
public final class RepeatedSHA256 {
    private let context: OpaquePointer

    public init() {
        guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
            preconditionFailure("libcrypto cannot compute SHA-256")
        }
        self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    /// Passes the 32 bytes of digest.
    public func withDigest<Result>(of bytes: [UInt8], _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: SHA256.byteCount) { out in
            // Without an algorithm: that of the digest before.
            let done =
                EVP_DigestInit_ex(context, nil, nil) == 1 && EVP_DigestUpdate(context, bytes, bytes.count) == 1
                && EVP_DigestFinal_ex(context, out.baseAddress, nil) == 1
            precondition(done, "libcrypto cannot compute SHA-256")
            return body(UnsafeRawBufferPointer(out))
        }
    }
}

/// Source: RFC 2104.
public enum HMACSHA256 {
    /// The 32 bytes of authentication code.
    public static func authenticate(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: SHA256.byteCount) { out, count in
            // A null key would mean "the key of the previous call", so an empty one still needs an address.
            let padded = key.isEmpty ? [0] : key
            let result = HMAC(
                EVP_sha256(), padded, CInt(clamping: key.count), bytes, bytes.count, out.baseAddress, nil)
            precondition(result != nil, "libcrypto cannot compute HMAC-SHA-256")
            count = SHA256.byteCount
        }
    }
}

/// Source: RFC 8018 §5.2.
public enum PBKDF2 {
    /// `count` bytes derived from `password` with HMAC-SHA-256. `iterations` and `count` are at least 1.
    public static func sha256(password: [UInt8], salt: [UInt8], iterations: Int, count: Int) -> [UInt8] {
        let wanted = max(1, count)
        return [UInt8](unsafeUninitializedCapacity: wanted) { out, initialized in
            let done = password.withUnsafeBytes { password in
                PKCS5_PBKDF2_HMAC(
                    password.baseAddress?.assumingMemoryBound(to: CChar.self), CInt(clamping: password.count), salt,
                    CInt(clamping: salt.count), CInt(clamping: max(1, iterations)), EVP_sha256(),
                    CInt(clamping: wanted), out.baseAddress)
            }
            precondition(done == 1, "libcrypto cannot compute PBKDF2")
            initialized = wanted
        }
    }
}

/// Whether both are equal, in a time that depends on their lengths only.
public func constantTimeEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    a.count == b.count && CRYPTO_memcmp(a, b, a.count) == 0
}

private func digest(_ bytes: [UInt8], _ algorithm: OpaquePointer?, byteCount: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: byteCount) { out, count in
        let done = EVP_Digest(bytes, bytes.count, out.baseAddress, nil, algorithm, nil)
        precondition(done == 1, "libcrypto cannot compute this digest")
        count = byteCount
    }
}

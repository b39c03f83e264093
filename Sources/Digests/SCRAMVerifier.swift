@_spi(_Unicode) import Swift
import WireBytes

/// A stored password: enough to check it, by PLAIN or SCRAM-SHA-256, and not enough to know it.
///
/// Written as `$scram-sha-256$ITERATIONS$SALT$STOREDKEY$SERVERKEY`, the last three in base64.
///
/// Source: RFC 5802 §3; RFC 7677 §4.
public struct SCRAMVerifier: Hashable, Sendable, CustomStringConvertible {
    /// Iterations that a text may ask for. Below: the least that RFC 7677 §4 allows. Above: half a minute of one core.
    public static let iterationRange = 4096...20_000_000
    /// The recommendation of OWASP's password storage cheat sheet for PBKDF2-HMAC-SHA-256.
    public static let defaultIterations = 600_000
    /// Bytes of a fresh salt.
    public static let saltByteCount = 16
    /// Bytes that a salt may have: RFC 8018 §4.1 asks for eight, and more than 64 are unknown.
    static let saltByteRange = 8...64

    public static let prefix = "$scram-sha-256$"

    /// Why a text is no verifier, as a sentence that repeats nothing of it.
    public struct ParseError: Error, Equatable {
        public var message: String
    }

    public let iterations: Int
    public let salt: [UInt8]
    /// SHA-256 of the client key; 32 bytes.
    public let storedKey: [UInt8]
    /// 32 bytes.
    public let serverKey: [UInt8]

    /// Computes the keys, with all `iterations`.
    public init(password: SecretBytes, salt: [UInt8], iterations: Int) {
        let salted = Self.saltedPassword(password, salt: salt, iterations: iterations)
        self.iterations = max(1, iterations)
        self.salt = salt
        storedKey = SHA256.hash(HMACSHA256.authenticate(Array("Client Key".utf8), key: salted))
        serverKey = HMACSHA256.authenticate(Array("Server Key".utf8), key: salted)
    }

    init(iterations: Int, salt: [UInt8], storedKey: [UInt8], serverKey: [UInt8]) {
        self.iterations = iterations
        self.salt = salt
        self.storedKey = storedKey
        self.serverKey = serverKey
    }

    /// A verifier that takes `iterations` to check and that no password fits: for names that do not exist.
    public static func unmatchable(iterations: Int) -> SCRAMVerifier {
        SCRAMVerifier(
            iterations: max(1, iterations), salt: [UInt8](repeating: 0, count: saltByteCount), storedKey: [],
            serverKey: [])
    }

    public init(parsing text: String) throws(ParseError) {
        guard text.hasPrefix(Self.prefix) else {
            let what = text.isEmpty ? "nothing is there; " : ""
            throw ParseError(message: "\(what)a password's hash begins with \(Self.prefix)")
        }
        let parts = text.dropFirst(Self.prefix.count).split(separator: "$", omittingEmptySubsequences: false)
        guard parts.count == 4 else {
            throw ParseError(
                message: "a password's hash is \(Self.prefix)ITERATIONS$SALT$STOREDKEY$SERVERKEY, "
                    + "this has \(parts.count) part\(parts.count == 1 ? "" : "s") after the first instead of 4")
        }
        guard parts[0].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let iterations = Int(parts[0]),
            Self.iterationRange.contains(iterations)
        else {
            throw ParseError(
                message: "the iterations of a password's hash are a number from \(Self.iterationRange.lowerBound) "
                    + "to \(Self.iterationRange.upperBound)")
        }
        guard let salt = Base64.decode(String(parts[1])), Self.saltByteRange.contains(salt.count) else {
            throw ParseError(
                message: "the salt of a password's hash is \(Self.saltByteRange.lowerBound) to "
                    + "\(Self.saltByteRange.upperBound) bytes in base64")
        }
        guard let stored = Base64.decode(String(parts[2])), stored.count == SHA256.byteCount,
            let server = Base64.decode(String(parts[3])), server.count == SHA256.byteCount
        else {
            throw ParseError(message: "the keys of a password's hash are \(SHA256.byteCount) bytes each, in base64")
        }
        self.init(iterations: iterations, salt: salt, storedKey: stored, serverKey: server)
    }

    public var description: String {
        "\(Self.prefix)\(iterations)$\(Base64.encode(salt))$\(Base64.encode(storedKey))$\(Base64.encode(serverKey))"
    }

    /// Whether `password` is the one. Blocks for as long as the iterations take: not for the loop.
    ///
    /// - Parameter costing: iterations that the call takes at least, so that verifiers of different cost cannot be
    ///   distinguished by time.
    public func matches(_ password: SecretBytes, costing: Int = 0) -> Bool {
        var salted = Self.saltedPassword(password, salt: salt, iterations: iterations)
        defer { SecretBytes.wipe(&salted) }
        let client = HMACSHA256.authenticate(Array("Client Key".utf8), key: salted)
        if costing > iterations {
            var padding = Self.saltedPassword(password, salt: salt, iterations: costing - iterations)
            SecretBytes.wipe(&padding)
        }
        return constantTimeEqual(SHA256.hash(client), storedKey)
    }

    static func saltedPassword(_ password: SecretBytes, salt: [UInt8], iterations: Int) -> [UInt8] {
        var prepared = password.withUnsafeBytes { normalized($0) }
        defer { SecretBytes.wipe(&prepared) }
        return PBKDF2.sha256(password: prepared, salt: salt, iterations: iterations, count: SHA256.byteCount)
    }
}

/// The same password typed on two keyboards is the same bytes. Source: RFC 8265 §4.2, "OpaqueString", rule 4.
private func normalized(_ password: UnsafeRawBufferPointer) -> [UInt8] {
    if password.allSatisfy({ $0 < 0x80 }) { return Array(password) }
    guard let text = String(validating: password, as: UTF8.self) else { return Array(password) }
    var scalars = String.UnicodeScalarView()
    for scalar in text._nfc { scalars.append(scalar) }
    return Array(String(scalars).utf8)
}

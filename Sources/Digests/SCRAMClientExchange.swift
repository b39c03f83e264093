import WireBytes

/// Why a server's message ends a client's exchange. The server's fault, but for ``refused``.
public enum SCRAMServerFailure: Error, Equatable, Sendable, CaseIterable {
    /// Not in the form of the grammar.
    case malformed
    /// `m=`: the server requires an extension that is not supported.
    case extensionRequired
    /// `r=` does not go on from the client's nonce.
    case nonceDiffers
    /// Fewer iterations than the standard allows, or so many that they would occupy the thread.
    case iterationsOutOfRange
    /// `e=`: the proof was not taken.
    case refused
    /// The server does not know the password.
    case wrongSignature
}

/// The client's side of SCRAM-SHA-256: three messages of the server in, two of the client out. No channel binding.
///
/// Source: RFC 5802 §3, §5, §7; RFC 7677.
public struct SCRAMClientExchange: Sendable {
    /// Random bytes in a client nonce.
    public static let nonceByteCount = 18
    /// Below: the least that RFC 7677 §4 allows. Above: an eighth of a second of one core.
    public static let iterationRange = 4096...100_000

    private let password: SecretBytes
    private let nonce: String
    private let bare: String
    /// The server's last message, once the proof is made.
    private var expected: [UInt8]?

    private static let header = "n,,"

    /// - Parameters:
    ///   - name: the identity whose password it is.
    ///   - randomness: ``nonceByteCount`` fresh bytes.
    public init(name: String, password: SecretBytes, randomness: [UInt8]) {
        self.init(name: name, password: password, nonce: Base64.encode(randomness))
    }

    init(name: String, password: SecretBytes, nonce: String) {
        self.password = password
        self.nonce = nonce
        bare = "n=\(SASLName.encoded(name)),r=\(nonce)"
    }

    /// The first message, without base64.
    public var first: [UInt8] { Array((Self.header + bare).utf8) }

    /// The second message, for the server's first. Blocks for as long as the iterations take.
    public mutating func respond(to challenge: [UInt8]) throws(SCRAMServerFailure) -> [UInt8] {
        guard !challenge.contains(0), let text = String(validating: challenge, as: UTF8.self) else { throw .malformed }
        let parts = scramAttributes(text)
        guard let first = parts.first else { throw .malformed }
        guard scramValue("m", first) == nil else { throw .extensionRequired }
        guard parts.count >= 3, let both = scramValue("r", first),
            let salt = scramValue("s", parts[1]).flatMap(Base64.decode), !salt.isEmpty,
            let count = scramValue("i", parts[2]), count.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { throw .malformed }
        guard both.hasPrefix(nonce), both.utf8.count > nonce.utf8.count else { throw .nonceDiffers }
        guard let iterations = Int(count), Self.iterationRange.contains(iterations) else { throw .iterationsOutOfRange }
        var salted = SCRAMVerifier.saltedPassword(password, salt: salt, iterations: iterations)
        defer { SecretBytes.wipe(&salted) }
        let clientKey = HMACSHA256.authenticate(Array("Client Key".utf8), key: salted)
        let serverKey = HMACSHA256.authenticate(Array("Server Key".utf8), key: salted)
        let withoutProof = "c=\(Base64.encode(Array(Self.header.utf8))),r=\(both)"
        let message = Array("\(bare),\(text),\(withoutProof)".utf8)
        let signature = HMACSHA256.authenticate(message, key: SHA256.hash(clientKey))
        expected = HMACSHA256.authenticate(message, key: serverKey)
        return Array("\(withoutProof),p=\(Base64.encode(zip(clientKey, signature).map { $0 ^ $1 }))".utf8)
    }

    /// Checks the server's last message: that it knows the password too.
    public func verify(_ final: [UInt8]) throws(SCRAMServerFailure) {
        guard let expected, let text = String(validating: final, as: UTF8.self),
            let first = scramAttributes(text).first
        else { throw .malformed }
        guard scramValue("e", first) == nil else { throw .refused }
        guard let signature = scramValue("v", first).flatMap(Base64.decode) else { throw .malformed }
        guard constantTimeEqual(signature, expected) else { throw .wrongSignature }
    }
}

import WireBytes

// The server's side of SCRAM-SHA-256. No channel binding; checking a proof costs the server three hashes, since the
// expensive part is the client's.
//
//     C: n,,n=user,r=<client nonce>                       SCRAMClientFirst
//     S: r=<client nonce><server nonce>,s=<salt>,i=4096   SCRAMServerExchange.challenge
//     C: c=biws,r=<both nonces>,p=<proof>                 SCRAMServerExchange.finish
//     S: v=<signature>                                    … its result
//
// Source: RFC 5802 §3, §5, §7; RFC 7677.

/// Why a client's message ends the exchange. All are the client's fault, and end this exchange only.
public enum SCRAMFailure: Error, Equatable, Sendable, CaseIterable {
    /// Not in the form of the grammar.
    case malformed
    /// `p=`: the client wants the connection bound, which was not offered.
    case channelBindingRequired
    /// `m=`: the client requires an extension that is not supported. Source: RFC 5802 §5.1, "reserved-mext".
    case extensionRequired
    /// `c=` is not the first message's header: one of them was changed on the way.
    case channelBindingDiffers
    /// `r=` is not the challenge's nonce.
    case nonceDiffers
    /// The password was another.
    case wrongProof
}

/// The client's first message.
public struct SCRAMClientFirst: Equatable, Sendable {
    /// Bytes of a name, decoded; as PLAIN has it. Source: RFC 4616 §2.
    public static let maxNameBytes = 255
    /// Bytes of a nonce; clients send 18 to 64.
    public static let maxNonceBytes = 256

    /// The identity to act as; empty: that of ``name``.
    public let authzid: String
    /// The identity whose password it is. Not empty.
    public let name: String
    /// With the comma at its end; repeated in `c=`.
    let gs2Header: String
    /// Everything behind the header.
    let bare: String
    let nonce: String

    /// - Parameter bytes: the whole message, without base64.
    public init(parsing bytes: [UInt8]) throws(SCRAMFailure) {
        let parts = try scramParts(bytes)
        guard parts.count >= 4 else { throw .malformed }
        switch parts[0] {
        // `y`: the client supports binding and believes that the server does not, which is so.
        case "n", "y": break
        case let flag where flag.hasPrefix("p="): throw .channelBindingRequired
        default: throw .malformed
        }
        if parts[1].isEmpty {
            authzid = ""
        } else {
            guard let value = scramValue("a", parts[1]) else { throw .malformed }
            authzid = try Self.decodeName(value)
        }
        guard scramValue("m", parts[2]) == nil else { throw .extensionRequired }
        guard let name = scramValue("n", parts[2]), let nonce = scramValue("r", parts[3]),
            Self.isNonce(nonce), parts[4...].allSatisfy(isSCRAMAttribute)
        else { throw .malformed }
        self.name = try Self.decodeName(name)
        self.nonce = nonce
        gs2Header = "\(parts[0]),\(parts[1]),"
        bare = parts[2...].joined(separator: ",")
    }

    private static func decodeName(_ text: String) throws(SCRAMFailure) -> String {
        guard let name = SASLName.decoded(text), name.utf8.count <= maxNameBytes else { throw .malformed }
        return name
    }

    /// Printable ASCII but for the comma. Source: RFC 5802 §7, "printable".
    private static func isNonce(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= maxNonceBytes && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }
}

/// One exchange from its second message on.
public struct SCRAMServerExchange: Sendable {
    /// Random bytes in a server nonce.
    public static let nonceByteCount = 18

    private let verifier: SCRAMVerifier
    private let first: SCRAMClientFirst
    private let nonce: String
    private let serverFirst: String

    /// - Parameter randomness: ``nonceByteCount`` fresh bytes: a nonce that came twice would let a proof be used twice.
    public init(_ first: SCRAMClientFirst, verifier: SCRAMVerifier, randomness: [UInt8]) {
        self.init(first, verifier: verifier, serverNonce: Base64.encode(randomness))
    }

    init(_ first: SCRAMClientFirst, verifier: SCRAMVerifier, serverNonce: String) {
        self.first = first
        self.verifier = verifier
        nonce = first.nonce + serverNonce
        serverFirst = "r=\(nonce),s=\(Base64.encode(verifier.salt)),i=\(verifier.iterations)"
    }

    /// The server's first message, without base64.
    public var challenge: [UInt8] { Array(serverFirst.utf8) }

    /// Checks the client's second message.
    ///
    /// - Returns: the server's final message, without base64: it proves that the server knows the password too.
    /// - Throws: ``SCRAMFailure/wrongProof`` only when all else is right.
    public func finish(_ bytes: [UInt8]) throws(SCRAMFailure) -> [UInt8] {
        let parts = try scramParts(bytes)
        guard parts.count >= 3, let binding = scramValue("c", parts[0]), let answered = scramValue("r", parts[1]),
            let last = parts.last, let proof = scramValue("p", last).flatMap(Base64.decode),
            proof.count == SHA256.byteCount, let header = Base64.decode(binding)
        else { throw .malformed }
        for part in parts[2..<(parts.count - 1)] {
            if scramValue("m", part) != nil { throw .extensionRequired }
            guard isSCRAMAttribute(part) else { throw .malformed }
        }
        guard header == Array(first.gs2Header.utf8) else { throw .channelBindingDiffers }
        guard answered == nonce else { throw .nonceDiffers }
        let withoutProof = parts.dropLast().joined(separator: ",")
        let message = Array("\(first.bare),\(serverFirst),\(withoutProof)".utf8)
        let signature = HMACSHA256.authenticate(message, key: verifier.storedKey)
        let clientKey = zip(proof, signature).map { $0 ^ $1 }
        guard constantTimeEqual(SHA256.hash(clientKey), verifier.storedKey) else { throw .wrongProof }
        return Array("v=\(Base64.encode(HMACSHA256.authenticate(message, key: verifier.serverKey)))".utf8)
    }
}

extension SCRAMVerifier {
    /// A verifier that no password fits and that looks like any other, the same for a name each time: for names that do
    /// not exist.
    ///
    /// - Parameter key: a secret of the server: with it, names that exist could be distinguished from others.
    public static func imitation(of name: String, key: [UInt8], iterations: Int) -> SCRAMVerifier {
        func bytes(_ purpose: String) -> [UInt8] {
            HMACSHA256.authenticate(Array("\(purpose) \(name)".utf8), key: key)
        }
        // No known input hashes to this.
        return SCRAMVerifier(
            iterations: iterations, salt: Array(bytes("salt").prefix(saltByteCount)), storedKey: bytes("stored"),
            serverKey: bytes("server"))
    }
}

/// The attributes of a message, in order; some may be empty.
private func scramParts(_ bytes: [UInt8]) throws(SCRAMFailure) -> [String] {
    guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else { throw .malformed }
    return scramAttributes(text)
}

func scramAttributes(_ text: String) -> [String] {
    text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).map { String(Substring($0)) }
}

/// The text behind `x=`; nil for a part that does not begin so.
func scramValue(_ name: Character, _ part: String) -> String? {
    part.utf8.starts(with: "\(name)=".utf8) ? String(Substring(part.utf8.dropFirst(2))) : nil
}

/// Source: RFC 5802 §7, "attr-val".
private func isSCRAMAttribute(_ part: String) -> Bool {
    let bytes = Array(part.utf8.prefix(3))
    return bytes.count == 3 && (bytes[0] | 0x20) >= 0x61 && (bytes[0] | 0x20) <= 0x7A && bytes[1] == UInt8(ascii: "=")
}

/// Names as in the headers of SASL's newer mechanisms.
public enum SASLName {
    /// The form in which ``decoded(_:)`` reads it.
    public static func encoded(_ name: String) -> String {
        var encoded = String.UnicodeScalarView()
        for scalar in name.unicodeScalars {
            switch scalar {
            case ",": encoded.append(contentsOf: "=2C".unicodeScalars)
            case "=": encoded.append(contentsOf: "=3D".unicodeScalars)
            default: encoded.append(scalar)
            }
        }
        return String(encoded)
    }

    /// `=2C` is a comma and `=3D` an equals sign; nil for any other `=`, and for no name at all.
    ///
    /// Source: RFC 5802 §5.1 and RFC 5801 §4, "saslname".
    public static func decoded(_ text: String) -> String? {
        var decoded: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "=") else {
                decoded.append(byte)
                continue
            }
            switch rest.prefix(2) {
            case [UInt8(ascii: "2"), UInt8(ascii: "C")]: decoded.append(UInt8(ascii: ","))
            case [UInt8(ascii: "3"), UInt8(ascii: "D")]: decoded.append(UInt8(ascii: "="))
            default: return nil
            }
            rest = rest.dropFirst(2)
        }
        return decoded.isEmpty ? nil : String(decoding: decoded, as: UTF8.self)
    }
}

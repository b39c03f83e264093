import Digests
import WireBytes

/// The client's side of SCRAM-SHA-256, as IRC clients have it.
public struct SCRAMClient {
    private let password: String
    private let header: String
    private let bare: String
    private let nonce: String
    /// The expected last message of the server, once the proof was made.
    public private(set) var expectedSignature: [UInt8] = []

    /// - Parameters:
    ///   - name: as it stands on the wire, escaped.
    ///   - header: the GS2 header.
    public init(name: String, password: String, nonce: String = "fyko+d2lbbFgONRv9qkxdawL", header: String = "n,,") {
        self.password = password
        self.header = header
        self.nonce = nonce
        bare = "n=\(name),r=\(nonce)"
    }

    public var first: [UInt8] { Array((header + bare).utf8) }

    /// The second message; nil: the challenge is invalid, or its nonce does not begin with the client's.
    ///
    /// - Parameter changing: spoils the message before it is proven.
    public mutating func proof(_ challenge: [UInt8], changing: (String) -> String = { $0 }) -> [UInt8]? {
        let text = String(decoding: challenge, as: UTF8.self)
        let parts = text.split(separator: ",").map(String.init)
        guard parts.count == 3, parts[0].hasPrefix("r=" + nonce), parts[1].hasPrefix("s="), parts[2].hasPrefix("i="),
            let salt = Base64.decode(String(parts[1].dropFirst(2))), let iterations = Int(parts[2].dropFirst(2))
        else { return nil }
        let salted = PBKDF2.sha256(
            password: Array(password.utf8), salt: salt, iterations: iterations, count: SHA256.byteCount)
        let clientKey = HMACSHA256.authenticate(Array("Client Key".utf8), key: salted)
        let withoutProof = changing("c=\(Base64.encode(Array(header.utf8))),\(parts[0])")
        let message = Array("\(bare),\(text),\(withoutProof)".utf8)
        let signature = HMACSHA256.authenticate(message, key: SHA256.hash(clientKey))
        let serverKey = HMACSHA256.authenticate(Array("Server Key".utf8), key: salted)
        expectedSignature = Array("v=\(Base64.encode(HMACSHA256.authenticate(message, key: serverKey)))".utf8)
        return Array("\(withoutProof),p=\(Base64.encode(zip(clientKey, signature).map { $0 ^ $1 }))".utf8)
    }
}

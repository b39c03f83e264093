import WireBytes

// SASL in IRC: base64 in `AUTHENTICATE` lines of 400 bytes, numerics for the outcome.
//
// | state       | AUTHENTICATE …          | → state, outcome                                            |
// |-------------|-------------------------|-------------------------------------------------------------|
// | idle        | a known mechanism       | collecting, `.challenge`: answer `AUTHENTICATE +`           |
// |             | anything else           | idle, `.unknownMechanism`                                   |
// | collecting  | 400 bytes               | collecting, `.needMoreData`                                 |
// |             | fewer, or `+` for none  | idle, `.response`, or `.malformed` when it is no base64     |
// |             | more than 400           | idle, `.tooLong`                                            |
// |             | more lines than it takes | idle, `.endless`                                           |
// | any         | `*`                     | idle, `.aborted`                                            |
//
// A mechanism that wants more than one response calls `expectMore` when it has sent its challenge: idle → collecting.

/// A SASL mechanism.
public enum SASLMechanism: String, CaseIterable, Sendable {
    /// Source: RFC 4616.
    case plain = "PLAIN"
    /// Source: RFC 7677.
    case scramSHA256 = "SCRAM-SHA-256"
    /// The client's identity was established below IRC: by its certificate. Source: RFC 4422, appendix A.
    case external = "EXTERNAL"
    /// With a token that the backend made. Source: RFC 7628.
    case oauthBearer = "OAUTHBEARER"

    /// Bytes of a response after base64, at most.
    var maxResponseBytes: Int {
        self == .oauthBearer ? SASLOAuthBearerResponse.maxBytes : IRCSASLExchange.maxResponseBytes
    }
}

/// The server's side of one client's `AUTHENTICATE` commands, until a whole response is there.
///
/// Source: IRCv3 sasl-3.1, "The AUTHENTICATE command"; sasl-3.2.
public struct IRCSASLExchange: Sendable {
    /// Bytes of one `AUTHENTICATE` parameter. One of exactly this length has another behind it.
    public static let chunkBytes = 400
    /// Bytes of a response after base64, but for tokens: two names and a password of the 255 bytes each that RFC 4616 §2 asks for, or shorter
    /// names and a long password.
    public static let maxResponseBytes = 1024
    public enum Outcome: Equatable, Sendable {
        /// Answer `AUTHENTICATE +`: the response may come.
        case challenge
        /// Taken; the rest is to come.
        case needMoreData
        /// The whole response, decoded. May be empty.
        case response(SASLMechanism, [UInt8])
        /// Answer 908 and 904.
        case unknownMechanism
        /// Answer 904.
        case malformed
        /// Answer 905: a parameter has more than 400 bytes.
        case tooLong
        /// Answer 904: the response exceeds its limit.
        case endless
        /// Answer 906.
        case aborted
    }

    private enum State {
        case idle
        case collecting(SASLMechanism, encoded: String)
    }

    private var state = State.idle
    /// Of this exchange, or the last; nil: there was none.
    public private(set) var mechanism: SASLMechanism?

    public init() {}

    /// Whether an exchange is in progress.
    public var isUnderway: Bool {
        if case .collecting = state { return true }
        return false
    }

    /// Takes the parameter of an `AUTHENTICATE` command.
    public mutating func received(_ param: String, offered: [SASLMechanism]) -> Outcome {
        if param == "*" {
            state = .idle
            return .aborted
        }
        guard case .collecting(let mechanism, var encoded) = state else {
            // A chunk without a beginning is an unknown mechanism.
            guard param.utf8.count <= Self.chunkBytes else { return .tooLong }
            let name = String(decoding: param.utf8.map { $0 >= 0x61 && $0 <= 0x7A ? $0 & 0xDF : $0 }, as: UTF8.self)
            guard let mechanism = SASLMechanism(rawValue: name), offered.contains(mechanism) else {
                return .unknownMechanism
            }
            state = .collecting(mechanism, encoded: "")
            self.mechanism = mechanism
            return .challenge
        }
        state = .idle
        guard param.utf8.count <= Self.chunkBytes else { return .tooLong }
        // Some clients write an empty response as SMTP has it. Source: RFC 4954 §4, "a single equals sign".
        let isEmpty = param == "+" || param == "=" && encoded.isEmpty
        if !isEmpty { encoded += param }
        guard encoded.utf8.count <= (mechanism.maxResponseBytes + 2) / 3 * 4 else { return .endless }
        if param.utf8.count == Self.chunkBytes {
            state = .collecting(mechanism, encoded: encoded)
            return .needMoreData
        }
        guard let bytes = Base64.decode(encoded), bytes.count <= mechanism.maxResponseBytes else {
            return .malformed
        }
        return .response(mechanism, bytes)
    }

    /// The mechanism has answered, and the client is to go on with it.
    public mutating func expectMore(_ mechanism: SASLMechanism) { state = .collecting(mechanism, encoded: "") }

    /// Ends the exchange because the client went on with registration. True when there was one.
    public mutating func abandon() -> Bool {
        defer { state = .idle }
        return isUnderway
    }

    /// The parameters of the `AUTHENTICATE` commands that carry `bytes`, in order; never none.
    public static func chunks(of bytes: [UInt8]) -> [String] {
        var rest = Array(Base64.encode(bytes).utf8)[...]
        var chunks: [String] = []
        while rest.count >= chunkBytes {
            chunks.append(String(decoding: rest.prefix(chunkBytes), as: UTF8.self))
            rest = rest.dropFirst(chunkBytes)
        }
        // Also after a full last chunk: only a shorter one ends it.
        chunks.append(rest.isEmpty ? "+" : String(decoding: rest, as: UTF8.self))
        return chunks
    }
}

/// The one message of the mechanism PLAIN.
///
/// Source: RFC 4616 §2.
public struct SASLPlainResponse: Equatable, Sendable {
    /// Bytes that each of the two names may have. Source: RFC 4616 §2, "MUST be able to accept up to 255 octets".
    public static let maxPartBytes = 255
    /// Bytes of a password: those that programs make are longer than what RFC 4616 asks for, and a long one costs no more.
    public static let maxPasswordBytes = 700

    public enum ParseError: Error, Equatable, Sendable {
        /// Not exactly two NUL between the parts.
        case notThreeParts
        case invalidUTF8
        case emptyName
        case emptyPassword
        case partTooLong
    }

    /// The identity to act as; empty: that of ``authcid``.
    public let authzid: String
    /// The identity whose password it is.
    public let authcid: String
    /// UTF-8 without NUL.
    public let password: [UInt8]

    public init(parsing bytes: [UInt8]) throws(ParseError) {
        let parts = bytes.split(separator: 0, omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw .notThreeParts }
        guard parts[0].count <= Self.maxPartBytes, parts[1].count <= Self.maxPartBytes,
            parts[2].count <= Self.maxPasswordBytes
        else { throw .partTooLong }
        guard let authzid = String(validating: parts[0], as: UTF8.self),
            let authcid = String(validating: parts[1], as: UTF8.self),
            String(validating: parts[2], as: UTF8.self) != nil
        else { throw .invalidUTF8 }
        guard !authcid.isEmpty else { throw .emptyName }
        guard !parts[2].isEmpty else { throw .emptyPassword }
        self.authzid = authzid
        self.authcid = authcid
        password = Array(parts[2])
    }
}

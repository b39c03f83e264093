import Digests
import WireBytes

/// The client's message of the mechanism OAUTHBEARER: a token, and the identity to act as.
///
///     n,a=ann,^Ahost=irc.example.com^Aport=6697^Aauth=Bearer vF9dft4qmT^A^A
///
/// The token is a secret: it stands in ``token`` and nowhere else, and a value of this type prints as stars.
///
/// Source: RFC 7628 §3.1; RFC 5801 §4, "gs2-header".
public struct SASLOAuthBearerResponse: Sendable {
    /// Bytes of the whole message. Servers take 8 KiB of one HTTP field as a rule, so a longer token could not be
    /// passed on.
    public static let maxBytes = 8 * 1024
    /// Bytes of the name; as PLAIN has it. Source: RFC 4616 §2.
    public static let maxNameBytes = 255

    public enum ParseError: Error, Equatable, Sendable, CaseIterable {
        /// `p=`: the client wants the connection bound, which was not offered.
        case channelBindingRequired
        /// Not in the form of the grammar.
        case malformed
        /// There is no `auth`, or it has another scheme than Bearer, or there are two.
        case noBearerToken
    }

    /// The identity to act as; empty: the token's own.
    public let authzid: String
    /// Letters, digits and `-._~+/=`; not empty.
    public let token: String

    /// The client's answer to a refusal with a reason: a single ^A. Source: RFC 7628 §3.2.3.
    public static let afterRefusal: [UInt8] = [0x01]

    /// The reason for a refused token, without base64. Source: RFC 7628 §3.2.2; RFC 6750 §3.1.
    public static let refusal = Array(#"{"status":"invalid_token"}"#.utf8)

    /// - Parameter bytes: the whole message, without base64.
    public init(parsing bytes: [UInt8]) throws(ParseError) {
        guard bytes.count <= Self.maxBytes, !bytes.contains(0), bytes.suffix(2) == [0x01, 0x01] else {
            throw .malformed
        }
        // The header ends at the first separator, since neither of its parts can hold one.
        var pieces = bytes.dropLast(2).split(separator: 0x01, omittingEmptySubsequences: false)[...]
        guard let header = pieces.popFirst() else { throw .malformed }
        authzid = try Self.name(inHeader: header)
        var token: [UInt8]?
        for piece in pieces {
            guard let equals = piece.firstIndex(of: UInt8(ascii: "=")), equals > piece.startIndex,
                piece[..<equals].allSatisfy(Self.isLetter)
            else { throw .malformed }
            // Host and port are the client's view of the server, which decides nothing here.
            guard piece[..<equals].elementsEqual("auth".utf8) else { continue }
            guard token == nil else { throw .noBearerToken }
            token = try Self.token(inAuth: piece[(equals + 1)...])
        }
        guard let token else { throw .noBearerToken }
        self.token = String(decoding: token, as: UTF8.self)
    }

    private static func name(inHeader header: ArraySlice<UInt8>) throws(ParseError) -> String {
        guard let text = String(validating: header, as: UTF8.self) else { throw .malformed }
        let parts = text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
        guard parts.count == 3, parts[2].isEmpty else { throw .malformed }
        switch parts[0] {
        case "n", "y": break
        case let flag where flag.hasPrefix("p="): throw .channelBindingRequired
        default: throw .malformed
        }
        guard !parts[1].isEmpty else { return "" }
        guard parts[1].hasPrefix("a="), let name = SASLName.decoded(String(parts[1].dropFirst(2))),
            name.utf8.count <= maxNameBytes
        else { throw .malformed }
        return name
    }

    /// The scheme is compared without regard to case. Source: RFC 7235 §2.1; RFC 6750 §2.1, "b64token".
    private static func token(inAuth value: ArraySlice<UInt8>) throws(ParseError) -> [UInt8] {
        let scheme = "bearer ".utf8
        guard value.count > scheme.count,
            zip(value, scheme).allSatisfy({ $0 == $1 || isLetter($0) && $0 | 0x20 == $1 })
        else { throw .noBearerToken }
        let token = value.dropFirst(scheme.count).drop { $0 == 0x20 }
        let body = token.prefix { isLetter($0) || (0x30...0x39).contains($0) || "-._~+/".utf8.contains($0) }
        guard !body.isEmpty, token.dropFirst(body.count).allSatisfy({ $0 == UInt8(ascii: "=") }) else {
            throw .noBearerToken
        }
        return Array(token)
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }
}

extension SASLOAuthBearerResponse: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "***" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

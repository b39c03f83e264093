import BridgeTestSupport
import Testing
import Transport
import WireBytes

struct ProxyHeaderRow: Sendable, CustomTestStringConvertible {
    enum Outcome: Equatable, Sendable {
        case header(ProxyHeader, rest: [UInt8])
        case error(ProxyHeaderError)
        case needMoreData
    }

    var name: String
    var bytes: [UInt8]
    var outcome: Outcome

    var testDescription: String { name }

    static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

    init(_ name: String, _ text: String, _ outcome: Outcome) {
        self.init(name, Array(text.utf8), outcome)
    }

    init(_ name: String, _ bytes: [UInt8], _ outcome: Outcome) {
        (self.name, self.bytes, self.outcome) = (name, bytes, outcome)
    }

    /// A header of version 2 with `body` behind its length, or behind the length that it claims.
    static func binary(_ command: UInt8, _ family: UInt8, _ body: [UInt8], length: Int? = nil) -> [UInt8] {
        let length = length ?? body.count
        return signature + [command, family, UInt8(length >> 8), UInt8(length & 0xFF)] + body
    }

    static func client(_ text: String, rest: String = "") -> Outcome {
        .header(SocketAddress(text).map { .client($0) } ?? .unknown, rest: Array(rest.utf8))
    }
}

@Suite("PROXY headers")
struct ProxyHeaderTests {
    typealias Row = ProxyHeaderRow

    private static let four: [UInt8] = [203, 0, 113, 7, 192, 0, 2, 1, 0xC0, 0x01, 0x1A, 0x0B]
    private static let six: [UInt8] =
        [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [7] + [UInt8](repeating: 0, count: 16)
        + [0xC0, 0x01, 0x1A, 0x0B]
    private static let mapped: [UInt8] =
        [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 203, 0, 113, 7] + [UInt8](repeating: 0, count: 16)
        + [0xC0, 0x01, 0x1A, 0x0B]

    static let rows: [Row] = [
        // §2.1
        Row(
            "v1 TCP4", "PROXY TCP4 203.0.113.7 192.0.2.1 49153 6667\r\nNICK ann\r\n",
            Row.client("203.0.113.7:49153", rest: "NICK ann\r\n")),
        Row("v1 TCP6", "PROXY TCP6 2001:db8::7 2001:db8::1 49153 6667\r\n", Row.client("[2001:db8::7]:49153")),
        Row(
            "v1 TCP6 with an address of IPv4 in it", "PROXY TCP6 ::ffff:203.0.113.7 ::1 1 2\r\n",
            Row.client("203.0.113.7:1")),
        Row("v1 UNKNOWN alone", "PROXY UNKNOWN\r\nUSER", .header(.unknown, rest: Array("USER".utf8))),
        Row(
            "v1 UNKNOWN, the longest line there is",
            "PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n", .header(.unknown, rest: [])),
        Row("v1 port 0", "PROXY TCP4 203.0.113.7 192.0.2.1 0 0\r\n", Row.client("203.0.113.7:0")),
        Row("v1 line without an end", "PROXY TCP4 203.0.113.7", .needMoreData),
        Row("v1 too long", "PROXY UNKNOWN " + String(repeating: "x", count: 200), .error(.lineTooLong(limit: 107))),
        Row("v1 bare LF", "PROXY TCP4 203.0.113.7 192.0.2.1 1 2\n", .error(.malformedLine)),
        Row("v1 family in small letters", "PROXY tcp4 203.0.113.7 192.0.2.1 1 2\r\n", .error(.malformedLine)),
        Row("v1 family and address differ", "PROXY TCP4 2001:db8::7 2001:db8::1 1 2\r\n", .error(.malformedLine)),
        Row("v1 TCP6 with a plain address of IPv4", "PROXY TCP6 203.0.113.7 192.0.2.1 1 2\r\n", .error(.malformedLine)),
        Row("v1 octal octet", "PROXY TCP4 203.0.113.007 192.0.2.1 1 2\r\n", .error(.malformedLine)),
        Row("v1 zone", "PROXY TCP6 fe80::1%lo fe80::2 1 2\r\n", .error(.malformedLine)),
        Row("v1 name", "PROXY TCP4 localhost 192.0.2.1 1 2\r\n", .error(.malformedLine)),
        Row("v1 port too large", "PROXY TCP4 203.0.113.7 192.0.2.1 65536 2\r\n", .error(.malformedLine)),
        Row("v1 port with a leading zero", "PROXY TCP4 203.0.113.7 192.0.2.1 01 2\r\n", .error(.malformedLine)),
        Row("v1 port with a sign", "PROXY TCP4 203.0.113.7 192.0.2.1 +1 2\r\n", .error(.malformedLine)),
        Row("v1 two spaces", "PROXY TCP4  203.0.113.7 192.0.2.1 1 2\r\n", .error(.malformedLine)),
        Row("v1 a word too many", "PROXY TCP4 203.0.113.7 192.0.2.1 1 2 3\r\n", .error(.malformedLine)),
        Row("v1 a word too few", "PROXY TCP4 203.0.113.7 192.0.2.1 1\r\n", .error(.malformedLine)),
        Row("v1 a NUL", "PROXY TCP4 203.0.113.7\0 192.0.2.1 1 2\r\n", .error(.malformedLine)),
        Row("v1 nothing behind the word", "PROXY \r\n", .error(.malformedLine)),
        // §2.2
        Row(
            "v2 TCP over IPv4", Row.binary(0x21, 0x11, four) + Array("NICK".utf8),
            Row.client("203.0.113.7:49153", rest: "NICK")),
        Row("v2 TCP over IPv6", Row.binary(0x21, 0x21, six), Row.client("[2001:db8::7]:49153")),
        Row("v2 IPv6 with an address of IPv4 in it", Row.binary(0x21, 0x21, mapped), Row.client("203.0.113.7:49153")),
        Row(
            "v2 with TLVs", Row.binary(0x21, 0x11, four + [0x04, 0, 2, 0, 0, 0xE0, 0, 1, 0x41]) + [0x16, 3],
            .header(SocketAddress("203.0.113.7:49153").map { .client($0) } ?? .unknown, rest: [0x16, 3])),
        Row(
            "v2 with 65 kilobytes of TLVs",
            Row.binary(0x21, 0x11, four + [UInt8](repeating: 0x0A, count: 65535 - 12)) + [7],
            .header(SocketAddress("203.0.113.7:49153").map { .client($0) } ?? .unknown, rest: [7])),
        Row("v2 with fewer bytes than it says", Row.binary(0x21, 0x11, four, length: 20), .needMoreData),
        Row("v2 LOCAL", Row.binary(0x20, 0x00, []), .header(.unknown, rest: [])),
        Row(
            "v2 LOCAL with addresses, which do not count", Row.binary(0x20, 0x11, four) + [1],
            .header(.unknown, rest: [1])),
        Row("v2 unspecified family", Row.binary(0x21, 0x00, [1, 2, 3]) + [9], .header(.unknown, rest: [9])),
        Row(
            "v2 socket file", Row.binary(0x21, 0x31, [UInt8](repeating: 0x2F, count: 216)), .header(.unknown, rest: [])),
        Row("v2 datagrams", Row.binary(0x21, 0x12, four), .header(.unknown, rest: [])),
        Row("v2 family yet to come", Row.binary(0x21, 0xF1, [1]), .header(.unknown, rest: [])),
        Row("v2 with addresses cut off", Row.binary(0x21, 0x21, four), .error(.addressesCutOff(byteCount: 12))),
        Row("v2 without addresses", Row.binary(0x21, 0x11, []), .error(.addressesCutOff(byteCount: 0))),
        Row("version 3", Row.binary(0x31, 0x11, four), .error(.unsupportedVersion(3))),
        Row("version 1 in version 2's form", Row.binary(0x11, 0x11, four), .error(.unsupportedVersion(1))),
        Row("an unknown command", Row.binary(0x22, 0x11, four), .error(.unsupportedCommand(2))),
        Row(
            "a signature with a wrong byte", [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0D],
            .error(.missing)),
        // Clients of the wrong port.
        Row("an IRC client", "NICK ann\r\n", .error(.missing)),
        Row("an IRC client with a password", "PASS secret\r\n", .error(.missing)),
        Row("TLS", [0x16, 0x03, 0x01, 0x02, 0x00], .error(.missing)),
        Row("HTTP", "GET / HTTP/1.1\r\n", .error(.missing)),
        Row("an empty line", "\r\n\r\n\r\n", .error(.missing)),
        Row("nothing", "", .needMoreData),
    ]

    @Test("a header is read or refused, however its bytes are cut", arguments: rows)
    func decoded(row: ProxyHeaderRow) {
        let found = SplitFeedVerifier.disagreements(row.bytes, expected: row.outcome) { pieces in
            var decoder = ProxyHeaderDecoder()
            var header: ProxyHeader?
            var rest: [UInt8] = []
            for piece in pieces {
                guard header == nil else {
                    rest += piece
                    continue
                }
                let step: Result<ProxyHeaderDecoder.Step, ProxyHeaderError> = piece.withUnsafeBytes { bytes in
                    do throws(ProxyHeaderError) {
                        return .success(try decoder.bytesReceived(bytes))
                    } catch {
                        return .failure(error)
                    }
                }
                switch step {
                case .failure(let error): return .error(error)
                case .success(.needMoreData): continue
                case .success(.header(let found, let consumed)):
                    header = found
                    rest = Array(piece[consumed...])
                }
            }
            return header.map { .header($0, rest: rest) } ?? .needMoreData
        }
        #expect(found == [])
    }

    @Test(
        "who is trusted",
        arguments: [
            ("10.1.2.3:4", true), ("11.0.0.1:4", false), ("[2001:db8:1::1]:4", true), ("[2001:db9::1]:4", false),
            ("192.0.2.1:4", true), ("192.0.2.2:4", false), ("unix:/run/x.sock", false),
        ])
    func trusted(peer: String, isTrusted: Bool) throws {
        let ranges = ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1"].compactMap { NetworkRange($0) }
        #expect(ranges.count == 3)
        var trusted = TrustedPeers(ranges: ranges)
        #expect(trusted.contains(try #require(SocketAddress(peer))) == isTrusted)
        trusted.unix = true
        #expect(trusted.contains(.unix(path: "")))
    }

    @Test(
        "a range is an address or the beginning of some",
        arguments: [
            ("0.0.0.0/0", true), ("::/0", true), ("10.0.0.0/8", true), ("::1", true), ("::1/128", true),
            ("10.0.0.1/8", false), ("10.0.0.0/33", false), ("10.0.0.0/", false), ("10.0.0.0/-1", false),
            ("10.0.0/8", false),
            ("2001:db8::1/32", false), ("2001:db8::/129", false), ("", false), ("/8", false), ("localhost", false),
            ("10.0.0.0/8/8", false), ("10.0.0.0/999999999999999999999", false),
        ])
    func ranges(text: String, isRange: Bool) {
        #expect((NetworkRange(text) != nil) == isRange)
        #expect(NetworkRange(text)?.description == (isRange ? text : nil))
    }
}

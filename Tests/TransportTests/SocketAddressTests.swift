import Testing
import Transport

@Suite("Socket addresses")
struct SocketAddressTests {
    struct Row: CustomTestStringConvertible {
        var text: String
        var address: SocketAddress
        var isLoopback = false
        var testDescription: String { text }
    }

    static let rows = [
        Row(text: "192.0.2.1:6667", address: .ipv4(0xC000_0201, port: 6667)),
        Row(text: "127.0.0.1:0", address: .ipv4(0x7F00_0001, port: 0), isLoopback: true),
        Row(text: "127.255.0.9:65535", address: .ipv4(0x7FFF_0009, port: 65535), isLoopback: true),
        Row(text: "[::1]:80", address: .ipv6(high: 0, low: 1, port: 80, scope: 0), isLoopback: true),
        Row(text: "[::]:80", address: .ipv6(high: 0, low: 0, port: 80, scope: 0)),
        Row(
            text: "[2001:db8::8:800:200c:417a]:443",
            address: .ipv6(high: 0x2001_0DB8_0000_0000, low: 0x0008_0800_200C_417A, port: 443, scope: 0)),
        Row(
            text: "[fe80::1%1]:80", address: .ipv6(high: 0xFE80_0000_0000_0000, low: 1, port: 80, scope: 1)),
        Row(text: "unix:/run/chat.sock", address: .unix(path: "/run/chat.sock"), isLoopback: true),
    ]

    @Test("an address is read from its text and printed as the same text", arguments: rows)
    func bothWays(row: Row) {
        #expect(SocketAddress(row.text) == row.address)
        #expect(row.address.description == row.text)
        #expect(row.address.isLoopback == row.isLoopback)
    }

    @Test("IPv4 in the clothes of IPv6 is IPv4")
    func mapped() {
        #expect(SocketAddress("[::ffff:127.0.0.1]:80") == .ipv4(0x7F00_0001, port: 80))
    }

    @Test(
        "what is no numeric address is refused",
        arguments: [
            "", ":", "80", "localhost:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "::1:80",
            "[::1]", "[::1]80", "[::1:80", "[fe80::1%nosuchzone]:80", "1.2.3:80", "1.2.3.4.5:80", "unix:",
            "unix:" + String(repeating: "p", count: 108),
        ])
    func refused(text: String) {
        #expect(SocketAddress(text) == nil)
    }

    @Test("hosts come with and without brackets; names and wild ports do not count")
    func hosts() {
        #expect(SocketAddress(host: "::1", port: 1) == SocketAddress(host: "[::1]", port: 1))
        #expect(SocketAddress(host: "::1", port: 65536) == nil)
        #expect(SocketAddress(host: "localhost", port: 1) == nil)
        #expect(SocketAddress(host: "192.0.2.1", port: 7)?.host == "192.0.2.1")
    }
}

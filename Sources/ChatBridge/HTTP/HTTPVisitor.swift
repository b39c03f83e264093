import Configuration
import HTTPProtocol
import Transport
import WireBytes

/// The owner of a connection or request, for fair limits.
struct HTTPVisitor: Hashable, Sendable {
    /// The visitor's address, or of an IPv6 address the /64, all of which one customer has.
    var network: String
    /// Many indistinguishable clients may share the address: a proxy that does not name them.
    var isSharedAddress: Bool

    /// The key for limits. A proxy is distinct from a visitor at its address.
    var key: String { isSharedAddress ? "behind " + network : network }

    init(network: String, isSharedAddress: Bool = false) {
        self.network = network
        self.isSharedAddress = isSharedAddress
    }

    /// The owner of a connection, before any request.
    init(_ peer: SocketAddress, _ proxies: HTTPProxies) {
        guard let address = NetworkAddress(peer.host) else {
            self.init(network: peer.host, isSharedAddress: true)
            return
        }
        self.init(network: Self.network(of: address), isSharedAddress: proxies.contains(address))
    }

    /// The owner of a request, as far as named proxies tell.
    ///
    /// Only configured proxies count: any local client could invent addresses, and so start anew for each guess at a
    /// password. Only the last address that is not a named proxy's counts: earlier entries are the visitor's own.
    init(_ peer: SocketAddress, _ headers: HTTPHeaders, _ proxies: HTTPProxies) {
        self.init(peer, proxies)
        guard let address = NetworkAddress(peer.host), proxies.isNamed(address) else { return }
        for text in headers.listItems("X-Forwarded-For").reversed() {
            guard let address = NetworkAddress(text) else { return }
            guard !proxies.isNamed(address) else { continue }
            self = HTTPVisitor(network: Self.network(of: address))
            return
        }
    }

    static func network(of address: NetworkAddress) -> String {
        guard address.bytes.count == 16 else { return address.description }
        let groups = stride(from: 0, to: 8, by: 2).map {
            UInt16(address.bytes[$0]) << 8 | UInt16(address.bytes[$0 + 1])
        }
        return groups.map { String($0, radix: 16) }.joined(separator: ":") + "::/64"
    }
}

/// Web servers that stand before us.
struct HTTPProxies: Equatable, Sendable {
    /// Proxies trusted for X-Forwarded-For; empty: none, and clients on this machine or in a private network may be
    /// proxies.
    var named: [NetworkRange] = []

    /// Whether many may come from there.
    func contains(_ address: NetworkAddress) -> Bool { named.isEmpty ? Self.isInside(address) : isNamed(address) }

    func isNamed(_ address: NetworkAddress) -> Bool { named.contains { $0.contains(address) } }

    /// Source: RFC 1918 §3; RFC 4193 §3.1; RFC 4291 §2.5.6; RFC 6598 §7.
    private static let insides = [
        "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1", "fc00::/7", "fe80::/10",
    ].compactMap { NetworkRange($0) }

    private static func isInside(_ address: NetworkAddress) -> Bool { insides.contains { $0.contains(address) } }
}

extension HTTPConfiguration {
    var proxies: HTTPProxies { HTTPProxies(named: TrustedPeers(trustedProxies).ranges) }
}

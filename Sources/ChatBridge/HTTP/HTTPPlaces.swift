import HTTPProtocol
import Transport
import WireBytes

/// Places for what is under way at a time, in all and for each owner: whoever holds a pass has one, and lets it go with the
/// pass, however the work ends.
final class HTTPPlaces {
    final class Pass {
        private let places: HTTPPlaces
        private let owner: String?

        fileprivate init(_ places: HTTPPlaces, _ owner: String?) {
            self.places = places
            self.owner = owner
        }

        deinit { places.free(owner) }
    }

    private let limit: Int
    private let limitOfEach: Int
    private(set) var taken = 0
    private var takenByOwner: [String: Int] = [:]

    init(limit: Int, limitOfEach: Int) {
        self.limit = limit
        self.limitOfEach = limitOfEach
    }

    var isFull: Bool { taken >= limit }

    /// Whether `owner` has as many places as one may have.
    func isFull(for owner: String?) -> Bool { owner.map { takenByOwner[$0, default: 0] >= limitOfEach } ?? false }

    /// - Parameter owner: nil: nobody knows whose it is; only the places in all count.
    /// - Returns: nil: there is none.
    func take(for owner: String?) -> Pass? {
        guard !isFull, !isFull(for: owner) else { return nil }
        taken += 1
        if let owner { takenByOwner[owner, default: 0] += 1 }
        return Pass(self, owner)
    }

    private func free(_ owner: String?) {
        taken -= 1
        guard let owner, let count = takenByOwner[owner] else { return }
        takenByOwner[owner] = count > 1 ? count - 1 : nil
    }
}

/// Whose connection it is that asks, so that one visitor cannot take what all have to share.
enum HTTPVisitor {
    /// The visitor's address, or of an IPv6 address the /64, all of which one customer has. Nil where it is not known:
    /// behind a web server of this machine or this network that does not say for whom it asks.
    ///
    /// Only the last address that was added counts; what stands before it is the visitor's own word. A server that passes
    /// on a field that it did not write lets its visitors choose what they count as, and no more than that.
    static func network(_ peer: SocketAddress, _ headers: HTTPHeaders) -> String? {
        guard let address = NetworkAddress(peer.host) else { return nil }
        guard isInside(address) else { return network(of: address) }
        return headers.listItems("X-Forwarded-For").last.flatMap { NetworkAddress($0) }.map { network(of: $0) }
    }

    static func network(of address: NetworkAddress) -> String {
        guard address.bytes.count == 16 else { return address.description }
        let groups = stride(from: 0, to: 8, by: 2).map {
            UInt16(address.bytes[$0]) << 8 | UInt16(address.bytes[$0 + 1])
        }
        return groups.map { String($0, radix: 16) }.joined(separator: ":") + "::/64"
    }

    /// Source: RFC 1918 §3; RFC 4193 §3.1; RFC 4291 §2.5.6; RFC 6598 §7.
    private static let insides = [
        "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1", "fc00::/7", "fe80::/10",
    ].compactMap { NetworkRange($0) }

    private static func isInside(_ address: NetworkAddress) -> Bool { insides.contains { $0.contains(address) } }
}

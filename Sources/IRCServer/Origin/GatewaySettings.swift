import Accounts
import WireBytes

/// A gateway whose word about the addresses of its users is taken.
public struct GatewaySettings: Equatable, Sendable {
    public var password: ServerPassword
    public var from: [NetworkRange]
    /// Whether it may come over a socket file.
    public var fromUnix: Bool

    public init(password: ServerPassword, from: [NetworkRange], fromUnix: Bool = false) {
        self.password = password
        self.from = from
        self.fromUnix = fromUnix
    }

    func mayConnect(from address: String) -> Bool {
        guard let numeric = NetworkAddress(address) else { return fromUnix && address == ClientOrigin.localName }
        return from.contains { $0.contains(numeric) }
    }
}

extension ClientOrigin {
    /// Stands for the address of whoever comes over a socket file.
    public static let localName = "localhost"
}

import Accounts
import BridgeTypes
import WireBytes

/// Limits per network: the number of clients, and the rate of connections.
final class AddressLimits {
    /// Networks whose connection rate is remembered; beyond it, those without a client are evicted.
    private static let rememberedNetworks = 10_000

    private struct Use {
        var clients = 0
        var accepts: TokenBucket
    }

    private var limits: LimitSettings
    private let gateways: [WebIRCSettings]
    private var uses: [String: Use] = [:]
    private var sweepCount = AddressLimits.rememberedNetworks

    init(_ settings: BridgeSettings) { (limits, gateways) = (settings.limits, settings.gateways) }

    /// They apply to later connections.
    func take(_ limits: LimitSettings) { self.limits = limits }

    /// The network that a client shares with others from its address; nil: the address stands for many clients, as a
    /// gateway's does until WEBIRC, and 127.0.0.1 for all clients behind a process on this host.
    func network(of origin: ClientOrigin) -> String? {
        if origin.isLocal {
            switch origin.address {
            case "127.0.0.1", "::1", "": return nil
            default: break
            }
        }
        if gateways.contains(where: { $0.mayConnect(from: origin.address) }) { return nil }
        return LoginThrottle.network(of: origin.address)
    }

    /// The network to which a client is counted; nil: none.
    private func countedNetwork(of origin: ClientOrigin) -> String? { origin.isLocal ? nil : network(of: origin) }

    /// The reason to refuse one more client from there; nil: it is accepted.
    func refusal(of origin: ClientOrigin, now: MonotonicInstant) -> String? {
        guard let network = countedNetwork(of: origin) else { return nil }
        var use =
            uses[network]
            ?? Use(
                accepts: TokenBucket(
                    rate: limits.acceptsPerSecondPerAddress, burst: (limits.acceptsPerSecondPerAddress ?? 0) * 2))
        defer {
            if uses.count > sweepCount {
                uses = uses.filter { $0.value.clients > 0 }
                // With many networks in use, a sweep at the next one would find nothing to evict.
                sweepCount = max(Self.rememberedNetworks, uses.count * 2)
            }
            uses[network] = use
        }
        if use.clients >= limits.maxClientsPerAddress { return "too many connections from your address" }
        if !use.accepts.take(now: now) { return "too many connections in a short time" }
        return nil
    }

    func opened(_ origin: ClientOrigin) { count(origin, 1) }

    func closed(_ origin: ClientOrigin) { count(origin, -1) }

    private func count(_ origin: ClientOrigin, _ difference: Int) {
        if let network = countedNetwork(of: origin) { uses[network]?.clients += difference }
    }

    /// Counts a client at the address that its gateway gave. The result is the reason to refuse it; nil: it may stay.
    func move(_ old: ClientOrigin, to new: ClientOrigin, now: MonotonicInstant) -> String? {
        if let refusal = refusal(of: new, now: now) { return refusal }
        closed(old)
        opened(new)
        return nil
    }
}

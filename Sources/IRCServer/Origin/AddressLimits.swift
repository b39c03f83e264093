import BridgeTypes
import WireBytes

/// How many clients each network may have, and how fast they may connect.
final class AddressLimits {
    /// Networks whose rate of connecting is remembered before those without a client are forgotten.
    private static let rememberedNetworks = 10_000

    private struct Use {
        var clients = 0
        var accepts: TokenBucket
    }

    private let limits: LimitSettings
    private var uses: [String: Use] = [:]
    private var sweepCount = AddressLimits.rememberedNetworks

    init(_ limits: LimitSettings) { self.limits = limits }

    /// Why one more client from that network is refused; nil: it is not.
    ///
    /// - Parameter network: nil: its clients are not counted.
    func refusal(of network: String?, now: MonotonicInstant) -> String? {
        guard let network else { return nil }
        var use =
            uses[network]
            ?? Use(
                accepts: TokenBucket(
                    rate: limits.acceptsPerSecondPerAddress, burst: (limits.acceptsPerSecondPerAddress ?? 0) * 2))
        defer {
            if uses.count > sweepCount {
                uses = uses.filter { $0.value.clients > 0 }
                // With many networks in use, sweeping again at the next one would find nothing to forget.
                sweepCount = max(Self.rememberedNetworks, uses.count * 2)
            }
            uses[network] = use
        }
        if use.clients >= limits.maxClientsPerAddress { return "too many connections from your address" }
        if !use.accepts.take(now: now) { return "too many connections in a short time" }
        return nil
    }

    func opened(_ network: String?) { count(network, 1) }

    func closed(_ network: String?) { count(network, -1) }

    private func count(_ network: String?, _ difference: Int) {
        if let network { uses[network]?.clients += difference }
    }
}

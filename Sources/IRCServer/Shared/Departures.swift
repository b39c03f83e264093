import BridgeTypes
import WireBytes

/// The order and moments in which clients are disconnected at shutdown.
///
/// A few go at once. Many are spread over a time, in random order, so that they do not all reconnect at the same moment:
/// each has an equal slot of it, and goes at a random moment of that. Source: NATS, "Lame Duck Mode".
package struct Departures {
    /// The most clients that go at once.
    package static let maxAtOnce = 100

    /// The next one last.
    private var pending: [(client: ClientID, at: MonotonicInstant)]

    package static let none = Departures(pending: [])

    private init(pending: [(client: ClientID, at: MonotonicInstant)]) { self.pending = pending }

    /// - Parameters:
    ///   - clients: in the order in which a few go.
    ///   - over: the time for all, from `now` on.
    package init(
        of clients: [ClientID], now: MonotonicInstant, over time: Duration,
        using random: inout some RandomNumberGenerator
    ) {
        guard clients.count > Self.maxAtOnce, time > .zero else {
            pending = clients.reversed().map { ($0, now) }
            return
        }
        let slot = time / clients.count
        pending = []
        for (index, client) in clients.shuffled(using: &random).enumerated() {
            let part = Double.random(in: 0..<1, using: &random)
            pending.append((client, now + slot * index + slot * part))
        }
        pending.reverse()
    }

    /// The moment of the next departure; nil: all are gone.
    package var next: MonotonicInstant? { pending.last?.at }

    /// Whether the moment of the last departure has come.
    package func endBy(_ now: MonotonicInstant) -> Bool { pending.allSatisfy { $0.at <= now } }

    /// A client whose moment has come.
    package mutating func popDue(_ now: MonotonicInstant) -> ClientID? {
        guard let next, next <= now else { return nil }
        return pending.popLast()?.client
    }
}

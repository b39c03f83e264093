import WireBytes

/// The delays of answers to log-ins. After failures, successes are delayed as well: otherwise the absence of an immediate
/// answer would reveal a failure.
///
/// | failures are counted by                      | and cleared by                                                  |
/// |----------------------------------------------|------------------------------------------------------------------|
/// | the client's address, for all targets        | a success of that address, for the same target                  |
/// | the account, for all addresses               | time only; addresses with an earlier log-in are not delayed     |
///
/// The longer delay applies. Where the account logged in before, a success is delayed by failures of that address for that
/// account only, and elsewhere by at most ``maxSuccessDelay``: an attacker cannot lock a user out. The first failure is
/// answered at once; each further one doubles the delay, up to ``maxDelay``. Failures expire after ``retention``.
package struct LoginThrottle {
    package static let firstDelay: Duration = .seconds(1)
    /// WeeChat aborts a log-in after 15 s; by then it has received the reason of earlier failures.
    package static let maxDelay: Duration = .seconds(30)
    /// Below the log-in time-out of clients.
    package static let maxSuccessDelay: Duration = .seconds(10)
    package static let retention: Duration = .seconds(15 * 60)
    /// Limit of addresses, and of accounts, about 100 bytes each. Beyond it the oldest failures are evicted.
    package static let capacity = 10_000
    /// Limit in characters for names without an account.
    package static let maxNameLength = 64
    /// Limit of distinct targets of one address; beyond it failures are counted together and no success clears them.
    private static let maxTargets = 32
    /// Limit of known addresses of an account, the newest: home, work, phone, travel.
    private static let maxKnownAddresses = 8
    /// Further failures do not extend the delay.
    private static let maxFailures = 16

    /// The target of a log-in.
    package enum Target: Hashable {
        /// A folded account name, also of an account that does not exist: the delay must not reveal that.
        case account(String)
        /// The server's password.
        case server
        case gateway
        /// A backend's token.
        case token
        /// No target was given.
        case unknown
    }

    private struct Failures {
        var counts: [Target: Int] = [:]
        var lastAt: MonotonicInstant

        /// - Parameter target: counts failures of this target only; nil: all.
        func delay(at target: Target? = nil) -> Duration {
            let failures = target.map { counts[$0] ?? 0 } ?? counts.values.reduce(0, +)
            let count = min(failures, LoginThrottle.maxFailures)
            guard count > 1 else { return .zero }
            return min(LoginThrottle.maxDelay, LoginThrottle.firstDelay * (1 << (count - 2)))
        }

        /// The rest of the delay of the last answer.
        func rest(at target: Target? = nil, now: MonotonicInstant) -> Duration {
            max(.zero, delay(at: target) - (now - lastAt))
        }
    }

    private var places: [String: Failures] = [:]
    private var accounts: [String: Failures] = [:]
    /// By account, the newest last.
    private var knownAddresses: [String: [String]] = [:]

    /// The number of addresses with failures.
    package var count: Int { places.count }

    /// Records a failure and returns the delay of its answer.
    package mutating func recordFailure(_ address: String, _ target: Target, now: MonotonicInstant) -> Duration {
        let place = Self.network(of: address)
        let wait = Self.record(target, of: place, in: &places, now: now)
        guard case .account(let account) = target, knownAddresses[account]?.contains(place) != true else { return wait }
        return max(wait, Self.record(target, of: account, in: &accounts, now: now))
    }

    /// Records a failure that counts by `place` only, which is compared verbatim.
    package mutating func recordFailure(at place: String, now: MonotonicInstant) -> Duration {
        Self.record(.unknown, of: place, in: &places, now: now)
    }

    /// The delay of the answer to a success.
    package func successDelay(_ address: String, _ target: Target, now: MonotonicInstant) -> Duration {
        let place = Self.network(of: address)
        var owed: Duration?
        if case .account(let account) = target {
            if knownAddresses[account]?.contains(place) == true {
                owed = places[place]?.rest(at: target, now: now) ?? .zero
            } else if let elsewhere = accounts[account]?.rest(now: now) {
                owed = max(elsewhere, places[place]?.rest(now: now) ?? .zero)
            }
        }
        return min(owed ?? places[place]?.rest(now: now) ?? .zero, Self.maxSuccessDelay)
    }

    /// Records a success, which clears the failures of this address for the same target.
    package mutating func recordSuccess(_ address: String, _ target: Target) {
        let place = Self.network(of: address)
        places[place]?.counts[target] = nil
        if places[place]?.counts.isEmpty == true { places[place] = nil }
        guard case .account(let account) = target else { return }
        var known = knownAddresses[account, default: []].filter { $0 != place }.suffix(Self.maxKnownAddresses - 1)
        known.append(place)
        // Bounded, since accounts of backends are as many as their users.
        if knownAddresses[account] == nil, knownAddresses.count >= Self.capacity {
            knownAddresses.remove(at: knownAddresses.startIndex)
        }
        knownAddresses[account] = Array(known)
    }

    package mutating func recordSuccess(at place: String) { places[place] = nil }

    private static func record(
        _ target: Target, of key: String, in table: inout [String: Failures], now: MonotonicInstant
    ) -> Duration {
        var failures = table[key] ?? Failures(lastAt: now)
        if now - failures.lastAt > retention { failures.counts = [:] }
        let isKnown = failures.counts[target] != nil || failures.counts.count < maxTargets
        let counted = isKnown ? target : .unknown
        failures.counts[counted] = min(failures.counts[counted, default: 0] + 1, maxFailures)
        failures.lastAt = now
        if table[key] == nil, table.count >= capacity { evict(from: &table, now) }
        table[key] = failures
        return failures.delay()
    }

    /// The /64 of an IPv6 address, which one customer has; any other address unchanged.
    package static func network(of address: String) -> String {
        // A dot: IPv4, or IPv4-mapped IPv6.
        guard !address.utf8.contains(UInt8(ascii: ".")), address.utf8.contains(UInt8(ascii: ":")) else {
            return address
        }
        // `::` stands for two groups or more, so groups after it are beyond the first four in all real addresses.
        let groups = address.split(separator: ":", omittingEmptySubsequences: false).prefix { !$0.isEmpty }
        return groups.prefix(4).joined(separator: ":") + "::/64"
    }

    /// Evicts expired entries, or else the older half.
    private static func evict(from table: inout [String: Failures], _ now: MonotonicInstant) {
        table = table.filter { now - $0.value.lastAt <= retention }
        guard table.count > capacity / 2 else { return }
        let newest = table.sorted { $0.value.lastAt > $1.value.lastAt }.prefix(capacity / 2)
        table = Dictionary(newest.map { ($0.key, $0.value) }, uniquingKeysWith: { first, _ in first })
    }
}

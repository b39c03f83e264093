import WireBytes

/// How long the answer to a wrong password waits, and that to a right one that comes before it: else nobody need hear the
/// answer, since silence is one too.
///
/// | failures are counted by                                   | and forgiven by                                      |
/// |-----------------------------------------------------------|------------------------------------------------------|
/// | the address that they came from, whatever was tried there | a success there, as far as they were at the same     |
/// | the account that was tried, wherever from                 | time alone; and they keep no address waiting from    |
/// |                                                           | which the account logged in before                   |
///
/// The longer of the two waits counts. Where the account logged in before, what is right waits for failures at that account
/// there alone, and nowhere longer than ``longestForRight``, so nobody is locked out. The first failure is a slip and answered at once; every further one doubles the wait, up
/// to ``longest``. ``memory`` without another failure starts anew.
package struct LoginThrottle {
    package static let first: Duration = .seconds(1)
    /// Below the time that clients give a login before they give up (WeeChat: 15 s for one, but it is told why by then).
    package static let longest: Duration = .seconds(30)
    /// Below the time after which clients give a login up.
    package static let longestForRight: Duration = .seconds(10)
    package static let memory: Duration = .seconds(15 * 60)
    /// Addresses remembered, and accounts, about 100 bytes each. Past it those that failed longest ago are forgotten.
    package static let capacity = 10_000
    /// Of a name that is no account's no more is remembered.
    package static let longestName = 64
    /// Failures that are told apart by what was tried, of one address; past it no success forgives them.
    private static let maxTargets = 32
    /// Addresses from which an account is known: home, work, a phone and where it travels. The newest are remembered.
    private static let maxHomes = 8
    /// More of them make no wait longer.
    private static let maxFailures = 16

    /// What somebody tried to get into.
    package enum Target: Hashable {
        /// An account, folded, whether or not there is one of that name: the wait is not to tell.
        case account(String)
        /// The password that all have in common.
        case server
        case gateway
        /// A backend's token, of whomever.
        case token
        /// Nobody said which.
        case unknown
    }

    private struct Failures {
        var counts: [Target: Int] = [:]
        var lastAt: MonotonicInstant

        /// - Parameter target: only failures at this count; nil: all.
        func wait(at target: Target? = nil) -> Duration {
            let failures = target.map { counts[$0] ?? 0 } ?? counts.values.reduce(0, +)
            let count = min(failures, LoginThrottle.maxFailures)
            guard count > 1 else { return .zero }
            return min(LoginThrottle.longest, LoginThrottle.first * (1 << (count - 2)))
        }

        /// What is left of the wait for the last answer.
        func rest(at target: Target? = nil, now: MonotonicInstant) -> Duration {
            max(.zero, wait(at: target) - (now - lastAt))
        }
    }

    private var places: [String: Failures] = [:]
    private var accounts: [String: Failures] = [:]
    /// The newest last.
    private var homes: [String: [String]] = [:]

    /// Addresses.
    package var count: Int { places.count }

    /// Enters a failure and tells how long its answer waits.
    package mutating func failed(_ address: String, _ target: Target, now: MonotonicInstant) -> Duration {
        let place = Self.network(of: address)
        let wait = Self.enter(target, of: place, in: &places, now: now)
        guard case .account(let account) = target, homes[account]?.contains(place) != true else { return wait }
        return max(wait, Self.enter(target, of: account, in: &accounts, now: now))
    }

    /// Enters a failure that is counted by its place alone.
    ///
    /// - Parameter place: compared as it is.
    package mutating func failed(at place: String, now: MonotonicInstant) -> Duration {
        Self.enter(.unknown, of: place, in: &places, now: now)
    }

    /// How long the answer to what is right waits.
    package func owed(_ address: String, _ target: Target, now: MonotonicInstant) -> Duration {
        let place = Self.network(of: address)
        var owed: Duration?
        if case .account(let account) = target {
            if homes[account]?.contains(place) == true {
                owed = places[place]?.rest(at: target, now: now) ?? .zero
            } else if let elsewhere = accounts[account]?.rest(now: now) {
                owed = max(elsewhere, places[place]?.rest(now: now) ?? .zero)
            }
        }
        return min(owed ?? places[place]?.rest(now: now) ?? .zero, Self.longestForRight)
    }

    /// Enters a success, which forgives the failures of this address at the same.
    package mutating func succeeded(_ address: String, _ target: Target) {
        let place = Self.network(of: address)
        places[place]?.counts[target] = nil
        if places[place]?.counts.isEmpty == true { places[place] = nil }
        guard case .account(let account) = target else { return }
        var known = homes[account, default: []].filter { $0 != place }.suffix(Self.maxHomes - 1)
        known.append(place)
        // As many as there are accounts; those of backends are as many as there are people.
        if homes[account] == nil, homes.count >= Self.capacity { homes.remove(at: homes.startIndex) }
        homes[account] = Array(known)
    }

    package mutating func succeeded(at place: String) { places[place] = nil }

    private static func enter(
        _ target: Target, of key: String, in table: inout [String: Failures], now: MonotonicInstant
    ) -> Duration {
        var failures = table[key] ?? Failures(lastAt: now)
        if now - failures.lastAt > memory { failures.counts = [:] }
        let isKnown = failures.counts[target] != nil || failures.counts.count < maxTargets
        let counted = isKnown ? target : .unknown
        failures.counts[counted] = min(failures.counts[counted, default: 0] + 1, maxFailures)
        failures.lastAt = now
        if table[key] == nil, table.count >= capacity { makeRoom(in: &table, now) }
        table[key] = failures
        return failures.wait()
    }

    /// An IPv6 address stands for its /64, all of which one customer has; any other address stands for itself.
    package static func network(of address: String) -> String {
        // With a dot: IPv4, or IPv4 inside IPv6.
        guard address.utf8.contains(UInt8(ascii: ":")), !address.utf8.contains(UInt8(ascii: ".")) else {
            return address
        }
        // A gap stands for two groups or more, so what lies behind it is beyond the first four in all real addresses.
        let groups = address.split(separator: ":", omittingEmptySubsequences: false).prefix { !$0.isEmpty }
        return groups.prefix(4).joined(separator: ":") + "::/64"
    }

    /// Forgets what is old, and when that is not half of it, the older half.
    private static func makeRoom(in table: inout [String: Failures], _ now: MonotonicInstant) {
        table = table.filter { now - $0.value.lastAt <= memory }
        guard table.count > capacity / 2 else { return }
        let newest = table.sorted { $0.value.lastAt > $1.value.lastAt }.prefix(capacity / 2)
        table = Dictionary(newest.map { ($0.key, $0.value) }, uniquingKeysWith: { first, _ in first })
    }
}

import WireBytes

/// The rate limit of registrations by address.
package struct RegistrationThrottle {
    package static let accountsPerAddress = 5
    package static let period: Duration = .seconds(60 * 60)
    /// Limit of addresses, about 100 bytes each. Beyond it new addresses are refused until old ones expire: an attacker
    /// with that many addresses must not get as many accounts.
    package static let capacity = 10_000

    private struct Entry {
        package var count: Int
        var since: MonotonicInstant
    }

    private var entries: [String: Entry] = [:]
    /// Until then no entry is looked for that has expired: the last search found none.
    private var isFullUntil: MonotonicInstant?
    private static let searchPause: Duration = .seconds(60)

    package var count: Int { entries.count }

    package init() {}

    /// Counts one registration; false: the limit is reached.
    package mutating func take(_ address: String, now: MonotonicInstant) -> Bool {
        let network = LoginThrottle.network(of: address)
        if entries.count >= Self.capacity, entries[network] == nil {
            if let isFullUntil, now < isFullUntil { return false }
            entries = entries.filter { now - $0.value.since < Self.period }
            isFullUntil = now + Self.searchPause
            guard entries.count < Self.capacity else { return false }
        }
        var entry = entries[network] ?? Entry(count: 0, since: now)
        if now - entry.since >= Self.period { entry = Entry(count: 0, since: now) }
        guard entry.count < Self.accountsPerAddress else { return false }
        entry.count += 1
        entries[network] = entry
        return true
    }
}

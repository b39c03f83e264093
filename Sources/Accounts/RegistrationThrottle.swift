import WireBytes

/// How many accounts may be made from an address: a person needs one, and who is behind one address with many others is no
/// worse off an hour later.
package struct RegistrationThrottle {
    package static let accountsPerAddress = 5
    package static let period: Duration = .seconds(60 * 60)
    /// Addresses remembered, about 100 bytes each. With more, nobody from a new one makes an account before the oldest is
    /// forgotten: whoever has so many addresses is not to have as many accounts.
    package static let capacity = 10_000

    private struct Entry {
        package var count: Int
        var since: MonotonicInstant
    }

    private var entries: [String: Entry] = [:]
    /// Until then it need not be looked whether something can be forgotten: nothing could be a moment ago.
    private var isFullUntil: MonotonicInstant?
    private static let rest: Duration = .seconds(60)

    package var count: Int { entries.count }

    package init() {}

    /// Counts one; false when there were too many.
    package mutating func take(_ address: String, now: MonotonicInstant) -> Bool {
        let network = LoginThrottle.network(of: address)
        if entries.count >= Self.capacity, entries[network] == nil {
            if let isFullUntil, now < isFullUntil { return false }
            entries = entries.filter { now - $0.value.since < Self.period }
            isFullUntil = now + Self.rest
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

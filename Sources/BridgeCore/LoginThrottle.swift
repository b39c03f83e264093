import WireBytes

/// How long the answer to a wrong password waits, by the address that it came from, or whatever failures are counted by.
///
/// The first failure is a slip and answered at once; every further one doubles the wait, up to ``longest``. A success, or
/// ``memory`` without another failure, starts anew.
struct LoginThrottle {
    static let first: Duration = .seconds(1)
    /// Below the time that clients give a login before they give up (WeeChat: 15 s for one, but it is told why by then).
    static let longest: Duration = .seconds(30)
    static let memory: Duration = .seconds(15 * 60)
    /// Places remembered, about 100 bytes each. Past it those that failed longest ago are forgotten.
    static let capacity = 10_000

    private struct Entry {
        var failures: Int
        var lastAt: MonotonicInstant
    }

    private var entries: [String: Entry] = [:]

    var count: Int { entries.count }

    /// Enters a failure and tells how long its answer waits.
    mutating func failed(_ address: String, now: MonotonicInstant) -> Duration {
        failed(at: Self.network(of: address), now: now)
    }

    /// Likewise.
    ///
    /// - Parameter place: compared as it is.
    mutating func failed(at place: String, now: MonotonicInstant) -> Duration {
        var entry = entries[place] ?? Entry(failures: 0, lastAt: now)
        if now - entry.lastAt > Self.memory { entry.failures = 0 }
        entry.failures = min(entry.failures + 1, 16)
        entry.lastAt = now
        if entries[place] == nil, entries.count >= Self.capacity { makeRoom(now) }
        entries[place] = entry
        guard entry.failures > 1 else { return .zero }
        return min(Self.longest, Self.first * (1 << (entry.failures - 2)))
    }

    mutating func succeeded(_ address: String) { succeeded(at: Self.network(of: address)) }

    mutating func succeeded(at place: String) { entries[place] = nil }

    /// An IPv6 address stands for its /64, all of which one customer has; any other address stands for itself.
    static func network(of address: String) -> String {
        // With a dot: IPv4, or IPv4 inside IPv6.
        guard address.utf8.contains(UInt8(ascii: ":")), !address.utf8.contains(UInt8(ascii: ".")) else {
            return address
        }
        // A gap stands for two groups or more, so what lies behind it is beyond the first four in all real addresses.
        let groups = address.split(separator: ":", omittingEmptySubsequences: false).prefix { !$0.isEmpty }
        return groups.prefix(4).joined(separator: ":") + "::/64"
    }

    /// Forgets what is old, and when that is not half of it, the older half.
    private mutating func makeRoom(_ now: MonotonicInstant) {
        entries = entries.filter { now - $0.value.lastAt <= Self.memory }
        guard entries.count > Self.capacity / 2 else { return }
        let newest = entries.sorted { $0.value.lastAt > $1.value.lastAt }.prefix(Self.capacity / 2)
        entries = Dictionary(newest.map { ($0.key, $0.value) }, uniquingKeysWith: { first, _ in first })
    }
}

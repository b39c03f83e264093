import ChatModel
import Digests
import IRCProtocol
import WireBytes

/// Who may log in: the accounts of the configuration, and those that people made themselves.
struct AccountBook {
    /// Accounts that people may make, all together; about 400 bytes each, in memory and on disk.
    static let maxMade = 10_000

    private var byName: [String: AccountSettings] = [:]
    private var nameByCertificate: [String: String] = [:]
    /// By the id or the name that the backend has for the person, as bytes: those who differ in one are two people there.
    private var nameByToken: [[UInt8]: String] = [:]
    /// Names of those that people made, folded.
    private var made: Set<String> = []
    /// Iterations that every check of a password takes, so that accounts cannot be told apart by time.
    private(set) var passwordCost: Int
    /// The iterations that passwords of accounts have, each once.
    private var iterations: Set<Int> = []

    /// - Parameter least: iterations of accounts that are yet to come; nil: there will be none.
    init(_ configured: [AccountSettings], least: Int?) {
        let cost = (configured.compactMap(\.password?.iterations) + (least.map { [$0] } ?? [])).max()
        passwordCost = cost ?? SCRAMVerifier.defaultIterations
        for account in configured where byName[Self.fold(account.name)] == nil { add(account) }
    }

    /// Iterations for a name that is none: some that accounts have, since any other number would tell that it is none. Each name
    /// has the same ones always, also when more accounts come that have others, but for as few names as can be.
    func decoyIterations(_ name: String, key: [UInt8]) -> Int {
        let folded = Self.fold(name)
        // Whichever draws the highest lot. Source: Thaler and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996.
        let lots = iterations.map { (lot: HMACSHA256.authenticate(Array("\($0)/\(folded)".utf8), key: key), count: $0) }
        return lots.max { $0.lot.lexicographicallyPrecedes($1.lot) }?.count ?? passwordCost
    }

    static func fold(_ name: String) -> String { IRCCasemapping.ascii.fold(name) }

    var isEmpty: Bool { byName.isEmpty }
    func hasRoom(for more: Int) -> Bool { made.count + more <= Self.maxMade }
    var hasCertificates: Bool { !nameByCertificate.isEmpty }
    /// Whether any account may say things under others' names.
    private(set) var mayRelay = false

    /// Without regard to ASCII case.
    subscript(name: String) -> AccountSettings? { byName[Self.fold(name)] }

    func account(certificate: String) -> AccountSettings? { nameByCertificate[certificate].flatMap { byName[$0] } }

    /// The account of somebody whom the backend vouches for: by the id where it has ids, else by the name.
    func account(of person: ChatPerson) -> AccountSettings? {
        (person.id?.rawValue ?? person.name).flatMap { nameByToken[Array($0.utf8)] }.flatMap { byName[$0] }
    }

    private mutating func add(_ account: AccountSettings) {
        let folded = Self.fold(account.name)
        byName[folded] = account
        if let password = account.password { iterations.insert(password.iterations) }
        if account.mayRelay { mayRelay = true }
        for certificate in account.certificates { nameByCertificate[certificate] = folded }
        for owner in account.tokenOwners { nameByToken[Array(owner.utf8)] = folded }
    }

    /// Enters an account that somebody made. False where the configuration has one of that name, which wins.
    mutating func addMade(_ account: AccountSettings) -> Bool {
        guard self[account.name] == nil else { return false }
        made.insert(Self.fold(account.name))
        passwordCost = max(passwordCost, account.password?.iterations ?? 0)
        add(account)
        return true
    }
}

/// How many accounts may be made from an address: a person needs one, and who is behind one address with many others is no
/// worse off an hour later.
struct RegistrationThrottle {
    static let accountsPerAddress = 5
    static let period: Duration = .seconds(60 * 60)
    /// Addresses remembered, about 100 bytes each. With more, nobody from a new one makes an account before the oldest is
    /// forgotten: whoever has so many addresses is not to have as many accounts.
    static let capacity = 10_000

    private struct Entry {
        var count: Int
        var since: MonotonicInstant
    }

    private var entries: [String: Entry] = [:]
    /// Until then it need not be looked whether something can be forgotten: nothing could be a moment ago.
    private var isFullUntil: MonotonicInstant?
    private static let rest: Duration = .seconds(60)

    var count: Int { entries.count }

    /// Counts one; false when there were too many.
    mutating func take(_ address: String, now: MonotonicInstant) -> Bool {
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

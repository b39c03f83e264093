import BridgeTypes
import ChatModel
import Digests

/// All accounts: configured and registered ones.
package final class AccountTable {
    /// Limit of registered accounts, about 400 bytes each in memory and on disk.
    package static let maxRegistered = 10_000

    /// The form in which names are compared. All else finds an account by its own spelling.
    let fold: (String) -> String
    private var byName: [String: AccountSettings] = [:]
    private var nameByCertificate: [String: String] = [:]
    /// By the user's id or name at the backend, compared as bytes: names that differ in one byte are two users there.
    private var nameByToken: [[UInt8]: String] = [:]
    /// As written in the configuration.
    package private(set) var configuredNames: Set<String> = []
    /// Registered accounts by folded name.
    private var registered: [String: AccountSettings] = [:]
    /// Iterations of every password check, so that timing does not reveal an account.
    package private(set) var passwordCost: Int
    /// The distinct iteration counts of the accounts' passwords.
    private var iterations: Set<Int> = []

    /// - Parameter minIterations: of accounts registered later; nil: registration is off.
    package init(
        _ configured: [AccountSettings], minIterations: Int?, fold: @escaping (String) -> String = AccountName.fold
    ) {
        self.fold = fold
        let cost = (configured.compactMap(\.password?.iterations) + (minIterations.map { [$0] } ?? [])).max()
        passwordCost = cost ?? SCRAMVerifier.defaultIterations
        for account in configured where byName[fold(account.name)] == nil { add(account) }
        configuredNames = Set(configured.map(\.name))
    }

    /// Replaces the configured accounts. Registered ones stay, but for names that are configured now.
    package func take(_ configured: [AccountSettings]) {
        (byName, nameByCertificate, nameByToken, iterations, mayRelay) = ([:], [:], [:], [], false)
        for account in configured where byName[fold(account.name)] == nil {
            passwordCost = max(passwordCost, account.password?.iterations ?? 0)
            add(account)
        }
        for (name, account) in registered where byName[name] == nil { add(account) }
        configuredNames = Set(configured.map(\.name))
    }

    /// The iteration count for a name without an account: one that accounts have, since any other would reveal that the
    /// account does not exist. It stays the same for a name; new iteration counts change it for as few names as possible.
    func decoyIterations(_ name: String, key: [UInt8]) -> Int {
        let folded = fold(name)
        // Rendezvous hashing. Source: Thaler and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996.
        let weights = iterations.map {
            (weight: HMACSHA256.authenticate(Array("\($0)/\(folded)".utf8), key: key), count: $0)
        }
        return weights.max { $0.weight.lexicographicallyPrecedes($1.weight) }?.count ?? passwordCost
    }

    package var isEmpty: Bool { byName.isEmpty }
    package func hasRoom(for more: Int) -> Bool { registered.count + more <= Self.maxRegistered }
    package var hasCertificates: Bool { !nameByCertificate.isEmpty }
    /// Whether any account may use RELAYMSG.
    package private(set) var mayRelay = false

    /// The account of that name, without regard to case.
    package subscript(name: String) -> AccountSettings? { byName[fold(name)] }

    /// The present spelling of the account with stored data under `name`; without such an account the name itself.
    ///
    /// Stored names are folded as ASCII, whatever the casemapping: another account of today's that has that name
    /// otherwise gets none of the data.
    package func spelling(of name: String) -> String {
        guard let found = self[name]?.name, AccountName.fold(found) == AccountName.fold(name) else { return name }
        return found
    }

    package func account(certificate: String) -> AccountSettings? {
        nameByCertificate[certificate].flatMap { byName[$0] }
    }

    /// The account of a user authenticated by the backend: by id where the dialect has ids, else by name.
    package func account(of person: ChatPerson) -> AccountSettings? {
        (person.id?.rawValue ?? person.name).flatMap { nameByToken[Array($0.utf8)] }.flatMap { byName[$0] }
    }

    private func add(_ account: AccountSettings) {
        let folded = fold(account.name)
        byName[folded] = account
        if let password = account.password { iterations.insert(password.iterations) }
        if account.mayRelay { mayRelay = true }
        for certificate in account.certificates { nameByCertificate[certificate] = folded }
        for owner in account.tokenOwners { nameByToken[Array(owner.utf8)] = folded }
    }

    /// Removes a registered account. False: there is none of that name.
    package func removeRegistered(_ name: String) -> Bool {
        guard registered.removeValue(forKey: fold(name)) != nil else { return false }
        let configured = byName.values.filter { configuredNames.contains($0.name) }
        take(configured)
        return true
    }

    /// Adds a registered account. False: a configured account has that name and takes precedence.
    package func addRegistered(_ account: AccountSettings) -> Bool {
        guard self[account.name] == nil else { return false }
        registered[fold(account.name)] = account
        passwordCost = max(passwordCost, account.password?.iterations ?? 0)
        add(account)
        return true
    }
}

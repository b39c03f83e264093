import BridgeTypes
import ChatModel
import Digests

/// Who may log in: the accounts of the configuration, and those that people made themselves.
package final class AccountBook {
    /// Accounts that people may make, all together; about 400 bytes each, in memory and on disk.
    package static let maxMade = 10_000

    private var byName: [String: AccountSettings] = [:]
    private var nameByCertificate: [String: String] = [:]
    /// By the id or the name that the backend has for the person, as bytes: those who differ in one are two people there.
    private var nameByToken: [[UInt8]: String] = [:]
    /// Names of those that people made, folded.
    private var made: Set<String> = []
    /// Iterations that every check of a password takes, so that accounts cannot be told apart by time.
    package private(set) var passwordCost: Int
    /// The iterations that passwords of accounts have, each once.
    private var iterations: Set<Int> = []

    /// - Parameter least: iterations of accounts that are yet to come; nil: there will be none.
    package init(_ configured: [AccountSettings], least: Int?) {
        let cost = (configured.compactMap(\.password?.iterations) + (least.map { [$0] } ?? [])).max()
        passwordCost = cost ?? SCRAMVerifier.defaultIterations
        for account in configured where byName[AccountName.fold(account.name)] == nil { add(account) }
    }

    /// Iterations for a name that is none: some that accounts have, since any other number would tell that it is none. Each name
    /// has the same ones always, also when more accounts come that have others, but for as few names as can be.
    func decoyIterations(_ name: String, key: [UInt8]) -> Int {
        let folded = AccountName.fold(name)
        // Whichever draws the highest lot. Source: Thaler and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996.
        let lots = iterations.map { (lot: HMACSHA256.authenticate(Array("\($0)/\(folded)".utf8), key: key), count: $0) }
        return lots.max { $0.lot.lexicographicallyPrecedes($1.lot) }?.count ?? passwordCost
    }

    package var isEmpty: Bool { byName.isEmpty }
    package func hasRoom(for more: Int) -> Bool { made.count + more <= Self.maxMade }
    package var hasCertificates: Bool { !nameByCertificate.isEmpty }
    /// Whether any account may say things under others' names.
    package private(set) var mayRelay = false

    /// Without regard to ASCII case.
    package subscript(name: String) -> AccountSettings? { byName[AccountName.fold(name)] }

    package func account(certificate: String) -> AccountSettings? {
        nameByCertificate[certificate].flatMap { byName[$0] }
    }

    /// The account of somebody whom the backend vouches for: by the id where it has ids, else by the name.
    package func account(of person: ChatPerson) -> AccountSettings? {
        (person.id?.rawValue ?? person.name).flatMap { nameByToken[Array($0.utf8)] }.flatMap { byName[$0] }
    }

    private func add(_ account: AccountSettings) {
        let folded = AccountName.fold(account.name)
        byName[folded] = account
        if let password = account.password { iterations.insert(password.iterations) }
        if account.mayRelay { mayRelay = true }
        for certificate in account.certificates { nameByCertificate[certificate] = folded }
        for owner in account.tokenOwners { nameByToken[Array(owner.utf8)] = folded }
    }

    /// Enters an account that somebody made. False where the configuration has one of that name, which wins.
    package func addMade(_ account: AccountSettings) -> Bool {
        guard self[account.name] == nil else { return false }
        made.insert(AccountName.fold(account.name))
        passwordCost = max(passwordCost, account.password?.iterations ?? 0)
        add(account)
        return true
    }
}

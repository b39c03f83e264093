import BridgeTypes
import ChatModel
import Digests
import Identities
import WireBytes

// Registration of accounts.
//
// | state      | meaning                                  | leaves by                                              |
// |------------|------------------------------------------|---------------------------------------------------------|
// | hashing    | the password is being hashed             | hash → storing; no thread, client gone, 30 s → cancelled |
// | storing    | the write is in flight                   | on disk → registered; refused, failing, 30 s → cancelled |
//
// The name is reserved from the start. Success is reported once the account is on disk. A registration that is cancelled
// during the write is deleted from the store.

/// Reasons to refuse a registration.
package enum RegistrationRefusal: Equatable {
    /// The name is no legal nick.
    case badName
    case exists
    /// A user has that nick.
    case inUse
    /// The name is confusable with another.
    case lookAlike
    case shortPassword
    case passwordIsName
    /// The limit of registered accounts is reached.
    case full
    /// Too many were registered from that address.
    case tooManyHere
}

/// The pending registrations of accounts.
package final class AccountRegistrations {
    /// Minimum length of a password in bytes. Source: NIST SP 800-63B §5.1.1.1.
    package static let minPasswordBytes = 8
    /// Time-out of a registration. Hashing takes a second, more under load; a stalled disk must not hold up a client for
    /// longer than other replies do.
    package static let timeout: Duration = .seconds(30)

    private struct Pending {
        var client: ClientID
        var name: String
        /// Identifies the hashing job.
        var attempt: UInt64
        /// The write in flight; nil: the password is still being hashed.
        var write: (ticket: StoreTicket, account: AccountSettings)?
    }

    private let accounts: AccountTable
    private let identities: IdentityMap
    /// By folded name.
    private var pending: [String: Pending] = [:]
    private var throttle = RegistrationThrottle()
    private var lastAttempt: UInt64 = 0

    package init(_ accounts: AccountTable, _ identities: IdentityMap) {
        self.accounts = accounts
        self.identities = identities
    }

    /// The number of pending registrations.
    package var count: Int { pending.count }

    /// The key of a pending registration.
    package func key(of name: String) -> String { accounts.fold(name) }

    /// The name of a pending account as written by the client.
    package func name(written name: String) -> String? { pending[accounts.fold(name)]?.name }

    // MARK: - Checks

    /// - Parameter holder: the requesting user; nil: not registered with IRC yet.
    package func refusal(of name: String, holder: PersonID?) -> RegistrationRefusal? {
        switch identities.refusal(nick: name, holder: holder) {
        case nil: return nil
        case .erroneous: return .badName
        case .inUse:
            if accounts[name] != nil || pending[accounts.fold(name)] != nil { return .exists }
            // A nick in use can become an account of its holder only.
            return identities.person(nick: name) != nil ? .inUse : .lookAlike
        }
    }

    package static func refusal(ofPassword password: String, for name: String) -> RegistrationRefusal? {
        if password.utf8.count < minPasswordBytes { return .shortPassword }
        return AccountName.fold(password) == AccountName.fold(name) ? .passwordIsName : nil
    }

    /// Takes one of the registrations allowed to an address.
    ///
    /// - Parameter address: nil: exempt.
    package func takeSlot(from address: String?, now: MonotonicInstant) -> RegistrationRefusal? {
        guard accounts.hasRoom(for: pending.count + 1) else { return .full }
        guard let address else { return nil }
        return throttle.take(address, now: now) ? nil : .tooManyHere
    }

    // MARK: - Steps

    package func begin(
        _ name: String, _ password: SecretBytes, _ client: ClientID, iterations: Int, _ turn: inout Turn
    ) -> PasswordHashing {
        lastAttempt &+= 1
        pending[accounts.fold(name)] = Pending(client: client, name: name, attempt: lastAttempt)
        identities.reserve(account: name)
        return PasswordHashing(
            client: client, attempt: lastAttempt, password: password,
            salt: turn.randomBytes(SCRAMVerifier.saltByteCount), iterations: iterations)
    }

    /// The folded name of a hashing job; nil: cancelled.
    package func pendingName(attempt: UInt64) -> String? {
        pending.first { $0.value.attempt == attempt && $0.value.write == nil }?.key
    }

    /// Records the password's hash.
    ///
    /// - Parameter ticket: of the write that the caller submits.
    /// - Returns: the account to be written.
    package func finishHashing(
        _ key: String, _ verifier: SCRAMVerifier, under ticket: StoreTicket, at moment: ChatTimestamp
    ) -> StoredAccount? {
        guard let name = pending[key]?.name else { return nil }
        pending[key]?.write = (ticket, AccountSettings(name: name, password: verifier))
        identities.setCreationTime(ofAccount: name, at: moment)
        return StoredAccount(name: name, password: verifier.description, madeAt: moment)
    }

    /// Completes the registrations whose writes are on disk.
    ///
    /// - Returns: them in the order of the requests.
    package func takeSettled(_ isSettled: (StoreTicket) -> Bool) -> [(client: ClientID, account: AccountSettings)] {
        let ready = inOrder.filter { pending[$0]?.write.map { isSettled($0.ticket) } ?? false }
        return ready.compactMap { key in
            guard let done = pending.removeValue(forKey: key), let account = done.write?.account,
                accounts.addRegistered(account)
            else { return nil }
            return (done.client, account)
        }
    }

    /// Clears the writes that the store dropped.
    ///
    /// - Returns: the folded names.
    package func markLost(_ ticket: StoreTicket) -> [String] {
        let lost = inOrder.filter { pending[$0]?.write?.ticket == ticket }
        for key in lost { pending[key]?.write = nil }
        return lost
    }

    /// The folded names in the order of the requests.
    package var inOrder: [String] { pending.sorted { $0.value.attempt < $1.value.attempt }.map(\.key) }

    /// Cancels a registration.
    ///
    /// - Returns: `isWritten`: the store has the account or will have it.
    package func cancel(_ key: String) -> (client: ClientID, name: String, isWritten: Bool)? {
        guard let cancelled = pending.removeValue(forKey: key) else { return nil }
        identities.release(account: cancelled.name)
        return (cancelled.client, cancelled.name, cancelled.write != nil)
    }

    // MARK: - Restoring

    /// A stored account that cannot be restored.
    package enum RestoreFailure {
        /// The stored password is no valid hash.
        case unreadable(String)
        /// A configured account has the same name.
        case shadowed(String)
    }

    /// Restores the accounts registered in earlier processes.
    package func restore(_ stored: [StoredAccount]) -> [RestoreFailure] {
        stored.compactMap { account in
            guard let verifier = try? SCRAMVerifier(parsing: account.password) else { return .unreadable(account.name) }
            guard accounts.addRegistered(AccountSettings(name: account.name, password: verifier)) else {
                return .shadowed(account.name)
            }
            identities.reserve(account: account.name)
            identities.setCreationTime(ofAccount: account.name, at: account.madeAt)
            return nil
        }
    }
}

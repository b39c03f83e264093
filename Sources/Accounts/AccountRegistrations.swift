import BridgeTypes
import ChatModel
import Digests
import Identities
import WireBytes

// Making accounts.
//
// | state      | meaning                                  | leaves by                                              |
// |------------|------------------------------------------|---------------------------------------------------------|
// | hashing    | the password is being hashed             | hash → keeping; no thread, client gone, 30 s → given up  |
// | keeping    | the store was told                       | on disk → made; refused, failing, 30 s → given up        |
//
// From the beginning on the name is nobody else's. The client hears of success when the account is on disk. What was given up
// when the store knew of it already is taken back there.

/// Why somebody cannot have an account.
package enum RegistrationRefusal: Equatable {
    /// The name can be no nick.
    case badName
    case exists
    /// Somebody here is called that.
    case inUse
    /// The name looks like somebody else's.
    case lookAlike
    case shortPassword
    case passwordIsName
    /// There are as many as there may be.
    case full
    /// Too many were made from that address.
    case tooManyHere
}

package final class AccountRegistrations {
    /// Bytes of a password that is not too easily guessed. Source: NIST SP 800-63B §5.1.1.1.
    package static let minPasswordBytes = 8
    /// Longest wait for an account: hashing takes a second, more when many wait, and a disk that stalls is not to hold up a
    /// client for longer than it waits for other answers.
    package static let wait: Duration = .seconds(30)

    /// An account that is being made.
    private struct Making {
        var client: ClientID
        var name: String
        /// Names the hashing.
        var attempt: UInt64
        /// The order that keeps it; nil: the password is still being hashed.
        var kept: (ticket: StoreTicket, account: AccountSettings)?
    }

    private let book: AccountBook
    private let identities: IdentityMap
    /// By their folded names.
    private var underWay: [String: Making] = [:]
    private var throttle = RegistrationThrottle()
    private var lastAttempt: UInt64 = 0

    package init(_ book: AccountBook, _ identities: IdentityMap) {
        self.book = book
        self.identities = identities
    }

    /// How many are being made.
    package var count: Int { underWay.count }

    /// The name of an account that is being made, as it is written.
    package func name(written name: String) -> String? { underWay[AccountName.fold(name)]?.name }

    // MARK: - What may be made

    /// - Parameter holder: who asks, where they are here already.
    package func refusal(of name: String, holder: PersonID?) -> RegistrationRefusal? {
        switch identities.refusal(nick: name, holder: holder) {
        case nil: return nil
        case .erroneous: return .badName
        case .inUse:
            if book[name] != nil || underWay[AccountName.fold(name)] != nil { return .exists }
            // Nobody's name is made an account of by somebody else.
            return identities.person(nick: name) != nil ? .inUse : .lookAlike
        }
    }

    package static func refusal(ofPassword password: String, for name: String) -> RegistrationRefusal? {
        if password.utf8.count < minPasswordBytes { return .shortPassword }
        return AccountName.fold(password) == AccountName.fold(name) ? .passwordIsName : nil
    }

    /// Counts one more account.
    ///
    /// - Parameter address: nil: not counted.
    package func refusalOfOneMore(from address: String?, now: MonotonicInstant) -> RegistrationRefusal? {
        guard book.hasRoom(for: underWay.count + 1) else { return .full }
        guard let address else { return nil }
        return throttle.take(address, now: now) ? nil : .tooManyHere
    }

    // MARK: - Making one

    package func begin(
        _ name: String, _ password: SecretBytes, _ client: ClientID, iterations: Int, _ turn: inout Turn
    ) -> PasswordHashing {
        lastAttempt &+= 1
        underWay[AccountName.fold(name)] = Making(client: client, name: name, attempt: lastAttempt)
        identities.reserve(account: name)
        return PasswordHashing(
            client: client, attempt: lastAttempt, password: password,
            salt: turn.randomBytes(SCRAMVerifier.saltByteCount), iterations: iterations)
    }

    /// The name whose password is hashed under that number, folded; nil: nobody waits for it.
    package func hashing(_ attempt: UInt64) -> String? {
        underWay.first { $0.value.attempt == attempt && $0.value.kept == nil }?.key
    }

    /// The password is hashed.
    ///
    /// - Parameter ticket: of the order that keeps the account.
    /// - Returns: the account as it is to be kept.
    package func hashed(
        _ key: String, _ verifier: SCRAMVerifier, under ticket: StoreTicket, at moment: ChatTimestamp
    ) -> StoredAccount? {
        guard let name = underWay[key]?.name else { return nil }
        underWay[key]?.kept = (ticket, AccountSettings(name: name, password: verifier))
        identities.accountMade(name, at: moment)
        return StoredAccount(name: name, password: verifier.description, madeAt: moment)
    }

    /// Orders are on disk: takes up the accounts among them.
    ///
    /// - Returns: who made which, in the order in which they asked.
    package func settled(_ isSettled: (StoreTicket) -> Bool) -> [(client: ClientID, account: AccountSettings)] {
        let ready = inOrder.filter { underWay[$0]?.kept.map { isSettled($0.ticket) } ?? false }
        return ready.compactMap { key in
            guard let making = underWay.removeValue(forKey: key), let account = making.kept?.account,
                book.addMade(account)
            else { return nil }
            return (making.client, account)
        }
    }

    /// An order found no room: these names are not kept.
    package func lost(_ ticket: StoreTicket) -> [String] {
        let lost = inOrder.filter { underWay[$0]?.kept?.ticket == ticket }
        for key in lost { underWay[key]?.kept = nil }
        return lost
    }

    /// The folded names, in the order in which they were asked for.
    package var inOrder: [String] { underWay.sorted { $0.value.attempt < $1.value.attempt }.map(\.key) }

    /// - Returns: whose it was to be, under which name, and whether the store knows of it.
    package func giveUp(_ key: String) -> (client: ClientID, name: String, isKept: Bool)? {
        guard let making = underWay.removeValue(forKey: key) else { return nil }
        identities.release(account: making.name)
        return (making.client, making.name, making.kept != nil)
    }

    // MARK: - From before

    /// What is kept of an account, and not taken up.
    package enum Unrestored {
        /// What is kept of its password is no hash.
        case unreadable(String)
        /// A configured account has its name.
        case shadowed(String)
    }

    /// Enters what an earlier process kept.
    package func restore(_ stored: [StoredAccount]) -> [Unrestored] {
        stored.compactMap { kept in
            guard let verifier = try? SCRAMVerifier(parsing: kept.password) else { return .unreadable(kept.name) }
            guard book.addMade(AccountSettings(name: kept.name, password: verifier)) else {
                return .shadowed(kept.name)
            }
            identities.reserve(account: kept.name)
            identities.accountMade(kept.name, at: kept.madeAt)
            return nil
        }
    }
}

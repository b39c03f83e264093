import BridgeTypes
import ChatModel
import Identities

/// The preferences set with service commands: muted users, read receipts, notices of receipts, automatic JOINs. Those of an
/// account are persistent where there is a store; a client without an account has them for its connection.
package final class AccountPreferences {
    /// The account or connection with a preference.
    package enum Owner: Hashable {
        /// By folded name.
        case account(String)
        case client(ClientID)
    }

    /// A muted user, by a stable identity.
    package enum Target: Hashable {
        case remote(Person.RemoteKey)
        /// By folded name.
        case account(String)
        /// An IRC user without an account, by folded nick.
        case nick(String)
    }

    package struct Mute: Equatable {
        package var target: Target
        /// The nick at the time of muting.
        package var nick: String

        package init(target: Target, nick: String) {
            self.target = target
            self.nick = nick
        }
    }

    /// Limit of muted users of one owner.
    package static let maxMutes = 50
    /// Limit of muted users of all owners, about 200 bytes each.
    package static let maxMutesInAll = 50_000
    /// Limit of owners with other preferences, about 100 bytes each.
    package static let maxOwners = 50_000

    package enum Outcome {
        case done
        case known
        case full
    }

    private var mutes: [Owner: [Mute]] = [:]
    private var owners: [Target: Set<Owner>] = [:]
    private var muteCount = 0
    private var receiptChoices: [Owner: ReceiptPolicy] = [:]
    private var noticeOwners: Set<Owner> = []
    /// Automatic JOINs, by the account's folded name.
    private var rejoinChoices: [String: Bool] = [:]

    package init() {}

    /// Whether any user is muted.
    package var hasMutes: Bool { muteCount > 0 }

    package func mutes(of owner: Owner) -> [Mute] { mutes[owner] ?? [] }

    package func owners(muting target: Target) -> Set<Owner> { owners[target] ?? [] }

    package func isMuted(_ target: Target, by owner: Owner) -> Bool { owners[target]?.contains(owner) ?? false }

    package func mute(_ mute: Mute, for owner: Owner) -> Outcome {
        guard !isMuted(mute.target, by: owner) else { return .known }
        guard mutes(of: owner).count < Self.maxMutes, muteCount < Self.maxMutesInAll else { return .full }
        mutes[owner, default: []].append(mute)
        owners[mute.target, default: []].insert(owner)
        muteCount += 1
        return .done
    }

    /// False: the user was not muted.
    @discardableResult
    package func unmute(_ target: Target, for owner: Owner) -> Bool {
        guard isMuted(target, by: owner) else { return false }
        mutes[owner]?.removeAll { $0.target == target }
        if mutes[owner]?.isEmpty == true { mutes[owner] = nil }
        owners[target]?.remove(owner)
        if owners[target]?.isEmpty == true { owners[target] = nil }
        muteCount -= 1
        return true
    }

    // MARK: - Receipts

    package func receipts(of owner: Owner) -> ReceiptPolicy? { receiptChoices[owner] }

    /// False: the limit is reached.
    @discardableResult
    package func setReceipts(_ policy: ReceiptPolicy?, of owner: Owner) -> Bool {
        guard policy == nil || receiptChoices[owner] != nil || receiptChoices.count < Self.maxOwners else {
            return false
        }
        receiptChoices[owner] = policy
        return true
    }

    // MARK: - Notices

    /// Whether any owner wants notices of read receipts.
    package var hasNotices: Bool { !noticeOwners.isEmpty }

    package func wantsNotices(_ owner: Owner) -> Bool { noticeOwners.contains(owner) }

    /// False: the limit is reached.
    @discardableResult
    package func setNotices(_ isOn: Bool, of owner: Owner) -> Bool {
        guard isOn else {
            noticeOwners.remove(owner)
            return true
        }
        guard noticeOwners.contains(owner) || noticeOwners.count < Self.maxOwners else { return false }
        noticeOwners.insert(owner)
        return true
    }

    // MARK: - Rooms

    /// Whether the account wants automatic JOINs; nil: not set.
    package func rejoins(_ account: String) -> Bool? { rejoinChoices[account] }

    /// False: the limit is reached.
    @discardableResult
    package func setRejoins(_ isOn: Bool, _ account: String) -> Bool {
        guard rejoinChoices[account] != nil || rejoinChoices.count < Self.maxOwners else { return false }
        rejoinChoices[account] = isOn
        return true
    }

    // MARK: - Connections

    /// Removes the preferences of a closed connection.
    package func remove(_ client: ClientID) {
        remove(.client(client))
    }

    private func remove(_ owner: Owner) {
        receiptChoices[owner] = nil
        noticeOwners.remove(owner)
        for mute in mutes[owner] ?? [] { unmute(mute.target, for: owner) }
    }

    /// Moves a connection's preferences to its account at log-in; the account's own take precedence.
    ///
    /// - Parameter account: folded.
    /// - Returns: the account's preferences, if changed.
    package func move(_ client: ClientID, to account: String) -> StoredChoices? {
        let before = stored(of: account)
        for mute in mutes[.client(client)] ?? [] { _ = self.mute(mute, for: .account(account)) }
        if let policy = receiptChoices[.client(client)], receiptChoices[.account(account)] == nil {
            setReceipts(policy, of: .account(account))
        }
        if noticeOwners.contains(.client(client)) { setNotices(true, of: .account(account)) }
        remove(client)
        let after = stored(of: account)
        return after == before ? nil : after
    }

    // MARK: - Persistence

    /// The preferences of an account, folded, as stored.
    package func stored(of account: String) -> StoredChoices {
        let owner = Owner.account(account)
        return StoredChoices(
            account: account, receipts: receipts(of: owner)?.rawValue, wantsNotices: wantsNotices(owner),
            rejoins: rejoins(account),
            mutes: mutes(of: owner).map { StoredMute(target: $0.target.stored, nick: $0.nick) })
    }

    /// Restores stored preferences.
    ///
    /// - Parameter fold: the form in which nicks are compared, which may be another than before.
    /// - Returns: the changes of a migration.
    package func restore(
        _ stored: [StoredChoices], fold: (String) -> String = AccountName.fold
    ) -> [StoredChoices] {
        // Earlier versions stored one row for each spelling of a name. Of several rows the folded one is the newest.
        let folded = Set(stored.map(\.account).filter { AccountName.fold($0) == $0 })
        for choices in stored {
            let account = AccountName.fold(choices.account)
            if choices.account == account || !folded.contains(account) { restore(choices, of: account, fold) }
        }
        return stored.filter { !folded.contains($0.account) }.flatMap { other in
            [StoredChoices(account: other.account), self.stored(of: AccountName.fold(other.account))]
        }
    }

    private func restore(_ stored: StoredChoices, of account: String, _ fold: (String) -> String) {
        let owner = Owner.account(account)
        if let policy = stored.receipts.flatMap({ ReceiptPolicy(rawValue: $0) }) { setReceipts(policy, of: owner) }
        if stored.wantsNotices { setNotices(true, of: owner) }
        if let rejoins = stored.rejoins { setRejoins(rejoins, account) }
        for mute in stored.mutes {
            var target = Target(mute.target)
            if case .nick = target { target = .nick(fold(mute.nick)) }
            _ = self.mute(Mute(target: target, nick: mute.nick), for: owner)
        }
    }

    /// Unmutes a person for all.
    ///
    /// - Returns: the changed preferences of accounts.
    package func forget(_ target: Target) -> [StoredChoices] {
        owners(muting: target).compactMap { owner in
            unmute(target, for: owner)
            guard case .account(let name) = owner else { return nil }
            return stored(of: name)
        }
    }

    /// Purges the preferences of an earlier account of this name, folded, at its reuse.
    ///
    /// - Returns: the change; nil: there were none.
    package func reset(account: String) -> StoredChoices? {
        guard !stored(of: account).isEmpty else { return nil }
        remove(.account(account))
        rejoinChoices[account] = nil
        return stored(of: account)
    }
}

extension AccountPreferences.Target {
    fileprivate var stored: StoredMute.Target {
        switch self {
        case .remote(let key): .remote(backend: key.backend, key.person)
        case .account(let name): .account(name)
        case .nick(let folded): .nick(folded)
        }
    }

    fileprivate init(_ stored: StoredMute.Target) {
        switch stored {
        case .remote(let backend, let person):
            self = .remote(Person.RemoteKey(backend: backend, id: person.id, name: person.name))
        case .account(let name): self = .account(AccountName.fold(name))
        case .nick(let folded): self = .nick(folded)
        }
    }
}

import BridgeTypes
import ChatModel
import Identities

/// What people chose for themselves alone by asking the service: whom they do not want to hear, what of their reading is
/// told, and whether they are told of their readers. Kept for the account, over the end of the process where there is a store;
/// for who has none for the connection.
package final class PersonalChoices {
    /// Whose choice it is.
    package enum Owner: Hashable {
        /// By the folded name: however it is written today, it is the same account.
        case account(String)
        case client(ClientID)
    }

    /// Somebody who is not heard, by what stays theirs.
    package enum Target: Hashable {
        case remote(Person.RemoteKey)
        /// By the folded name.
        case account(String)
        /// An IRC user without an account, by the folded nick.
        case nick(String)
    }

    package struct Mute: Equatable {
        package var target: Target
        /// The nick at that time.
        package var nick: String

        package init(target: Target, nick: String) {
            self.target = target
            self.nick = nick
        }
    }

    /// People that one muted: more than anybody has enemies.
    package static let maxMutes = 50
    /// All of them together: accounts keep theirs while nobody is logged in. About 200 bytes each.
    package static let maxMutesInAll = 50_000
    /// Accounts and connections that chose anything of receipts and notices, of each about 100 bytes. As many as there can be
    /// mutes: more than there are people.
    package static let maxChoosers = 50_000

    package enum Outcome {
        case done
        case known
        case full
    }

    private var mutes: [Owner: [Mute]] = [:]
    private var owners: [Target: Set<Owner>] = [:]
    private var muteCount = 0
    private var receiptChoices: [Owner: ReceiptPolicy] = [:]
    /// Who is told at once of their readers.
    private var noticed: Set<Owner> = []
    /// Whether accounts come back to their rooms, by the account's name, folded.
    private var rejoinChoices: [String: Bool] = [:]

    package init() {}

    /// Whether anybody muted anybody.
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

    /// False where they were not muted.
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

    /// False where too many have chosen.
    @discardableResult
    package func setReceipts(_ policy: ReceiptPolicy?, of owner: Owner) -> Bool {
        guard policy == nil || receiptChoices[owner] != nil || receiptChoices.count < Self.maxChoosers else {
            return false
        }
        receiptChoices[owner] = policy
        return true
    }

    // MARK: - Notices

    /// Whether anybody wants to be told of their readers.
    package var hasNotices: Bool { !noticed.isEmpty }

    package func wantsNotices(_ owner: Owner) -> Bool { noticed.contains(owner) }

    /// False where too many have chosen.
    @discardableResult
    package func setNotices(_ isOn: Bool, of owner: Owner) -> Bool {
        guard isOn else {
            noticed.remove(owner)
            return true
        }
        guard noticed.contains(owner) || noticed.count < Self.maxChoosers else { return false }
        noticed.insert(owner)
        return true
    }

    // MARK: - Rooms

    /// Whether the account comes back to its rooms; nil: it has not said.
    package func rejoins(_ account: String) -> Bool? { rejoinChoices[account] }

    /// False where too many have chosen.
    @discardableResult
    package func setRejoins(_ isOn: Bool, _ account: String) -> Bool {
        guard rejoinChoices[account] != nil || rejoinChoices.count < Self.maxChoosers else { return false }
        rejoinChoices[account] = isOn
        return true
    }

    // MARK: - Connections

    /// The connection is gone.
    package func forget(_ client: ClientID) {
        forget(.client(client))
    }

    private func forget(_ owner: Owner) {
        receiptChoices[owner] = nil
        noticed.remove(owner)
        for mute in mutes[owner] ?? [] { unmute(mute.target, for: owner) }
    }

    /// The connection is an account's from now on, and its choices with it: what the account has chosen before holds.
    ///
    /// - Parameter account: folded.
    /// - Returns: what is to be kept of the account, where that changed anything.
    package func move(_ client: ClientID, to account: String) -> StoredChoices? {
        let before = stored(of: account)
        for mute in mutes[.client(client)] ?? [] { _ = self.mute(mute, for: .account(account)) }
        if let policy = receiptChoices[.client(client)], receiptChoices[.account(account)] == nil {
            setReceipts(policy, of: .account(account))
        }
        if noticed.contains(.client(client)) { setNotices(true, of: .account(account)) }
        forget(client)
        let after = stored(of: account)
        return after == before ? nil : after
    }

    // MARK: - Kept

    /// What an account, folded, chose, as it is kept.
    package func stored(of account: String) -> StoredChoices {
        let owner = Owner.account(account)
        return StoredChoices(
            account: account, receipts: receipts(of: owner)?.rawValue, wantsNotices: wantsNotices(owner),
            rejoins: rejoins(account),
            mutes: mutes(of: owner).map { StoredMute(target: $0.target.stored, nick: $0.nick) })
    }

    /// Takes up what an earlier process kept.
    ///
    /// - Returns: what is to be kept otherwise than it was.
    package func restore(_ stored: [StoredChoices]) -> [StoredChoices] {
        // Earlier programs kept them under the name as it was written then, each spelling apart. Where there are several, what
        // is kept in the form of today was chosen last.
        let folded = Set(stored.map(\.account).filter { AccountName.fold($0) == $0 })
        for kept in stored {
            let account = AccountName.fold(kept.account)
            if kept.account == account || !folded.contains(account) { restore(kept, of: account) }
        }
        return stored.filter { !folded.contains($0.account) }.flatMap { other in
            [StoredChoices(account: other.account), self.stored(of: AccountName.fold(other.account))]
        }
    }

    private func restore(_ kept: StoredChoices, of account: String) {
        let owner = Owner.account(account)
        if let policy = kept.receipts.flatMap({ ReceiptPolicy(rawValue: $0) }) { setReceipts(policy, of: owner) }
        if kept.wantsNotices { setNotices(true, of: owner) }
        if let rejoins = kept.rejoins { setRejoins(rejoins, account) }
        for mute in kept.mutes { _ = self.mute(Mute(target: Target(mute.target), nick: mute.nick), for: owner) }
    }

    /// Somebody made an account of this name, folded: what is kept of one that had it before is not theirs.
    ///
    /// - Returns: what is to be kept now; nil: it was nothing, and is.
    package func forget(ofEarlier account: String) -> StoredChoices? {
        guard !stored(of: account).isEmpty else { return nil }
        forget(.account(account))
        rejoinChoices[account] = nil
        return stored(of: account)
    }
}

extension PersonalChoices.Target {
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

import ChatModel

/// What people chose for themselves alone by asking the service: whom they do not want to hear, what of their reading is
/// told, and whether they are told of their readers. Kept for the account, over the end of the process where there is a store;
/// for who has none for the connection.
struct PersonalChoices {
    /// Whose choice it is.
    enum Owner: Hashable {
        /// By the folded name: however it is written today, it is the same account.
        case account(String)
        case client(ClientID)
    }

    /// Somebody who is not heard, by what stays theirs.
    enum Target: Hashable {
        case remote(Person.RemoteKey)
        /// By the folded name.
        case account(String)
        /// An IRC user without an account, by the folded nick.
        case nick(String)
    }

    struct Mute: Equatable {
        var target: Target
        /// The nick at that time.
        var nick: String
    }

    /// People that one muted: more than anybody has enemies.
    static let maxMutes = 50
    /// All of them together: accounts keep theirs while nobody is logged in. About 200 bytes each.
    static let maxMutesInAll = 50_000
    /// Accounts and connections that chose anything of receipts and notices, of each about 100 bytes. As many as there can be
    /// mutes: more than there are people.
    static let maxChoosers = 50_000

    enum Outcome {
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

    /// Whether anybody muted anybody.
    var hasMutes: Bool { muteCount > 0 }

    func mutes(of owner: Owner) -> [Mute] { mutes[owner] ?? [] }

    func owners(muting target: Target) -> Set<Owner> { owners[target] ?? [] }

    func isMuted(_ target: Target, by owner: Owner) -> Bool { owners[target]?.contains(owner) ?? false }

    mutating func mute(_ mute: Mute, for owner: Owner) -> Outcome {
        guard !isMuted(mute.target, by: owner) else { return .known }
        guard mutes(of: owner).count < Self.maxMutes, muteCount < Self.maxMutesInAll else { return .full }
        mutes[owner, default: []].append(mute)
        owners[mute.target, default: []].insert(owner)
        muteCount += 1
        return .done
    }

    /// False where they were not muted.
    @discardableResult
    mutating func unmute(_ target: Target, for owner: Owner) -> Bool {
        guard isMuted(target, by: owner) else { return false }
        mutes[owner]?.removeAll { $0.target == target }
        if mutes[owner]?.isEmpty == true { mutes[owner] = nil }
        owners[target]?.remove(owner)
        if owners[target]?.isEmpty == true { owners[target] = nil }
        muteCount -= 1
        return true
    }

    // MARK: - Receipts

    func receipts(of owner: Owner) -> ReceiptPolicy? { receiptChoices[owner] }

    /// False where too many have chosen.
    @discardableResult
    mutating func setReceipts(_ policy: ReceiptPolicy?, of owner: Owner) -> Bool {
        guard policy == nil || receiptChoices[owner] != nil || receiptChoices.count < Self.maxChoosers else {
            return false
        }
        receiptChoices[owner] = policy
        return true
    }

    // MARK: - Notices

    /// Whether anybody wants to be told of their readers.
    var hasNotices: Bool { !noticed.isEmpty }

    func wantsNotices(_ owner: Owner) -> Bool { noticed.contains(owner) }

    /// False where too many have chosen.
    @discardableResult
    mutating func setNotices(_ isOn: Bool, of owner: Owner) -> Bool {
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
    func rejoins(_ account: String) -> Bool? { rejoinChoices[account] }

    /// False where too many have chosen.
    @discardableResult
    mutating func setRejoins(_ isOn: Bool, _ account: String) -> Bool {
        guard rejoinChoices[account] != nil || rejoinChoices.count < Self.maxChoosers else { return false }
        rejoinChoices[account] = isOn
        return true
    }

    // MARK: - Connections

    /// The connection is gone.
    mutating func forget(_ client: ClientID) {
        forget(.client(client))
    }

    private mutating func forget(_ owner: Owner) {
        receiptChoices[owner] = nil
        noticed.remove(owner)
        for mute in mutes[owner] ?? [] { unmute(mute.target, for: owner) }
    }

    /// The connection is an account's from now on, and its choices with it: what the account has chosen before holds.
    ///
    /// - Parameter account: folded.
    mutating func move(_ client: ClientID, to account: String) {
        for mute in mutes[.client(client)] ?? [] { _ = self.mute(mute, for: .account(account)) }
        if let policy = receiptChoices[.client(client)], receiptChoices[.account(account)] == nil {
            setReceipts(policy, of: .account(account))
        }
        if noticed.contains(.client(client)) { setNotices(true, of: .account(account)) }
        forget(client)
    }

    // MARK: - Kept

    /// What an account, folded, chose, as it is kept.
    func stored(of account: String) -> StoredChoices {
        let owner = Owner.account(account)
        return StoredChoices(
            account: account, receipts: receipts(of: owner)?.rawValue, wantsNotices: wantsNotices(owner),
            rejoins: rejoins(account),
            mutes: mutes(of: owner).map { StoredMute(target: $0.target.stored, nick: $0.nick) })
    }

    /// Takes up what an earlier process kept of an account, folded.
    mutating func restore(_ kept: StoredChoices, of account: String) {
        let owner = Owner.account(account)
        if let policy = kept.receipts.flatMap({ ReceiptPolicy(rawValue: $0) }) { setReceipts(policy, of: owner) }
        if kept.wantsNotices { setNotices(true, of: owner) }
        if let rejoins = kept.rejoins { setRejoins(rejoins, account) }
        for mute in kept.mutes { _ = self.mute(Mute(target: Target(mute.target), nick: mute.nick), for: owner) }
    }

    /// The account's name, folded, is somebody else's now.
    mutating func forget(account: String) {
        forget(.account(account))
        rejoinChoices[account] = nil
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
        case .account(let name): self = .account(AccountBook.fold(name))
        case .nick(let folded): self = .nick(folded)
        }
    }
}

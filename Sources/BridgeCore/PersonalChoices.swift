import ChatModel

/// What people chose for themselves alone by asking the service: whom they do not want to hear, what of their reading is
/// told, and whether they are told of their readers. Kept for the account, and for who has none for the connection; not over the end of the process.
struct PersonalChoices {
    /// Whose choice it is.
    enum Owner: Hashable {
        case account(String)
        case client(ClientID)
    }

    /// Somebody who is not heard, by what stays theirs.
    enum Target: Hashable {
        case remote(Person.RemoteKey)
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

    mutating func setReceipts(_ policy: ReceiptPolicy?, of owner: Owner) { receiptChoices[owner] = policy }

    // MARK: - Notices

    /// Whether anybody wants to be told of their readers.
    var hasNotices: Bool { !noticed.isEmpty }

    func wantsNotices(_ owner: Owner) -> Bool { noticed.contains(owner) }

    mutating func setNotices(_ isOn: Bool, of owner: Owner) {
        if isOn { noticed.insert(owner) } else { noticed.remove(owner) }
    }

    // MARK: - Connections

    /// The connection is gone.
    mutating func forget(_ client: ClientID) {
        let owner = Owner.client(client)
        receiptChoices[owner] = nil
        noticed.remove(owner)
        for mute in mutes[owner] ?? [] { unmute(mute.target, for: owner) }
    }

    /// The connection is an account's from now on, and its choices with it: what the account has chosen before holds.
    mutating func move(_ client: ClientID, to account: String) {
        for mute in mutes[.client(client)] ?? [] { _ = self.mute(mute, for: .account(account)) }
        if let policy = receiptChoices[.client(client)], receiptChoices[.account(account)] == nil {
            receiptChoices[.account(account)] = policy
        }
        if noticed.contains(.client(client)) { noticed.insert(.account(account)) }
        forget(client)
    }
}

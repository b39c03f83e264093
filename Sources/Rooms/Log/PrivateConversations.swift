import BridgeTypes
import ChatModel
import WireBytes

/// The index of private conversations, and the nicks of accounts.
///
/// A conversation belongs to two accounts, under any nicks, or to an account and a nick without one: equivalent to an
/// account here, see ``visitor(_:)``. Its messages are in the store or, without one, here. Changes to persist are
/// collected in ``takeChanges()``.
package struct PrivateConversations {
    /// Conversations of one account: years of a user that talks to everyone. One more hides another from the account:
    /// of those in which it is silent the one quiet for longest, else of all, and visitors first; so a flood under many
    /// names cannot remove a user's conversations. The partner still has it; it is removed once hidden from both.
    static let maxCountOfAccount = 200
    /// Conversations in total, at about 400 bytes of memory each. One more removes one of the account with the most,
    /// preferably one that no other account is shown.
    package static let maxCount = 10_000
    /// Retained nicks of one account, the last ones.
    static let maxNicksOfAccount = 4
    /// Approximate bytes of all messages without a store: as many as four rooms may have. Beyond it conversations of
    /// the account with the most are removed, the quietest first.
    static let maxMemoryBytes = 16 * 1024 * 1024

    /// The pseudo-account of a nick without an account, for any of its users.
    ///
    /// - Parameter folded: the nick.
    package static func visitor(_ folded: String) -> String { "\(StoredConversation.visitorMark)\(folded)" }

    /// The folded nick of a visitor; nil: it is an account.
    package static func nick(ofVisitor account: String) -> String? {
        StoredConversation.isVisitor(account) ? String(account.dropFirst()) : nil
    }

    /// The accounts of a conversation, by their folded names; twice the same for a monologue.
    package struct Pair: Hashable {
        package let one: String
        package let other: String

        package init(_ a: String, _ b: String) {
            let (a, b) = (Self.key(a), Self.key(b))
            (one, other) = a <= b ? (a, b) : (b, a)
        }

        /// Composed: names that Swift considers equal are one key on disk too.
        fileprivate static func key(_ name: String) -> String { UnicodeForm.composed(AccountName.fold(name)) }

        package var storedKey: StoredRoomKey { .conversation(one, other) }

        /// One, for a monologue.
        package var accounts: [String] { one == other ? [one] : [one, other] }

        package func partner(of account: String) -> String { account == one ? other : one }
    }

    private struct Conversation {
        /// The time of the last message; nil: none, only actions.
        var newestAt: ChatTimestamp?
        var nextSequence: Int64 = 0
        /// Nil: the store has the messages.
        var archive: MemoryLog?
        /// The folded names of accounts with messages in it.
        var speakers: Set<String> = []
    }

    private struct Nick {
        var folded: String
        var nick: String
    }

    private struct Account {
        /// As it is written.
        var name: String
        /// The most recent one comes last.
        var nicks: [Nick] = []
        /// Partners of the conversations shown to it.
        var partners: Set<String> = []
        /// Partners of the conversations hidden from it.
        var hidden: Set<String> = []
    }

    private var conversations: [Pair: Conversation] = [:]
    /// Accounts with conversations, by the folded name.
    private var accounts: [String: Account] = [:]
    /// The account of a folded nick, present or most recent.
    private var holders: [String: String] = [:]
    private var memoryBytes = 0
    /// Where new conversations begin: beyond all removed ones, since the store may not learn of a removal.
    private var firstSequence: Int64 = 0
    private var changes: [StoreOperation] = []

    package init() {}

    package var count: Int { conversations.count }

    package mutating func takeChanges() -> [StoreOperation] {
        defer { changes = [] }
        return changes
    }

    // MARK: - Conversations

    package func contains(_ pair: Pair) -> Bool { conversations[pair] != nil }

    /// Whether a conversation is shown to one of its accounts, folded.
    package func isShown(_ pair: Pair, to account: String) -> Bool {
        accounts[account]?.partners.contains(pair.partner(of: account)) == true
    }

    /// Makes room for a conversation that is new, or hidden from one of its accounts.
    ///
    /// - Parameters:
    ///   - names: its accounts, as they are written.
    ///   - inMemory: there is no store.
    package mutating func open(_ pair: Pair, names: [String], inMemory: Bool) {
        let isNew = !contains(pair)
        for account in pair.accounts where !isShown(pair, to: account) {
            // A visitor's conversations are shown to no one on that side.
            if Self.nick(ofVisitor: account) == nil, accounts[account]?.partners.count ?? 0 >= Self.maxCountOfAccount {
                hide(1, from: account)
            }
            if !isNew { show(pair, to: account, name: accounts[account]?.name ?? account) }
        }
        guard isNew else { return }
        if conversations.count >= Self.maxCount {
            let most = accounts.max { a, b in
                (a.value.partners.count, b.key) < (b.value.partners.count, a.key)
            }
            if let most { forgetOne(of: most.key) }
        }
        enter(pair, Conversation(nextSequence: firstSequence, archive: inMemory ? MemoryLog() : nil), names: names)
    }

    /// The value of a conversation to an account: highest with messages of its own, then with messages of an account.
    private func worth(_ pair: Pair, to account: String) -> Int {
        if conversations[pair]?.speakers.contains(account) == true { return 2 }
        return Self.nick(ofVisitor: pair.partner(of: account)) == nil ? 1 : 0
    }

    /// Whether the conversation is shown to an account other than this one.
    private func isShown(_ pair: Pair, besides account: String) -> Bool {
        let other = pair.partner(of: account)
        return other != account && Self.nick(ofVisitor: other) == nil && isShown(pair, to: other)
    }

    /// The conversations shown to an account, the least valuable first; equally quiet ones in a stable order.
    private func leastFirst(of account: String) -> [Pair] {
        (accounts[account]?.partners ?? []).map { Pair(account, $0) }.sorted { a, b in
            (worth(a, to: account), newest(a), a.one, a.other) < (worth(b, to: account), newest(b), b.one, b.other)
        }
    }

    /// Hides a number of conversations from the account.
    private mutating func hide(_ count: Int, from account: String) {
        for pair in leastFirst(of: account).prefix(max(count, 0)) {
            guard isShown(pair, besides: account) else {
                forget(pair)
                continue
            }
            accounts[account]?.partners.remove(pair.partner(of: account))
            accounts[account]?.hidden.insert(pair.partner(of: account))
        }
    }

    private mutating func show(_ pair: Pair, to account: String, name: String) {
        accounts[account, default: Account(name: name)].partners.insert(pair.partner(of: account))
        accounts[account]?.hidden.remove(pair.partner(of: account))
    }

    /// Removes one for both; preferably one not shown to another account.
    private mutating func forgetOne(of account: String) {
        // Value matters to accounts alone: of a visitor's, the one least valuable to its account is removed.
        let pairs = (accounts[account]?.partners ?? []).map { Pair(account, $0) }
        func rank(_ pair: Pair) -> (Int, Int, ChatTimestamp, String, String) {
            let judge = Self.nick(ofVisitor: account) == nil ? account : pair.partner(of: account)
            return (
                isShown(pair, besides: account) ? 1 : 0, worth(pair, to: judge), newest(pair), pair.one, pair.other
            )
        }
        if let least = pairs.min(by: { rank($0) < rank($1) }) { forget(least) }
    }

    private func newest(_ pair: Pair) -> ChatTimestamp {
        conversations[pair]?.newestAt ?? ChatTimestamp(milliseconds: .min)
    }

    private mutating func enter(_ pair: Pair, _ conversation: Conversation, names: [String]) {
        conversations[pair] = conversation
        for name in names {
            let account = Pair.key(name)
            show(pair, to: account, name: name)
        }
    }

    /// Takes the next sequence number in a conversation.
    ///
    /// - Parameters:
    ///   - author: the sender's account.
    ///   - at: the time of a message; nil: an action.
    package mutating func takePlace(in pair: Pair, by author: String, at: ChatTimestamp?) -> Int64 {
        guard var conversation = conversations[pair] else { return 0 }
        defer { conversations[pair] = conversation }
        if let at {
            conversation.newestAt = at
            conversation.speakers.insert(AccountName.fold(author))
        }
        let place = conversation.nextSequence
        conversation.nextSequence = place == .max ? place : place + 1
        return place
    }

    /// Adds a message to the memory log.
    package mutating func append(_ message: StoredMessage, to pair: Pair) {
        guard let before = conversations[pair]?.archive?.byteCount else { return }
        conversations[pair]?.archive?.append(message)
        memoryBytes += (conversations[pair]?.archive?.byteCount ?? before) - before
        if memoryBytes > Self.maxMemoryBytes { makeRoom(besides: pair) }
    }

    /// Removes the text of a message in the memory log.
    package mutating func takeBack(_ msgid: String, in pair: Pair) {
        guard let before = conversations[pair]?.archive?.byteCount else { return }
        conversations[pair]?.archive?.takeBack(msgid: msgid)
        memoryBytes += (conversations[pair]?.archive?.byteCount ?? before) - before
    }

    /// Frees a sixteenth at once, so that this is not needed for each message: of the account with the most, until
    /// another has more.
    private mutating func makeRoom(besides pair: Pair) {
        var bytes: [String: Int] = [:]
        for (pair, conversation) in conversations {
            for account in pair.accounts where Self.nick(ofVisitor: account) == nil {
                bytes[account, default: 0] += conversation.archive?.byteCount ?? 0
            }
        }
        func rank(_ pair: Pair, _ account: String) -> (Int, Int, ChatTimestamp, String, String) {
            (
                isShown(pair, besides: account) ? 1 : 0, worth(pair, to: account), newest(pair), pair.one, pair.other
            )
        }
        let enough = Self.maxMemoryBytes / 16 * 15
        while memoryBytes > enough, let most = bytes.max(by: { ($0.value, $1.key) < ($1.value, $0.key) }) {
            bytes[most.key] = nil
            let second = bytes.values.max() ?? 0
            var left = most.value
            let own = (accounts[most.key]?.partners ?? []).union(accounts[most.key]?.hidden ?? [])
                .map { Pair(most.key, $0) }
            for quiet in own.sorted(by: { rank($0, most.key) < rank($1, most.key) }) where quiet != pair {
                guard memoryBytes > enough, left >= second else { break }
                let size = conversations[quiet]?.archive?.byteCount ?? 0
                left -= size
                let partner = quiet.partner(of: most.key)
                if let others = bytes[partner] { bytes[partner] = others - size }
                forget(quiet)
            }
            // An account whose other conversations are all gone has no more to free.
            if left < most.value { bytes[most.key] = left }
        }
    }

    private mutating func forget(_ pair: Pair) {
        guard let gone = conversations.removeValue(forKey: pair) else { return }
        memoryBytes -= gone.archive?.byteCount ?? 0
        firstSequence = max(firstSequence, gone.nextSequence)
        changes.append(.removeConversation(pair.storedKey))
        for account in pair.accounts {
            accounts[account]?.partners.remove(pair.partner(of: account))
            accounts[account]?.hidden.remove(pair.partner(of: account))
            guard let left = accounts[account], left.partners.isEmpty, left.hidden.isEmpty else { continue }
            for nick in left.nicks { forgetHolder(of: nick.folded) }
            accounts[account] = nil
        }
    }

    /// Removes all private messages from and to an account.
    package mutating func forget(account name: String) {
        let account = AccountName.fold(name)
        let partners = (accounts[account]?.partners ?? []).union(accounts[account]?.hidden ?? [])
        for partner in partners.sorted() { forget(Pair(account, partner)) }
    }

    /// The partners of an account's conversations with messages, and the time of the last. Unordered.
    package func newest(of name: String) -> [(partner: String, at: ChatTimestamp)] {
        let account = AccountName.fold(name)
        return (accounts[account]?.partners ?? []).compactMap { partner in
            conversations[Pair(account, partner)]?.newestAt.map { (partner, $0) }
        }
    }

    /// The memory log of a conversation; nil: there is none.
    package func archive(_ pair: Pair) -> MemoryLog? { conversations[pair]?.archive }

    // MARK: - Nicks

    /// The name of an account that has conversations, as it is written.
    package func name(of account: String) -> String? { accounts[account]?.name }

    /// The folded name of the account with a nick, present or most recent, if it has conversations.
    package func holder(of folded: String) -> String? { holders[folded] }

    /// The last nick of an account, unless another has used it since.
    package func lastNick(of account: String) -> String? { accounts[account]?.nicks.last?.nick }

    /// Records the nick of an account.
    package mutating func note(_ nick: String, folded: String, of name: String) {
        let account = AccountName.fold(name)
        guard let known = accounts[account] else { return removeNick(folded) }
        if let last = known.nicks.last, last.folded == folded, last.nick == nick { return }
        if holders[folded] != account { removeNick(folded) }
        hold(Nick(folded: folded, nick: nick), account)
        changes.append(.nick(StoredNick(folded: folded, nick: nick, account: known.name)))
    }

    private mutating func hold(_ nick: Nick, _ account: String) {
        holders[nick.folded] = account
        var nicks = accounts[account]?.nicks ?? []
        nicks.removeAll { $0.folded == nick.folded }
        nicks.append(nick)
        if nicks.count > Self.maxNicksOfAccount { forgetHolder(of: nicks.removeFirst().folded) }
        accounts[account]?.nicks = nicks
    }

    private mutating func removeNick(_ folded: String) {
        guard let account = holders[folded] else { return }
        accounts[account]?.nicks.removeAll { $0.folded == folded }
        forgetHolder(of: folded)
    }

    private mutating func forgetHolder(of folded: String) {
        guard holders.removeValue(forKey: folded) != nil else { return }
        changes.append(.removeNick(folded: folded))
    }

    // MARK: - Persistence

    /// The record of a nick to persist: its account, or none.
    package func kept(folded: String) -> StoreOperation {
        guard let account = holders[folded].flatMap({ accounts[$0] }),
            let nick = account.nicks.first(where: { $0.folded == folded })
        else { return .removeNick(folded: folded) }
        return .nick(StoredNick(folded: folded, nick: nick.nick, account: account.name))
    }

    /// Restores the records of an earlier process.
    ///
    /// - Parameters:
    ///   - spell: the present spelling of an account's name.
    ///   - fold: the form in which nicks are compared, which may be another than before.
    package mutating func restore(
        _ kept: [StoredConversation], _ nicks: [StoredNick], spell: (String) -> String,
        fold: (String) -> String = AccountName.fold
    ) {
        for known in kept {
            guard let parties = known.key.parties else { continue }
            let pair = Pair(parties.one, parties.other)
            // An empty one has no messages to find; it begins anew with the next message.
            guard known.newestAt != nil, conversations.count < Self.maxCount, pair.storedKey == known.key else {
                firstSequence = max(firstSequence, known.nextSequence)
                changes.append(.removeConversation(known.key))
                continue
            }
            enter(
                pair,
                Conversation(
                    newestAt: known.newestAt, nextSequence: known.nextSequence,
                    speakers: Set(known.speakers.map(AccountName.fold))),
                names: [spell(parties.one), spell(parties.other)])
        }
        for account in accounts.keys.sorted() where Self.nick(ofVisitor: account) == nil {
            hide((accounts[account]?.partners.count ?? 0) - Self.maxCountOfAccount, from: account)
        }
        for known in nicks {
            let account = AccountName.fold(known.account)
            guard accounts[account] != nil else {
                changes.append(.removeNick(folded: known.folded))
                continue
            }
            accounts[account]?.name = spell(known.account)
            let folded = fold(known.nick)
            hold(Nick(folded: folded, nick: known.nick), account)
            if folded != known.folded { changes += [.removeNick(folded: known.folded), self.kept(folded: folded)] }
        }
    }
}

import BridgeTypes
import ChatModel
import WireBytes

/// Which private conversations there are, and whose nicks belong to which account.
///
/// A conversation belongs to two accounts, whatever nicks they have, or to an account and whoever had a nick without having
/// one: to all intents an account here, see ``visitor(_:)``. Its messages are in the store, or, where nothing outlasts the
/// process, here. What is to be kept of changes is left in ``takeChanges()``.
package struct PrivateConversations {
    /// Of one account, those of the last years of somebody who talks to everybody. With one more, one is shown to the account
    /// no longer: of those in which it says nothing the one that is quiet for longest, else of all, and visitors first. So
    /// nobody can have somebody's conversations removed by talking to them under many names. The other still has it; it is
    /// gone when no account is shown it any more.
    static let maxCountOfAccount = 200
    /// All together, of each about 400 bytes of memory. With one more, one goes of who has most of them, if there is one that
    /// nobody else is shown.
    package static let maxCount = 10_000
    /// Nicks of one account that are remembered, the last ones.
    static let maxNicksOfAccount = 4
    /// Bytes of all messages, about, where there is no store: as many as four rooms may have. Beyond it conversations go of the
    /// account that has most of it, the quietest first.
    static let maxMemoryBytes = 16 * 1024 * 1024

    /// Who has a nick without having an account, whoever they are.
    ///
    /// - Parameter folded: the nick.
    package static func visitor(_ folded: String) -> String { "\(StoredConversation.visitorMark)\(folded)" }

    /// The folded nick of a visitor; nil: it is an account.
    package static func nick(ofVisitor account: String) -> String? {
        StoredConversation.isVisitor(account) ? String(account.dropFirst()) : nil
    }

    /// The accounts of a conversation, by their folded names; twice the same for who talks to themselves.
    package struct Pair: Hashable {
        package let one: String
        package let other: String

        package init(_ a: String, _ b: String) {
            let (a, b) = (Self.key(a), Self.key(b))
            (one, other) = a <= b ? (a, b) : (b, a)
        }

        /// Composed: what Swift takes for one name is one key on disk too.
        fileprivate static func key(_ name: String) -> String { UnicodeForm.composed(AccountName.fold(name)) }

        package var storedKey: StoredRoomKey { .conversation(one, other) }

        /// One, for who talks to themselves.
        package var accounts: [String] { one == other ? [one] : [one, other] }

        package func partner(of account: String) -> String { account == one ? other : one }
    }

    private struct Conversation {
        /// When something was said last; nil: nothing was said, only done.
        var newestAt: ChatTimestamp?
        var nextSequence: Int64 = 0
        /// Nil: the store has the messages.
        var archive: MemoryHistory?
        /// Who said something, folded.
        var speakers: Set<String> = []
    }

    private struct Nick {
        var folded: String
        var nick: String
    }

    private struct Account {
        /// As it is written.
        var name: String
        /// The one that it had last comes last.
        var nicks: [Nick] = []
        /// With whom it has the conversations that it is shown.
        var partners: Set<String> = []
        /// With whom it has others, which only these are shown.
        var hidden: Set<String> = []
    }

    private var conversations: [Pair: Conversation] = [:]
    /// By the folded name; those that have conversations.
    private var accounts: [String: Account] = [:]
    /// The account that has a folded nick, or had it last.
    private var holders: [String: String] = [:]
    private var memoryBytes = 0
    /// Where new conversations begin: beyond all that is gone, since the store may not hear that something is gone.
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

    /// Whether an account, folded, is shown a conversation of its own.
    package func isShown(_ pair: Pair, to account: String) -> Bool {
        accounts[account]?.partners.contains(pair.partner(of: account)) == true
    }

    /// Makes room for a conversation if there is none yet, or if one of its people is not shown it any more.
    ///
    /// - Parameters:
    ///   - names: its accounts, as they are written.
    ///   - inMemory: there is no store.
    package mutating func open(_ pair: Pair, names: [String], inMemory: Bool) {
        let isNew = !contains(pair)
        for account in pair.accounts where !isShown(pair, to: account) {
            // Nobody is shown a visitor's conversations.
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
        enter(pair, Conversation(nextSequence: firstSequence, archive: inMemory ? MemoryHistory() : nil), names: names)
    }

    /// What a conversation is worth to one of its people: what they say something in, then what an account wrote them.
    private func worth(_ pair: Pair, to account: String) -> Int {
        if conversations[pair]?.speakers.contains(account) == true { return 2 }
        return Self.nick(ofVisitor: pair.partner(of: account)) == nil ? 1 : 0
    }

    /// Whether an account but this one is shown the conversation.
    private func isShown(_ pair: Pair, besides account: String) -> Bool {
        let other = pair.partner(of: account)
        return other != account && Self.nick(ofVisitor: other) == nil && isShown(pair, to: other)
    }

    /// The conversations that an account is shown, those first that are worth least to it; of those that are equally quiet
    /// the same each time, whatever the order in which they are looked at.
    private func leastFirst(of account: String) -> [Pair] {
        (accounts[account]?.partners ?? []).map { Pair(account, $0) }.sorted { a, b in
            (worth(a, to: account), newest(a), a.one, a.other) < (worth(b, to: account), newest(b), b.one, b.other)
        }
    }

    /// So many conversations are shown to the account no longer.
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

    /// One goes for everybody; nobody's whom another is shown too if there is another.
    private mutating func forgetOne(of account: String) {
        // What is whose matters to accounts alone: of a visitor's the one goes that its account cares for least.
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

    /// The next place in a conversation.
    ///
    /// - Parameters:
    ///   - author: the account of who speaks.
    ///   - at: when something is said there; nil: it is done.
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

    /// Keeps a message here.
    package mutating func append(_ message: StoredMessage, to pair: Pair) {
        guard let before = conversations[pair]?.archive?.byteCount else { return }
        conversations[pair]?.archive?.append(message)
        memoryBytes += (conversations[pair]?.archive?.byteCount ?? before) - before
        if memoryBytes > Self.maxMemoryBytes { makeRoom(besides: pair) }
    }

    /// The words of a message that is kept here go.
    package mutating func takeBack(_ msgid: String, in pair: Pair) {
        guard let before = conversations[pair]?.archive?.byteCount else { return }
        conversations[pair]?.archive?.takeBack(msgid: msgid)
        memoryBytes += (conversations[pair]?.archive?.byteCount ?? before) - before
    }

    /// A sixteenth at once, so that it need not be looked for them with each message: of whoever has most, until another has
    /// more.
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
            // Whose conversations are all gone but this one has no more to give.
            if left < most.value { bytes[most.key] = left }
        }
    }

    private mutating func forget(_ pair: Pair) {
        guard let gone = conversations.removeValue(forKey: pair) else { return }
        memoryBytes -= gone.archive?.byteCount ?? 0
        firstSequence = max(firstSequence, gone.nextSequence)
        changes.append(.forgetConversation(pair.storedKey))
        for account in pair.accounts {
            accounts[account]?.partners.remove(pair.partner(of: account))
            accounts[account]?.hidden.remove(pair.partner(of: account))
            guard let left = accounts[account], left.partners.isEmpty, left.hidden.isEmpty else { continue }
            for nick in left.nicks { forgetHolder(of: nick.folded) }
            accounts[account] = nil
        }
    }

    /// All that an account said in private, and what was said to it.
    package mutating func forget(account name: String) {
        let account = AccountName.fold(name)
        let partners = (accounts[account]?.partners ?? []).union(accounts[account]?.hidden ?? [])
        for partner in partners.sorted() { forget(Pair(account, partner)) }
    }

    /// The conversations of an account in which something was said: with whom, and when last. In no particular order.
    package func newest(of name: String) -> [(partner: String, at: ChatTimestamp)] {
        let account = AccountName.fold(name)
        return (accounts[account]?.partners ?? []).compactMap { partner in
            conversations[Pair(account, partner)]?.newestAt.map { (partner, $0) }
        }
    }

    /// The messages of a conversation; nil: it is not here.
    package func archive(_ pair: Pair) -> MemoryHistory? { conversations[pair]?.archive }

    // MARK: - Nicks

    /// The name of an account that has conversations, as it is written.
    package func name(of account: String) -> String? { accounts[account]?.name }

    /// The folded name of the account that has a nick, or had it last, as far as it has conversations.
    package func holder(of folded: String) -> String? { holders[folded] }

    /// The nick that an account had last, as far as nobody else had it since.
    package func lastNick(of account: String) -> String? { accounts[account]?.nicks.last?.nick }

    /// An account has a nick.
    package mutating func note(_ nick: String, folded: String, of name: String) {
        let account = AccountName.fold(name)
        guard let known = accounts[account] else { return forgetNick(folded) }
        if let last = known.nicks.last, last.folded == folded, last.nick == nick { return }
        if holders[folded] != account { forgetNick(folded) }
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

    private mutating func forgetNick(_ folded: String) {
        guard let account = holders[folded] else { return }
        accounts[account]?.nicks.removeAll { $0.folded == folded }
        forgetHolder(of: folded)
    }

    private mutating func forgetHolder(of folded: String) {
        guard holders.removeValue(forKey: folded) != nil else { return }
        changes.append(.forgetNick(folded: folded))
    }

    // MARK: - Kept

    /// What is to be kept of a nick now: whose it is, or that it is nobody's.
    package func kept(folded: String) -> StoreOperation {
        guard let account = holders[folded].flatMap({ accounts[$0] }),
            let nick = account.nicks.first(where: { $0.folded == folded })
        else { return .forgetNick(folded: folded) }
        return .nick(StoredNick(folded: folded, nick: nick.nick, account: account.name))
    }

    /// Takes up what an earlier process kept.
    ///
    /// - Parameter spell: how the name of an account is written today.
    package mutating func restore(_ kept: [StoredConversation], _ nicks: [StoredNick], spell: (String) -> String) {
        for known in kept {
            guard let parties = known.key.parties else { continue }
            let pair = Pair(parties.one, parties.other)
            // In one that is empty nothing is left to be found; it begins anew when something is said.
            guard known.newestAt != nil, conversations.count < Self.maxCount, pair.storedKey == known.key else {
                firstSequence = max(firstSequence, known.nextSequence)
                changes.append(.forgetConversation(known.key))
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
                changes.append(.forgetNick(folded: known.folded))
                continue
            }
            accounts[account]?.name = spell(known.account)
            hold(Nick(folded: known.folded, nick: known.nick), account)
        }
    }
}

import ChatModel

/// Which private conversations there are, and whose nicks belong to which account.
///
/// A conversation belongs to two accounts, whatever nicks they have, or to an account and whoever had a nick without having
/// one: to all intents an account here, see ``visitor(_:)``. Its messages are in the store, or, where nothing outlasts the
/// process, here. What is to be kept of changes is left in ``takeChanges()``.
struct PrivateConversations {
    /// Of one account, those of the last years of somebody who talks to everybody. With one more, one goes, for both of its
    /// people: of those in which the account says nothing the one that is quiet for longest, else of all, and visitors first. So
    /// nobody can have somebody's conversations removed by talking to them under many names.
    static let maxCountOfAccount = 200
    /// All together, of each about 400 bytes of memory. With one more, one goes of the account that has most of them.
    static let maxCount = 10_000
    /// Nicks of one account that are remembered, the last ones.
    static let maxNicksOfAccount = 4
    /// Bytes of all messages, about, where there is no store: as many as four rooms may have. Beyond it the quietest
    /// conversations go.
    static let maxMemoryBytes = 16 * 1024 * 1024

    /// In front of a visitor's nick. No account has it in its name.
    private static let visitorMark: Character = " "

    /// Who has a nick without having an account, whoever they are.
    ///
    /// - Parameter folded: the nick.
    static func visitor(_ folded: String) -> String { "\(visitorMark)\(folded)" }

    /// The folded nick of a visitor; nil: it is an account.
    static func nick(ofVisitor account: String) -> String? {
        account.first == visitorMark ? String(account.dropFirst()) : nil
    }

    /// The accounts of a conversation, by their folded names; twice the same for who talks to themselves.
    struct Pair: Hashable {
        let one: String
        let other: String

        init(_ a: String, _ b: String) {
            let (a, b) = (AccountBook.fold(a), AccountBook.fold(b))
            (one, other) = a <= b ? (a, b) : (b, a)
        }

        var storedKey: StoredRoomKey { .conversation(one, other) }

        func partner(of account: String) -> String { account == one ? other : one }
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
        /// The accounts that it talks to.
        var partners: Set<String> = []
    }

    private var conversations: [Pair: Conversation] = [:]
    /// By the folded name; those that have conversations.
    private var accounts: [String: Account] = [:]
    /// The account that has a folded nick, or had it last.
    private var holders: [String: String] = [:]
    private var memoryBytes = 0
    private var changes: [StoreOperation] = []

    var count: Int { conversations.count }

    mutating func takeChanges() -> [StoreOperation] {
        defer { changes = [] }
        return changes
    }

    // MARK: - Conversations

    func contains(_ pair: Pair) -> Bool { conversations[pair] != nil }

    /// Makes room for a conversation if there is none yet.
    ///
    /// - Parameters:
    ///   - names: its accounts, as they are written.
    ///   - inMemory: there is no store.
    mutating func open(_ pair: Pair, names: [String], inMemory: Bool) {
        guard !contains(pair) else { return }
        for account in Set([pair.one, pair.other]) {
            if accounts[account]?.partners.count ?? 0 >= Self.maxCountOfAccount { forgetOne(of: account) }
        }
        if conversations.count >= Self.maxCount {
            let most = accounts.max { a, b in
                (a.value.partners.count, b.key) < (b.value.partners.count, a.key)
            }
            if let most { forgetOne(of: most.key) }
        }
        enter(pair, Conversation(archive: inMemory ? MemoryHistory() : nil), names: names)
    }

    private mutating func forgetOne(of account: String) {
        let pairs = (accounts[account]?.partners ?? []).map { Pair(account, $0) }
        func worth(_ pair: Pair) -> Int {
            if conversations[pair]?.speakers.contains(account) == true { return 2 }
            return Self.nick(ofVisitor: pair.partner(of: account)) == nil ? 1 : 0
        }
        // Of those that are equally quiet the same each time, whatever the order in which they are looked at.
        let least = pairs.min { a, b in
            (worth(a), newest(a), a.one, a.other) < (worth(b), newest(b), b.one, b.other)
        }
        if let least { forget(least) }
    }

    private func newest(_ pair: Pair) -> ChatTimestamp {
        conversations[pair]?.newestAt ?? ChatTimestamp(milliseconds: .min)
    }

    private mutating func enter(_ pair: Pair, _ conversation: Conversation, names: [String]) {
        conversations[pair] = conversation
        for name in names {
            let account = AccountBook.fold(name)
            accounts[account, default: Account(name: name)].partners.insert(pair.partner(of: account))
        }
    }

    /// The next place in a conversation.
    ///
    /// - Parameters:
    ///   - author: the account of who speaks.
    ///   - at: when something is said there; nil: it is done.
    mutating func takePlace(in pair: Pair, by author: String, at: ChatTimestamp?) -> Int64 {
        guard var conversation = conversations[pair] else { return 0 }
        defer { conversations[pair] = conversation }
        if let at {
            conversation.newestAt = at
            conversation.speakers.insert(AccountBook.fold(author))
        }
        let place = conversation.nextSequence
        conversation.nextSequence = place == .max ? place : place + 1
        return place
    }

    /// Keeps a message here.
    mutating func append(_ message: StoredMessage, to pair: Pair) {
        guard let before = conversations[pair]?.archive?.byteCount else { return }
        conversations[pair]?.archive?.append(message)
        memoryBytes += (conversations[pair]?.archive?.byteCount ?? before) - before
        if memoryBytes > Self.maxMemoryBytes { forgetQuietest(besides: pair) }
    }

    /// The words of a message that is kept here go.
    mutating func takeBack(_ msgid: String, in pair: Pair) {
        guard let before = conversations[pair]?.archive?.byteCount else { return }
        conversations[pair]?.archive?.takeBack(msgid: msgid)
        memoryBytes += (conversations[pair]?.archive?.byteCount ?? before) - before
    }

    /// A sixteenth at once, so that it need not be looked for them with each message.
    private mutating func forgetQuietest(besides pair: Pair) {
        for quiet in conversations.keys.sorted(by: { newest($0) < newest($1) }) where quiet != pair {
            guard memoryBytes > Self.maxMemoryBytes / 16 * 15 else { return }
            forget(quiet)
        }
    }

    private mutating func forget(_ pair: Pair) {
        guard let gone = conversations.removeValue(forKey: pair) else { return }
        memoryBytes -= gone.archive?.byteCount ?? 0
        changes.append(.forgetConversation(pair.storedKey))
        for account in Set([pair.one, pair.other]) {
            accounts[account]?.partners.remove(pair.partner(of: account))
            guard let left = accounts[account], left.partners.isEmpty else { continue }
            for nick in left.nicks { forgetHolder(of: nick.folded) }
            accounts[account] = nil
        }
    }

    /// All that an account said in private, and what was said to it.
    mutating func forget(account name: String) {
        let account = AccountBook.fold(name)
        for partner in (accounts[account]?.partners ?? []).sorted() { forget(Pair(account, partner)) }
    }

    /// The conversations of an account in which something was said: with whom, and when last. In no particular order.
    func newest(of name: String) -> [(partner: String, at: ChatTimestamp)] {
        let account = AccountBook.fold(name)
        return (accounts[account]?.partners ?? []).compactMap { partner in
            conversations[Pair(account, partner)]?.newestAt.map { (partner, $0) }
        }
    }

    /// The messages of a conversation; nil: it is not here.
    func archive(_ pair: Pair) -> MemoryHistory? { conversations[pair]?.archive }

    // MARK: - Nicks

    /// The name of an account that has conversations, as it is written.
    func name(of account: String) -> String? { accounts[account]?.name }

    /// The folded name of the account that has a nick, or had it last, as far as it has conversations.
    func holder(of folded: String) -> String? { holders[folded] }

    /// The nick that an account had last, as far as nobody else had it since.
    func lastNick(of account: String) -> String? { accounts[account]?.nicks.last?.nick }

    /// An account has a nick.
    mutating func note(_ nick: String, folded: String, of name: String) {
        let account = AccountBook.fold(name)
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

    /// Takes up what an earlier process kept.
    ///
    /// - Parameter spell: how the name of an account is written today.
    mutating func restore(_ kept: [StoredConversation], _ nicks: [StoredNick], spell: (String) -> String) {
        for known in kept {
            guard let parties = known.key.parties else { continue }
            let pair = Pair(parties.one, parties.other)
            let fits = [pair.one, pair.other].allSatisfy {
                (accounts[$0]?.partners.count ?? 0) < Self.maxCountOfAccount
            }
            // In one that is empty nothing is left to be found; it begins anew when something is said.
            guard fits, known.newestAt != nil, conversations.count < Self.maxCount else {
                changes.append(.forgetConversation(known.key))
                continue
            }
            enter(
                pair,
                Conversation(
                    newestAt: known.newestAt, nextSequence: known.nextSequence,
                    speakers: Set(known.speakers.map(AccountBook.fold))),
                names: [spell(parties.one), spell(parties.other)])
        }
        for known in nicks {
            let account = AccountBook.fold(known.account)
            guard accounts[account] != nil else {
                changes.append(.forgetNick(folded: known.folded))
                continue
            }
            accounts[account]?.name = spell(known.account)
            hold(Nick(folded: known.folded, nick: known.nick), account)
        }
    }
}

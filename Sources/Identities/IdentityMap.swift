import BridgeTypes
import ChatModel
import Digests
import WireBytes

// Identities. One nick space for both sides: IRC users choose nicks, upstream users are assigned them.
//
// Invariants: a nick that is confusable with another counts as taken; an IRC user's upstream id is derived from installation
// and nick, so that echoes are recognised without state; a nick stays with its upstream id while the user is present and for
// 30 days after, unless
//
// | the absent user                                  | loses the nick to                                            |
// |--------------------------------------------------|--------------------------------------------------------------|
// | in all cases                                     | an account                                                   |
// | has an unauthenticated id                        | a new id with the same display name: apps generate new ids   |
// | left, as reported by the backend, 15 minutes ago | a user whose name yields the same or a confusable nick       |
//
// The absent user is assigned another nick and never reclaims the old one, so nicks do not alternate.

/// A user of either side, as shown to IRC clients.
package struct Person {
    package enum Kind: Equatable {
        case local
        // Boxed: most users of a busy installation are local and do not need the space.
        indirect case remote(RemoteKey)
    }

    /// The identity of an upstream user: the backend's id, or the name where the dialect has no ids. Compared as bytes.
    package struct RemoteKey: Hashable {
        package var backend: String
        package var id: ChatID?
        package var name: String?

        package init(backend: String, id: ChatID?, name: String?) {
            self.backend = backend
            self.id = id
            self.name = name
        }

        package var person: ChatPerson { ChatPerson(id: id, name: name) }

        package static func == (a: Self, b: Self) -> Bool {
            a.id == b.id && TextBytes.areSame(a.name, b.name) && a.backend == b.backend
        }

        package func hash(into hasher: inout Hasher) {
            hasher.combine(backend)
            hasher.combine(id)
            TextBytes.hash(name, into: &hasher)
        }
    }

    /// Attributes that few users set, boxed to keep the table small.
    private indirect enum Rare {
        case none
        case some(RareAttributes)
    }

    private struct RareAttributes: Equatable {
        var roomCount = 0
        var absentSince: MonotonicInstant?
        var leaveWasReported = false
        var renamedAt: MonotonicInstant?
        var away: String?
        var account: String?
        var isBot = false
    }

    package let kind: Kind
    private var rare = Rare.none
    /// The clients of an IRC user, oldest first; several where one account has several.
    package fileprivate(set) var clients: ShortList<ClientID> = []
    package private(set) var nick: String
    package let ident: String
    package let host: String
    /// The display name as written, without controls.
    package fileprivate(set) var realname: String
    /// `nick!ident@host`.
    package var source: String {
        let (nick, ident, host) = (nick.utf8, ident.utf8, host.utf8)
        return String(unsafeUninitializedCapacity: nick.count + ident.count + host.count + 2) { source in
            var end = source.initialize(fromContentsOf: nick)
            source.initializeElement(at: end, to: UInt8(ascii: "!"))
            end = source[(end + 1)...].initialize(fromContentsOf: ident)
            source.initializeElement(at: end, to: UInt8(ascii: "@"))
            return source[(end + 1)...].initialize(fromContentsOf: host)
        }
    }

    /// The away message; nil: not away.
    package fileprivate(set) var away: String? {
        get { attributes.away }
        set { attributes.away = newValue }
    }

    /// The number of rooms of an upstream user. Zero: absent.
    package fileprivate(set) var roomCount: Int {
        get { attributes.roomCount }
        set { attributes.roomCount = newValue }
    }

    package fileprivate(set) var absentSince: MonotonicInstant? {
        get { attributes.absentSince }
        set { attributes.absentSince = newValue }
    }

    /// Whether the backend reported that an upstream user left; otherwise absence is inferred.
    package fileprivate(set) var leaveWasReported: Bool {
        get { attributes.leaveWasReported }
        set { attributes.leaveWasReported = newValue }
    }

    /// The last change of an upstream user's display name.
    package fileprivate(set) var renamedAt: MonotonicInstant? {
        get { attributes.renamedAt }
        set { attributes.renamedAt = newValue }
    }

    /// The bridge account, or `<id>@<backend>` of a user authenticated by the backend.
    package fileprivate(set) var account: String? {
        get { attributes.account }
        set { attributes.account = newValue }
    }

    /// Bot mode, set by IRC users themselves.
    package fileprivate(set) var isBot: Bool {
        get { attributes.isBot }
        set { attributes.isBot = newValue }
    }

    /// Whether this is an IRC user.
    package var isLocal: Bool { kind == .local }

    /// Whether the user is connected, or in a room upstream.
    package var isPresent: Bool { isLocal || roomCount > 0 }

    private var attributes: RareAttributes {
        get { if case .some(let attributes) = rare { attributes } else { RareAttributes() } }
        set { rare = newValue == RareAttributes() ? .none : .some(newValue) }
    }

    package init(kind: Kind, nick: String, ident: String, host: String, realname: String, account: String?) {
        self.kind = kind
        self.nick = nick
        self.ident = ident
        self.host = host
        self.realname = realname
        self.account = account
    }

    fileprivate mutating func rename(_ nick: String) { self.nick = nick }
}

/// Reasons to refuse a nick to an IRC user.
package enum NickRefusal: Equatable {
    case erroneous
    case inUse
}

/// The users of both sides and their nicks.
package final class IdentityMap {
    /// The time for which an absent upstream user's nick stays assigned.
    package static let retention: Duration = .seconds(30 * 24 * 60 * 60)
    /// The time before the nick of an upstream user who left may be assigned to another, so that the two are not confused.
    package static let nickCooldown: Duration = .seconds(15 * 60)
    /// The minimum interval between nick changes of an upstream user: each is a line to every client in the user's rooms.
    package static let renamePause: Duration = .seconds(5)
    /// Limit of absent users, about 300 bytes each; the longest absent are evicted first.
    package static let maxAbsent = 20_000
    /// The UUID namespace of IRC users' upstream ids, the same in every installation.
    package static let puppetNamespace: [UInt8] = [
        0xd5, 0xc0, 0xdb, 0x19, 0xb3, 0x8c, 0x56, 0xeb, 0x97, 0xd3, 0xf6, 0xb7, 0x2e, 0x3f, 0xf9, 0x25,
    ]

    private let rules: NickRules
    private let generator: NickGenerator
    private let instanceID: String
    private var people = KeyedObjects<ByID>()
    private var nextID: UInt64 = 1
    private var byNick = KeyedObjects<ByNick>()
    private var bySkeleton = KeyedObjects<BySkeleton>()
    private var byRemote = KeyedObjects<ByRemote>()
    private var realnames = RealnameCounts()
    /// Grows with each change of what is shown of a speaker, nick, account or bot mode, and of who is recognised as whom.
    package private(set) var revision: UInt64 = 0
    /// Absent users, longest absent first; stale entries of present users are skipped.
    private var absentQueue: [(person: PersonID, since: MonotonicInstant)] = []
    private var absentHead = 0
    private var absentCount = 0
    /// The next number for a base nick, so that a thousand users of one name cost a thousand look-ups.
    private var nextNumber: [String: Int] = [:]
    private let reserved: Set<String>
    /// Account names by skeleton.
    private var accountNames: [String: [String]]
    /// When accounts were registered, by name as written.
    private var creationTimes: [String: ChatTimestamp] = [:]
    /// Present accounts, by folded name.
    private var byAccount: [String: PersonID] = [:]
    /// Persists changes of assigned nicks; nil: no store.
    private var persist: ((StoreOperation) -> Void)?
    private var presenceChanged: ((Person, _ isHere: Bool) -> Void)?
    /// The wall clock, for persisted changes.
    private var wall: () -> ChatTimestamp = { ChatTimestamp(milliseconds: 0) }
    /// The last time from which a backend's users may have returned unobserved.
    private var presenceInvalidatedAt: [String: MonotonicInstant] = [:]
    /// Upstream users that are not persisted.
    private var transient: Set<PersonID> = []

    package init(_ settings: IdentitySettings) {
        self.rules = settings.rules
        self.generator = NickGenerator(settings: settings.nicks)
        self.instanceID = settings.instanceID
        self.accountNames = Dictionary(grouping: settings.accounts, by: settings.rules.skeleton)
        self.reserved = Set(settings.reserved.map(settings.rules.skeleton))
    }

    /// Sets the writer for changes of assigned nicks, and the clock that dates them.
    package func persist(by persist: @escaping (StoreOperation) -> Void, wall: @escaping () -> ChatTimestamp) {
        self.persist = persist
        self.wall = wall
    }

    /// Sets the observer for users that appear under their present nick, or leave it.
    package func reportPresence(to report: @escaping (Person, _ isHere: Bool) -> Void) { presenceChanged = report }

    /// A user in a separate allocation, so that growing the table stays cheap.
    private final class Record {
        let id: PersonID
        private let rules: NickRules
        /// Cached hashes of the nick's folded form and skeleton.
        private(set) var nickHash: UInt32 = 0
        private(set) var skeletonHash: UInt32 = 0
        var person: Person

        init(_ id: PersonID, _ person: Person, _ rules: NickRules) {
            self.id = id
            self.person = person
            self.rules = rules
        }

        var foldedNick: String { rules.fold(person.nick) }
        var skeleton: String { rules.skeleton(person.nick) }

        func rehash() {
            nickHash = UInt32(truncatingIfNeeded: foldedNick.hashValue)
            skeletonHash = UInt32(truncatingIfNeeded: skeleton.hashValue)
        }
    }

    private enum ByID: ObjectKeying {
        static func key(of record: Record) -> PersonID { record.id }
    }

    private enum ByNick: ObjectKeying {
        static func key(of record: Record) -> String { record.foldedNick }
        static func hash(of record: Record) -> Int { Int(record.nickHash) }
        static func hash(_ folded: String) -> Int { Int(UInt32(truncatingIfNeeded: folded.hashValue)) }
        static func isKey(_ folded: String, hash: Int, of record: Record) -> Bool {
            Int(record.nickHash) == hash && record.foldedNick == folded
        }
    }

    private enum BySkeleton: ObjectKeying {
        static func key(of record: Record) -> String { record.skeleton }
        static func hash(of record: Record) -> Int { Int(record.skeletonHash) }
        static func hash(_ skeleton: String) -> Int { Int(UInt32(truncatingIfNeeded: skeleton.hashValue)) }
        static func isKey(_ skeleton: String, hash: Int, of record: Record) -> Bool {
            Int(record.skeletonHash) == hash && record.skeleton == skeleton
        }
    }

    private enum ByRemote: ObjectKeying {
        private static let hashes = QuickHash()

        static func key(of record: Record) -> Person.RemoteKey {
            guard case .remote(let key) = record.person.kind else {
                return Person.RemoteKey(backend: "", id: nil, name: nil)
            }
            return key
        }

        static func hash(_ key: Person.RemoteKey) -> Int {
            let person = key.id.map(hashes.hash) ?? hashes.hash(key.name ?? "")
            return Int(truncatingIfNeeded: hashes.hash(hashes.hash(key.backend), person)) & .max
        }
    }

    package subscript(id: PersonID) -> Person? { people[id]?.person }

    // Without a copy of the person, for what each message asks.

    /// Whether this is the person's display name.
    package func isCalled(_ id: PersonID, _ realname: String) -> Bool { people[id]?.person.realname == realname }

    package func nick(of id: PersonID) -> String? { people[id]?.person.nick }

    /// The clients of an IRC user; none of an upstream one.
    package func clients(of id: PersonID) -> ShortList<ClientID> { people[id]?.person.clients ?? [] }

    package var count: Int { people.count }

    package func person(nick: String) -> (id: PersonID, person: Person)? {
        byNick[rules.fold(nick)].map { ($0.id, $0.person) }
    }

    /// Whether a known upstream user has exactly this display name.
    package func isRemote(realname: UnsafeRawBufferPointer) -> Bool { realnames.contain(realname) }

    private func modify(_ id: PersonID, _ body: (inout Person) -> Void) {
        guard let record = people[id] else { return }
        body(&record.person)
    }

    // MARK: - Attributes of IRC users

    /// Adds a client to a user.
    package func add(_ client: ClientID, to id: PersonID) { modify(id) { $0.clients.append(client) } }

    /// Removes a client; the user stays.
    package func remove(_ client: ClientID, from id: PersonID) { modify(id) { $0.clients.removeAll { $0 == client } } }

    /// - Parameter text: the away message; nil: no longer away.
    package func setAway(_ id: PersonID, _ text: String?) { modify(id) { $0.away = text } }

    /// - Parameter name: the account; nil: logged out.
    package func setAccount(_ id: PersonID, _ name: String?) {
        guard let record = people[id] else { return }
        unindexAccount(of: record)
        record.person.account = name
        revision += 1
        if let name { byAccount[AccountName.fold(name)] = id }
    }

    private func unindexAccount(of record: Record) {
        guard let name = record.person.account.map(AccountName.fold), byAccount[name] == record.id else { return }
        byAccount[name] = nil
    }

    /// The user logged in to an account.
    ///
    /// - Parameter name: folded.
    package func person(account name: String) -> PersonID? { byAccount[name] }

    package func setBot(_ id: PersonID, _ isBot: Bool) {
        modify(id) { $0.isBot = isBot }
        revision += 1
    }

    package func setRealname(_ id: PersonID, _ realname: String) { modify(id) { $0.realname = realname } }

    // MARK: - Upstream ids

    /// The upstream id of an IRC user without an account. Upper case, stable for the nick.
    package func puppetID(nick: String, backend: String) -> ChatID {
        let folded = ASCII.lowercased(nick)
        return ChatID(UUIDv5.make(namespace: Self.puppetNamespace, name: "\(instanceID)/\(backend)/n:\(folded)"))
    }

    /// The upstream id of an IRC user: derived from the account if logged in, else from the nick.
    package func puppetID(of person: Person, backend: String) -> ChatID {
        person.account.map { puppetID(account: $0, backend: backend) } ?? puppetID(nick: person.nick, backend: backend)
    }

    package func puppetID(account: String, backend: String) -> ChatID {
        ChatID(UUIDv5.make(namespace: Self.puppetNamespace, name: "\(instanceID)/\(backend)/a:\(account)"))
    }

    // MARK: - IRC users

    /// Reserves a name, and names confusable with it, for the account of that name.
    package func reserve(account name: String) { accountNames[rules.skeleton(name), default: []].append(name) }

    /// Records when an account was registered: older messages of that name belong to another user.
    package func setCreationTime(ofAccount name: String, at moment: ChatTimestamp) { creationTimes[name] = moment }

    /// When an account was registered; nil: not registered, or not with exactly this name.
    package func creationTime(ofAccount name: String) -> ChatTimestamp? { creationTimes[name] }

    /// Undoes ``reserve(account:)``.
    package func release(account name: String) {
        let skeleton = rules.skeleton(name)
        accountNames[skeleton]?.removeAll { $0 == name }
        if accountNames[skeleton]?.isEmpty == true { accountNames[skeleton] = nil }
    }

    /// Whether the nick is reserved for an account, or its holder is logged in.
    package func belongsToAccount(nick: String) -> Bool {
        accountNames[rules.skeleton(nick)] != nil || person(nick: nick)?.person.account != nil
    }

    /// Whether a refused nick may become available by logging in.
    package func mayYieldToAccount(nick: String) -> Bool {
        let holders = holders(of: nick)
        return belongsToAccount(nick: nick)
            || !holders.isEmpty && holders.allSatisfy { $0.person.absentSince != nil }
    }

    /// The users with this nick or a confusable one.
    private func holders(of nick: String) -> [Record] {
        let (same, alike) = (byNick[rules.fold(nick)], bySkeleton[rules.skeleton(nick)])
        return (same === alike ? [same] : [same, alike]).compactMap(\.self)
    }

    /// The reason to refuse `nick` to `holder` (nil: a new user), who is logged in to `account`.
    package func refusal(nick: String, holder: PersonID?, account: String? = nil) -> NickRefusal? {
        guard rules.isLegal(nick), rules.mayBeTaken(nick) else { return .erroneous }
        let skeleton = rules.skeleton(nick)
        if reserved.contains(skeleton) { return .inUse }
        if let owners = accountNames[skeleton], !owners.contains(where: { $0 == account }) { return .inUse }
        for taken in holders(of: nick) where taken.id != holder {
            // Upstream names can be chosen freely: those of absent users must not block an account's nick.
            guard account != nil, taken.person.absentSince != nil else { return .inUse }
        }
        return nil
    }

    /// Assigns other nicks to the absent users with this nick or a confusable one.
    private func displaceHolders(of nick: String) {
        for record in holders(of: nick) where record.person.absentSince != nil {
            unindexNames(of: record)
            index(record, as: numbered(record.person.nick) { isFree($0) && !areAlike($0, nick) })
            persistIdentity(record.id)
        }
    }

    private func areAlike(_ a: String, _ b: String) -> Bool {
        rules.fold(a) == rules.fold(b) || rules.skeleton(a) == rules.skeleton(b)
    }

    /// Adds an IRC user whose nick was not refused.
    package func addLocal(
        client: ClientID, nick: String, ident: String, host: String, realname: String, account: String? = nil
    ) -> PersonID {
        var person = Person(
            kind: .local, nick: nick, ident: ident, host: host, realname: realname, account: account)
        person.clients = [client]
        displaceHolders(of: nick)
        let id = insert(person)
        if let account { byAccount[AccountName.fold(account)] = id }
        presenceChanged?(person, true)
        return id
    }

    /// Adds the bridge's own service user, which is always present and has no client.
    package func addService(nick: String, ident: String, host: String, realname: String) -> PersonID {
        var person = Person(kind: .local, nick: nick, ident: ident, host: host, realname: realname, account: nil)
        person.isBot = true
        return insert(person)
    }

    package func rename(_ id: PersonID, to nick: String) {
        guard let record = people[id] else { return }
        let old = record.person
        unindexNames(of: record)
        displaceHolders(of: nick)
        index(record, as: nick)
        nickChanged(from: old, record.person)
    }

    /// Gives a user that is not indexed another nick.
    private func index(_ record: Record, as nick: String) {
        record.person.rename(nick)
        indexNames(record)
        revision += 1
    }

    private func nickChanged(from old: Person, _ new: Person) {
        guard old.isPresent, rules.fold(old.nick) != rules.fold(new.nick) else { return }
        presenceChanged?(old, false)
        presenceChanged?(new, true)
    }

    package func remove(_ id: PersonID) {
        guard let record = people.remove(id) else { return }
        unindexNames(of: record)
        unindexAccount(of: record)
        if record.person.isPresent { presenceChanged?(record.person, false) }
        if case .remote(let key) = record.person.kind {
            byRemote.remove(key)
            revision += 1
            realnames.count(record.person.realname, -1)
            if record.person.absentSince != nil { absentCount -= 1 }
            if transient.remove(id) == nil { persist?(.removeIdentity(backend: key.backend, key.person)) }
        }
    }

    private func insert(_ person: Person) -> PersonID {
        let id = PersonID(rawValue: nextID)
        nextID += 1
        let record = Record(id, person, rules)
        people.insert(record)
        indexNames(record)
        if case .remote = person.kind {
            byRemote.insert(record)
            realnames.count(person.realname, 1)
        }
        return id
    }

    private func indexNames(_ record: Record) {
        record.rehash()
        byNick.insert(record)
        bySkeleton.insert(record)
    }

    /// Must precede a change of the nick: the tables find the record by it.
    private func unindexNames(of record: Record) {
        let folded = record.foldedNick
        if byNick[folded] === record { byNick.remove(folded) }
        let skeleton = record.skeleton
        if bySkeleton[skeleton] === record { bySkeleton.remove(skeleton) }
    }

    // MARK: - Upstream users

    /// The outcome of looking up an upstream user, with the changes to show.
    package struct Resolution: Equatable {
        package var id: PersonID
        /// The source before and the nick after a nick change.
        package var renamed: (from: String, to: String)?
        /// The display name changed.
        package var realnameChanged: Bool

        package static func == (a: Resolution, b: Resolution) -> Bool {
            a.id == b.id && a.renamed?.from == b.renamed?.from && a.renamed?.to == b.renamed?.to
                && a.realnameChanged == b.realnameChanged
        }
    }

    package static func remoteKey(_ person: ChatPerson, backend: String) -> Person.RemoteKey {
        if let id = person.id { return Person.RemoteKey(backend: backend, id: id, name: nil) }
        return Person.RemoteKey(backend: backend, id: nil, name: person.name ?? "unknown")
    }

    package func known(_ key: Person.RemoteKey) -> PersonID? { byRemote[key]?.id }

    /// The nick, source and account of an upstream user; of an unknown one as they would be if no other user had the nick.
    package func preview(
        _ sender: ChatPerson, backend: String, authenticated: Bool
    ) -> (nick: String, source: String, account: String?) {
        if let known = known(Self.remoteKey(sender, backend: backend)).flatMap({ people[$0]?.person }) {
            return (known.nick, known.source, known.account)
        }
        let name = sender.name.flatMap { $0.isEmpty ? nil : $0 }
        let nick = generator.nick(
            name: name ?? sender.id?.rawValue, id: sender.id?.canonical ?? sender.name ?? "unknown")
        return (
            nick, nick + "!" + Self.remoteIdent + "@" + Self.hostname(backend),
            authenticated ? Self.accountName(of: sender, backend: backend) : nil
        )
    }

    package static let remoteIdent = "chat"

    /// Finds or adds the user of a frame's sender.
    ///
    /// - Parameter isTransient: not persisted.
    package func resolve(
        _ sender: ChatPerson, backend: String, authenticated: Bool, isTransient: Bool = false, now: MonotonicInstant
    ) -> Resolution {
        let key = Self.remoteKey(sender, backend: backend)
        let displayName = sender.name.flatMap { $0.isEmpty ? nil : $0 }
        let idText = sender.id?.canonical ?? sender.name ?? "unknown"
        if let record = byRemote[key] {
            let id = record.id
            // Restored users have no account.
            if authenticated, record.person.account == nil {
                record.person.account = Self.accountName(of: sender, backend: backend)
                revision += 1
            }
            let person = record.person
            guard let displayName else { return Resolution(id: id, renamed: nil, realnameChanged: false) }
            let realname = Self.realname(displayName)
            // A change that comes too soon is shown with a later message.
            let isTooSoon = person.renamedAt.map { now - $0 < Self.renamePause } ?? false
            guard realname != person.realname, !isTooSoon else {
                return Resolution(id: id, renamed: nil, realnameChanged: false)
            }
            realnames.count(person.realname, -1)
            realnames.count(realname, 1)
            modify(id) {
                $0.realname = realname
                $0.renamedAt = now
            }
            revision += 1
            defer { persistIdentity(id) }
            let base = generator.nick(name: displayName, id: idText)
            let oldBase = generator.nick(name: person.realname, id: idText)
            // A number is retained while the name yields the same nick, apart from case.
            let retainsNick =
                base == oldBase
                || person.nick != oldBase && rules.skeleton(base) == rules.skeleton(oldBase)
            guard !retainsNick else { return Resolution(id: id, renamed: nil, realnameChanged: true) }
            let oldSource = person.source
            unindexNames(of: record)
            let nick = freeNick(
                base, of: sender, displayName: realname, backend: backend, authenticated: authenticated, now: now)
            index(record, as: nick)
            nickChanged(from: person, record.person)
            return Resolution(
                id: id, renamed: nick == person.nick ? nil : (oldSource, nick), realnameChanged: true)
        }
        pruneAbsent(now: now)
        // Without a name the nick is derived from the id.
        let base = generator.nick(name: displayName ?? sender.id?.rawValue, id: idText)
        let realname = Self.realname(displayName ?? idText)
        let nick = freeNick(
            base, of: sender, displayName: realname, backend: backend, authenticated: authenticated, now: now)
        var person = Person(
            kind: .remote(key), nick: nick, ident: Self.remoteIdent, host: Self.hostname(backend), realname: realname,
            account: nil)
        if authenticated { person.account = Self.accountName(of: sender, backend: backend) }
        person.absentSince = now
        let id = insert(person)
        absentCount += 1
        absentQueue.append((id, now))
        if isTransient { transient.insert(id) } else { persistIdentity(id) }
        return Resolution(id: id, renamed: nil, realnameChanged: false)
    }

    /// Records that a user entered a room.
    package func entered(_ id: PersonID) {
        var appeared: Person?
        modify(id) {
            $0.roomCount += 1
            if $0.roomCount == 1 { appeared = $0 }
            if $0.absentSince != nil { absentCount -= 1 }
            $0.absentSince = nil
            $0.leaveWasReported = false
        }
        if let appeared { presenceChanged?(appeared, true) }
    }

    /// Records that a user left a room; after the last one the user is absent.
    ///
    /// - Parameter isReported: by the backend, not inferred.
    package func left(_ id: PersonID, isReported: Bool = false, now: MonotonicInstant) {
        var isGone = false
        modify(id) {
            $0.roomCount = max(0, $0.roomCount - 1)
            guard $0.roomCount == 0, $0.absentSince == nil else { return }
            $0.absentSince = now
            $0.leaveWasReported = isReported
            absentCount += 1
            absentQueue.append((id, now))
            isGone = true
        }
        if isGone { persistIdentity(id) }
        if isGone, let person = self[id] { presenceChanged?(person, false) }
        // Each absence adds an entry behind others that may last 30 days; frequent changes must not grow the queue.
        if absentQueue.count - absentHead > 2 * absentCount + 1024 {
            absentQueue = absentQueue[absentHead...].filter { people[$0.person]?.person.absentSince == $0.since }
            absentHead = 0
        }
    }

    /// Records that users of this backend may return unobserved from now on.
    package func invalidatePresence(on backend: String, now: MonotonicInstant) { presenceInvalidatedAt[backend] = now }

    /// Whether an upstream user certainly left, and so long ago that the nick may be assigned to another.
    private func isLongGone(_ person: Person, now: MonotonicInstant) -> Bool {
        guard case .remote(let key) = person.kind, person.leaveWasReported, let since = person.absentSince else {
            return false
        }
        return now - since >= Self.nickCooldown && presenceInvalidatedAt[key.backend].map { $0 < since } ?? true
    }

    /// The number of queued absences, stale ones included.
    package var absenceEntryCount: Int { absentQueue.count - absentHead }

    private func freeNick(
        _ base: String, of sender: ChatPerson, displayName: String, backend: String, authenticated: Bool,
        now: MonotonicInstant
    ) -> String {
        // A message under an IRC user's upstream id may be unrecognised after a crash with data loss. Its author would then be
        // refused the nick while this entry lasts. The shared account of a backend has an id derived from the bridge's name.
        if base == "chatbridge" || sender.id != puppetID(nick: base, backend: backend) {
            if isFree(base) { return base }
            // Apps generate a new id at every start: without authentication, the same name with an absent holder counts as the
            // same user.
            if !authenticated, let (holder, person) = person(nick: base), case .remote(let key) = person.kind,
                key.backend == backend, person.absentSince != nil, TextBytes.areSame(person.realname, displayName)
            {
                remove(holder)
                if isFree(base) { return base }
            }
            if !isReserved(base), holders(of: base).allSatisfy({ isLongGone($0.person, now: now) }) {
                displaceHolders(of: base)
                if isFree(base) { return base }
            }
        }
        let folded = rules.fold(base)
        if nextNumber.count > 50_000 { nextNumber.removeAll() }
        var number = nextNumber[folded] ?? 2
        while true {
            let candidate = generator.numbered(base, number)
            number += 1
            if isFree(candidate) {
                nextNumber[folded] = number
                return candidate
            }
        }
    }

    /// The first free nick of `base2`, `base3` and so on.
    package func numbered(_ base: String, where isFree: (String) -> Bool) -> String {
        var number = 2
        while true {
            let candidate = generator.numbered(base, number)
            if isFree(candidate) { return candidate }
            number += 1
        }
    }

    private func isFree(_ nick: String) -> Bool { holders(of: nick).isEmpty && !isReserved(nick) }

    /// Whether the nick is reserved for the bridge or for an account.
    private func isReserved(_ nick: String) -> Bool {
        let skeleton = rules.skeleton(nick)
        return reserved.contains(skeleton) || accountNames[skeleton] != nil
    }

    private func pruneAbsent(now: MonotonicInstant) {
        while absentHead < absentQueue.count {
            let (id, since) = absentQueue[absentHead]
            let isCurrent = people[id]?.person.absentSince == since
            guard !isCurrent || absentCount > Self.maxAbsent || now - since > Self.retention else { break }
            if isCurrent { remove(id) }
            absentHead += 1
        }
        if absentHead > 1024, absentHead > absentQueue.count / 2 {
            absentQueue.removeFirst(absentHead)
            absentHead = 0
        }
    }

    // MARK: - Persistence

    private func persistIdentity(_ id: PersonID) {
        guard let persist, let change = storeChange(of: id) else { return }
        persist(change)
    }

    private func storeChange(of id: PersonID) -> StoreOperation? {
        guard !transient.contains(id), let person = people[id]?.person, case .remote(let key) = person.kind else {
            return nil
        }
        return .identity(
            StoredIdentity(
                backend: key.backend, person: key.person, nick: person.nick, realname: person.realname,
                lastSeen: wall()))
    }

    /// The change that stores an upstream user's present identity, or deletes that of an unknown one.
    package func storeChange(of person: ChatPerson, backend: String) -> StoreOperation {
        known(Self.remoteKey(person, backend: backend)).flatMap { storeChange(of: $0) }
            ?? .removeIdentity(backend: backend, person)
    }

    /// Persists that the users present now were seen.
    package func persistPresent() {
        guard persist != nil else { return }
        for id in people.keys.sorted(by: { $0.rawValue < $1.rawValue }) where people[id]?.person.roomCount ?? 0 > 0 {
            persistIdentity(id)
        }
    }

    /// Restores stored users as absent since they were last seen, under their nicks. Call it before users are added.
    ///
    /// Users absent for too long, or with a nick that is no longer available, are deleted.
    package func restore(_ identities: [StoredIdentity], now: Now) {
        let sorted = identities.sorted { $0.lastSeen < $1.lastSeen }
        for (index, identity) in sorted.enumerated() {
            // The wall clock may have been set back: ages are not negative.
            let (difference, over) = now.wall.milliseconds.subtractingReportingOverflow(identity.lastSeen.milliseconds)
            let age = over ? Self.retention : Duration.milliseconds(max(difference, 0))
            let key = Self.remoteKey(identity.person, backend: identity.backend)
            guard sorted.count - index <= Self.maxAbsent, age < Self.retention,
                byRemote[key] == nil, isFree(identity.nick), rules.isLegal(identity.nick)
            else {
                if byRemote[key] == nil { persist?(.removeIdentity(backend: identity.backend, identity.person)) }
                continue
            }
            var person = Person(
                kind: .remote(key), nick: identity.nick, ident: Self.remoteIdent,
                host: Self.hostname(identity.backend), realname: identity.realname, account: nil)
            let since = now.monotonic + (.zero - age)
            person.absentSince = since
            let id = insert(person)
            absentCount += 1
            absentQueue.append((id, since))
        }
    }

    // MARK: - Sanitised text

    /// A display name as a realname: no control characters, at most `maxBytes`.
    package static func realname(_ name: String, maxBytes: Int = 150) -> String {
        PrintableText.prefix(of: PrintableText.of(name, maxScalars: 600), maxBytes: maxBytes)
    }

    /// A backend's name as a host: no spaces, at most 63 bytes.
    package static func hostname(_ backend: String) -> String {
        var legal: [UInt8] = []
        for scalar in backend.unicodeScalars.prefix(63) {
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9", ".", "-", "_": legal.append(UInt8(truncatingIfNeeded: scalar.value))
            default: legal.append(UInt8(ascii: "-"))
            }
        }
        return legal.isEmpty ? "backend" : String(decoding: legal, as: UTF8.self)
    }

    /// The account of a user authenticated by the backend; nil: neither id nor name is given.
    package static func accountName(of sender: ChatPerson, backend: String) -> String? {
        (sender.id?.rawValue ?? sender.name).map { accountName($0) + "@" + hostname(backend) }
    }

    /// Whether that account is unique: the id is unchanged in it, without capitals, as accounts are compared, and composed,
    /// since canonically equivalent ids may be different users of the backend.
    package static func isAccountName(_ person: ChatPerson, backend: String) -> Bool {
        guard let id = person.id?.rawValue ?? person.name, !id.isEmpty else { return false }
        return TextBytes.areSame(accountName(id), id) && UnicodeForm.isComposed(id)
            && (TextBytes.areSame(ASCII.lowercased(id), id) || person.id?.isUUIDShaped == true)
    }

    private static func accountName(_ id: String) -> String {
        let legal = id.unicodeScalars.prefix(60).map { scalar -> Character in
            PrintableText.isControl(scalar) || scalar == " " || scalar == "@" || scalar == ":" || scalar == "*"
                ? "-" : Character(scalar)
        }
        return legal.isEmpty ? "-" : String(legal)
    }
}

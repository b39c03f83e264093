import BridgeTypes
import ChatModel
import Digests
import WireBytes

// Who is who. One nick space for both sides: IRC users claim nicks, people upstream are given them.
//
// Rules kept here: a nick that a reader could mistake for another counts as taken; an IRC user's id upstream follows from the
// installation and the nick, so that echoes are recognised without state; a nick stays with its upstream id while that person
// is present and for 30 days after, unless
//
// | who is absent                         | gives the nick up to                                         |
// |---------------------------------------|--------------------------------------------------------------|
// | in whatever way                       | an account                                                   |
// | with an id that nobody vouches for    | a newcomer with the same display name: apps draw new ids     |
// | by the backend's word, for 15 minutes | whoever comes with a name that asks for it, or looks like it |
//
// Whoever gave it up has another from then on. Those who are known keep what they have, so nothing goes back and forth.

/// A person as IRC clients see them.
package struct Person {
    package enum Kind: Equatable {
        case local
        // Boxed: most people are local in a busy installation, and need no room for it.
        indirect case remote(RemoteKey)
    }

    /// What makes an upstream person one person: the backend's id, or the name where the wire has no ids.
    /// Two that differ in a byte are two people.
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

    /// What few people have.
    private indirect enum Rare {
        case nothing
        case some(Rarities)
    }

    private struct Rarities: Equatable {
        var roomCount = 0
        var absentSince: MonotonicInstant?
        var leaveWasTold = false
        var renamedAt: MonotonicInstant?
        var away: String?
        var account: String?
        var isBot = false
    }

    package let kind: Kind
    private var rare = Rare.nothing
    /// The clients of an IRC user, oldest first; several where one account has several.
    package fileprivate(set) var clients: ShortList<ClientID> = []
    package private(set) var nick: String
    package let ident: String
    package let host: String
    /// The display name as written, without controls.
    package fileprivate(set) var realname: String
    /// `nick!ident@host`.
    package var source: String { nick + "!" + ident + "@" + host }

    /// The away message; nil: here.
    package fileprivate(set) var away: String? {
        get { rarities.away }
        set { rarities.away = newValue }
    }

    /// Rooms that an upstream person is in. Zero: remembered only.
    package fileprivate(set) var roomCount: Int {
        get { rarities.roomCount }
        set { rarities.roomCount = newValue }
    }

    package fileprivate(set) var absentSince: MonotonicInstant? {
        get { rarities.absentSince }
        set { rarities.absentSince = newValue }
    }

    /// The backend itself told that somebody upstream left; else they have only not been seen.
    package fileprivate(set) var leaveWasTold: Bool {
        get { rarities.leaveWasTold }
        set { rarities.leaveWasTold = newValue }
    }

    /// When an upstream person's display name changed last.
    package fileprivate(set) var renamedAt: MonotonicInstant? {
        get { rarities.renamedAt }
        set { rarities.renamedAt = newValue }
    }

    /// Bridge accounts, and senders that the backend itself vouches for as `<id>@<backend>`.
    package fileprivate(set) var account: String? {
        get { rarities.account }
        set { rarities.account = newValue }
    }

    /// An IRC user said so of themselves.
    package fileprivate(set) var isBot: Bool {
        get { rarities.isBot }
        set { rarities.isBot = newValue }
    }

    /// Whether the person is an IRC user.
    package var isLocal: Bool { kind == .local }

    /// Whether the person is connected, or in a room upstream.
    package var isPresent: Bool { isLocal || roomCount > 0 }

    private var rarities: Rarities {
        get { if case .some(let rarities) = rare { rarities } else { Rarities() } }
        set { rare = newValue == Rarities() ? .nothing : .some(newValue) }
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

/// Why an IRC user may not have a nick.
package enum NickRefusal: Equatable {
    case erroneous
    case inUse
}

package final class IdentityMap {
    /// How long an absent upstream person keeps their nick.
    package static let retention: Duration = .seconds(30 * 24 * 60 * 60)
    /// How long a nick rests with somebody upstream who left, before others upstream may have it: nobody who was there a moment
    /// ago is to be mistaken for who comes next.
    package static let nickRest: Duration = .seconds(15 * 60)
    /// Shortest time between two changes of an upstream person's name: each is a line for everybody in their rooms.
    package static let renamePause: Duration = .seconds(5)
    /// Absent people remembered at most; the longest absent go first. About 300 bytes each.
    package static let maxAbsent = 20_000
    /// The namespace of our people's ids, shared by every installation; from the session rules of the dialects.
    package static let puppetNamespace: [UInt8] = [
        0xd5, 0xc0, 0xdb, 0x19, 0xb3, 0x8c, 0x56, 0xeb, 0x97, 0xd3, 0xf6, 0xb7, 0x2e, 0x3f, 0xf9, 0x25,
    ]

    private let rules: NickRules
    private let maker: NickMaker
    private let instanceID: String
    private var people = KeyedObjects<ByID>()
    private var nextID: UInt64 = 1
    private var byNick = KeyedObjects<ByNick>()
    private var bySkeleton = KeyedObjects<BySkeleton>()
    private var byRemote: [Person.RemoteKey: PersonID] = [:]
    /// Display names of people upstream, and how many have each.
    private var remoteRealnames: [String: Int] = [:]
    /// Absent people, longest absent first; entries of people who came back are skipped.
    private var absentQueue: [(person: PersonID, since: MonotonicInstant)] = []
    private var absentHead = 0
    private var absentCount = 0
    /// Where counting goes on for a base nick, so that a thousand people of one name cost a thousand look-ups.
    private var nextNumber: [String: Int] = [:]
    private let reserved: Set<String>
    /// Names of accounts by what a reader takes them for.
    private var accountNames: [String: [String]]
    /// When people made their accounts, by the name as it is written.
    private var accountsMadeAt: [String: ChatTimestamp] = [:]
    /// Who is here as an account, by the account's folded name.
    private var byAccount: [String: PersonID] = [:]
    /// Where changes of who has which nick are persisted; nil: they are not.
    private var keep: ((StoreOperation) -> Void)?
    private var presenceChanged: ((Person, _ isHere: Bool) -> Void)?
    /// What people read on the clock, for the changes that are persisted.
    private var wall: () -> ChatTimestamp = { ChatTimestamp(milliseconds: 0) }
    /// When a backend was last lost sight of: who had left before may have come back.
    private var sightLost: [String: MonotonicInstant] = [:]
    /// People upstream who are nobody in particular.
    private var passing: Set<PersonID> = []

    package init(_ settings: IdentitySettings) {
        self.rules = settings.rules
        self.maker = NickMaker(settings: settings.nicks)
        self.instanceID = settings.instanceID
        self.accountNames = Dictionary(grouping: settings.accounts) { Confusables.skeleton($0) }
        self.reserved = Set(settings.reserved.map(Confusables.skeleton))
    }

    /// From now on changes of who has which nick go there, dated by that clock.
    package func persist(by keep: @escaping (StoreOperation) -> Void, wall: @escaping () -> ChatTimestamp) {
        self.keep = keep
        self.wall = wall
    }

    /// From now on it is told there when somebody came under the nick that they have now, or is gone from it.
    package func reportPresence(to report: @escaping (Person, _ isHere: Bool) -> Void) { presenceChanged = report }

    /// A person in a place of their own, so that the table of them stays small while it grows.
    private final class Record {
        let id: PersonID
        private let rules: NickRules
        /// The hashes of the nick's two forms, which take time to make.
        private(set) var nickHash: UInt32 = 0
        private(set) var skeletonHash: UInt32 = 0
        var person: Person

        init(_ id: PersonID, _ person: Person, _ rules: NickRules) {
            self.id = id
            self.person = person
            self.rules = rules
        }

        var foldedNick: String { rules.fold(person.nick) }
        var skeleton: String { Confusables.skeleton(person.nick) }

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

    package subscript(id: PersonID) -> Person? { people[id]?.person }

    package var count: Int { people.count }

    package func person(nick: String) -> (id: PersonID, person: Person)? {
        byNick[rules.fold(nick)].map { ($0.id, $0.person) }
    }

    /// Whether somebody upstream, known here, has this display name to the letter.
    package func isRemote(realname: String) -> Bool { remoteRealnames[realname] != nil }

    private func modify(_ id: PersonID, _ body: (inout Person) -> Void) {
        guard let record = people[id] else { return }
        body(&record.person)
    }

    // MARK: - What is known of an IRC user

    /// One more client of the same person.
    package func add(_ client: ClientID, to id: PersonID) { modify(id) { $0.clients.append(client) } }

    /// One client less; the person stays.
    package func take(_ client: ClientID, from id: PersonID) { modify(id) { $0.clients.removeAll { $0 == client } } }

    /// - Parameter text: the away message; nil: here again.
    package func setAway(_ id: PersonID, _ text: String?) { modify(id) { $0.away = text } }

    /// - Parameter name: the account as which the person logged in; nil: as none any more.
    package func setAccount(_ id: PersonID, _ name: String?) {
        guard let record = people[id] else { return }
        forgetAccount(of: record)
        record.person.account = name
        if let name { byAccount[AccountName.fold(name)] = id }
    }

    private func forgetAccount(of record: Record) {
        guard let name = record.person.account.map(AccountName.fold), byAccount[name] == record.id else { return }
        byAccount[name] = nil
    }

    /// The person as whom an account is here.
    ///
    /// - Parameter name: folded.
    package func person(account name: String) -> PersonID? { byAccount[name] }

    package func setBot(_ id: PersonID, _ isBot: Bool) { modify(id) { $0.isBot = isBot } }

    package func setRealname(_ id: PersonID, _ realname: String) { modify(id) { $0.realname = realname } }

    // MARK: - Ids upstream

    /// The id under which an IRC user without an account speaks on `backend`. Upper case, stable for the nick.
    package func puppetID(nick: String, backend: String) -> ChatID {
        let folded = ASCII.lowercased(nick)
        return ChatID(UUIDv5.make(namespace: Self.puppetNamespace, name: "\(instanceID)/\(backend)/n:\(folded)"))
    }

    /// The id under which an IRC user speaks on `backend`: the account's, whatever the nick, where there is one.
    package func puppetID(of person: Person, backend: String) -> ChatID {
        person.account.map { puppetID(account: $0, backend: backend) } ?? puppetID(nick: person.nick, backend: backend)
    }

    package func puppetID(account: String, backend: String) -> ChatID {
        ChatID(UUIDv5.make(namespace: Self.puppetNamespace, name: "\(instanceID)/\(backend)/a:\(account)"))
    }

    // MARK: - IRC users

    /// Keeps a name, and what looks like it, for the account of that name.
    package func reserve(account name: String) { accountNames[Confusables.skeleton(name), default: []].append(name) }

    /// Somebody made an account of that name: what was said in it before is another's.
    package func accountMade(_ name: String, at moment: ChatTimestamp) { accountsMadeAt[name] = moment }

    /// When an account was made; nil: nobody made it, or none of that name to the letter.
    package func whenMade(account name: String) -> ChatTimestamp? { accountsMadeAt[name] }

    /// Gives back what ``reserve(account:)`` kept.
    package func release(account name: String) {
        let skeleton = Confusables.skeleton(name)
        accountNames[skeleton]?.removeAll { $0 == name }
        if accountNames[skeleton]?.isEmpty == true { accountNames[skeleton] = nil }
    }

    /// Whether the nick is kept for somebody who logs in, or held by somebody who did.
    package func belongsToAccount(nick: String) -> Bool {
        accountNames[Confusables.skeleton(nick)] != nil || person(nick: nick)?.person.account != nil
    }

    /// Whether logging in may get somebody a nick that they are refused now.
    package func mayYieldToAccount(nick: String) -> Bool {
        let holders = holders(of: nick)
        return belongsToAccount(nick: nick)
            || !holders.isEmpty && holders.allSatisfy { $0.person.absentSince != nil }
    }

    /// Those who have the nick, or one that looks like it.
    private func holders(of nick: String) -> [Record] {
        let (same, alike) = (byNick[rules.fold(nick)], bySkeleton[Confusables.skeleton(nick)])
        return (same === alike ? [same] : [same, alike]).compactMap(\.self)
    }

    /// Whether `nick` may be taken by `holder` (nil: by somebody new), who is logged in as `account`.
    package func refusal(nick: String, holder: PersonID?, account: String? = nil) -> NickRefusal? {
        guard rules.isLegal(nick), rules.mayBeTaken(nick) else { return .erroneous }
        let skeleton = Confusables.skeleton(nick)
        if reserved.contains(skeleton) { return .inUse }
        if let owners = accountNames[skeleton], !owners.contains(where: { $0 == account }) { return .inUse }
        for taken in holders(of: nick) where taken.id != holder {
            // Names upstream cost nothing: those of people who are away must not keep a nick from an account.
            guard account != nil, taken.person.absentSince != nil else { return .inUse }
        }
        return nil
    }

    /// Somebody takes a nick that was not refused: absent people who have it, or one that looks like it, get another.
    private func giveUp(_ nick: String) {
        for record in holders(of: nick) where record.person.absentSince != nil {
            forgetNames(of: record)
            record.person.rename(numbered(record.person.nick) { isFree($0) && !areAlike($0, nick) })
            claimNames(record)
            keepIdentity(record.id)
        }
    }

    private func areAlike(_ a: String, _ b: String) -> Bool {
        rules.fold(a) == rules.fold(b) || Confusables.skeleton(a) == Confusables.skeleton(b)
    }

    /// Enters an IRC user whose nick was not refused.
    package func addLocal(
        client: ClientID, nick: String, ident: String, host: String, realname: String, account: String? = nil
    ) -> PersonID {
        var person = Person(
            kind: .local, nick: nick, ident: ident, host: host, realname: realname, account: account)
        person.clients = [client]
        giveUp(nick)
        let id = insert(person)
        if let account { byAccount[AccountName.fold(account)] = id }
        presenceChanged?(person, true)
        return id
    }

    /// Enters somebody who is the program itself: always here, and nobody's client.
    package func addService(nick: String, ident: String, host: String, realname: String) -> PersonID {
        var person = Person(kind: .local, nick: nick, ident: ident, host: host, realname: realname, account: nil)
        person.isBot = true
        return insert(person)
    }

    package func rename(_ id: PersonID, to nick: String) {
        guard let record = people[id] else { return }
        let old = record.person
        forgetNames(of: record)
        giveUp(nick)
        record.person.rename(nick)
        claimNames(record)
        nickChanged(from: old, record.person)
    }

    private func nickChanged(from old: Person, _ new: Person) {
        guard old.isPresent, rules.fold(old.nick) != rules.fold(new.nick) else { return }
        presenceChanged?(old, false)
        presenceChanged?(new, true)
    }

    package func remove(_ id: PersonID) {
        guard let record = people.remove(id) else { return }
        forgetNames(of: record)
        forgetAccount(of: record)
        if record.person.isPresent { presenceChanged?(record.person, false) }
        if case .remote(let key) = record.person.kind {
            byRemote[key] = nil
            count(record.person.realname, -1)
            if record.person.absentSince != nil { absentCount -= 1 }
            if passing.remove(id) == nil { keep?(.forgetIdentity(backend: key.backend, key.person)) }
        }
    }

    private func insert(_ person: Person) -> PersonID {
        let id = PersonID(rawValue: nextID)
        nextID += 1
        let record = Record(id, person, rules)
        people.insert(record)
        claimNames(record)
        if case .remote = person.kind { count(person.realname, 1) }
        return id
    }

    private func count(_ realname: String, _ change: Int) {
        let sum = remoteRealnames[realname, default: 0] + change
        remoteRealnames[realname] = sum > 0 ? sum : nil
    }

    private func claimNames(_ record: Record) {
        record.rehash()
        byNick.insert(record)
        bySkeleton.insert(record)
    }

    /// Must come before the nick changes: the tables find the record by it.
    private func forgetNames(of record: Record) {
        let folded = record.foldedNick
        if byNick[folded] === record { byNick.remove(folded) }
        let skeleton = record.skeleton
        if bySkeleton[skeleton] === record { bySkeleton.remove(skeleton) }
    }

    // MARK: - People upstream

    /// What the bridge must tell IRC after looking an upstream person up.
    package struct Resolution: Equatable {
        package var id: PersonID
        /// The source and nick before and after, when the nick changed.
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

    package func known(_ key: Person.RemoteKey) -> PersonID? { byRemote[key] }

    /// Somebody upstream as they are shown, or would be if they came now and no other had the nick.
    package func prospect(
        _ sender: ChatPerson, backend: String, authenticated: Bool
    ) -> (nick: String, source: String, account: String?) {
        if let known = known(Self.remoteKey(sender, backend: backend)).flatMap({ people[$0]?.person }) {
            return (known.nick, known.source, known.account)
        }
        let name = sender.name.flatMap { $0.isEmpty ? nil : $0 }
        let nick = maker.nick(
            name: name ?? sender.id?.rawValue, id: sender.id?.canonical ?? sender.name ?? "unknown")
        return (
            nick, nick + "!" + Self.remoteIdent + "@" + Self.hostname(backend),
            authenticated ? Self.accountName(of: sender, backend: backend) : nil
        )
    }

    package static let remoteIdent = "chat"

    /// Finds or makes the person behind a frame's sender.
    ///
    /// - Parameter isPassing: nobody in particular; not remembered over the end of the process.
    package func resolve(
        _ sender: ChatPerson, backend: String, authenticated: Bool, isPassing: Bool = false, now: MonotonicInstant
    ) -> Resolution {
        let key = Self.remoteKey(sender, backend: backend)
        let displayName = sender.name.flatMap { $0.isEmpty ? nil : $0 }
        let idText = sender.id?.canonical ?? sender.name ?? "unknown"
        if let id = byRemote[key], let record = people[id] {
            // Whoever was remembered from before the start.
            if authenticated, record.person.account == nil {
                record.person.account = Self.accountName(of: sender, backend: backend)
            }
            let person = record.person
            guard let displayName else { return Resolution(id: id, renamed: nil, realnameChanged: false) }
            let realname = Self.realname(displayName)
            // A name that comes too soon is told with what its owner says later.
            let isTooSoon = person.renamedAt.map { now - $0 < Self.renamePause } ?? false
            guard realname != person.realname, !isTooSoon else {
                return Resolution(id: id, renamed: nil, realnameChanged: false)
            }
            count(person.realname, -1)
            count(realname, 1)
            modify(id) {
                $0.realname = realname
                $0.renamedAt = now
            }
            defer { keepIdentity(id) }
            let base = maker.nick(name: displayName, id: idText)
            let oldBase = maker.nick(name: person.realname, id: idText)
            // Who has a number keeps it while the name makes the same nick, but for its case.
            let keepsNick =
                base == oldBase
                || person.nick != oldBase && Confusables.skeleton(base) == Confusables.skeleton(oldBase)
            guard !keepsNick else { return Resolution(id: id, renamed: nil, realnameChanged: true) }
            let oldSource = person.source
            forgetNames(of: record)
            let nick = freeNick(
                base, of: sender, displayName: realname, backend: backend, authenticated: authenticated, now: now)
            record.person.rename(nick)
            claimNames(record)
            nickChanged(from: person, record.person)
            return Resolution(
                id: id, renamed: nick == person.nick ? nil : (oldSource, nick), realnameChanged: true)
        }
        pruneAbsent(now: now)
        // Without a name the id is shown, as far as a nick can show it.
        let base = maker.nick(name: displayName ?? sender.id?.rawValue, id: idText)
        let realname = Self.realname(displayName ?? idText)
        let nick = freeNick(
            base, of: sender, displayName: realname, backend: backend, authenticated: authenticated, now: now)
        var person = Person(
            kind: .remote(key), nick: nick, ident: Self.remoteIdent, host: Self.hostname(backend), realname: realname,
            account: nil)
        if authenticated { person.account = Self.accountName(of: sender, backend: backend) }
        person.absentSince = now
        let id = insert(person)
        byRemote[key] = id
        absentCount += 1
        absentQueue.append((id, now))
        if isPassing { passing.insert(id) } else { keepIdentity(id) }
        return Resolution(id: id, renamed: nil, realnameChanged: false)
    }

    /// The person entered one more room.
    package func entered(_ id: PersonID) {
        var hasCome: Person?
        modify(id) {
            $0.roomCount += 1
            if $0.roomCount == 1 { hasCome = $0 }
            if $0.absentSince != nil { absentCount -= 1 }
            $0.absentSince = nil
            $0.leaveWasTold = false
        }
        if let hasCome { presenceChanged?(hasCome, true) }
    }

    /// The person left one room; out of the last one they are remembered for a while.
    ///
    /// - Parameter isTold: the backend said so.
    package func left(_ id: PersonID, isTold: Bool = false, now: MonotonicInstant) {
        var isGone = false
        modify(id) {
            $0.roomCount = max(0, $0.roomCount - 1)
            guard $0.roomCount == 0, $0.absentSince == nil else { return }
            $0.absentSince = now
            $0.leaveWasTold = isTold
            absentCount += 1
            absentQueue.append((id, now))
            isGone = true
        }
        if isGone { keepIdentity(id) }
        if isGone, let person = self[id] { presenceChanged?(person, false) }
        // Somebody who comes and goes all day leaves an entry each time, behind others that may stay for 30 days.
        if absentQueue.count - absentHead > 2 * absentCount + 1024 {
            absentQueue = absentQueue[absentHead...].filter { people[$0.person]?.person.absentSince == $0.since }
            absentHead = 0
        }
    }

    /// From now on people may come back on this backend, and nobody here hears of it.
    package func lostSight(of backend: String, now: MonotonicInstant) { sightLost[backend] = now }

    /// Whether somebody upstream certainly left, and has been gone for so long that others may have the nick.
    private func isLongGone(_ person: Person, now: MonotonicInstant) -> Bool {
        guard case .remote(let key) = person.kind, person.leaveWasTold, let since = person.absentSince else {
            return false
        }
        return now - since >= Self.nickRest && sightLost[key.backend].map { $0 < since } ?? true
    }

    /// Entries that wait to be forgotten, stale ones included.
    package var absenceEntryCount: Int { absentQueue.count - absentHead }

    private func freeNick(
        _ base: String, of sender: ChatPerson, displayName: String, backend: String, authenticated: Bool,
        now: MonotonicInstant
    ) -> String {
        // A message under an IRC user's id that is not known to be theirs, after a crash that lost more than the messages: its
        // author will want the nick, and could not have it for as long as this one is remembered. Where one account speaks for
        // all, it has its id from the bridge's name.
        if base == "chatbridge" || sender.id != puppetID(nick: base, backend: backend) {
            if isFree(base) { return base }
            // Apps draw a new id at every start: the same name while its holder is away is the same person come back. Where the
            // backend vouches for its ids it is not.
            if !authenticated, let (holder, person) = person(nick: base), case .remote(let key) = person.kind,
                key.backend == backend, person.absentSince != nil, TextBytes.areSame(person.realname, displayName)
            {
                remove(holder)
                if isFree(base) { return base }
            }
            if !isReserved(base), holders(of: base).allSatisfy({ isLongGone($0.person, now: now) }) {
                giveUp(base)
                if isFree(base) { return base }
            }
        }
        let folded = rules.fold(base)
        if nextNumber.count > 50_000 { nextNumber.removeAll() }
        var number = nextNumber[folded] ?? 2
        while true {
            let candidate = maker.numbered(base, number)
            number += 1
            if isFree(candidate) {
                nextNumber[folded] = number
                return candidate
            }
        }
    }

    /// The first of `base2`, `base3` and so on that will do. They are as many as it takes.
    package func numbered(_ base: String, where isFree: (String) -> Bool) -> String {
        var number = 2
        while true {
            let candidate = maker.numbered(base, number)
            if isFree(candidate) { return candidate }
            number += 1
        }
    }

    private func isFree(_ nick: String) -> Bool { holders(of: nick).isEmpty && !isReserved(nick) }

    /// It is kept for the program, or for an account.
    private func isReserved(_ nick: String) -> Bool {
        let skeleton = Confusables.skeleton(nick)
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

    // MARK: - Over the end of the process

    private func keepIdentity(_ id: PersonID) {
        guard let keep, let change = kept(id) else { return }
        keep(change)
    }

    private func kept(_ id: PersonID) -> StoreOperation? {
        guard !passing.contains(id), let person = people[id]?.person, case .remote(let key) = person.kind else {
            return nil
        }
        return .identity(
            StoredIdentity(
                backend: key.backend, person: key.person, nick: person.nick, realname: person.realname,
                lastSeen: wall()))
    }

    /// What is to be kept now of somebody upstream: who they are, or that nobody knows them any more.
    package func kept(_ person: ChatPerson, backend: String) -> StoreOperation {
        byRemote[Self.remoteKey(person, backend: backend)].flatMap { kept($0) }
            ?? .forgetIdentity(backend: backend, person)
    }

    /// Keeps that those who are here now were seen.
    package func keepPresent() {
        guard keep != nil else { return }
        for id in people.keys.sorted(by: { $0.rawValue < $1.rawValue }) where people[id]?.person.roomCount ?? 0 > 0 {
            keepIdentity(id)
        }
    }

    /// Remembers people whom an earlier process saw, as absent since then, under the nicks they had. Before anybody is here.
    ///
    /// Whoever has been away for too long, or had a nick that is not to be had any more, is forgotten.
    package func restore(_ identities: [StoredIdentity], now: Now) {
        let sorted = identities.sorted { $0.lastSeen < $1.lastSeen }
        for (index, identity) in sorted.enumerated() {
            // A clock that was put back makes nobody older or younger than can be.
            let (difference, over) = now.wall.milliseconds.subtractingReportingOverflow(identity.lastSeen.milliseconds)
            let age = over ? Self.retention : Duration.milliseconds(max(difference, 0))
            let key = Self.remoteKey(identity.person, backend: identity.backend)
            guard sorted.count - index <= Self.maxAbsent, age < Self.retention,
                byRemote[key] == nil, isFree(identity.nick), rules.isLegal(identity.nick)
            else {
                if byRemote[key] == nil { keep?(.forgetIdentity(backend: identity.backend, identity.person)) }
                continue
            }
            var person = Person(
                kind: .remote(key), nick: identity.nick, ident: Self.remoteIdent,
                host: Self.hostname(identity.backend), realname: identity.realname, account: nil)
            let since = now.monotonic + (.zero - age)
            person.absentSince = since
            let id = insert(person)
            byRemote[key] = id
            absentCount += 1
            absentQueue.append((id, since))
        }
    }

    // MARK: - Text that is safe in a line

    /// A display name fit for a realname: no controls, at most 150 bytes unless told otherwise.
    package static func realname(_ name: String, maxBytes: Int = 150) -> String {
        let clean = String(
            String.UnicodeScalarView(name.unicodeScalars.prefix(600).filter { !PrintableText.isControl($0) }))
        return PrintableText.prefix(of: clean, maxBytes: maxBytes)
    }

    /// A backend's name fit for a host: no spaces, at most 63 bytes.
    package static func hostname(_ backend: String) -> String {
        let legal = backend.unicodeScalars.prefix(63).map { scalar -> Character in
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9", ".", "-", "_": return Character(scalar)
            default: return "-"
            }
        }
        return legal.isEmpty ? "backend" : String(legal)
    }

    /// The account of somebody whom the backend vouches for; nil: it says neither id nor name.
    package static func accountName(of sender: ChatPerson, backend: String) -> String? {
        (sender.id?.rawValue ?? sender.name).map { accountName($0) + "@" + hostname(backend) }
    }

    /// Whether that account can be nobody else's: it holds the id as it is, and in the form in which accounts are compared:
    /// without capitals, and composed, since what Swift takes for equal may be two people of the backend.
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

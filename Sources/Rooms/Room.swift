import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// One room: the people on both sides, the order of what they say, and the link between them.
//
// A message of an IRC user becomes visible to the others when the backend has confirmed it, in the order in which the
// backend sent it round; so all members, on both sides, see one order. What the backend cannot carry is delivered at once
// to the IRC users of the room.

package final class Room {
    /// A person upstream stops typing after this without another frame that says so.
    static let typingExpiry: Duration = .seconds(3)
    /// Ids of IRC users who are gone, remembered as ours; a backend echoes within seconds, so this outlasts a mass leave.
    static let maxRetiredPuppets = 1000
    /// IRC clients hear of somebody's typing at most this often.
    static let typingNoticeInterval: Duration = .seconds(3)

    /// An IRC user in the room. In a place of its own, so that the table of them stays small while it grows.
    package final class LocalMember: MemberSlot {
        package let person: PersonID
        /// What the account calls the client; nil: it has no account.
        package internal(set) var clientName: String?
        package fileprivate(set) var puppet: ChatID
        private(set) var hasReadMarker: Bool
        /// What of their reading is told.
        package internal(set) var receipts: ReceiptPolicy
        /// The newest message before the client came, by its place in the order of the room; -1: none.
        var joinedAfter: Int
        /// The client heard that the backend does not get its reactions.
        var knowsReactionsStay = false
        // Most people have not typed anything yet.
        private var typist: Typist?

        private final class Typist {
            var typing: OutgoingTyping?
            var sentAt: MonotonicInstant?
        }

        var typing: OutgoingTyping? {
            get { typist?.typing }
            set { modifyTypist { $0.typing = newValue } }
        }

        /// When the backend was last told that they type.
        var typingSentAt: MonotonicInstant? {
            get { typist?.sentAt }
            set { modifyTypist { $0.sentAt = newValue } }
        }

        /// The client has read markers, or no longer.
        package func showsReadMarkers(_ shows: Bool) { hasReadMarker = shows }

        private func modifyTypist(_ body: (Typist) -> Void) {
            let state = typist ?? Typist()
            body(state)
            typist = state.typing == nil && state.sentAt == nil ? nil : state
        }

        init(
            client: ClientID, person: PersonID, clientName: String?, puppet: ChatID, joinedAfter: Int,
            hasReadMarker: Bool,
            receipts: ReceiptPolicy
        ) {
            self.person = person
            self.clientName = clientName
            self.puppet = puppet
            self.joinedAfter = joinedAfter
            self.hasReadMarker = hasReadMarker
            self.receipts = receipts
            super.init(client: client)
        }
    }

    package enum MemberByClient: ObjectKeying {
        package static func key(of member: LocalMember) -> ClientID { member.client }
    }

    enum MemberByPuppet: ObjectKeying {
        static func key(of member: LocalMember) -> ChatID { member.puppet }
    }

    /// Who the account was taken for, and for whom before.
    struct AccountGuess {
        var person: ChatPerson
        var before: ChatPerson
    }

    /// An upstream person in the room.
    struct RemoteMember {
        var lastSeen: MonotonicInstant
        /// IRC was told that they type, and not yet that they stopped.
        var isTypingShown = false
        /// When IRC was last told that they type.
        var typingToldAt: MonotonicInstant?
    }

    /// Trouble with the link, told once.
    package struct Outage {
        package var since: MonotonicInstant
        package var reason: String
        package var wasUp: Bool
        /// It was told that the backend refuses us and that the next try is far off.
        var isRefusalTold = false
    }

    /// What the backend names a person by.
    enum OwnKey: Hashable {
        case id(ChatID)
        /// As bytes: those who differ in one are two people there.
        case name([UInt8])
    }

    package let id: RoomID
    package let settings: RoomSettings
    /// For everybody who has no link of their own.
    package let lane: SendLane
    /// The dialect's, made once: a frame asks for them several times.
    package let traits: DialectTraits
    package let frontEnd: any RoomFrontEnd
    package let createdAt: ChatTimestamp
    /// Who speaks upstream where one account speaks for all.
    package internal(set) var accountPerson: ChatPerson
    /// What of the account was told by the configuration or the backend, or learned from what came back.
    var knownAccount = ChatPerson()
    /// What of that stands on a text alone.
    var accountGuess: AccountGuess?
    /// Whether a frame can say which message it answers.
    private(set) lazy var carriesReplies = settings.dialect.carriesReplies(context: lane.dialectContext)

    /// Many who come or go at once.
    var crowds = Crowds()
    package internal(set) var slots = MemberSlots()
    /// The IRC users in the room, by client.
    package private(set) var locals = KeyedObjects<MemberByClient>()
    /// The same by their ids upstream; of a person with several clients one.
    private(set) var puppets = KeyedObjects<MemberByPuppet>()
    /// Ids of people who left or changed their nick, oldest first. What they said last may still come back from the
    /// backend, and must not look like a stranger's.
    private var retiredPuppets: [ChatID] = []
    var remotes: [PersonID: RemoteMember] = [:]
    /// The one nick of those for whom there is no place, and when it was last used.
    private var overflowMember: (person: PersonID, lastSeen: MonotonicInstant)?
    var duplicates = DuplicateRing()
    var recent = RecentMessages()
    /// What was said, where nothing outlasts the process.
    package internal(set) var archive = MemoryHistory()
    /// What the backend has from before the room's beginning here; nil: nobody asked for that of late.
    var older: OlderHistory?
    var markers: [ChatID: ReadMarker] = [:]
    package internal(set) var receiptNotices = ReceiptNotices()
    package internal(set) var outage: Outage?
    /// When the last IRC user left, in a room that has a link only while somebody is there.
    package internal(set) var emptySince: MonotonicInstant?
    /// The link is being closed because nobody is there.
    package internal(set) var isLeaving = false
    var catchUp: CatchUp
    /// The time that the newest line bears in front of the gap; nil: there is none, or no gap.
    var lastBeforeGap: ChatTimestamp?
    var textDuplicates = TextDuplicates()
    /// Names of people by their ids, for frames that give the id alone.
    var roster: [ChatID: String] = [:]
    /// Who waits for the backend's id of a message of ours, by its msgid.
    var idWaiters: [(msgid: String, found: (ChatID?) -> Void)] = []
    /// Not before this, people upstream make us look up ids again.
    var nextIDLookup = MonotonicInstant(nanoseconds: .min)
    /// Rows of the history that is being taken in which are messages of ours, by the backend's ids.
    var ownRows: [ChatID: (id: ChatID, lane: SendLane)] = [:]
    /// How far back it reaches.
    var ownReach = OwnReach()
    /// The place of the message behind which a history was asked for last; nil: it was not asked for like that.
    var askedAfter: Int?
    /// The backend sends its history by itself, which by its traits it would not.
    var sendsHistoryUnasked = false
    /// Until when the backend may repeat what it said over an earlier link.
    var settlesUntil: MonotonicInstant?
    /// The operator was told that the socket carries other rooms too.
    var isOtherRoomNoted = false
    /// Frames that gave nothing, by reason, since the last summary in the log.
    package internal(set) var droppedFrames: [DropReason: Int] = [:]
    var openActions = OpenActions()
    var undecided = UndecidedRows()
    var presenceReport = PresenceReport()
    /// What the wire can say of IRC users' coming and going.
    private(set) lazy var presenceWords = PresenceReport.Words(settings.dialect, context: lane.dialectContext)
    /// When the backend was last told that the one account types.
    var accountTypingToldAt: MonotonicInstant?
    /// Accounts that speak over links of their own, by name.
    package internal(set) var ownLinks: [String: OwnLink] = [:]
    /// As whom the backend shows them.
    var ownPeople: [OwnKey: String] = [:]
    var ownMessageIDs = OwnMessageIDs()
    var cursorRound = CursorRound()
    /// Up to when everything that the backend sent over this link has come, and was handled; nil: there was no link.
    package internal(set) var proof: LinkProof?
    /// What is said since then may be missing; nil: nothing is.
    package internal(set) var missingSince: Now?
    /// It is missing because somebody entered then and there was no link; nil: for another reason.
    var awaitedSince: Now?
    /// Until when whoever wants in waits for the link that is being opened; nil: nobody does.
    var opensUntil: MonotonicInstant?
    /// When somebody asked who enters now, after a wait.
    var askedSince: Now?
    /// When messages were shown again though something was missing in front of them.
    var gapEnd: Now?
    /// Since when the backend has not heard from us as it must; what it says meanwhile does not come.
    var loginExpiredAt: Now?
    /// Until when nothing is missing, as it was kept last, and when that was.
    var liveKept: ChatTimestamp?
    var liveKeptAt: MonotonicInstant?
    /// What authors were told of readers, where that outlasts the process.
    package internal(set) var toldReceipts = ToldReceipts()
    /// What accounts with links of their own sent before the last start, under ids that nobody told us.
    var ownSentBefore: [(msgid: String, sender: ChatPerson, text: String)] = []
    /// What is kept of the room is being read; the link waits for it.
    package internal(set) var isLoading = false
    /// What waits for own links that are not open, by account.
    var restingOutboxes: [String: Outbox] = [:]
    /// Authors of earlier who are nobody's now, and as whom they are kept, while what is kept of the room is being read.
    var forgottenAuthors: [ChatID: ChatID] = [:]
    var secrets = RoomSecrets()
    /// What IRC users may do here.
    package let moderation = RoomModeration()

    package init(
        id: RoomID, settings: RoomSettings, frontEnd: any RoomFrontEnd, _ context: RoomsContext
    ) {
        var settings = settings
        let usesAccount = context.upstream.hasLogin(settings.backend)
        if usesAccount { settings.authenticates = true }
        self.id = id
        self.settings = settings
        self.traits = settings.dialect.traits
        catchUp = CatchUp(sendersTellTime: traits.messageIDOrigin == .client)
        self.frontEnd = frontEnd
        self.createdAt = context.now.wall
        let account = context.identities.puppetID(nick: "chatbridge", backend: settings.backend)
        self.accountPerson = ChatPerson(id: account, name: "chatbridge")
        self.lane = SendLane(
            account: "", settings: settings,
            link: UpstreamSession(
                room: id, settings: settings.link, usesAccount: usesAccount, shared: context.upstream),
            sendBudget: SendBudget(
                rate: context.settings.upstreamMessagesPerSecond, burst: context.settings.upstreamMessagesBurst),
            outbox: Outbox(traits),
            dialectContext: DialectContext(
                selfIDs: settings.identity == .single ? [account] : [], room: settings.upstreamRoom))
        if let account = settings.account { accountIdentified(account, context) }
    }

    package var link: UpstreamSession { lane.link }
    package var channel: String { settings.channel }
    package var memberCount: Int { slots.count }
    package var host: String { IdentityMap.hostname(settings.backend) }

    // MARK: - The last lines

    // Asked here and not of ``recent``: outside of this target, that would copy it.

    /// The newest place that was given in the order of the room; -1: none.
    package var lastSequence: Int { recent.lastSequence }

    package func entry(msgid: String) -> RecentMessages.Entry? { recent.entry(msgid: msgid) }

    /// What was said at a place in the order, where that is remembered.
    package func entry(sequence: Int) -> RecentMessages.Entry? { recent.entry(sequence: sequence) }

    /// The newest of what one IRC user said.
    package func newest(by puppet: ChatID) -> RecentMessages.Entry? { recent.newest(by: puppet) }

    /// The newest `limit` of what came after a place; see ``RecentMessages/newest(_:after:)``.
    package func newest(_ limit: Int, after place: Int) -> (start: Int, leftOut: Int?, isMore: Bool?) {
        recent.newest(limit, after: place)
    }

    /// The latest time of a line, none of which was said later than now; nil: there is no line.
    package func latest(wall: ChatTimestamp) -> ChatTimestamp? { recent.latest(wall: wall) }

    // MARK: - To the front end

    /// Tells the people of the room what happened.
    package func show(_ event: RoomEvent, to readers: RoomAudience = .everybody) {
        frontEnd.show(event, in: self, to: readers)
    }

    package func notice(_ text: String) { show(.notice(text)) }

    // MARK: - IRC users come and go

    /// An IRC user enters. The caller answers their JOIN; the others are told here.
    ///
    /// - Parameter isHeld: the client is given what was said before it came; what happens now waits for that.
    package func join(
        _ client: ClientID, person personID: PersonID, clientName: String? = nil,
        hasReadMarker: Bool, receipts: ReceiptPolicy? = nil, isHeld: Bool = false, _ context: RoomsContext
    ) {
        guard let person = context.identities[personID] else { return }
        // One more client of somebody who is here is no news.
        if !slots.contains(personID) {
            show(.entered(RoomArrival(person)))
        }
        let puppet = context.identities.puppetID(of: person, backend: settings.backend)
        let member = LocalMember(
            client: client, person: personID, clientName: clientName, puppet: puppet,
            joinedAfter: recent.newest?.sequence ?? -1, hasReadMarker: hasReadMarker,
            receipts: receipts ?? settings.receipts)
        if let old = locals[client] { frontEnd.leave(old, in: self) }
        locals.insert(member)
        adopt(member)
        frontEnd.enter(member, isHeld: isHeld, in: self)
        slots.insert(personID)
        awaitLink(context)
        occupied(context)
        ownArrived(client, context)
        reportPresence(of: puppet, context)
    }

    private func adopt(_ member: LocalMember) {
        let puppet = member.puppet
        puppets.insert(member)
        retiredPuppets.removeAll { $0 == puppet }
        lane.isAlso(puppet)
    }

    /// Somebody spoke from here before this process began; what they said may come back.
    package func remember(author puppet: ChatID) {
        guard puppets[puppet] == nil, lane.isAlso(puppet) else { return }
        retire(puppet)
    }

    private func abandon(_ puppet: ChatID, _ person: PersonID) {
        guard puppets[puppet]?.person == person else { return }
        puppets.remove(puppet)
        retire(puppet)
    }

    private func retire(_ puppet: ChatID) {
        retiredPuppets.append(puppet)
        if retiredPuppets.count > Self.maxRetiredPuppets {
            lane.isNoLonger(retiredPuppets.removeFirst())
        }
    }

    /// - Parameter isAnother: it is no longer whom others of its name are taken for; what it said is its own.
    package func clientRenamed(_ client: ClientID, to name: String, isAnother: Bool) {
        locals[client]?.clientName = name
        guard isAnother else { return }
        for lane in lanes { lane.renameClient(client, to: name) }
    }

    /// An IRC user leaves; the caller has told or will tell whoever must know.
    package func leave(_ client: ClientID, _ context: RoomsContext) {
        guard let member = locals[client] else { return }
        stopTyping(client, context)
        frontEnd.leave(member, in: self)
        locals.remove(client)
        receiptNotices.forget(author: client)
        let wasTelling = lanes.contains { $0.failureNotices.isTelling(client) }
        for lane in lanes { lane.failureNotices.forget(client) }
        context.timers.cancel(.typingOut(client, id))
        vacated(context)
        // It may have been an old connection that hung, and what was told to it was told to nobody.
        if wasTelling { frontEnd.tellUntold(in: self, to: clients(of: member.person, context)) }
        if let other = clients(of: member.person, context).first.flatMap({ locals[$0] }) {
            // Whoever stays speaks for the person.
            if puppets[member.puppet] === member { puppets.insert(other) }
            return
        }
        slots.remove(member.person)
        if locals.isEmpty { moderation.emptied() } else { moderation.left(member.person) }
        abandon(member.puppet, member.person)
        if let person = context.identities[member.person] { ownLeft(person, context) }
        receiptNotices.forget(reader: member.person)
        reportPresence(of: member.puppet, context)
    }

    /// The clients through which an IRC user is in the room.
    package func clients(of person: PersonID, _ context: RoomsContext) -> [ClientID] {
        (context.identities[person]?.clients ?? []).filter { locals[$0] != nil }
    }

    /// The client logged in: upstream they are the account from now on.
    package func identityChanged(
        _ client: ClientID, clientName: String?, receipts: ReceiptPolicy?, _ context: RoomsContext
    ) {
        locals[client]?.clientName = clientName
        renamed(client, context)
        ownArrived(client, context)
        if let receipts { locals[client]?.receipts = receipts }
    }

    /// The client's nick changed: upstream they are another person from now on, unless an account says who they are.
    package func renamed(_ client: ClientID, _ context: RoomsContext) {
        guard let member = locals[client], let person = context.identities[member.person] else { return }
        let puppet = context.identities.puppetID(of: person, backend: settings.backend)
        guard puppet != member.puppet else { return }
        stopTyping(client, context)
        member.typing = nil
        let old = member.puppet
        abandon(old, member.person)
        member.puppet = puppet
        adopt(member)
        reportPresence(of: old, context)
        reportPresence(of: puppet, context)
    }

    package static func unkeptSentence(_ reason: String) -> String {
        "Messages cannot be stored at the moment (\(reason)): what you write is not taken, and what others write may be "
            + "missing later."
    }

    /// What a client that enters while something is out of order must know.
    package func statusNotices(_ context: RoomsContext) -> [String] {
        var sentences: [String] = []
        if case .failing(let reason) = context.ledger.condition { sentences.append(Self.unkeptSentence(reason)) }
        if let outage {
            sentences.append(
                "This room has no link to \(settings.url.host) at the moment: \(outage.reason). "
                    + "What you write is queued and sent when it is there.")
        }
        if historySource != .none, catchUp.mayFillLate { sentences.append(Self.delaySentence) }
        return sentences
    }

    // MARK: - People upstream come and go

    /// Somebody upstream is in the room.
    package func isHere(upstream person: PersonID) -> Bool { remotes[person] != nil }

    package var upstreamCount: Int { remotes.count }

    /// Somebody types, on either side.
    package func isTyping(_ id: PersonID, _ person: Person) -> Bool {
        remotes[id]?.isTypingShown == true || person.clients.contains { locals[$0]?.typing != nil }
    }

    /// The IRC side of a frame's sender, entered into the room when new. Nil when the room has no place left for
    /// another nick.
    ///
    /// - Parameter mayWait: nothing that others see follows, so a JOIN may come later, with those of others.
    package func present(_ sender: ChatPerson, mayWait: Bool = false, _ context: RoomsContext) -> PersonID? {
        let sender = named(sender)
        if let ours = ownPerson(sender) { return ours }
        let key = IdentityMap.remoteKey(sender, backend: settings.backend)
        if let known = context.identities.known(key), remotes[known] != nil {
            remotes[known]?.lastSeen = context.now.monotonic
            if !mayWait, !crowds.isEmpty { announceIfWaiting(known, context) }
            if let name = sender.name, context.identities[known]?.realname != name { resolve(sender, context) }
            return known
        }
        guard remotes.count < context.settings.membersPerRoom else { return nil }
        let personID = resolve(sender, context)
        guard context.identities[personID] != nil else { return nil }
        remotes[personID] = RemoteMember(lastSeen: context.now.monotonic)
        if remotes.count == 1 { scheduleIdleSweep(context) }
        if !crowds.isEmpty, returnedUnnoticed(personID) { return personID }
        context.identities.entered(personID)
        arrived(personID, mayWait: mayWait, context)
        return personID
    }

    /// Looks the sender up and tells the room when they changed their name.
    @discardableResult
    private func resolve(_ sender: ChatPerson, _ context: RoomsContext) -> PersonID {
        let resolution = context.identities.resolve(
            sender, backend: settings.backend, authenticated: traits.authenticatesSenders,
            now: context.now.monotonic)
        if let renamed = resolution.renamed {
            frontEnd.changed(resolution.id, .nick(from: renamed.from, to: renamed.to))
        }
        if resolution.realnameChanged, let person = context.identities[resolution.id] {
            frontEnd.changed(resolution.id, .realname(RoomSpeaker(person), person.realname))
        }
        return resolution.id
    }

    /// - Parameter isTold: the backend said so.
    func remoteLeft(_ personID: PersonID, reason: String?, isTold: Bool = false, _ context: RoomsContext) {
        guard remotes.removeValue(forKey: personID) != nil else { return }
        context.timers.cancel(.typingIn(personID, id))
        receiptNotices.forget(reader: personID)
        if !crowds.isEmpty { _ = crowds.remove(personID) }
        departed(personID, reason: reason, isTold: isTold, context)
    }

    /// Somebody is gone; nobody is told who was not told that they came.
    func departed(_ personID: PersonID, reason: String?, isTold: Bool = false, _ context: RoomsContext) {
        if slots.contains(personID), let person = context.identities[personID] {
            show(.left(RoomSpeaker(person), reason: reason))
        }
        slots.remove(personID)
        context.identities.left(personID, isTold: isTold, now: context.now.monotonic)
    }

    private func scheduleIdleSweep(_ context: RoomsContext) {
        guard settings.memberIdle > .zero else { return }
        let pause = max(min(settings.memberIdle / 4, .seconds(60)), .seconds(1))
        context.timers.set(.idlePeople(id), at: context.now.monotonic + pause)
    }

    /// People who were silent for `memberIdle` leave, on wires that tell of no leave.
    package func sweepIdlePeople(_ context: RoomsContext) {
        let gone = remotes.filter { context.now.monotonic - $0.value.lastSeen >= settings.memberIdle }
        let kind: Crowds.Kind = link.isUp ? .idle : .split
        for (person, member) in gone.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            // Who went while there was no link is never told of, on whatever wire.
            guard !traits.tellsOfLeaves || crowds.linkedAt.map({ member.lastSeen < $0 }) ?? false else { continue }
            vanish(person, kind, context)
        }
        if let member = overflowMember, context.now.monotonic - member.lastSeen >= settings.memberIdle {
            overflowMember = nil
            departed(member.person, reason: "idle", context)
        }
        if !remotes.isEmpty || overflowMember != nil { scheduleIdleSweep(context) }
    }

    /// Nobody upstream can be seen from here any more.
    func forgetPeople(_ context: RoomsContext) {
        forgetCrowds(context)
        for person in remotes.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
            remoteLeft(person, reason: nil, context)
        }
        if let member = overflowMember {
            overflowMember = nil
            departed(member.person, reason: nil, context)
        }
        context.timers.cancel(.idlePeople(id))
    }

    /// The one nick through which everybody speaks for whom the room has no place.
    package func overflow(_ context: RoomsContext) -> PersonID {
        if let known = overflowMember?.person {
            overflowMember?.lastSeen = context.now.monotonic
            return known
        }
        // An id that nobody upstream can name.
        let resolution = context.identities.resolve(
            ChatPerson(id: context.freshChatID(), name: "others"), backend: settings.backend, authenticated: false,
            isPassing: true, now: context.now.monotonic)
        context.identities.entered(resolution.id)
        overflowMember = (resolution.id, context.now.monotonic)
        slots.insert(resolution.id)
        if let person = context.identities[resolution.id] {
            show(.entered(RoomArrival(person)))
        }
        context.note(
            .warn, "room-full", "more people than limits.members_per_room; the rest speak through one nick",
            ["room": settings.name])
        return resolution.id
    }

    // MARK: - Counting what was not understood

    func frameDropped(_ reason: DropReason, byteCount: Int, typeKey: String?, _ context: RoomsContext) {
        let count = droppedFrames[reason, default: 0] + 1
        droppedFrames[reason] = count
        // The first ten tell what is wrong; after that every thousandth shows that it goes on.
        guard count <= 10 || count % 1000 == 0 else { return }
        context.note(
            .warn, "frame-dropped", "a frame from the backend was not understood",
            [
                "room": settings.name, "reason": reason.rawValue, "length": String(byteCount),
                "type": typeKey.map { String(link.told($0).prefix(40)) } ?? "",
                "count": String(count),
            ])
    }
}

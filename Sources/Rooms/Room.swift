import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

// One room: the people on both sides, the order of what they say, and the link between them.
//
// A message of an IRC user becomes visible to the others when the backend has confirmed it, in the order in which the
// backend sent it round; so all members, on both sides, see one order. What the backend cannot carry is delivered at once
// to the IRC users of the room.
//
// The room composes: each part of its state has an owner, and `Room+Part.swift` says what happens between them.

package final class Room {
    package let id: RoomID
    package let settings: RoomSettings
    /// For everybody who has no link of their own.
    package let lane: SendLane
    /// The dialect's, made once: a frame asks for them several times.
    package let traits: DialectTraits
    package let frontEnd: any RoomFrontEnd
    package let createdAt: ChatTimestamp
    /// Whether a frame can say which message it answers.
    private(set) lazy var carriesReplies = settings.dialect.carriesReplies(context: lane.dialectContext)
    /// What the wire can say of IRC users' coming and going.
    private(set) lazy var presenceWords = PresenceReport.Words(settings.dialect, context: lane.dialectContext)

    // Members.
    package let locals = LocalMembers()
    let remotes = UpstreamMembers()
    package let slots = MemberSlots()
    let crowds = Crowds()
    let account: RoomAccount
    package let own: OwnLinks
    let presenceReport = PresenceReport()
    let receiptNotices = ReceiptNotices()
    /// What authors were told of readers, where there is persistent storage.
    package let toldReceipts = ToldReceipts()
    package let markers = ReadMarkers()
    /// What IRC users may do here.
    package let moderation = RoomModeration()
    let secrets = RoomSecrets()

    // The order.
    let recent = RecentMessages()
    /// Whole messages, where there is no persistent storage.
    package let archive = MemoryHistory()
    let duplicates = DuplicateRing()
    let textDuplicates = TextDuplicates()
    package let continuity = Continuity()
    let older = HeldOlderHistory()
    let cursorRound = CursorRound()
    let openActions = OpenActions()

    // The link.
    let catchUp: CatchUp
    let ownRows = OwnRows()
    let idLookups = IDLookups()
    let undecided = UndecidedRows()
    package let report = LinkReport()
    package let life = RoomLife()

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
        own = OwnLinks(traits)
        self.frontEnd = frontEnd
        self.createdAt = context.now.wall
        let account = context.identities.puppetID(nick: "chatbridge", backend: settings.backend)
        self.account = RoomAccount(ChatPerson(id: account, name: "chatbridge"))
        self.lane = SendLane(
            account: "", settings: settings,
            link: UpstreamSession(
                room: id, settings: settings.link, usesAccount: usesAccount, shared: context.upstream),
            sendBudget: SendBudget(
                rate: context.settings.upstreamMessagesPerSecond, burst: context.settings.upstreamMessagesBurst),
            outbox: Outbox(traits),
            dialectContext: DialectContext(
                selfIDs: settings.identity == .single ? [account] : [], room: settings.upstreamRoom))
        if let known = settings.account, settings.identity == .single {
            self.account.identified(as: known)
            lane.isAlso(known)
        }
    }

    package var link: UpstreamSession { lane.link }
    package var channel: String { settings.channel }
    package var memberCount: Int { slots.count }
    package var host: String { IdentityMap.hostname(settings.backend) }
    package var storedKey: StoredRoomKey { settings.storedKey }
    package var accountPerson: ChatPerson { account.person }
    package var outage: LinkOutage? { report.outage }
    package var droppedFrames: [DropReason: Int] { report.droppedFrames }
    package var isLeaving: Bool { life.isLeaving }
    package var isLoading: Bool { life.isLoading }
    package var emptySince: MonotonicInstant? { life.emptySince }
    package var missingSince: Now? { continuity.missingSince }
    package var proof: LinkProof? { continuity.proof }

    /// Messages go both ways.
    package var isLive: Bool { link.isUp && catchUp.state == .live }

    /// Where missed messages come from: as the wire says, or as the backend was found to do.
    var historySource: DialectTraits.HistorySource {
        traits.history == .none && catchUp.isHistoryUnasked ? .pushed : traits.history
    }

    /// All of them, the room's first.
    package var lanes: [SendLane] { own.isEmpty ? [lane] : [lane] + own.sorted }

    /// The clients through which an IRC user is in the room.
    package func clients(of person: PersonID, _ context: RoomsContext) -> [ClientID] {
        (context.identities[person]?.clients ?? []).filter { locals[$0] != nil }
    }

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
}

import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

// One room: the members on both sides, the order of their messages, and the link between them.
//
// A message of an IRC user becomes visible to the others when the backend has confirmed it, in the backend's order; so
// all members see one order. A message that the backend cannot carry is delivered to the room's IRC users at once.
//
// The room composes: each part of its state has an owner, and `Room+Part.swift` contains the interactions.

package final class Room {
    package let id: RoomID
    package private(set) var settings: RoomSettings
    /// For all users without an own link.
    package let lane: SendLane
    /// The dialect's, made once: a frame asks for them several times.
    package let traits: DialectTraits
    package let frontEnd: any RoomFrontEnd
    package let createdAt: ChatTimestamp
    /// Whether a frame can say which message it answers.
    private(set) lazy var carriesReplies = settings.dialect.carriesReplies(context: lane.dialectContext)
    /// The presence changes of IRC users that the wire can express.
    private(set) lazy var presenceWords = PresenceReport.Words(settings.dialect, context: lane.dialectContext)

    // Members.
    package let locals = LocalMembers()
    let remotes = UpstreamMembers()
    package let slots = MemberSlots()
    let joinBatches = JoinBatches()
    let account: RoomAccount
    package let own = OwnLinks()
    let presenceReport = PresenceReport()
    let receiptNotices = ReceiptNotices()
    /// Receipts already reported to authors, where there is persistent storage.
    package let reportedReceipts = ReportedReceipts()
    package let markers = ReadMarkers()
    /// Channel modes, bans and topic.
    package let moderation = RoomModeration()
    let secrets = RoomSecrets()

    // The order.
    let recent = RecentLog()
    /// Whole messages, where there is no persistent storage.
    package let archive = MemoryLog()
    let seenIDs = SeenMessageIDs()
    let seenTexts = SeenTexts()
    package let continuity = Continuity()
    let older = HeldOlderHistory()
    let cursorRound = CursorRound()
    let pendingActions = PendingActions()

    // The link.
    let catchUp: CatchUp
    let relayedRows = RelayedRows()
    let idLookups = IDLookups()
    let ambiguous = AmbiguousMessages()
    package let report = LinkReport()
    package let traffic = RoomTraffic()
    package let life = RoomLife()
    package let access = RoomAccess()

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
        self.account = RoomAccount(ChatPerson(id: account, name: "chatbridge"))
        self.lane = SendLane(
            account: "", settings: settings,
            link: UpstreamSession(
                room: id, settings: settings.link, usesAccount: usesAccount, shared: context.upstream),
            sendBudget: SendBudget(
                rate: context.settings.upstreamMessagesPerSecond, burst: context.settings.upstreamMessagesBurst),
            outbox: Outbox(traits), traffic: traffic,
            dialectContext: DialectContext(
                selfIDs: settings.identity == .single ? [account] : [], room: settings.upstreamRoom))
        if let known = settings.account, settings.identity == .single {
            self.account.identified(as: known)
            lane.isAlso(known)
        }
    }

    /// The configuration has others. What the room is must be the same: the dialect's traits, backend, channel, identity.
    func take(_ settings: RoomSettings, _ upstream: UpstreamShared) {
        var settings = settings
        let usesAccount = upstream.hasLogin(settings.backend)
        if usesAccount { settings.authenticates = true }
        self.settings = settings
        lane.take(settings, usesAccount: usesAccount)
        // A description may have other templates.
        carriesReplies = settings.dialect.carriesReplies(context: lane.dialectContext)
        presenceWords = PresenceReport.Words(settings.dialect, context: lane.dialectContext)
        for own in own.values {
            own.take(settings, usesAccount: own.login.backend.map { upstream.hasLogin($0) } ?? false)
        }
    }

    package var link: UpstreamSession { lane.link }
    package var channel: String { settings.channel }
    package var memberCount: Int { slots.count }
    package var host: String { IdentityMap.hostname(settings.backend) }
    package var storedKey: StoredRoomKey { settings.storedKey }
    package var accountPerson: ChatPerson { account.person }
    package var outage: LinkOutage? { report.outage }
    /// Without a link for longer than the settings allow.
    package var hasFailed: Bool { report.hasFailed }
    package var droppedFrames: [DropReason: Int] { report.droppedFrames }
    package var isLeaving: Bool { life.isLeaving }
    package var isLoading: Bool { life.isLoading }
    package var emptySince: MonotonicInstant? { life.emptySince }
    package var missingSince: Now? { continuity.missingSince }
    package var proof: LinkProof? { continuity.proof }

    /// Messages flow both ways.
    package var isLive: Bool { link.isUp && catchUp.state == .live }

    /// Why a history that is to be called for has not come; nil: it has, or there is none.
    package var historyFailure: String? {
        guard historySource == .call else { return nil }
        return report.historyFailure ?? (catchUp.gap == nil ? nil : "the backend gave none")
    }

    /// Source of missed messages: by the wire's traits, or by the backend's observed behaviour.
    var historySource: DialectTraits.HistorySource {
        traits.history == .none && catchUp.isHistoryUnasked ? .pushed : traits.history
    }

    /// All lanes, the room's first.
    package var lanes: [SendLane] { own.isEmpty ? [lane] : [lane] + own.sorted }

    /// The clients through which an IRC user is in the room.
    package func clients(of person: PersonID, _ context: RoomsContext) -> [ClientID] {
        let clients = context.identities.clients(of: person)
        return clients.isEmpty ? [] : clients.filter { locals[$0] != nil }
    }

    // MARK: - The last lines

    // Asked here and not of ``recent``: outside of this target, that would copy it.

    /// The newest sequence number in the log; -1: none.
    package var lastSequence: Int { recent.lastSequence }

    package func entry(msgid: String) -> RecentLog.Entry? { recent.entry(msgid: msgid) }

    /// The message with a sequence number, while it is remembered.
    package func entry(sequence: Int) -> RecentLog.Entry? { recent.entry(sequence: sequence) }

    /// The newest message of an IRC user.
    package func newest(by puppet: ChatID) -> RecentLog.Entry? { recent.newest(by: puppet) }

    /// The newest `limit` entries after a sequence number; see ``RecentLog/newest(_:after:)``.
    package func newest(_ limit: Int, after place: Int) -> (start: Int, leftOut: Int?, isMore: Bool?) {
        recent.newest(limit, after: place)
    }

    /// The latest time of a line, capped at now; nil: there is no line.
    package func latest(wall: ChatTimestamp) -> ChatTimestamp? { recent.latest(wall: wall) }

    // MARK: - To the front end

    /// Shows an event to the room's members.
    package func show(_ event: RoomEvent, to readers: RoomAudience = .everybody) {
        frontEnd.show(event, in: self, to: readers)
    }

    package func notice(_ text: String) { show(.notice(text)) }
}

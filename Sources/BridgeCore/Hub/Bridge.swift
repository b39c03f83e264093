import ChatModel
import Dialects
import Digests
import IRCProtocol
public import WireBytes

// The hub: clients on one side, rooms on the other.
//
// Every verb says what happened and leaves its consequences in `takeActions()`. The bridge opens no socket, reads no
// clock and draws no randomness by itself, so a test can play any conversation on a manual clock. Below it, an
// `IRCSession` and a `Room` know nothing of each other; what clients may send is given to it as a table.

public final class Bridge {
    /// Bytes of long answers queued before the bridge waits for the client to take them.
    static let longAnswerWindow = 16 * 1024

    /// People and rooms that the long answers of one client look at in a turn, found or not: a fraction of a millisecond.
    /// Whoever asks for what nobody fits must not hold up the others for as long as looking at ten thousand people takes.
    static let longAnswerWalk = 256

    /// What one line may name, as TARGMAX says it. More rooms in a NAMES are answered too, each with an end of its own, as clients
    /// read it; a server that announces that is expected to end all of them with one line.
    private static let targetLimits = [
        ("PRIVMSG", IRCSession.maxTargets), ("NOTICE", IRCSession.maxTargets), ("TAGMSG", IRCSession.maxTargets),
        ("KICK", maxKickTargets), ("JOIN", IRCSession.maxChannelsPerLine), ("PART", IRCSession.maxChannelsPerLine),
        ("NAMES", 1), ("WHOIS", IRCSession.maxTargets),
    ].map { "\($0):\($1)" }.joined(separator: ",")

    let context: BridgeContext
    let settings: BridgeSettings
    /// What clients may send.
    let commands: IRCCommandTable
    var rooms: [Room] = []
    /// What IRC sees of them.
    var channels: [RoomID: Channel] = [:]
    var roomsByChannel: [String: RoomID] = [:]
    /// Those of ``rooms`` that the template opened; they come after the configured ones and go again.
    var templateRooms: [RoomID: Room] = [:]
    /// Whose share of these a room is: of whoever opened it, or entered it when nobody was there.
    var templateOpeners: [RoomID: PersonID] = [:]
    var lastRoomIndex: Int
    /// The rooms of each backend that was asked for them, by the backend's name.
    var backendRooms: [String: [BackendRoom]] = [:] { didSet { backendRoomsChanged() } }
    /// Made of ``backendRooms`` when needed.
    var knownTemplateListing: BackendListing?
    /// Joins that wait for the backend to say which rooms it has, oldest first.
    var waitingJoins = WaitingJoins()
    /// Clients whose first long answer waits for the room's link.
    var waitingAtDoors: [RoomID: Set<ClientID>] = [:]
    /// Those of them whose room is open now.
    var nextIn: ArraySlice<ClientID> = []
    /// The bridge is to stop.
    var letsEverybodyIn = false
    private(set) var sessions = KeyedObjects<SessionByClient>()
    let sessionTerms: IRCSession.Terms
    var registeredCount = 0 { didSet { peakClients = max(peakClients, registeredCount) } }
    var peakClients = 0
    /// Most people on both sides, as far as somebody asked.
    var peakPeople = 0
    var whowas = WhowasMemory()
    var privateMarkers = PrivateMarkers()
    /// Backends of which something is or may be kept, those included that are not configured any more.
    let keptBackends: Set<String>
    var conversations = PrivateConversations()
    var privateMessages = RecentPrivateMessages()
    /// Addresses whose rate of connecting is remembered before those without a client are forgotten.
    private static let rememberedAddresses = 10_000
    private var addressUse: [String: AddressUse] = [:]
    private var addressSweepCount = Bridge.rememberedAddresses
    var phase: Phase = .running
    /// Clients whose last answer is awaited before the bridge stops.
    var clientsToAnswer: Set<ClientID> = []
    var accounts: AccountBook
    /// What was offered so far, by what decides about it.
    var offers: [CapabilityOffer.Grounds: CapabilityOffer] = [:]
    /// Who is here as an account, by the account's folded name.
    var accountPeople: [String: PersonID] = [:]
    /// Accounts that are being made, by their folded names.
    var registrations: [String: AccountRegistration] = [:]
    var registrationThrottle = RegistrationThrottle()
    var lastAway: UInt64 = 0
    /// Clients that wait for a PONG until the disk has what they said.
    var pongHolders: Set<ClientID> = []
    var lastAttempt: UInt64 = 0
    var loginThrottle = LoginThrottle()
    /// Of its own: whoever fails here many times makes nobody's failures there forgotten.
    var uploadThrottle = LoginThrottle()
    /// Tokens of clients that a backend is asked about.
    var bearerTries: [BackendCallID: BearerTry] = [:]
    /// The backend that says whose a client's token is; nil: none is asked.
    private(set) lazy var bearerBackend: BackendAccount? = settings.bearerBackend.flatMap { backend(named: $0) }
        .flatMap { $0.offers(.whoAmI) ? $0 : nil }
    /// The right passwords of gateways whose settings have only a hash, by their place in the settings.
    var knownGatewayPasswords: [Int: SecretBytes] = [:]
    /// Uploads on their way to a backend.
    var uploads: [UploadID: RunningUpload] = [:]
    /// Tokens that came with uploads, while their backend is asked whose they are.
    var uploadTokens: [BackendCallID: UploadTokenTry] = [:]
    private(set) var isupport: [[String]] = []
    let startedAt: ChatTimestamp
    var cursors: Cursors
    /// `*bridge`.
    let service: PersonID
    /// Clients that wait for their names.
    var newcomers: [ClientID: Newcomer] = [:]
    /// Cursors whose changes found no room in the store.
    var lostCursors: Set<LostCursor> = []
    /// The rooms in which accounts are.
    var memberships = Memberships()
    /// Changes of these that found no room in the store.
    var lostMemberships: Set<LostMembership> = []
    /// Whose question to the store this is.
    var backlogQuestions: [StoreReadID: (client: ClientID, room: RoomID)] = [:]
    /// Whose question to the store this is.
    var historyReads: [StoreReadID: HistoryAnswer] = [:]
    /// Whose question to the store this is.
    var redactionReads: [StoreReadID: (client: ClientID, redaction: PrivateRedaction)] = [:]
    private(set) var backends: [BackendAccount] = []
    private(set) var backendsByName: [String: BackendID] = [:]
    var roomsAskedAt: [String: MonotonicInstant] = [:]
    /// Backends that have not answered yet.
    var roomsAsked: Set<String> = []
    /// How often the template's backend failed to say which rooms it has, until it did.
    var roomsFailures = 0
    /// Clients whose first long answer is the rest of a LIST, which waits for that.
    var waitingLists: Set<ClientID> = []
    private var batchNumber: UInt64 = 0
    /// What the long answers of a client looked at in this turn.
    var walkedCount = 0
    /// Who watches which nicks.
    var monitors = Monitors()
    /// Who wants to hear what of people upstream changes.
    var metadata = MetadataSubscriptions()
    /// Administrators who are here, by account or by OPER.
    var operators: Set<PersonID> = []
    /// IRC users who read WALLOPS.
    var wallopsReaders: Set<PersonID> = []

    enum Phase: Equatable {
        case running
        /// Asked to stop: queues are given time to empty.
        case draining
        /// Clients say what they have got.
        case asking
        /// Clients are told and closed, links say goodbye.
        case closing
        case stopped
    }

    enum SessionByClient: ObjectKeying {
        static func key(of session: IRCSession) -> ClientID { session.id }
    }

    private struct AddressUse {
        var clients = 0
        var accepts: TokenBucket
    }

    /// - Parameter stored: what an earlier process left; nil: nothing is kept over the end of this one.
    init(
        settings: BridgeSettings, commands: IRCCommandTable, stored: StoredState?, now: Now,
        random: AnyRandomNumberGenerator
    ) {
        self.settings = settings
        self.commands = commands
        self.context = BridgeContext(settings: settings, isDurable: stored != nil, now: now, random: random)
        self.sessionTerms = IRCSession.Terms(settings)
        self.startedAt = now.wall
        self.service = context.identities.addService(
            nick: Self.serviceNick, ident: Self.serviceIdent, host: IdentityMap.hostname(settings.serverName),
            realname: Self.serviceRealname)
        self.cursors = Cursors(stored?.cursors ?? [], rooms: stored?.rooms ?? [:])
        self.accounts = AccountBook(
            settings.accounts, least: settings.registration == .nobody ? nil : settings.passwordIterations)
        self.keptBackends = Set(settings.rooms.map(\.backend) + settings.backends.map(\.name))
            .union(stored?.rooms.keys.map(\.backend) ?? [])
        self.lastRoomIndex = settings.rooms.count - 1
        for (index, backend) in settings.backends.enumerated() {
            let id = BackendID(index: index)
            backends.append(BackendAccount(id: id, settings: backend))
            backendsByName[backend.name] = id
            if backend.login != nil { context.backendsWithLogin.insert(backend.name) }
        }
        for (index, room) in settings.rooms.enumerated() {
            let id = RoomID(index: index)
            rooms.append(makeRoom(id, room))
            roomsByChannel[settings.casemapping.fold(room.channel)] = id
        }
        context.identities.presenceChanged = { [unowned self] in
            presenceChanged($0, isHere: $1)
            if !$1 { nickReleased(by: $0) }
        }
        isupport = IRCISupport.standard(
            network: settings.network, casemapping: settings.casemapping, nickLen: settings.nicks.maxBytes,
            topicLen: Self.maxTopicBytes, awayLen: IRCSession.maxAwayBytes, nameLen: IRCSession.maxRealnameBytes,
            userLen: IRCSession.maxUserBytes, kickLen: Self.maxKickBytes, modes: Self.maxModeChanges,
            maxTargets: IRCSession.maxTargets, chanModes: "b,,,imnt",
            targMax: Self.targetLimits,
            elist: ListFilter.elist, utf8Only: true, bot: "B", icon: settings.icon,
            maxBans: RoomModeration.maxBans, monitor: Monitors.maxTargets, safeList: true,
            safeRate: settings.limits.messagesPerSecond == nil,
            requiresAccount: settings.requireLogin == .always && settings.password == nil,
            chatHistory: settings.limits.historyLimit, fileHost: takesUploads ? settings.media?.uploadURL : nil)
        guard let stored else { return }
        // Before the people upstream of earlier: a nick that is somebody's account now is not theirs any more.
        restoreAccounts(stored.accounts)
        restoreChoices(stored.choices)
        restoreMemberships(stored.memberships)
        restoreConversations(stored)
        context.identities.restore(stored.identities, now: now)
        for room in rooms {
            if let left = stored.rooms[room.storedKey] { room.restore(left, context) }
        }
        privateMarkers.restore(stored.rooms[PrivateMarkers.storedKey]?.markers ?? [])
        noteMessagesWithoutRoom(stored)
        context.timers.set(.identities, at: now.monotonic + Self.identitiesInterval)
    }

    // MARK: - The driver's side

    /// What the driver must do now, in order.
    public func takeActions() -> [BridgeAction] {
        carryOutBackendWishes()
        return context.takeActions()
    }

    /// When ``timerFired(now:)`` is due next.
    public func nextDeadline() -> MonotonicInstant? { context.timers.next() }

    /// Opens the links of all rooms that have one whoever is there.
    public func start(now: Now) {
        context.now = now
        for account in backends where account.settings.authenticates && !account.settings.isOnDemand {
            account.start(context)
        }
        for room in rooms {
            if room.settings.connect == .always, room.link.state == .stopped { room.beginOpening(context) }
            room.startForWaiting(context)
        }
        askForTemplateRooms()
    }

    public var clientCount: Int { sessions.count }

    /// How the rooms stand, in the order of the settings.
    public var roomStates: [RoomState] {
        rooms.map { room in
            RoomState(
                name: room.settings.name, link: room.link.condition, hasBeenUp: room.link.hasBeenUp,
                failures: room.link.failures, reason: room.link.isUp ? nil : room.link.lastReason,
                isOnDemand: room.settings.connect == .whileJoined)
        }
    }

    /// Whether clients are let in: false from the moment a shutdown was asked for.
    public var isRunning: Bool { phase == .running }

    // MARK: - Clients

    public func clientOpened(_ id: ClientID, origin: ClientOrigin, now: Now) {
        context.now = now
        if let refusal = refusal(of: origin) {
            context.note(
                .warn, "client-refused", "a connection was refused: \(refusal)", ["address": origin.address])
            if phase == .running || tellsPassingEnds(origin) {
                let line = IRCMessage(command: "ERROR", params: ["Closing Link: \(origin.address) (\(refusal))"])
                IRCEncoder.append(line, to: &context.writer)
                context.emit(.send(id, context.writer.take()))
            }
            context.emit(.closeClient(id))
            return
        }
        sessions.insert(
            IRCSession(id: id, origin: origin, offer: offer(for: origin), terms: sessionTerms, now: now))
        if let network = countedNetwork(of: origin) { addressUse[network]?.clients += 1 }
        context.timers.set(.clientLiveness(id), at: now.monotonic + settings.limits.registrationTimeout)
        context.note(.debug, "client-connected", "a client connected", ["address": origin.address])
    }

    private func refusal(of origin: ClientOrigin) -> String? {
        if phase != .running { return "the server is stopping" }
        if sessions.count >= settings.limits.maxClients { return "too many clients" }
        return refusalOfAddress(origin)
    }

    /// The address as which a client counts; nil: its address is not counted. A gateway's own stands for all who come
    /// through it, until it says for whom it connects.
    func countedNetwork(of origin: ClientOrigin) -> String? {
        origin.isLocal ? nil : network(of: origin)
    }

    /// The network that a client shares with others from its address; nil: the address stands for many. A gateway did not
    /// say for whom it connects, or everybody behind something on this host comes from 127.0.0.1.
    func network(of origin: ClientOrigin) -> String? {
        isGateway(origin) || origin.isLocal && ["127.0.0.1", "::1", ""].contains(origin.address)
            ? nil : LoginThrottle.network(of: origin.address)
    }

    private func refusalOfAddress(_ origin: ClientOrigin) -> String? {
        guard let network = countedNetwork(of: origin) else { return nil }
        let limits = settings.limits
        var use =
            addressUse[network]
            ?? AddressUse(
                accepts: TokenBucket(
                    rate: limits.acceptsPerSecondPerAddress, burst: (limits.acceptsPerSecondPerAddress ?? 0) * 2))
        defer {
            if addressUse.count > addressSweepCount {
                addressUse = addressUse.filter { $0.value.clients > 0 }
                // With many addresses in use, sweeping again at the next one would find nothing to forget.
                addressSweepCount = max(Self.rememberedAddresses, addressUse.count * 2)
            }
            addressUse[network] = use
        }
        if use.clients >= limits.maxClientsPerAddress { return "too many connections from your address" }
        if !use.accepts.take(now: context.now.monotonic) { return "too many connections in a short time" }
        return nil
    }

    /// The client is somebody else's than its connection said. Nil when it may stay; else why not.
    func move(_ session: IRCSession, to origin: ClientOrigin) -> String? {
        if let refusal = refusalOfAddress(origin) { return refusal }
        if let network = countedNetwork(of: session.origin) { addressUse[network]?.clients -= 1 }
        session.origin = origin
        if let network = countedNetwork(of: origin) { addressUse[network]?.clients += 1 }
        return nil
    }

    public func clientReceived(_ id: ClientID, _ bytes: UnsafeRawBufferPointer, now: Now) {
        context.now = now
        guard let session = sessions[id], session.state != .closed else { return }
        session.lastReceivedAt = now.monotonic
        session.pingSentAt = nil
        let held = session.decoder.bufferedByteCount
        session.decoder.append(bytes)
        if session.state == .registering, session.user == nil, session.nick == nil,
            held < ForeignProtocol.longestMark, let foreign = session.decoder.withHeldBytes(ForeignProtocol.recognise)
        {
            return turnAway(session, foreign)
        }
        processInput(session)
    }

    /// The client's queue is empty: long answers go on.
    public func clientDrained(_ id: ClientID, now: Now) {
        context.now = now
        guard let session = sessions[id] else { return }
        session.undrainedBytes = 0
        pullLongAnswers(session)
        processInput(session)
    }

    /// The connection is gone. `reason` is shown in the QUIT.
    public func clientClosed(_ id: ClientID, reason: String, now: Now) {
        context.now = now
        guard let session = sessions[id] else { return }
        // What came with a JOIN that waits was heard, too.
        if session.isAwaitingEntrance { noteEnd(of: session) }
        if session.hasEnded { return readerGone(session) }
        quit(session, reason: reason)
    }

    func forget(_ session: IRCSession) {
        session.state = .closed
        sessions.remove(session.id)
        answeredLast(session)
        forgetTwin(session)
        waitingJoins.forget(session.id)
        stopFollowing(session)
        monitors.forget(session.id)
        metadata.forget(session.id)
        context.choices.forget(session.id)
        privateMessages.forget(session.id)
        context.timers.cancel(.clientLiveness(session.id))
        context.timers.cancel(.clientBudget(session.id))
        context.timers.cancel(.history(session.id))
        context.timers.cancel(.arriving(session.id))
        context.timers.cancel(.loginAnswer(session.id))
        context.timers.cancel(.accountAnswer(session.id))
        if let network = countedNetwork(of: session.origin) { addressUse[network]?.clients -= 1 }
    }

    // MARK: - Links

    public func upstreamConnected(_ room: RoomID, now: Now) {
        context.now = now
        drive(room) { link, _ in link.transportOpened(context) }
    }

    private func connectSlotGranted(_ id: RoomID) {
        // Whoever waited may be gone since.
        if room(id) == nil, context.ownLinks[id] == nil { return context.endConnectTurns(of: id) }
        drive(id) { link, _ in link.slotGranted(context) }
    }

    /// The room's credentials were read, or could not be.
    public func credentialsRead(
        _ room: RoomID, _ outcome: Result<UpstreamCredentials, UpstreamCredentialsFailure>, now: Now
    ) {
        context.now = now
        drive(room) { $0.credentialsRead(outcome, dialectContext: $1, context) }
    }

    /// TLS stands on a connection through a proxy.
    public func upstreamSecured(_ room: RoomID, now: Now) {
        context.now = now
        drive(room) { link, _ in link.transportSecured(context) }
    }

    public func upstreamReceived(_ room: RoomID, _ bytes: UnsafeRawBufferPointer, now: Now) {
        context.now = now
        if let known = self.room(room) {
            let (wasUp, taken) = (known.link.isUp, known.link.loginsTaken)
            drive(room) { $0.bytesReceived(bytes, dialectContext: $1, context) }
            noteLink(known.link, of: room, backend: known.settings.backend, wasUp: wasUp, taken: taken)
            // The backend is there now, whatever kept it from answering before.
            if !wasUp, known.link.isUp, let account = backend(named: known.settings.backend) {
                settle(account.identify(context), account)
            }
        } else if let own = context.ownLinks[room] {
            let (wasUp, taken) = (own.link.isUp, own.link.loginsTaken)
            drive(room) { $0.bytesReceived(bytes, dialectContext: $1, context) }
            if let backend = own.login.backend {
                noteLink(own.link, of: room, backend: backend, wasUp: wasUp, taken: taken)
            }
        }
        finishIfIdle()
    }

    /// The connection ended or could not be made; `reason` is a sentence without a full stop.
    public func upstreamClosed(_ room: RoomID, reason: String, now: Now) {
        context.now = now
        drive(room) { link, _ in link.transportClosed(reason: reason, context) }
        finishIfIdle()
    }

    func makeRoom(_ id: RoomID, _ room: RoomSettings) -> Room {
        let channel = Channel(self)
        channels[id] = channel
        return Room(id: id, settings: room, limits: settings.limits, frontEnd: channel, context)
    }

    func room(_ id: RoomID) -> Room? {
        if rooms.indices.contains(id.index), rooms[id.index].id == id { return rooms[id.index] }
        return templateRooms[id]
    }

    /// What an open room was told to be; nil when there is none of that number any more.
    public func settings(of id: RoomID) -> RoomSettings? { room(id)?.settings }

    func room(channel: String) -> Room? {
        roomsByChannel[settings.casemapping.fold(channel)].flatMap { room($0) }
    }

    /// The room that a client means, where it may enter that; any other does not exist for it.
    func room(channel: String, for session: IRCSession) -> Room? {
        room(channel: channel).flatMap { mayEnter($0, session) ? $0 : nil }
    }

    // MARK: - Time

    public func timerFired(now: Now) {
        context.now = now
        // What is armed again for a moment that has passed waits for the next turn, so that it can keep nobody waiting.
        var left = context.timers.count
        while left > 0, let key = context.timers.popDue(now.monotonic) {
            left -= 1
            if fireOwnLinkTimer(key) { continue }
            switch key {
            case .clientLiveness(let id): if let session = sessions[id] { checkLiveness(session) }
            case .clientBudget(let id): if let session = sessions[id] { processInput(session) }
            case .naming(let id): if let session = sessions[id] { namingTimerFired(session) }
            case .arriving(let id): if let session = sessions[id] { arrive(session) }
            case .loginAnswer(let id):
                if let session = sessions[id] {
                    loginAnswerIsDue(session)
                    pullLongAnswers(session)
                    processInput(session)
                }
            case .accountAnswer(let id): registrationTimedOut(id)
            case .link(let id): drive(id) { $0.timerFired(dialectContext: $1, context) }
            case .settling(let id): room(id)?.settlingTimerFired(context)
            case .catchUp(let id): room(id)?.catchUpTimerFired(context)
            case .connectGate: for id in context.takeConnectSlots() { connectSlotGranted(id) }
            case .outbox(let id): if let (room, lane) = lane(id) { room.outboxTimerFired(lane, context) }
            case .typingIn(let person, let id): room(id)?.endTyping(person, announced: true, context)
            case .typingOut(let client, let id): room(id)?.typingTimerFired(client, context)
            case .receipts(let id): room(id)?.receiptTimerFired(context)
            case .markRead(let id): lane(id)?.lane.markReadTimerFired(context)
            case .undecided(let id): room(id)?.releaseDecided(context)
            case .openActions(let id): room(id)?.openActionsTimerFired(context)
            case .idlePeople(let id): room(id)?.sweepIdlePeople(context)
            case .live(let id): room(id)?.liveTimerFired(context)
            case .roomLoad(let id): roomLoadTimedOut(id)
            case .crowds(let id): room(id)?.crowdsTimerFired(context)
            case .split(let id): room(id)?.splitTimerFired(context)
            case .identities: identitiesTimerFired()
            case .backend(let id): fireBackendTimer(id)
            case .linger(let id): room(id)?.lingerTimerFired(context)
            case .opening(let id): room(id)?.opened(context)
            case .entrances: letNextIn()
            case .roomsList: refuseWaitingJoins()
            case .roomsRetry: retryTemplateRooms()
            case .listing: endWaitingLists()
            case .cursors(let id): if let room = room(id) { cursorsTimerFired(room) }
            case .following(let id): if let session = sessions[id] { followingTimerFired(session) }
            case .history(let id): if let session = sessions[id] { historyTimerFired(session) }
            case .olderHistory(let id): room(id)?.olderTimerFired(context)
            case .ownIdentity: break
            case .shutdown: if phase == .draining { beginAsking() } else { beginClosing() }
            }
        }
        finishIfIdle()
    }

    private func checkLiveness(_ session: IRCSession) {
        let now = context.now.monotonic
        if session.hasEnded { return letGo(session) }
        guard session.person != nil else {
            return close(session, reason: "Registration timed out")
        }
        if let sent = session.pingSentAt {
            // Whoever we do not read cannot answer.
            if now - sent >= settings.limits.pingTimeout, !session.isReadingPaused {
                return close(session, reason: "Ping timeout", isPassing: true)
            }
            context.timers.set(
                .clientLiveness(session.id), at: max(sent + settings.limits.pingTimeout, now + .seconds(1)))
            return
        }
        let due = session.lastReceivedAt + settings.limits.pingInterval
        if now >= due {
            // What asks whether it has got its lines asks whether it lives.
            if session.following != nil { askForCursors(session) }
            if session.lineReceipts?.isAsking != true {
                deliver(IRCMessage(command: "PING", params: [settings.serverName]), to: session.id, label: nil)
            }
            session.pingSentAt = now
            context.timers.set(.clientLiveness(session.id), at: now + settings.limits.pingTimeout)
        } else {
            context.timers.set(.clientLiveness(session.id), at: due)
        }
    }

    // MARK: - Batches

    func nextBatchReference() -> String {
        batchNumber += 1
        return "b" + String(batchNumber, radix: 36)
    }
}

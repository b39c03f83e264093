import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Media
import Rooms
import Upstream

// The IRC server: clients on one side, rooms on the other, independent of each other. It owns the state that its
// features share; each feature is an extension in a file of its own.

/// The layer above the features, injected into the server: the command tables, and the only upward calls of a feature.
package struct Dispatch: Sendable {
    let commands: IRCCommandTable
    /// Commands of the service `*bridge`.
    let serviceCommands: ServiceCommandTable
    /// Makes the front end that shows a room in its channel.
    let frontEnd: @Sendable (Channel, IRCServer) -> any RoomFrontEnd
    /// Registers a client that has sent everything registration takes.
    let register: @Sendable (IRCServer, IRCSession) -> Void
    /// Processes a client's input, as far as its budget allows.
    let processInput: @Sendable (IRCServer, IRCSession) -> Void
}

package final class IRCServer {
    /// Bytes of a topic that are shown: with the numeric, the nick and the channel it must fit in a line.
    private static let maxTopicBytes = RoomModeration.maxTopicBytes
    /// Bytes of a KICK reason that are relayed.
    static let maxKickBytes = 300
    /// Changes per MODE; the token MODES announces it.
    static let maxModeChanges = 4

    let context: RoomsContext
    let actions: BridgeActions
    package private(set) var settings: BridgeSettings
    let dispatch: Dispatch
    let roomTable: RoomTable
    /// The rooms' channels.
    private(set) var channels: [RoomID: Channel] = [:]
    let directory: RoomDirectory
    let pendingJoins = PendingJoins()
    var loads = RoomLoads()
    let outbound: Outbound
    package let traffic: ClientTraffic
    /// Changes that the store had no room for.
    package let unkept = StoreOverflow()
    let longAnswers: ReplyGenerators
    let sessionTerms: IRCSession.Terms
    let counts = UserCounts()
    let whowas = WhowasHistory()
    /// Backends that have or may have persisted data, including those that are no longer configured.
    private(set) var keptBackends: Set<String>
    package let privateMessages: PrivateMessages
    let addressLimits: AddressLimits
    let lifecycle: Lifecycle
    /// Accounts that can log in.
    package let accounts: AccountTable
    /// Logins in progress, from the credentials to the verdict.
    package let logins: LoginMachine
    /// Account registrations in progress.
    let registrations: AccountRegistrations
    /// Preferences of accounts.
    package let choices = AccountPreferences()
    /// Room memberships of accounts.
    package let memberships = AccountChannels()
    let offers: CapabilityOffers
    let heldPongs = DelayedPongs()
    private(set) var isupport: [[String]] = []
    package let startedAt: ChatTimestamp
    package let cursors: DeliveryCursors
    /// The service `*bridge`.
    let service: PersonID
    let newcomers: PendingRegistrations
    package let storeQuestions = PendingStoreQueries()
    let backends: BackendTable
    let serverWishes: ServerRequests
    /// MONITOR lists.
    let monitors = Monitors()
    /// Subscriptions to metadata of upstream users.
    let metadata = MetadataSubscriptions()
    let operators = Operators()

    /// - Parameter stored: state restored from an earlier process; nil: nothing is persisted.
    package init(_ hub: HubParts, _ dispatch: Dispatch, stored: StoredState?) {
        let (settings, context) = (hub.settings, hub.context)
        self.settings = settings
        self.dispatch = dispatch
        self.context = context
        self.actions = hub.actions
        self.roomTable = hub.rooms
        self.lifecycle = hub.lifecycle
        self.backends = hub.backends
        self.serverWishes = hub.serverWishes
        self.traffic = ClientTraffic(dispatch.commands)
        self.outbound = Outbound(actions, context, traffic)
        self.longAnswers = ReplyGenerators(outbound)
        self.sessionTerms = IRCSession.Terms(settings)
        self.offers = CapabilityOffers(
            values: sessionTerms.capabilityValues,
            // Not with a server password: a client that registers an account would not need it.
            registersBeforeConnect: settings.registersBeforeConnect && settings.password == nil)
        self.startedAt = context.now.wall
        self.service = context.identities.addService(
            nick: ServiceName.nick, ident: ServiceName.ident, host: IdentityMap.hostname(settings.serverName),
            realname: ServiceName.realname)
        self.cursors = DeliveryCursors(stored?.cursors ?? [], rooms: stored?.rooms ?? [:])
        self.accounts = AccountTable(
            settings.accounts, minIterations: settings.registration == .nobody ? nil : settings.passwordIterations,
            fold: settings.casemapping.fold)
        self.privateMessages = PrivateMessages(fold: settings.casemapping.fold)
        self.logins = LoginMachine(
            accounts, serverPassword: settings.password, gateways: settings.gateways.map(\.password),
            instanceID: settings.instanceID, tokenBackend: settings.bearerBackend.flatMap { hub.backends[$0] },
            context.upstream)
        self.registrations = AccountRegistrations(accounts, context.identities)
        self.keptBackends = Set(settings.rooms.map(\.backend) + settings.backends.map(\.name))
            .union(stored?.rooms.keys.map(\.backend) ?? [])
        self.directory = RoomDirectory(settings)
        self.newcomers = PendingRegistrations(context)
        self.addressLimits = AddressLimits(settings)
        for room in settings.rooms { roomTable.add(makeRoom(roomTable.takeID(), room)) }
        isupport = makeISupport()
    }

    /// The configuration was read again.
    func take(_ settings: BridgeSettings) {
        self.settings = settings
        keptBackends.formUnion(settings.rooms.map(\.backend) + settings.backends.map(\.name))
        addressLimits.take(settings.limits)
        sessionTerms.take(settings.limits)
        isupport = makeISupport()
    }

    // MARK: - Upward calls

    /// Registers the client, if it has sent everything registration takes.
    func goOnRegistering(_ session: IRCSession) {
        if session.isReadyToRegister { dispatch.register(self, session) }
    }

    /// Ends a wait of the client: its pending answers continue, then its input.
    package func goOn(_ session: IRCSession) {
        longAnswers.pull(session)
        dispatch.processInput(self, session)
    }

    // MARK: - Actions

    func emit(_ action: BridgeAction) { actions.append(action) }

    /// Queries the store behind all changes made so far.
    func ask(_ question: BridgeAction) { actions.ask(question) }

    /// Queries the store; the answer is routed to the asker.
    func ask(as asker: PendingStoreQueries.Asker, _ question: (StoreReadID) -> BridgeAction) -> StoreReadID {
        let read = context.ledger.nextRead()
        storeQuestions.begin(read, by: asker)
        ask(question(read))
        return read
    }

    // MARK: - Rooms

    func makeRoom(_ id: RoomID, _ room: RoomSettings) -> Room {
        let channel = Channel(outbound, metadata, settings.limits, context)
        channels[id] = channel
        return Room(id: id, settings: room, frontEnd: dispatch.frontEnd(channel, self), context)
    }

    /// Removes a room that is passing.
    func remove(_ room: Room) {
        roomTable.remove(room)
        channels[room.id] = nil
    }

    func room(_ id: RoomID) -> Room? {
        roomTable[id]
    }

    var rooms: [Room] { roomTable.all }

    func room(channel: String) -> Room? {
        roomTable[channel: channel]
    }

    static func cleanTopic(_ topic: String) -> String { IdentityMap.realname(topic, maxBytes: maxTopicBytes) }

    // MARK: - Features

    /// Whether there are accounts to log in to, now or later.
    var hasAccounts: Bool { !accounts.isEmpty || keepsAccounts || logins.acceptsTokens }

    /// Whether accounts can be registered at all.
    var keepsAccounts: Bool { settings.registration != .nobody && context.isDurable }

    /// Whether users can upload files at all.
    var takesUploads: Bool { settings.media != nil && hasAccounts }
}

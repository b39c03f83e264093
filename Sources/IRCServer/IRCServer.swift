import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Media
import Rooms
import Upstream

// The IRC server: clients on one side, rooms on the other, which know nothing of each other. It owns what its features share; each
// feature is an extension in a file of its own.

/// What stands above the features, given to the server when it is made: what clients may send, and the calls by which a feature
/// reaches up. There are no others.
package struct Dispatch: Sendable {
    let commands: IRCCommandTable
    /// What people may say to the service.
    let serviceCommands: ServiceCommandTable
    /// Shows a room in its channel.
    let frontEnd: @Sendable (Channel, IRCServer) -> any RoomFrontEnd
    /// Lets a client in that has said all that registration takes.
    let register: @Sendable (IRCServer, IRCSession) -> Void
    /// Carries out what a client sent, as far as its budget goes.
    let processInput: @Sendable (IRCServer, IRCSession) -> Void
}

package final class IRCServer {
    /// What one line may name, as TARGMAX says it. More rooms in a NAMES are answered too, each with an end of its own, as clients
    /// read it; a server that announces that is expected to end all of them with one line.
    private static let targetLimits = [
        ("PRIVMSG", IRCSession.maxTargets), ("NOTICE", IRCSession.maxTargets), ("TAGMSG", IRCSession.maxTargets),
        ("KICK", maxKickTargets), ("JOIN", IRCSession.maxChannelsPerLine), ("PART", IRCSession.maxChannelsPerLine),
        ("NAMES", 1), ("WHOIS", IRCSession.maxTargets),
    ].map { "\($0):\($1)" }.joined(separator: ",")

    /// Bytes of a topic that are shown; with the numeric, the nick and the channel it must fit a line.
    private static let maxTopicBytes = 300
    /// Bytes of a KICK's reason that are passed on.
    static let maxKickBytes = 300
    /// Changes that one MODE may ask for; the token MODES says so.
    static let maxModeChanges = 4
    /// People whom one KICK may name.
    static let maxKickTargets = 4

    let context: RoomsContext
    let actions: BridgeActions
    let settings: BridgeSettings
    let dispatch: Dispatch
    let roomTable: RoomTable
    /// What IRC sees of them.
    private(set) var channels: [RoomID: Channel] = [:]
    let directory: RoomDirectory
    let pendingJoins = PendingJoins()
    let outbound: Outbound
    /// What the store had no room for.
    package let unkept = UnkeptChanges()
    let longAnswers: LongAnswers
    let sessionTerms: IRCSession.Terms
    let counts = UserCounts()
    let whowas = WhowasHistory()
    /// Backends of which something is or may be kept, those included that are not configured any more.
    let keptBackends: Set<String>
    package let privateMessages = PrivateMessages()
    let addressLimits: AddressLimits
    let lifecycle: Lifecycle
    /// Who may log in.
    package let accounts: AccountTable
    /// What clients show to log in, on its way to a verdict.
    package let logins: LoginMachine
    /// Accounts that are being made.
    let registrations: AccountRegistrations
    /// What people chose for themselves alone.
    package let choices = AccountPreferences()
    /// The rooms in which accounts are.
    package let memberships = AccountChannels()
    let offers: CapabilityOffers
    let heldPongs = HeldPongs()
    private(set) var isupport: [[String]] = []
    let startedAt: ChatTimestamp
    package let cursors: DeliveryCursors
    /// `*bridge`.
    let service: PersonID
    let newcomers: Newcomers
    package let storeQuestions = StoreQuestions()
    let backends: BackendTable
    let serverWishes: ServerWishes
    /// Who watches which nicks.
    let monitors = Monitors()
    /// Who wants to hear what of people upstream changes.
    let metadata = MetadataSubscriptions()
    let operators = Operators()

    /// - Parameter stored: what an earlier process left; nil: nothing is kept over the end of this one.
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
        self.outbound = Outbound(actions, context)
        self.longAnswers = LongAnswers(outbound)
        self.sessionTerms = IRCSession.Terms(settings)
        self.offers = CapabilityOffers(
            values: sessionTerms.capabilityValues,
            // Not where a password keeps strangers out: a client that makes an account would not need it.
            registersBeforeConnect: settings.registersBeforeConnect && settings.password == nil)
        self.startedAt = context.now.wall
        self.service = context.identities.addService(
            nick: ServiceName.nick, ident: ServiceName.ident, host: IdentityMap.hostname(settings.serverName),
            realname: ServiceName.realname)
        self.cursors = DeliveryCursors(stored?.cursors ?? [], rooms: stored?.rooms ?? [:])
        self.accounts = AccountTable(
            settings.accounts, minIterations: settings.registration == .nobody ? nil : settings.passwordIterations)
        self.logins = LoginMachine(
            accounts, serverPassword: settings.password, gateways: settings.gateways.map(\.password),
            instanceID: settings.instanceID, tokenBackend: settings.bearerBackend.flatMap { hub.backends[$0] },
            context.upstream)
        self.registrations = AccountRegistrations(accounts, context.identities)
        self.keptBackends = Set(settings.rooms.map(\.backend) + settings.backends.map(\.name))
            .union(stored?.rooms.keys.map(\.backend) ?? [])
        self.directory = RoomDirectory(settings)
        self.newcomers = Newcomers(context)
        self.addressLimits = AddressLimits(settings)
        for room in settings.rooms { roomTable.add(makeRoom(roomTable.takeID(), room)) }
        isupport = IRCISupport.standard(
            network: settings.network, casemapping: settings.casemapping, nickLen: settings.nicks.maxBytes,
            topicLen: Self.maxTopicBytes, awayLen: IRCSession.maxAwayBytes, nameLen: IRCSession.maxRealnameBytes,
            userLen: IRCSession.maxUserBytes, kickLen: Self.maxKickBytes, modes: Self.maxModeChanges,
            maxTargets: IRCSession.maxTargets, chanModes: "b,,,imnt",
            targMax: Self.targetLimits,
            elist: ListFilter.elist, bot: "B", icon: settings.icon,
            maxBans: RoomModeration.maxBans, monitor: Monitors.maxTargets, safeList: true,
            safeRate: settings.limits.messagesPerSecond == nil,
            requiresAccount: settings.requireLogin == .always && settings.password == nil,
            chatHistory: settings.limits.historyLimit, fileHost: takesUploads ? settings.media?.uploadURL : nil)
    }

    // MARK: - Upwards

    /// The client's registration goes on, if everything is there for it.
    func goOnRegistering(_ session: IRCSession) {
        if session.isReadyToRegister { dispatch.register(self, session) }
    }

    /// What a client waited for is there: its answers go on, and behind them what it sent.
    package func goOn(_ session: IRCSession) {
        longAnswers.pull(session)
        dispatch.processInput(self, session)
    }

    // MARK: - Actions

    func emit(_ action: BridgeAction) { actions.append(action) }

    /// Asks the store something about all that was changed until now.
    func ask(_ question: BridgeAction) { actions.ask(question) }

    /// Asks the store; the answer goes to the asker.
    func ask(as asker: StoreQuestions.Asker, _ question: (StoreReadID) -> BridgeAction) -> StoreReadID {
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

    /// Removes a room of the template.
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

    // MARK: - What there is

    /// Whether people can be somebody here, now or later.
    var hasAccounts: Bool { !accounts.isEmpty || keepsAccounts || logins.acceptsTokens }

    /// Whether accounts can be made at all.
    var keepsAccounts: Bool { settings.registration != .nobody && context.isDurable }

    /// Whether people can upload files at all.
    var takesUploads: Bool { settings.media != nil && hasAccounts }
}

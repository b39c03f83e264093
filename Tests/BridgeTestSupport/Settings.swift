import Accounts
import IRCProtocol
import IRCServer
import Rooms
import Upstream

// Settings with what a test says of them, in one expression.

extension LimitSettings {
    package init(
        maxClients: Int? = nil, maxClientsPerAddress: Int? = nil, acceptsPerSecondPerAddress: Double? = 5,
        messagesPerSecond: Double? = 2, messagesBurst: Double? = nil, multilineMaxBytes: Int? = nil,
        multilineMaxLines: Int? = nil, upstreamMessagesPerSecond: Double? = 5, upstreamMessagesBurst: Double? = nil,
        membersPerRoom: Int? = nil, templateRooms: Int? = nil, backlog: Int? = nil, historyLimit: Int? = nil
    ) {
        self.init()
        self.maxClients = maxClients ?? self.maxClients
        self.maxClientsPerAddress = maxClientsPerAddress ?? self.maxClientsPerAddress
        self.acceptsPerSecondPerAddress = acceptsPerSecondPerAddress
        self.messagesPerSecond = messagesPerSecond
        self.messagesBurst = messagesBurst ?? self.messagesBurst
        self.multilineMaxBytes = multilineMaxBytes ?? self.multilineMaxBytes
        self.multilineMaxLines = multilineMaxLines ?? self.multilineMaxLines
        self.upstreamMessagesPerSecond = upstreamMessagesPerSecond
        self.upstreamMessagesBurst = upstreamMessagesBurst ?? self.upstreamMessagesBurst
        self.membersPerRoom = membersPerRoom ?? self.membersPerRoom
        self.templateRooms = templateRooms ?? self.templateRooms
        self.backlog = backlog ?? self.backlog
        self.historyLimit = historyLimit ?? self.historyLimit
    }
}

extension BridgeSettings {
    package init(
        serverName: String, version: String = "0", motd: [String] = [], instanceID: String,
        password: ServerPassword? = nil, accounts: [AccountSettings] = [], requireLogin: LoginRequirement = .never,
        registration: RegistrationPolicy = .nobody, passwordIterations: Int? = nil,
        saslMechanisms: [SASLMechanism] = SASLMechanism.allCases, limits: LimitSettings = LimitSettings(),
        rooms: [RoomSettings], backends: [BackendSettings] = [], notesChatText: Bool = false,
        template: RoomTemplate? = nil, icon: String? = nil
    ) {
        self.init(serverName: serverName, instanceID: instanceID, rooms: rooms)
        self.version = version
        self.motd = motd
        self.password = password
        self.accounts = accounts
        self.requireLogin = requireLogin
        self.registration = registration
        self.passwordIterations = passwordIterations ?? self.passwordIterations
        self.saslMechanisms = saslMechanisms
        self.limits = limits
        self.backends = backends
        self.notesChatText = notesChatText
        self.template = template
        self.icon = icon
    }
}

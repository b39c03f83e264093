import Accounts
import BridgeTypes
import IRCProtocol
import IRCServer
import Rooms
import Upstream

// Settings with what a test says of them, in one expression.

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

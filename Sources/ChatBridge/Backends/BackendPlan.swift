import Configuration
import Dialects
import HTTPProtocol
import Upstream

/// A backend with an account or calls: the core's settings, the HTTP settings, and the account's credentials.
struct BackendPlan: Sendable {
    var settings: BackendSettings
    var place: BackendPlace
    var source: AccountSecrets.Source

    /// Whether there are calls, a login or files behind the rooms' credentials.
    var isAsked: Bool {
        settings.login != nil || settings.dialect.calls != nil || settings.dialect.traits.guardsFiles
    }

    /// All backends of rooms. Those with an unknown dialect are left out, which the configuration's own check rules
    /// out.
    static func plans(_ configuration: Configuration, environmentProxies: HTTPProxyRules) -> [BackendPlan] {
        let shared: [BackendPlan] = configuration.backendsInUse.compactMap { backend in
            guard let dialect = try? configuration.dialect(of: backend.room) else { return nil }
            var room = backend.room
            if room.auth.type == .none {
                room.auth = authOfAll(configuration.rooms.filter { $0.backend == backend.name }) ?? room.auth
            }
            var (user, password) = (room.auth.user, room.auth.password)
            if !backend.user.isEmpty { (user, password) = (backend.user, backend.password) }
            return BackendPlan(
                name: backend.name, room, dialect: dialect, user: user, password: password,
                environmentProxies: environmentProxies)
        }
        return shared + configuration.accounts.flatMap { own($0, configuration, environmentProxies) }
    }

    /// The token that all rooms of a backend show, which is that of its account where the backend's own table has none; nil: they
    /// show different ones, or none.
    private static func authOfAll(_ rooms: [RoomConfiguration]) -> AuthConfiguration? {
        guard let auth = rooms.first?.auth, rooms.allSatisfy({ $0.auth == auth }) else { return nil }
        return auth.type == .login || auth.type == .clientCertificate ? nil : auth
    }

    /// The backends of an account's own logins.
    private static func own(
        _ account: AccountConfiguration, _ configuration: Configuration, _ environmentProxies: HTTPProxyRules
    ) -> [BackendPlan] {
        configuration.ownLogins(of: account).compactMap { login, room in
            guard let dialect = try? configuration.dialect(of: room), hasCalls(login, dialect) else { return nil }
            var plan = BackendPlan(
                name: login.backendName(account: account.name), room, dialect: dialect, user: login.auth.user,
                password: login.auth.password, environmentProxies: environmentProxies)
            plan.settings.isOnDemand = true
            return plan
        }
    }

    /// The servers that a described dialect logs in at, where it names them.
    static func loginServers(of dialect: any Dialect) -> [HTTPURL] {
        CallPlaces.logins(of: dialect).compactMap { try? HTTPURL(parsing: $0.target) }
    }

    static func hasCalls(_ login: OwnLoginConfiguration, _ dialect: any Dialect) -> Bool {
        dialect.calls != nil || login.auth.type == .login
    }

    /// - Parameters:
    ///   - room: has auth, TLS, proxy, headers, user agent and the place of calls.
    ///   - user: the account's user name, from `auth` or the backend's own.
    init(
        name: String, _ room: RoomConfiguration, dialect: any Dialect, user: String?, password: SecretSource?,
        environmentProxies: HTTPProxyRules
    ) {
        let login = LoginSettings(room.auth, user: user, dialect: dialect)
        let shows = room.auth.type != .none && room.auth.type != .clientCertificate && dialect.calls != nil
        let base = room.effectiveHTTPBase
        settings = BackendSettings(
            name: name, dialect: dialect, httpBase: base, user: user, login: login, authenticates: shows)
        place = BackendPlace(
            base: base, loginURLs: room.auth.login.servers + Self.loginServers(of: dialect),
            headers: room.headers.map { ($0.name, $0.value.revealed) },
            userAgent: room.userAgent, tls: room.tls.settings(),
            proxies: room.proxy.rules(environment: environmentProxies))
        // Where the dialect's own clients put the token into the address of the socket, and only there.
        let isInAddress = if case .query = LoginSettings.Placement.usual(for: dialect.traits) { true } else { false }
        source = AccountSecrets.Source(
            auth: room.auth, isLogin: login != nil, user: user ?? "", password: password,
            callsShowBearer: isInAddress && room.auth.type == .query)
    }
}

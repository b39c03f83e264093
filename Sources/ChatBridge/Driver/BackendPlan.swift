import BridgeCore
import Dialects
import HTTPProtocol

/// A backend with an account or calls: what the core is told of it, where it is asked, and what its account is proven with.
struct BackendPlan: Sendable {
    var settings: BackendSettings
    var place: BackendPlace
    var source: AccountSecrets.Source

    /// The backends of a configuration, each once. A room without one is a backend of its own.
    static func plans(
        _ configuration: Configuration, environmentProxies: HTTPProxyRules
    ) throws(HTTPURLError) -> [BackendPlan] {
        var plans: [BackendPlan] = []
        var names: Set<String> = []
        for room in configuration.rooms where names.insert(room.settingsBackend).inserted {
            let backend = configuration.backends.first { $0.name == room.backend }
            let common = backend?.room ?? room
            // Its options' mistakes are the configuration's own check's business.
            guard let dialect = try? configuration.dialect(of: common) else { continue }
            var user = common.auth.user
            var password = common.auth.password
            if let backend, !backend.user.isEmpty { (user, password) = (backend.user, backend.password) }
            plans.append(
                BackendPlan(
                    name: room.settingsBackend, common, dialect: dialect, user: user, password: password,
                    environmentProxies: environmentProxies))
        }
        return plans
    }

    /// - Parameters:
    ///   - room: has auth, TLS, proxy, headers, user agent and the place of calls.
    ///   - user: whose account it is; as in `auth` or the backend's own.
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
            base: base, loginURLs: room.auth.login.servers, headers: room.headers.map { ($0.name, $0.value.revealed) },
            userAgent: room.userAgent, tls: room.tls.settings(),
            proxies: room.proxy.rules(environment: environmentProxies))
        source = AccountSecrets.Source(auth: room.auth, isLogin: login != nil, user: user ?? "", password: password)
    }
}

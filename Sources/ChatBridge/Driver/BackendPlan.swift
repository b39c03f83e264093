import BridgeCore
import Dialects
import HTTPProtocol

/// A backend with an account or calls: what the core is told of it, where it is asked, and what its account is proven with.
struct BackendPlan: Sendable {
    var settings: BackendSettings
    var place: BackendPlace
    var source: AccountSecrets.Source

    /// The backends of a configuration, each once. A room without one is a backend of its own, named after the room.
    static func plans(
        _ configuration: Configuration, environmentProxies: HTTPProxyRules
    ) throws(HTTPURLError) -> [BackendPlan] {
        var plans: [BackendPlan] = []
        for room in configuration.rooms {
            guard let dialect = try? DialectTable.dialect(named: room.dialect), let url = room.url else { continue }
            let socket = try HTTPURL(parsing: url.filled(room: room.upstreamRoom).text)
            let plan = try BackendPlan(
                name: room.name, room, dialect: dialect, base: base(of: socket), user: room.auth.user,
                password: room.auth.password, environmentProxies: environmentProxies)
            if let plan { plans.append(plan) }
        }
        return plans
    }

    /// Nil when there is nothing to ask and nobody logs in.
    ///
    /// - Parameters:
    ///   - room: has auth, TLS, proxy, headers and user agent.
    ///   - base: where calls go; nil: nowhere.
    ///   - user: whose account it is; as in `auth` or the backend's own.
    init?(
        name: String, _ room: RoomConfiguration, dialect: any Dialect, base: HTTPURL?, user: String?,
        password: SecretSource?, environmentProxies: HTTPProxyRules
    ) throws(HTTPURLError) {
        let login = LoginSettings(room.auth, user: user, dialect: dialect)
        guard dialect.calls != nil || login != nil else { return nil }
        let shows = room.auth.type != .none && room.auth.type != .clientCertificate
        settings = BackendSettings(
            name: name, dialect: dialect, httpBase: base, user: user, login: login, authenticates: shows)
        place = BackendPlace(
            base: base, loginURLs: room.auth.login.servers, headers: room.headers.map { ($0.name, $0.value.revealed) },
            userAgent: room.userAgent, tls: room.tls.settings(),
            proxies: room.proxy.rules(environment: environmentProxies))
        source = AccountSecrets.Source(auth: room.auth, isLogin: login != nil, user: user ?? "", password: password)
    }

    /// The HTTP server at the origin of a socket's URL; nil for a socket file.
    static func base(of url: HTTPURL) throws(HTTPURLError) -> HTTPURL? {
        switch url.scheme {
        case "ws", "http": try HTTPURL(parsing: "http://\(authority(url))")
        case "wss", "https": try HTTPURL(parsing: "https://\(authority(url))")
        default: nil
        }
    }

    private static func authority(_ url: HTTPURL) -> String {
        url.isIPv6Literal ? "[\(url.host)]:\(url.port)" : "\(url.host):\(url.port)"
    }
}

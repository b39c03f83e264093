import BridgeTypes
import ChatModel
import Configuration
import Glibc
import Rooms
import Upstream
import WireBytes

/// Reads the credentials of rooms, anew for each attempt.
struct UpstreamSecrets {
    let rooms: RoomsByName
    /// Credentials of accounts' own, by the account's and the room's name.
    private let own: [[String]: AuthConfiguration]
    private let environment: ConfigurationEnvironment

    init(_ configuration: Configuration, environment: ConfigurationEnvironment) {
        rooms = RoomsByName(configuration.rooms)
        var own: [[String]: AuthConfiguration] = [:]
        for account in configuration.accounts {
            for (login, room) in configuration.ownLogins(of: account) { own[[account.name, login.room]] = room.auth }
        }
        self.own = own
        self.environment = environment
    }

    /// An account's own credentials in a room, read now.
    func read(account: String, in room: String) -> Result<UpstreamCredentials, UpstreamCredentialsFailure> {
        guard let auth = own[[account, room]] else {
            // Never the room's own instead.
            return .failure(UpstreamCredentialsFailure("the account has no login of its own here"))
        }
        return read(auth)
    }

    /// The credentials as they are now. A small file is read on the caller's thread.
    func read(_ room: String) -> Result<UpstreamCredentials, UpstreamCredentialsFailure> {
        guard let known = rooms[room] else { return .success(UpstreamCredentials()) }
        return read(known.auth)
    }

    private func read(_ auth: AuthConfiguration) -> Result<UpstreamCredentials, UpstreamCredentialsFailure> {
        do throws(InterpolationError) {
            return .success(try Self.credentials(auth, environment))
        } catch {
            return .failure(UpstreamCredentialsFailure(error.message))
        }
    }

    static func credentials(
        _ auth: AuthConfiguration, _ environment: ConfigurationEnvironment
    ) throws(InterpolationError) -> UpstreamCredentials {
        func secret(_ source: SecretSource?) throws(InterpolationError) -> String {
            guard let source else { throw InterpolationError(message: "the room's auth has no secret") }
            return try source.read(environment).revealed
        }
        func header(_ name: String, _ value: String) -> UpstreamCredentials {
            UpstreamCredentials(headers: [UpstreamCredentials.Item(name: name, value: value)])
        }
        switch auth.type {
        case .none: return UpstreamCredentials()
        case .bearer: return header("Authorization", "Bearer " + (try secret(auth.token)))
        case .basic:
            let pair = (auth.user ?? "") + ":" + (try secret(auth.password))
            return header("Authorization", "Basic " + Base64.encode(Array(pair.utf8)))
        case .query:
            let item = UpstreamCredentials.Item(
                name: auth.param ?? AuthConfiguration.defaultParam, value: try secret(auth.token))
            return UpstreamCredentials(query: [item])
        case .header:
            let format = auth.format ?? AuthConfiguration.tokenPlaceholder
            return header(
                auth.headerName ?? AuthConfiguration.defaultHeaderName,
                format.replacing(AuthConfiguration.tokenPlaceholder, with: try secret(auth.token)))
        case .message: return UpstreamCredentials(socket: .accessToken(try secret(auth.token)))
        // The account has the tokens; a certificate is shown by TLS.
        case .login, .clientCertificate: return UpstreamCredentials()
        }
    }
}

/// Reads the credentials of backend accounts.
struct AccountSecrets: Sendable {
    struct Source: Sendable {
        let auth: AuthConfiguration
        /// Whether the account logs in; else the rooms' credentials are used.
        let isLogin: Bool
        let user: String
        let password: SecretSource?
        /// The token stands in the socket's address, and calls show it as a bearer token.
        let callsShowBearer: Bool
    }

    /// By the backend's name.
    var sources: [String: Source]
    var environment: ConfigurationEnvironment

    /// The secrets as they are now. Blocks on the disk.
    func read(_ backend: String) -> Result<BackendSecrets, UpstreamCredentialsFailure> {
        guard let source = sources[backend] else {
            return .failure(UpstreamCredentialsFailure("it wants a log-in, and no auth is set for its calls"))
        }
        do throws(InterpolationError) {
            guard source.isLogin else {
                let shown = try UpstreamSecrets.credentials(source.auth, environment)
                guard source.callsShowBearer, let token = shown.query.first?.value else {
                    return .success(.fixed(shown))
                }
                let header = UpstreamCredentials.Item(name: "Authorization", value: "Bearer " + token)
                return .success(.fixed(UpstreamCredentials(headers: [header])))
            }
            let password = try source.password?.read(environment).revealed ?? ""
            return .success(.login(user: source.user, password: password))
        } catch {
            return .failure(UpstreamCredentialsFailure(error.message))
        }
    }
}

/// The rooms of a configuration; any other name is one that the template opened.
struct RoomsByName: Sendable {
    private let rooms: [RoomConfiguration]
    /// Not the rooms themselves: a table has space for twice as many values as it holds, and these are large.
    private let indices: [String: Int]

    init(_ rooms: [RoomConfiguration]) {
        self.rooms = rooms
        indices = Dictionary(rooms.indices.map { (rooms[$0].name, $0) }, uniquingKeysWith: { $1 })
    }

    subscript(_ name: String) -> RoomConfiguration? {
        (indices[name] ?? indices[RoomConfiguration.templateName]).map { rooms[$0] }
    }
}

/// The groups of this machine.
enum SystemGroups {
    /// The number of a group by its name. Asks the machine's name service and may wait for it: for the start of a program.
    static func number(of name: String) -> UInt32? {
        getgrnam(name).map { UInt32($0.pointee.gr_gid) }
    }
}

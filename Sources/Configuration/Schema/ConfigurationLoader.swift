import WireBytes

/// What the command line says about the configuration.
package struct ConfigurationRequest: Equatable, Sendable {
    /// `--config`. Nil: look in the usual places.
    package var path: String?
    /// `--listen`, as typed; replaces every listener.
    package var listen: [String]
    package var stateDirectory: String?
    package var logLevel: String?
    /// Whether a configuration without a room is an error; `demo` brings its own.
    package var needsRooms: Bool
    /// Where what outlasts the process is kept when nobody says.
    package var storage: StoragePlace

    package init(
        path: String? = nil, listen: [String] = [], stateDirectory: String? = nil, logLevel: String? = nil,
        needsRooms: Bool = true, storage: StoragePlace = StorageConfiguration().place
    ) {
        self.path = path
        self.listen = listen
        self.stateDirectory = stateDirectory
        self.logLevel = logLevel
        self.needsRooms = needsRooms
        self.storage = storage
    }
}

package struct LoadedConfiguration: Equatable, Sendable {
    package var configuration: Configuration
    /// The file that was read, if any.
    package var path: String?
}

/// From a file, the environment and flags to a checked ``Configuration``, or to everything that is wrong with it.
package enum ConfigurationLoader {
    package static let fileName = "chatbridge.toml"

    /// Loads and checks a configuration.
    ///
    /// Strongest first: flag, `CHATBRIDGE__A__B`, `CHATBRIDGE_UPSTREAM_URL` and its companions, file, default.
    ///
    /// - Throws: every problem at once; a file that is not TOML gives only the first.
    package static func load(
        _ request: ConfigurationRequest, from surroundings: ConfigurationSurroundings
    ) throws(ConfigurationError) -> LoadedConfiguration {
        let (tree, path) = try file(request, surroundings)
        var layers = ConfigurationLayers(file: tree)
        layers.laySidecar(surroundings)
        layers.layEnvironment(surroundings.variables)
        layers.layFlags(request)

        var configuration = Configuration()
        configuration.storage.place = request.storage
        var reader = ConfigurationReader(surroundings: surroundings)
        ConfigurationSchema.root.read(layers.tree, &configuration, &reader)
        var completion = ConfigurationCompletion(configuration: configuration, reader: reader)
        completion.complete(needsRooms: request.needsRooms, path: path)

        let problems = layers.problems + completion.reader.problems
        guard problems.isEmpty else { throw ConfigurationError(problems) }
        return LoadedConfiguration(configuration: completion.configuration, path: path)
    }

    /// Where a file is looked for when none is named: here, systemd's ConfigurationDirectory, /etc.
    static func usualPaths(_ surroundings: ConfigurationSurroundings) -> [String] {
        var paths = [fileName]
        if let directory = surroundings.variables["CONFIGURATION_DIRECTORY"]?.split(separator: ":").first {
            paths.append("\(directory)/\(fileName)")
        }
        paths.append("/etc/chatbridge/\(fileName)")
        return paths
    }

    private static func file(
        _ request: ConfigurationRequest, _ surroundings: ConfigurationSurroundings
    ) throws(ConfigurationError) -> (ConfigurationNode, path: String?) {
        for path in request.path.map({ [$0] }) ?? usualPaths(surroundings) {
            switch surroundings.readFile(path) {
            case .success(let bytes):
                do {
                    return (try TOMLReader.parse(bytes, path: path), path)
                } catch {
                    throw ConfigurationError([error])
                }
            case .failure(.notFound):
                if request.path != nil {
                    throw ConfigurationError([
                        ConfigurationProblem(origin: .flag("--config"), message: "there is no file \"\(path)\"")
                    ])
                }
            case .failure(.unreadable(let reason)):
                throw ConfigurationError([
                    ConfigurationProblem(origin: .path(path), message: "cannot be read: \(reason)")
                ])
            }
        }
        return (ConfigurationNode(.table([])), nil)
    }
}

/// What single keys cannot know: defaults that depend on the machine, rules between keys.
struct ConfigurationCompletion {
    var configuration: Configuration
    var reader: ConfigurationReader

    /// Fills in what is left out and reports what does not go together.
    mutating func complete(needsRooms: Bool, path: String?) {
        completeServer()
        checkBackoff(configuration.roomDefaults.backoff, at: "room_defaults")
        completeBackends()
        completeRooms()
        if needsRooms, configuration.rooms.isEmpty, reader.origins["rooms"] == nil || reader.problems.isEmpty {
            let origin = path.map(ConfigurationOrigin.path) ?? .builtIn
            let looked = ConfigurationLoader.usualPaths(reader.surroundings).joined(separator: ", ")
            reader.report(
                origin,
                path == nil
                    ? "no file found (looked for \(looked)) and CHATBRIDGE_UPSTREAM_URL is not set; "
                        + "name a file with --config, or try \"chatbridge demo\""
                    : "there is no [[rooms]], so nothing to connect to")
        }
        checkAccounts()
        checkListeners()
        checkGateways()
        checkBearer()
        checkHTTP()
        checkMedia()
    }

    func origin(_ path: String) -> ConfigurationOrigin? { reader.origins[path] }

    // MARK: - Server

    private mutating func completeServer() {
        if origin("server.name") == nil {
            let host = reader.surroundings.hostName
            let name = host.contains(".") ? host : "\(host).local"
            if ConfigurationChecks.isServerName(name) { configuration.server.name = name }
        }
        if configuration.server.stateDirectory.isEmpty {
            let variables = reader.surroundings.variables
            // systemd separates several directories with colons.
            if let directory = variables["STATE_DIRECTORY"]?.split(separator: ":").first {
                configuration.server.stateDirectory = String(directory)
            } else if let directory = variables["XDG_STATE_HOME"], directory.hasPrefix("/") {
                configuration.server.stateDirectory = "\(directory)/chatbridge"
            } else {
                configuration.server.stateDirectory = "./state"
            }
        }
        let drain = configuration.server.drain
        if drain > ConfigurationSchema.maxDrain {
            reader.report(
                origin("server.drain") ?? .builtIn,
                "waits longer than \(DurationText.format(ConfigurationSchema.maxDrain)) at shutdown")
        }
    }

    // MARK: - Rooms

    private mutating func completeRooms() {
        var names: [String: ConfigurationOrigin] = [:]
        var channels: [String: String] = [:]
        var upstreamRooms: [[String]: String] = [:]
        for index in configuration.rooms.indices {
            var room = configuration.rooms[index]
            let at = "rooms[\(index)]"
            let whole = origin(at) ?? .builtIn
            let called = room.name.isEmpty ? "this room" : "room \"\(room.name)\""

            if origin("\(at).name") == nil { reader.report(whole, "this room has no name") }
            if !room.name.isEmpty {
                let place = origin("\(at).name") ?? whole
                if let first = names[room.name] {
                    reader.report(place, "\(called) is defined twice (first at \(first))")
                } else {
                    names[room.name] = place
                }
            }
            if room.isTemplate { checkTemplate(&room, at: at) }
            // An empty name was reported; its channel would only be a second complaint.
            if !room.isTemplate, room.channel.isEmpty, !room.name.isEmpty, !isRefused("\(at).channel") {
                room.channel = "#\(room.name)"
            }
            if !room.channel.isEmpty, !room.isTemplate {
                // CASEMAPPING=ascii.
                let folded = ASCII.lowercased(room.channel)
                if let other = channels[folded], other != room.name {
                    reader.report(
                        origin("\(at).channel") ?? whole,
                        "channel \"\(room.channel)\" of \(called) belongs to room \"\(other)\" already")
                } else {
                    channels[folded] = room.name
                }
            }
            if !room.isTemplate, room.upstreamRoom.isEmpty { room.upstreamRoom = room.name }
            room = configuration.described(room) { isWritten("\($0)", at: at) }
            if !room.isTemplate { room.url = room.url?.filled(room: room.upstreamRoom) }
            checkBackend(of: room, at: at, whole: whole, upstreamRooms: &upstreamRooms)
            if room.backend.isEmpty, origin("\(at).url") == nil, room.url == nil {
                reader.report(whole, "\(called) has no url")
            }
            let backend = configuration.backends.first { $0.name == room.backend }?.room
            // What the backend says was checked there, once.
            func isOwn(_ keys: String...) -> Bool {
                backend == nil || keys.contains { origin("\(at).\($0)") != nil }
            }
            if isOwn("auth", "headers") { checkAuth(room, at: at, whole: whole) }
            if isOwn("url", "proxy") { checkProxy(room, at: at, whole: whole) }
            if isOwn("subprotocol", "require_subprotocol") { checkSubprotocol(room, at: at, whole: whole) }
            if isOwn("identity") { checkIdentity(room, at: at, called: called, whole: whole) }
            checkBackoff(room.backoff, at: at)
            if isOwn("url", "tls") { checkTLS(room, at: at, called: called, inherited: backend) }
            checkOptions(room, at: at, inherited: backend)
            configuration.rooms[index] = room
        }
    }

    /// Whether a room's key was written, there or for all rooms.
    func isWritten(_ key: String, at room: String) -> Bool {
        origin("\(room).\(key)") != nil || origin("room_defaults.\(key)") != nil
    }

    func isRefused(_ path: String) -> Bool {
        guard let origin = origin(path) else { return false }
        return reader.problems.contains { $0.origin == origin }
    }

    mutating func checkBackoff(_ backoff: BackoffConfiguration, at path: String) {
        guard let least = backoff.min, let most = backoff.max, least > most else { return }
        // Written here, or inherited from a complaint about the defaults.
        guard let place = origin("\(path).backoff") else { return }
        reader.report(
            place, "backoff.min (\(DurationText.format(least))) is longer than max (\(DurationText.format(most)))")
    }

    // MARK: - Accounts

    private mutating func checkAccounts() {
        var names: [String: ConfigurationOrigin] = [:]
        var certificates: [String: String] = [:]
        let rooms = configuration.rooms.map(\.name)
        // Its rooms have names that nobody can know now.
        let hasTemplate = rooms.contains(RoomConfiguration.templateName)
        for (index, account) in configuration.accounts.enumerated() {
            let at = "accounts[\(index)]"
            let whole = origin(at) ?? .builtIn
            let called = account.name.isEmpty ? "this account" : "account \"\(account.name)\""
            if origin("\(at).name") == nil { reader.report(whole, "this account has no name") }
            if !account.name.isEmpty {
                let place = origin("\(at).name") ?? whole
                let folded = ASCII.lowercased(account.name)
                if let first = names[folded] {
                    reader.report(place, "\(called) is defined twice (first at \(first))")
                } else {
                    names[folded] = place
                }
                if account.name.utf8.count > configuration.identity.nicks.maxLengthBytes {
                    reader.report(place, "\(called) is longer than identity.nicks.max_length, so it is no nick")
                }
            }
            let ways = ["password", "password_file", "certfp", "bearer"]
            if account.password == nil, account.certificates.isEmpty, account.bearer.isEmpty,
                !ways.contains(where: { isRefused("\(at).\($0)") })
            {
                reader.report(
                    whole,
                    "\(called) cannot log in: it needs a password, which \"chatbridge hash-password\" makes, certfp or "
                        + "bearer")
            }
            for certificate in account.certificates {
                guard let other = certificates.updateValue(called, forKey: certificate), other != called else {
                    continue
                }
                reader.report(
                    origin("\(at).certfp") ?? whole, "\(called) has a certificate that is also of \(other)")
            }
            for room in account.rooms
            where room != AccountConfiguration.allRooms && !rooms.contains(room) && !hasTemplate {
                let hint = NearestName.hint(for: room, among: rooms)
                reader.report(
                    origin("\(at).rooms") ?? whole, "\(called) has a room \"\(room)\" that is not in [[rooms]]\(hint)")
            }
        }
        checkOwnLogins()
        if configuration.identity.requireLogin == .always, configuration.accounts.isEmpty,
            configuration.identity.registration == .off, configuration.identity.password == nil,
            configuration.identity.bearer.isEmpty,
            let place = origin("identity.require_login")
        {
            reader.report(
                place, "require_login = \"always\" needs [[accounts]] or a password in [identity]: nobody could log in")
        }
    }

    // MARK: - Listeners

    private mutating func checkListeners() {
        if configuration.listeners.isEmpty {
            reader.report(origin("listeners") ?? .builtIn, "there is no listener, so no way in")
        }
        var seen: [HostPort: ConfigurationOrigin] = [:]
        for (index, listener) in configuration.listeners.enumerated() {
            let bind = listener.bind
            guard let place = origin("listeners[\(index)].bind") else {
                if let whole = origin("listeners[\(index)]") { reader.report(whole, "this listener has no bind") }
                continue
            }
            if isRefused("listeners[\(index)].bind") { continue }
            for key in ["mode", "group"] where !bind.isUnixSocket {
                if let written = origin("listeners[\(index)].\(key)") {
                    reader.report(written, "\(key) is for a socket file: bind = \"irc+unix:///PATH\"")
                }
            }
            if bind.endpoint.port != 0 || bind.isUnixSocket {
                if let first = seen[bind.endpoint] {
                    let what = bind.isUnixSocket ? bind.endpoint.host : bind.endpoint.description
                    reader.report(place, "\(what) is bound twice (first at \(first))")
                } else {
                    seen[bind.endpoint] = place
                }
            }
            checkTLS(listener, at: "listeners[\(index)]")
            checkDoors(listener, at: "listeners[\(index)]")
            guard !bind.isLoopback else { continue }
            switch bind.scheme {
            case .irc, .ws:
                reader.report(
                    place,
                    "plain text beyond loopback must say so: write \"\(bind.scheme.insecure.rawValue)://"
                        + "\(bind.endpoint)\" (or bind 127.0.0.1)")
            case .ircUnix, .wsUnix: break
            case .ircInsecure, .ircs, .wsInsecure, .wss:
                if !isLoginSettled {
                    reader.report(
                        place,
                        "\(bind.endpoint) can be reached from other machines and nobody needs a password: set "
                            + "password or password_file in [identity], or write require_login = \"never\"")
                }
            }
        }
    }

    /// Whether somebody decided who may come in: a password, or the written word that none is needed.
    var isLoginSettled: Bool {
        if configuration.identity.password != nil { return true }
        let hasAccounts =
            !configuration.accounts.isEmpty || configuration.identity.registration != .off
            || !configuration.identity.bearer.isEmpty
        if hasAccounts, configuration.identity.requireLogin != .never { return true }
        if origin("identity.require_login") != nil, configuration.identity.requireLogin == .never { return true }
        // A password that was written and refused has its own complaint.
        return ["password", "password_file", "password_credential"].contains { isRefused("identity.\($0)") }
    }
}

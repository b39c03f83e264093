/// The command line's settings.
package struct ConfigurationRequest: Equatable, Sendable {
    /// `--config`. Nil: look in the usual places.
    package var path: String?
    /// `--listen`, as typed; replaces every listener.
    package var listen: [String]
    package var stateDirectory: String?
    package var logLevel: String?
    /// Whether a configuration without a room is an error; `demo` brings its own.
    package var needsRooms: Bool
    /// Whether the files of secrets are read; a look at frames needs none.
    package var needsSecrets = true
    /// The default directory of persistent state.
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
    /// Where each written setting stands.
    package var origins = ConfigurationOrigins([:])
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
        _ request: ConfigurationRequest, from environment: ConfigurationEnvironment
    ) throws(ConfigurationError) -> LoadedConfiguration {
        let (tree, path) = try file(request, environment)
        let (configuration, origins, problems) = read(tree, path, request, environment)
        guard problems.isEmpty else { throw ConfigurationError(problems) }
        return LoadedConfiguration(configuration: configuration, path: path, origins: origins)
    }

    /// The readable part of a configuration with errors, by which a running bridge is found.
    package static func readablePart(
        _ request: ConfigurationRequest, from environment: ConfigurationEnvironment
    ) -> (configuration: Configuration, problems: [ConfigurationProblem]) {
        var found: (tree: ConfigurationNode, path: String?) = (ConfigurationNode(.table([])), nil)
        var problems: [ConfigurationProblem] = []
        do throws(ConfigurationError) { found = try file(request, environment) } catch { problems = error.problems }
        let (configuration, _, others) = read(found.tree, found.path, request, environment)
        return (configuration, problems + others)
    }

    private static func read(
        _ tree: ConfigurationNode, _ path: String?, _ request: ConfigurationRequest,
        _ environment: ConfigurationEnvironment
    ) -> (Configuration, ConfigurationOrigins, problems: [ConfigurationProblem]) {
        var layers = ConfigurationLayers(file: tree)
        layers.laySidecar(environment)
        layers.layEnvironment(environment.variables)
        layers.layFlags(request)

        var configuration = Configuration()
        configuration.storage.place = request.storage
        var reader = ConfigurationReader(environment: environment, needsSecrets: request.needsSecrets)
        ConfigurationSchema.root.read(layers.tree, &configuration, &reader)
        var completion = ConfigurationCompletion(configuration: configuration, reader: reader)
        completion.complete(needsRooms: request.needsRooms, path: path)

        return (
            completion.configuration, ConfigurationOrigins(reader.origins), layers.problems + completion.problems
        )
    }

    /// Where a file is looked for when none is named: here, systemd's ConfigurationDirectory, /etc.
    static func usualPaths(_ environment: ConfigurationEnvironment) -> [String] {
        var paths = [fileName]
        if let directory = environment.variables["CONFIGURATION_DIRECTORY"]?.split(separator: ":").first {
            paths.append("\(directory)/\(fileName)")
        }
        paths.append("/etc/chatbridge/\(fileName)")
        return paths
    }

    private static func file(
        _ request: ConfigurationRequest, _ environment: ConfigurationEnvironment
    ) throws(ConfigurationError) -> (ConfigurationNode, path: String?) {
        for path in request.path.map({ [$0] }) ?? usualPaths(environment) {
            switch environment.readFile(path) {
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

// MARK: - Rules between keys

extension ConfigurationCompletion {
    /// Completes the configuration and reports conflicts between keys.
    mutating func complete(needsRooms: Bool, path: String?) {
        completeServer()
        checkDrain()
        checkBackoff(configuration.roomDefaults.backoff, at: "room_defaults")
        completeBackends()
        completeRooms()
        if needsRooms, configuration.rooms.isEmpty, origin("rooms") == nil || problems.isEmpty {
            let origin = path.map(ConfigurationOrigin.path) ?? .builtIn
            let looked = ConfigurationLoader.usualPaths(environment).joined(separator: ", ")
            report(
                origin,
                path == nil
                    ? "no file found (looked for \(looked)) and CHATBRIDGE_UPSTREAM_URL is not set; "
                        + "name a file with --config, or try \"chatbridge demo\""
                    : "there is no [[rooms]], so nothing to connect to")
        }
        checkAccounts()
        findSockets()
        checkListeners()
        checkGateways()
        checkBearer()
        checkHTTP()
        checkMedia()
        checkMirrors()
    }

    private mutating func checkDrain() {
        for (key, time) in [
            ("drain", configuration.server.drain), ("prestop_delay", configuration.server.prestopDelay),
        ] where time > ServerConfiguration.maxDrain {
            report(
                origin("server.\(key)") ?? .builtIn,
                "waits longer than \(DurationText.format(ServerConfiguration.maxDrain)) at shutdown")
        }
    }
}

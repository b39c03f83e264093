import Transport

/// Defaults that depend on the machine, and rules between keys. Each subject has a file beside this one;
/// ``ConfigurationLoader`` calls them in order.
struct ConfigurationCompletion {
    private(set) var configuration: Configuration
    private var reader: ConfigurationReader

    init(configuration: Configuration, reader: ConfigurationReader) {
        self.configuration = configuration
        self.reader = reader
    }

    var environment: ConfigurationEnvironment { reader.environment }
    var problems: [ConfigurationProblem] { reader.problems }

    /// The position at which a setting was written; nil for a default.
    func origin(_ path: String) -> ConfigurationOrigin? { reader.origins[path] }

    mutating func report(_ origin: ConfigurationOrigin, _ message: String) { reader.report(origin, message) }

    /// Reports a problem unless it is there already: rooms share the faults of `[room_defaults]`.
    mutating func reportOnce(_ origin: ConfigurationOrigin, _ message: String) {
        let problem = ConfigurationProblem(origin: origin, message: message)
        if !reader.problems.contains(problem) { report(origin, message) }
    }

    /// Whether a room's key was written, there or for all rooms.
    func isWritten(_ key: String, at room: String) -> Bool {
        origin("\(room).\(key)") != nil || origin("room_defaults.\(key)") != nil
    }

    func isRefused(_ path: String) -> Bool {
        guard let origin = origin(path) else { return false }
        return reader.problems.contains { $0.origin == origin }
    }

    /// Whether one of the keys of `auth`, which stands at `path`, was refused there or in the defaults.
    func isBroken(_ keys: [String], _ path: String) -> Bool {
        keys.contains { isRefused("\(path).\($0)") || isRefused("room_defaults.auth.\($0)") }
    }

    /// The backend of the room, or the one that is itself checked at `path`.
    func backend(of room: RoomConfiguration, at path: String) -> BackendConfiguration? {
        configuration.backends.first { $0.name == room.backend || path == "backends.\($0.name)" }
    }

    // MARK: - Completion

    mutating func completeServer() {
        configuration.server.complete(environment, isNamed: origin("server.name") != nil)
    }

    /// Finds the sockets that listeners name, where the service manager's are known.
    mutating func findSockets() {
        for index in configuration.listeners.indices {
            guard let named = configuration.listeners[index].bind.sockets else { continue }
            configuration.listeners[index].bind.sockets = found(named, at: "listeners[\(index)].bind")
        }
        for index in configuration.http.indices {
            guard let named = configuration.http[index].bind.sockets else { continue }
            configuration.http[index].resolve(found(named, at: "http[\(index)].bind"))
        }
    }

    private mutating func found(_ named: NamedSockets, at path: String) -> NamedSockets {
        guard let all = environment.sockets else { return named }
        let name = named.name
        let place = origin(path) ?? .builtIn
        var named = named
        named.found = all.filter { $0.name == name }
        if named.found.isEmpty {
            let names = Set(all.map(\.name)).sorted().map { "\"\($0)\"" }.joined(separator: ", ")
            report(
                place,
                "the service manager handed over no socket \"\(name)\""
                    + (all.isEmpty ? ", and no other: start the bridge by its socket unit" : ", but \(names)"))
        }
        for socket in named.found {
            guard case .unusable(let reason) = socket.state else { continue }
            report(place, "the socket \"\(name)\" (descriptor \(socket.descriptor)) \(reason)")
        }
        return named
    }

    /// Stores a completed room.
    mutating func store(_ room: RoomConfiguration, at index: Int) { configuration.rooms[index] = room }

    mutating func store(_ room: RoomConfiguration, atBackend index: Int) {
        configuration.backends[index].complete(room)
    }
}

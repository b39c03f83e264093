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

    /// Stores a completed room.
    mutating func store(_ room: RoomConfiguration, at index: Int) { configuration.rooms[index] = room }

    mutating func store(_ room: RoomConfiguration, atBackend index: Int) { configuration.backends[index].room = room }
}

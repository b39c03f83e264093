/// What single keys cannot know: defaults that depend on the machine, rules between keys. Each subject's are in a file beside
/// this one; ``ConfigurationLoader`` has their order.
struct ConfigurationCompletion {
    private(set) var configuration: Configuration
    private var reader: ConfigurationReader

    init(configuration: Configuration, reader: ConfigurationReader) {
        self.configuration = configuration
        self.reader = reader
    }

    var environment: ConfigurationEnvironment { reader.environment }
    var problems: [ConfigurationProblem] { reader.problems }

    /// Where a setting was written; nil when nobody wrote it.
    func origin(_ path: String) -> ConfigurationOrigin? { reader.origins[path] }

    mutating func report(_ origin: ConfigurationOrigin, _ message: String) { reader.report(origin, message) }

    /// Rooms share what `[room_defaults]` says, and its faults.
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

    /// The backend whose room this is, or that is checked itself at `path`.
    func backend(of room: RoomConfiguration, at path: String) -> BackendConfiguration? {
        configuration.backends.first { $0.name == room.backend || path == "backends.\($0.name)" }
    }

    // MARK: - What is filled in

    mutating func completeServer() {
        configuration.completeServer(environment, isNamed: origin("server.name") != nil)
    }

    /// Puts what was read of a room, and completed, in its place.
    mutating func settle(_ room: RoomConfiguration, at index: Int) { configuration.settle(room, at: index) }

    mutating func settle(backend index: Int, _ room: RoomConfiguration) { configuration.settle(backend: index, room) }
}

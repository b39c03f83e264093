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

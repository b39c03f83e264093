import Dialects

// Relations between rooms, backends and accounts.

extension Configuration {
    /// Every backend that a room has, each once: those that have tables, and rooms that are backends by themselves.
    package var backendsInUse: [BackendConfiguration] {
        var used: [BackendConfiguration] = []
        for room in rooms where !used.contains(where: { $0.name == room.backendName }) {
            used.append(
                backends.first { $0.name == room.backend } ?? BackendConfiguration(name: room.backendName, room: room))
        }
        return used
    }

    /// A room as an account sees it: the same place, another login.
    package func room(_ room: RoomConfiguration, with login: OwnLoginConfiguration) -> RoomConfiguration {
        var own = room
        own.auth = login.auth
        // The described dialect's placement of the token.
        return described(own) { _ in true }
    }

    /// The own logins of an account, each with its room.
    package func ownLogins(of account: AccountConfiguration) -> [(
        login: OwnLoginConfiguration, room: RoomConfiguration
    )] {
        account.upstream.compactMap { login in
            rooms.first { $0.name == login.room && !$0.isTemplate }.map { (login, room($0, with: login)) }
        }
    }
}

extension RoomConfiguration {
    /// Whether one account of the backend speaks for all who have no log-in of their own.
    package func hasOneVoice(_ dialect: any Dialect) -> Bool {
        identity == .single || identity == .auto && dialect.traits.identity == .single
    }

    /// The backend's settings, over which the room's own keys are laid; nil: no backend.
    @Sendable static func below(
        _ node: ConfigurationNode, _ configuration: Configuration, _ reader: ConfigurationReader
    ) -> RoomConfiguration? {
        guard let name = reader.stringIfAny(node["backend"]),
            let backend = configuration.backends.first(where: { $0.name == name })
        else { return nil }
        var room = backend.room
        room.httpBase = backend.httpBase
        return room
    }
}

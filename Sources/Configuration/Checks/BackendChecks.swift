import BridgeTypes

extension ConfigurationCompletion {
    mutating func completeBackends() {
        for index in configuration.backends.indices {
            let at = "backends.\(configuration.backends[index].name)"
            let whole = origin(at) ?? .builtIn
            store(
                configuration.described(configuration.backends[index].room) { isWritten("\($0)", at: at) },
                atBackend: index)
            let backend = configuration.backends[index]
            if origin("\(at).url") == nil, backend.room.url == nil {
                report(whole, "backend \"\(backend.name)\" has no url")
            }
            let passwordKey = AuthConfiguration.passwordKeys.first { origin("\(at).\($0)") != nil }
            if let passwordKey, backend.user.isEmpty, !isRefused("\(at).user"), backend.password != nil {
                report(origin("\(at).\(passwordKey)") ?? whole, "\(passwordKey) needs a user beside it")
            }
            checkAuth(backend.room, at: at, whole: whole)
            checkProxy(backend.room, at: at, whole: whole)
            checkSubprotocol(backend.room, at: at, whole: whole)
            checkIdentity(backend.room, at: at, called: "backend \"\(backend.name)\"", whole: whole)
            checkBackoff(backend.room.backoff, at: at)
            checkTLS(backend.room, at: at, called: "backend \"\(backend.name)\"", inherited: nil)
            checkOptions(backend.room, at: at, inherited: nil)
        }
    }

    /// Rules between a room and its backend, and between the rooms of one backend.
    ///
    /// - Parameter upstreamRooms: the rooms that use an upstream room already, by backend and room.
    mutating func checkBackend(
        of room: RoomConfiguration, at path: String, whole: ConfigurationOrigin, upstreamRooms: inout [[String]: String]
    ) {
        let names = configuration.backends.map(\.name)
        if room.backend.isEmpty {
            if names.contains(room.name) {
                report(
                    origin("\(path).name") ?? whole,
                    "room \"\(room.name)\" is a backend of its own, and there is a [backends.\(room.name)]; "
                        + "write backend = \"\(room.name)\", or give one of them another name")
            }
        } else if let backend = configuration.backends.first(where: { $0.name == room.backend }) {
            if room.dialect != backend.room.dialect, let place = origin("\(path).dialect") {
                report(
                    place,
                    "backend \"\(backend.name)\" speaks \"\(backend.room.dialect)\", and its rooms cannot differ")
            }
        } else {
            let hint = NearestName.hint(for: room.backend, among: names)
            report(origin("\(path).backend") ?? whole, "there is no [backends.\(room.backend)]\(hint)")
        }
        guard !room.isTemplate, !room.backend.isEmpty, !room.upstreamRoom.isEmpty else { return }
        let key = [room.backend, room.upstreamRoom]
        if let other = upstreamRooms[key] {
            report(
                origin("\(path).upstream_room") ?? whole,
                "upstream room \"\(room.upstreamRoom)\" of backend \"\(room.backend)\" is room \"\(other)\" already")
        } else {
            upstreamRooms[key] = room.name
        }
    }
}

import Dialects
import HTTPProtocol
import IRCProtocol

extension ConfigurationCompletion {
    mutating func completeRooms() {
        var names: [String: ConfigurationOrigin] = [:]
        var channels: [String: String] = [:]
        var upstreamRooms: [[String]: String] = [:]
        for index in configuration.rooms.indices {
            var room = configuration.rooms[index]
            let at = "rooms[\(index)]"
            let whole = origin(at) ?? .builtIn
            let called = room.name.isEmpty ? "this room" : "room \"\(room.name)\""

            if origin("\(at).name") == nil { report(whole, "this room has no name") }
            if !room.name.isEmpty {
                let place = origin("\(at).name") ?? whole
                if let first = names[room.name] {
                    report(place, "\(called) is defined twice (first at \(first))")
                } else {
                    names[room.name] = place
                }
            }
            if room.isTemplate { checkTemplate(room, at: at) }
            // An empty name was reported; its channel would only be a second complaint.
            room.complete(takesName: !room.name.isEmpty && !isRefused("\(at).channel"))
            if !room.channel.isEmpty, !room.isTemplate {
                let folded = configuration.server.casemapping.fold(room.channel)
                if let other = channels[folded], other != room.name {
                    report(
                        origin("\(at).channel") ?? whole,
                        "channel \"\(room.channel)\" of \(called) belongs to room \"\(other)\" already")
                } else {
                    channels[folded] = room.name
                }
            }
            room = configuration.described(room) { isWritten("\($0)", at: at) }
            if !room.isTemplate { room.url = room.url?.filled(room: room.upstreamRoom) }
            checkBackend(of: room, at: at, whole: whole, upstreamRooms: &upstreamRooms)
            if room.backend.isEmpty, origin("\(at).url") == nil, room.url == nil {
                report(whole, "\(called) has no url")
            }
            let backend = configuration.backends.first { $0.name == room.backend }?.room
            // The backend's own settings were checked there, once.
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
            store(room, at: index)
        }
    }

    /// Keys that the template cannot have, since it stands for many rooms.
    mutating func checkTemplate(_ room: RoomConfiguration, at path: String) {
        for key in ["channel", "upstream_room", "topic"] {
            guard let place = origin("\(path).\(key)"), !isEmptyText(key, of: room) else { continue }
            report(place, "the room \"*\" stands for many and has no \(key)")
        }
        if room.connect == .always, let place = origin("\(path).connect") {
            report(place, "rooms that \"*\" opens are connected while somebody is in them: connect = \"while-joined\"")
        }
    }

    private func isEmptyText(_ key: String, of room: RoomConfiguration) -> Bool {
        switch key {
        case "channel": room.channel.isEmpty
        case "topic": room.topic.isEmpty
        default: room.upstreamRoom.isEmpty
        }
    }

    /// Refuses puppets where the backend takes the sender from the login: each would be the one account, and echoes
    /// would look like other people's messages.
    mutating func checkIdentity(
        _ room: RoomConfiguration, at path: String, called: String, whole: ConfigurationOrigin
    ) {
        // A dialect with wrong options has its own complaint.
        guard room.identity == .puppet, let dialect = try? configuration.dialect(of: room), !dialect.traits.namesSenders
        else { return }
        report(
            origin("\(path).identity") ?? origin("room_defaults.identity") ?? whole,
            "\(called) cannot have identity = \"puppet\": the dialect \(room.dialect) speaks as one account, whoever "
                + "writes; write identity = \"single\", which puts the nick before the text, and give accounts that are to "
                + "speak as themselves a login of their own ([accounts.upstream])")
    }

    mutating func checkSubprotocol(_ room: RoomConfiguration, at path: String, whole: ConfigurationOrigin) {
        guard room.requiresSubprotocol, room.subprotocols.isEmpty else { return }
        report(origin("\(path).require_subprotocol") ?? whole, "require_subprotocol needs a subprotocol to offer")
    }

    mutating func checkBackoff(_ backoff: BackoffConfiguration, at path: String) {
        guard let least = backoff.min, let most = backoff.max, least > most else { return }
        // Written here, or inherited from a complaint about the defaults.
        guard let place = origin("\(path).backoff") else { return }
        report(place, "backoff.min (\(DurationText.format(least))) is longer than max (\(DurationText.format(most)))")
    }

    /// A proxy of the environment that could not be used is found now, where a room would take it.
    mutating func checkProxy(_ room: RoomConfiguration, at path: String, whole: ConfigurationOrigin) {
        guard room.proxy == .environment, let text = room.url?.text, let url = try? HTTPURL(parsing: text) else {
            return
        }
        let rules = HTTPProxyRules(environment: environment.variables)
        if case .unusable(let sentence) = rules.route(to: url) {
            report(origin("\(path).url") ?? whole, "\(sentence) (proxy = \"off\" does without)")
        }
    }
}

import Dialects
import HTTPProtocol

/// What several rooms of one backend have in common: one login, one host name.
package struct BackendConfiguration: Equatable, Sendable {
    /// `[a-z0-9_-]+`; the host in its people's sources.
    package var name = ""
    /// What its rooms have where they do not say otherwise. Name, channel, topic and ``RoomConfiguration/upstreamRoom`` are
    /// empty.
    package var room = RoomConfiguration()
    /// Whose account it is, for dialects that log in by themselves; empty: nobody's.
    package var user = ""
    package var password: SecretSource?

    /// Where HTTP calls go; nil for a socket file without `http_base`.
    package var httpBase: HTTPURL? { room.effectiveHTTPBase }
}

extension RoomConfiguration {
    /// ``httpBase``, or the origin of the URL.
    package var effectiveHTTPBase: HTTPURL? {
        if let httpBase { return httpBase }
        guard let url, !url.isUnixSocket else { return nil }
        let scheme = url.isSecure ? "https" : "http"
        let port = url.endpoint.port == (url.isSecure ? 443 : 80) ? "" : ":\(url.endpoint.port)"
        let host = url.endpoint.isIPv6Literal ? "[\(url.endpoint.host)]" : url.endpoint.host
        return try? HTTPURL(parsing: "\(scheme)://\(host)\(port)")
    }

    /// What a room's own keys are laid over when it names a backend.
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

    /// The name of the backend, also where the room is one by itself. A template that is one has no name to give, and takes
    /// its dialect's.
    package var backendName: String { !backend.isEmpty ? backend : isTemplate ? dialect : name }
}

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
}

extension ConfigurationForm where Value == HTTPURL? {
    /// A place without query; an empty text: none.
    static var httpBase: Self {
        text("a URL such as \"https://chat.example.com\"") { (text: String) throws(AddressError) -> HTTPURL?? in
            if text.isEmpty { return .some(nil) }
            do throws(HTTPURLError) {
                let url = try HTTPURL(parsing: text)
                guard url.scheme == "http" || url.scheme == "https" else {
                    throw HTTPURLError.unknownScheme(url.scheme + "://")
                }
                guard !text.contains("?"), !text.contains("{") else {
                    throw HTTPURLError.invalidCharacter
                }
                return .some(url)
            } catch {
                throw AddressError(
                    "http_base is an http:// or https:// URL without query and placeholders: \(error.sentence)")
            }
        } print: {
            $0?.description ?? ""
        }
    }
}

// MARK: - What goes together

extension ConfigurationCompletion {
    mutating func completeBackends() {
        for index in configuration.backends.indices {
            let at = "backends.\(configuration.backends[index].name)"
            let whole = origin(at) ?? .builtIn
            configuration.backends[index].room = configuration.described(configuration.backends[index].room) {
                isWritten("\($0)", at: at)
            }
            let backend = configuration.backends[index]
            if origin("\(at).url") == nil, backend.room.url == nil {
                reader.report(whole, "backend \"\(backend.name)\" has no url")
            }
            let passwordKey = AuthConfiguration.passwordKeys.first { origin("\(at).\($0)") != nil }
            if let passwordKey, backend.user.isEmpty, !isRefused("\(at).user"), backend.password != nil {
                reader.report(origin("\(at).\(passwordKey)") ?? whole, "\(passwordKey) needs a user beside it")
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

    /// What a room says beside its backend, and how the rooms of a backend go together.
    ///
    /// - Parameter upstreamRooms: who has a room upstream already, by backend and room.
    mutating func checkBackend(
        of room: RoomConfiguration, at path: String, whole: ConfigurationOrigin, upstreamRooms: inout [[String]: String]
    ) {
        let names = configuration.backends.map(\.name)
        if room.backend.isEmpty {
            if names.contains(room.name) {
                reader.report(
                    origin("\(path).name") ?? whole,
                    "room \"\(room.name)\" is a backend of its own, and there is a [backends.\(room.name)]; "
                        + "write backend = \"\(room.name)\", or give one of them another name")
            }
        } else if let backend = configuration.backends.first(where: { $0.name == room.backend }) {
            if room.dialect != backend.room.dialect, let place = origin("\(path).dialect") {
                reader.report(
                    place,
                    "backend \"\(backend.name)\" speaks \"\(backend.room.dialect)\", and its rooms cannot differ")
            }
        } else {
            let hint = NearestName.hint(for: room.backend, among: names)
            reader.report(
                origin("\(path).backend") ?? whole, "there is no [backends.\(room.backend)]\(hint)")
        }
        guard !room.isTemplate, !room.backend.isEmpty, !room.upstreamRoom.isEmpty else { return }
        let key = [room.backend, room.upstreamRoom]
        if let other = upstreamRooms[key] {
            reader.report(
                origin("\(path).upstream_room") ?? whole,
                "upstream room \"\(room.upstreamRoom)\" of backend \"\(room.backend)\" is room \"\(other)\" already")
        } else {
            upstreamRooms[key] = room.name
        }
    }

    /// What the template cannot have: it is many rooms.
    mutating func checkTemplate(_ room: inout RoomConfiguration, at path: String) {
        for key in ["channel", "upstream_room", "topic"] {
            guard let place = origin("\(path).\(key)"), !isEmptyText(key, of: room) else { continue }
            reader.report(place, "the room \"*\" stands for many and has no \(key)")
        }
        if room.connect == .always, let place = origin("\(path).connect") {
            reader.report(
                place, "rooms that \"*\" opens are connected while somebody is in them: connect = \"while-joined\"")
        }
        room.connect = .whileJoined
    }

    private func isEmptyText(_ key: String, of room: RoomConfiguration) -> Bool {
        switch key {
        case "channel": room.channel.isEmpty
        case "topic": room.topic.isEmpty
        default: room.upstreamRoom.isEmpty
        }
    }

    /// Where the backend takes the sender from the login, nobody can be a person of their own: each would be the one account,
    /// and what comes back would look like somebody else's.
    mutating func checkIdentity(
        _ room: RoomConfiguration, at path: String, called: String, whole: ConfigurationOrigin
    ) {
        // A dialect whose options are wrong has its own complaint.
        guard room.identity == .puppet, let dialect = try? configuration.dialect(of: room), !dialect.traits.namesSenders
        else { return }
        reader.report(
            origin("\(path).identity") ?? origin("room_defaults.identity") ?? whole,
            "\(called) cannot have identity = \"puppet\": the dialect \(room.dialect) speaks as one account, whoever "
                + "writes; write identity = \"single\", which puts the nick before the text, and give accounts that are to "
                + "speak as themselves a login of their own ([accounts.upstream])")
    }

    mutating func checkSubprotocol(_ room: RoomConfiguration, at path: String, whole: ConfigurationOrigin) {
        guard room.requiresSubprotocol, room.subprotocols.isEmpty else { return }
        reader.report(
            origin("\(path).require_subprotocol") ?? whole, "require_subprotocol needs a subprotocol to offer")
    }
}

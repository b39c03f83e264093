import BridgeTypes
import HTTPProtocol
import IRCProtocol
import WireBytes

extension ConfigurationCompletion {
    /// Rules between the keys of `[[mirrors]]`, the rooms and `[[http]]`.
    mutating func checkMirrors() {
        var names: [String: String] = [:]
        var paths: [String: String] = [:]
        for (index, mirror) in configuration.mirrors.enumerated() {
            let at = "mirrors[\(index)]"
            guard let place = origin(at) ?? origin("\(at).name") else { continue }
            if mirror.name.isEmpty, !isRefused("\(at).name") { report(place, "this mirror has no name") }
            if let first = names.updateValue("\(place)", forKey: mirror.name), !mirror.name.isEmpty {
                report(origin("\(at).name") ?? place, "there is a mirror \"\(mirror.name)\" already (\(first))")
            }
            let roomsKey = mirror.kind == .irc ? "map" : "rooms"
            if mirror.roomNames.isEmpty, !isRefused("\(at).\(roomsKey)") {
                report(place, "the mirror \"\(mirror.name)\" has no rooms")
            }
            for room in mirror.roomNames { checkRoom(room, origin("\(at).\(roomsKey)") ?? place) }
            guard let kind = mirror.kind else {
                if !isRefused("\(at).type") { report(place, "the mirror \"\(mirror.name)\" has no type") }
                continue
            }
            checkKeys(mirror, kind, at, place)
            checkNick(mirror, at)
            switch kind {
            case .room: checkRoomMirror(mirror, at, place)
            case .irc: checkNetwork(mirror, at, place)
            case .slack, .mattermost, .rocketchat, .discord, .teams, .json: checkTool(mirror, at, place, &paths)
            }
        }
    }

    /// Refuses what has no meaning for the type.
    private mutating func checkKeys(
        _ mirror: MirrorConfiguration, _ kind: MirrorConfiguration.Kind, _ at: String, _ place: ConfigurationOrigin
    ) {
        for row in MirrorConfiguration.uses where !row.kinds.contains(kind) && row.isSet(mirror) {
            let written = ["", "_file", "_credential"].compactMap { origin("\(at).\(row.key)\($0)") }.first
            report(written ?? place, "\(row.key) means nothing for a mirror of type \"\(kind)\": \(row.instead)")
        }
    }

    private mutating func checkNick(_ mirror: MirrorConfiguration, _ at: String) {
        guard !mirror.nick.isEmpty, let place = origin("\(at).nick") else { return }
        if mirror.kind == .irc {
            if !IRCNames.isValidNickname(mirror.nick, utf8: false) {
                report(place, "\"\(mirror.nick)\" cannot be the mirror's nick on an IRC network")
            }
        } else if !mirror.nick.contains("{user}") || !mirror.nick.contains("/") || mirror.nick.contains(" ") {
            report(place, "a nick is written as \"{user}/team\": with {user}, with a slash, without spaces")
        }
    }

    private mutating func checkNetwork(_ mirror: MirrorConfiguration, _ at: String, _ place: ConfigurationOrigin) {
        let names = mirror.channels.map { ASCII.lowercased($0.channel) }
        if Set(names).count < names.count {
            report(origin("\(at).map") ?? place, "two rooms cannot have one channel")
        }
        for key in mirror.channelKeys where !mirror.channels.contains(where: { $0.room == key.room }) {
            report(
                origin("\(at).channel_keys.\(key.room)") ?? place, "the map of this mirror has no room \"\(key.room)\"")
        }
        checkLogin(mirror, at, place)
        guard let source = mirror.url else {
            if !MirrorConfiguration.urlKeys.contains(where: { isRefused("\(at).\($0)") }) {
                report(place, "the mirror \"\(mirror.name)\" has no url, such as \"ircs://irc.example.org\"")
            }
            return
        }
        let urlPlace = MirrorConfiguration.urlKeys.compactMap { origin("\(at).\($0)") }.first ?? place
        guard let secret = try? source.read(environment) else { return }
        guard let address = IRCNetworkAddress(secret.revealed) else {
            return report(urlPlace, "this url is none of an IRC network, such as \"ircs://irc.example.org\"")
        }
        if address.isSecure {
            checkTLS(mirror.tls, at: "\(at).tls")
        } else if !address.place.isLoopback, !address.isInsecureByName {
            report(urlPlace, "irc:// beyond loopback lets others read along: write ircs://, or irc+insecure://")
        } else if mirror.tls != UpstreamTLSConfiguration() {
            report(
                origin("\(at).tls") ?? place, "the mirror \"\(mirror.name)\" has TLS settings, but its url has no TLS")
        }
    }

    private mutating func checkLogin(_ mirror: MirrorConfiguration, _ at: String, _ place: ConfigurationOrigin) {
        let login = mirror.sasl
        guard !login.isEmpty, let saslPlace = origin("\(at).sasl") else { return }
        switch login.mechanism {
        case .external:
            if mirror.tls.clientCertificate.isEmpty {
                report(saslPlace, "mechanism \"external\" needs tls.client_cert and tls.client_key")
            }
        case .plain, .scramSHA256:
            let isRefused = ["password", "password_file", "password_credential", "user"].contains {
                self.isRefused("\(at).sasl.\($0)")
            }
            if login.user.isEmpty || login.password == nil, !isRefused {
                report(saslPlace, "sasl needs user and password_file")
            }
        }
    }

    private mutating func checkRoom(_ name: String, _ place: ConfigurationOrigin) {
        let names = configuration.rooms.filter { !$0.isTemplate }.map(\.name)
        guard !names.contains(name) else { return }
        report(place, "there is no room \"\(name)\"\(NearestName.hint(for: name, among: names))")
    }

    private mutating func checkRoomMirror(_ mirror: MirrorConfiguration, _ at: String, _ place: ConfigurationOrigin) {
        if mirror.to.isEmpty {
            if !isRefused("\(at).to") { report(place, "a mirror of type \"room\" needs to = \"ROOM\"") }
        } else {
            checkRoom(mirror.to, origin("\(at).to") ?? place)
            if mirror.rooms.contains(mirror.to) {
                report(origin("\(at).to") ?? place, "the room \"\(mirror.to)\" cannot be mirrored to itself")
            }
        }
        if mirror.rooms.count > 1 {
            report(
                origin("\(at).rooms") ?? place, "a mirror of type \"room\" has one room here; write one mirror for each"
            )
        }
    }

    private mutating func checkTool(
        _ mirror: MirrorConfiguration, _ at: String, _ place: ConfigurationOrigin, _ paths: inout [String: String]
    ) {
        let secretPlace = MirrorConfiguration.secretKeys.compactMap { origin("\(at).\($0)") }.first
        let urlPlace = MirrorConfiguration.urlKeys.compactMap { origin("\(at).\($0)") }.first
        let isRefused = (MirrorConfiguration.urlKeys + ["path"]).contains { self.isRefused("\(at).\($0)") }
        if mirror.url == nil, mirror.path.isEmpty, !isRefused {
            report(place, "the mirror \"\(mirror.name)\" has neither a url (out) nor a path (in)")
        }
        if let source = mirror.url, let secret = try? source.read(environment) {
            // A complaint could quote it.
            switch MirrorConfiguration.url(secret.revealed) {
            case .some(let url)
            where url.scheme == "http" && !secret.revealed.hasPrefix("http+")
                && !HostPort(host: url.host, port: Int(url.port)).isLoopback:
                report(
                    urlPlace ?? place,
                    "http:// beyond loopback lets others read the url and post: write https://, or http+insecure://")
            case .some(let url) where url.scheme == "http" || url.scheme == "https": break
            default: report(urlPlace ?? place, "this url is none of a webhook: it begins with https://")
            }
        }
        guard !mirror.path.isEmpty else { return }
        let pathPlace = origin("\(at).path") ?? place
        if let first = paths.updateValue("\(pathPlace)", forKey: mirror.path) {
            report(pathPlace, "\"\(mirror.path)\" is another mirror's path (\(first))")
        }
        if mirror.secret == nil, !MirrorConfiguration.secretKeys.contains(where: { self.isRefused("\(at).\($0)") }) {
            report(pathPlace, "anybody could post here: write secret_file, by which the tool proves its requests")
        }
        if case .text(let secret)? = mirror.secret, secret.revealed.utf8.count < HTTPConfiguration.shortestToken {
            report(
                secretPlace ?? place,
                "a secret of fewer than \(HTTPConfiguration.shortestToken) characters can be guessed")
        }
        if !configuration.http.contains(where: { $0.serve.contains(.hooks) }) {
            report(pathPlace, "no [[http]] listener serves hooks: give one serve = [\"hooks\"]")
        }
    }
}

extension Configuration {
    /// The rooms that mirrors follow or speak in.
    package var mirroredRooms: Set<String> { Set(mirrors.flatMap { $0.roomNames + ($0.to.isEmpty ? [] : [$0.to]) }) }
}

import HTTPProtocol

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
            if mirror.rooms.isEmpty, !isRefused("\(at).rooms") {
                report(place, "the mirror \"\(mirror.name)\" has no rooms")
            }
            for room in mirror.rooms { checkRoom(room, origin("\(at).rooms") ?? place) }
            guard let kind = mirror.kind else {
                if !isRefused("\(at).type") { report(place, "the mirror \"\(mirror.name)\" has no type") }
                continue
            }
            if kind == .room { checkRoomMirror(mirror, at, place) } else { checkTool(mirror, at, place, &paths) }
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
        let means = MirrorConfiguration()
        for (key, isWritten) in [
            ("url", mirror.url != nil), ("secret", mirror.secret != nil), ("path", !mirror.path.isEmpty),
            ("username", mirror.username != means.username), ("avatar_url", !mirror.avatarURL.isEmpty),
        ] where isWritten {
            report(origin("\(at).\(key)") ?? place, "\(key) means nothing for a mirror of type \"room\"")
        }
    }

    private mutating func checkTool(
        _ mirror: MirrorConfiguration, _ at: String, _ place: ConfigurationOrigin, _ paths: inout [String: String]
    ) {
        for (key, isWritten) in [("to", !mirror.to.isEmpty), ("direction", mirror.direction != .both)] where isWritten {
            report(
                origin("\(at).\(key)") ?? place,
                "\(key) is for mirrors of type \"room\": what a tool's mirror does is given by url and path")
        }
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
    package var mirroredRooms: Set<String> { Set(mirrors.flatMap { $0.rooms + ($0.to.isEmpty ? [] : [$0.to]) }) }
}

/// Where the settings of a configuration were written.
package struct ConfigurationOrigins: Equatable, Sendable {
    /// By dotted path: `limits.multiline.max_lines`, `rooms[0].url`, `backends.main.url`.
    private var places: [String: ConfigurationOrigin]

    init(_ places: [String: ConfigurationOrigin]) { self.places = places }

    /// The sources of a setting as it counts, strongest first; none: the default.
    ///
    /// A room's setting may stand in its backend or in `[room_defaults]`, the text of a secret in a file, and parts of a
    /// table in several places.
    package func sources(of path: String, in configuration: Configuration) -> [ConfigurationOrigin] {
        let candidates = [path] + Self.fallbacks(path, configuration)
        let parts = candidates.map { candidate in
            places.filter { $0.key.hasPrefix(candidate + ".") || $0.key.hasPrefix(candidate + "[") }.map(\.value)
        }
        let found = parts.flatMap(\.self)
        if !found.isEmpty { return Set(found).sorted { $0.isStronger(than: $1) } }
        for candidate in candidates {
            for suffix in ["", "_file", "_credential"] {
                if let place = places[candidate + suffix] { return [place] }
            }
        }
        return []
    }

    /// `chatbridge.toml:3`, `CHATBRIDGE__LOG__LEVEL`, `--listen` or `default`; several where a table is set in several places.
    package func text(of path: String, in configuration: Configuration) -> String {
        var places: [String] = []
        var files: Set<String> = []
        for source in sources(of: path, in: configuration) {
            guard case .file(let file, let line, _) = source else {
                places.append(source.description)
                continue
            }
            // The first line of a table says where the others are.
            if files.insert(file).inserted { places.append("\(file):\(line)") }
        }
        return places.isEmpty ? "default" : places.joined(separator: ", ")
    }

    private static func fallbacks(_ path: String, _ configuration: Configuration) -> [String] {
        guard let dot = path.firstIndex(of: ".") else { return [] }
        let (first, rest) = (path[..<dot], path[path.index(after: dot)...])
        if first.hasPrefix("rooms["), let index = Int(first.dropFirst(6).dropLast()),
            configuration.rooms.indices.contains(index)
        {
            let backend = configuration.rooms[index].backend
            return (backend.isEmpty ? [] : ["backends.\(backend).\(rest)"]) + ["room_defaults.\(rest)"]
        }
        if first == "backends", let dot = rest.firstIndex(of: ".") {
            return ["room_defaults" + rest[dot...]]
        }
        return []
    }
}

extension ConfigurationOrigin {
    /// Whether this source comes first: the stronger one, and the earlier place in a file.
    fileprivate func isStronger(than other: Self) -> Bool {
        if layer != other.layer { return layer > other.layer }
        if case .file(let a, let i, let c) = self, case .file(let b, let j, let d) = other {
            return (a, i, c) < (b, j, d)
        }
        return description < other.description
    }
}

import BridgeTypes

// The keys as docs/CONFIGURATION.md has them, and as `chatbridge config explain` describes them.

/// The tables of docs/CONFIGURATION.md, made from the schema: a heading for each section, a row for each key.
package enum ConfigurationTable {
    package static var text: String {
        let root = ConfigurationSchema.root.write(ConfigurationSchema.sample)
        let shared = Set(ConfigurationSchema.outlines.first { $0.key == "room_defaults" }?.shape.keys.map(\.key) ?? [])
        var lines: [String] = []
        for outline in ConfigurationSchema.outlines {
            var node = root?[outline.key]
            var heading = "[\(outline.key)]"
            var hasShared = false
            switch outline.shape {
            case .tables:
                (heading, node) = ("[\(heading)]", node?.elements.first)
                hasShared = outline.key == "rooms"
            case .named: (heading, node, hasShared) = ("[\(outline.key).NAME]", node?.entries.first?.node, true)
            case .leaf, .list, .map: heading = "[\(outline.key).NAME]"
            case .table: break
            }
            lines += ["### `\(heading)`", "", sentence(linked(outline.about)), ""]
            let keys = outline.shape.keys.filter { !hasShared || !shared.contains($0.key) }
            if keys.isEmpty { continue }
            lines += ["| key | value | default | effect | a change |", "|---|---|---|---|---|"]
            lines += rows(keys, prefix: "", node, outline.reload ?? .restart) + [""]
        }
        return lines.dropLast().joined(separator: "\n")
    }

    private static func rows(
        _ keys: [ConfigurationOutline], prefix: String, _ node: ConfigurationNode?, _ inherited: ReloadEffect
    ) -> [String] {
        var lines: [String] = []
        for key in keys {
            let name = "`\(prefix)\(key.key)`"
            let reload = key.reload ?? inherited
            if case .table(let inner) = key.shape {
                lines += rows(inner, prefix: "\(prefix)\(key.key).", node?[key.key], reload)
                continue
            }
            let isLater = key.group != nil && keys.first { $0.group == key.group }?.key != key.key
            if !isLater {
                let names = key.group.map { group in
                    keys.filter { $0.group == group }.map { "`\(prefix)\($0.key)`" }.joined(separator: ", ")
                }
                let usual = ConfigurationTopic.usual(key, node?[key.key])
                let cells = [names ?? name, cell(key.expected), usual, linked(key.about), reload.word]
                lines.append("| \(cells.joined(separator: " | ")) |")
            }
            if case .tables(let inner, _) = key.shape {
                lines += rows(inner, prefix: "\(prefix)\(key.key).", nil, reload)
            }
        }
        return lines
    }

    private static func sentence(_ text: String) -> String { text.prefix(1).uppercased() + text.dropFirst() + "." }

    /// Text without Markdown of its own, in a table.
    private static func cell(_ text: String) -> String {
        text.replacing("|", with: "\\|").replacing("<", with: "\\<").replacing("*", with: "\\*")
    }

    /// Pages are links; the table is in their folder.
    private static func linked(_ text: String) -> String {
        text.replacing(#/docs/(?<page>[A-Za-z/]+\.md)(?<part>#[a-z-]+)?/#) { match in
            "[\(match.page)](\(match.page)\(match.part ?? ""))"
        }
    }
}

/// A key, or a section, for `chatbridge config explain`.
package struct ConfigurationTopic: Sendable {
    /// `limits.sendq`, `rooms.url`, `backends.NAME.url`.
    package let path: String
    let outline: ConfigurationOutline
    /// The default as it is written; nil: there is none.
    let initial: ConfigurationNode?
    let reload: ReloadEffect

    // MARK: - Finding

    /// Every section and key, in the schema's order.
    package static let all: [ConfigurationTopic] = {
        func topics(
            _ keys: [ConfigurationOutline], _ path: String, _ node: ConfigurationNode?, _ reload: ReloadEffect
        ) -> [ConfigurationTopic] {
            keys.flatMap { key in
                let own = path.isEmpty ? key.key : "\(path).\(key.key)"
                let topic = ConfigurationTopic(
                    path: own, outline: key, initial: node?[key.key], reload: key.reload ?? reload)
                let inner: (path: String, node: ConfigurationNode?) =
                    switch key.shape {
                    case .named: ("\(own).NAME", topic.initial?.entries.first?.node)
                    case .tables: (own, topic.initial?.elements.first)
                    default: (own, topic.initial)
                    }
                return [topic] + topics(key.shape.keys, inner.path, inner.node, topic.reload)
            }
        }
        return topics(
            ConfigurationSchema.outlines, "", ConfigurationSchema.root.write(ConfigurationSchema.sample), .restart)
    }()

    /// The topics that `text` may mean: a path, with names or numbers of tables (`rooms.lobby.url`, `listeners[0].bind`) or
    /// without them, or the end of one (`sendq`).
    package static func named(_ text: String) -> [ConfigurationTopic] {
        let steps = text.lowercased().replacing("[", with: ".").replacing("]", with: "").split(separator: ".").map(
            String.init)
        if let path = path(of: steps[...], among: ConfigurationSchema.outlines, at: "") {
            return all.filter { $0.path == path }
        }
        let end = "." + steps.joined(separator: ".")
        return all.filter { $0.path.lowercased().hasSuffix(end) }
    }

    /// The path that `steps` are, without the names of tables.
    private static func path(
        of steps: ArraySlice<String>, among keys: [ConfigurationOutline], at path: String
    ) -> String? {
        guard let step = steps.first, let key = keys.first(where: { $0.key == step }) else { return nil }
        let own = path.isEmpty ? step : "\(path).\(step)"
        let rest = steps.dropFirst()
        if rest.isEmpty { return own }
        switch key.shape {
        case .table(let inner): return Self.path(of: rest, among: inner, at: own)
        case .tables(let inner, _): return inTable(rest, inner, own, own)
        case .named(let inner): return inTable(rest, inner, own, own + ".NAME")
        // Below them are names of the operator's own.
        case .map: return own
        case .leaf where path.isEmpty: return own
        case .leaf, .list: return nil
        }
    }

    private static func inTable(
        _ steps: ArraySlice<String>, _ keys: [ConfigurationOutline], _ own: String, _ path: String
    ) -> String? {
        Self.path(of: steps, among: keys, at: path)
            ?? (steps.count == 1 ? own : Self.path(of: steps.dropFirst(), among: keys, at: path))
    }

    /// ` (did you mean "limits.sendq"?)`, or nothing.
    package static func hint(for text: String) -> String {
        let paths = all.map(\.path)
        let near =
            NearestName.suggestion(for: text, among: paths)
            ?? NearestName.suggestion(for: text, among: all.map(\.outline.key))
        return near.map { " (did you mean \"\($0)\"?)" } ?? ""
    }

    // MARK: - Showing

    /// The default for people, as Markdown.
    static func usual(_ outline: ConfigurationOutline, _ node: ConfigurationNode?) -> String {
        if let usual = outline.usual { return usual }
        switch node?.content {
        case nil, .string(""): return "none"
        case .array(let elements) where elements.isEmpty: return "none"
        case .table(let entries) where entries.isEmpty: return "none"
        case .string(let text): return "`\(text)`"
        default: return node.map { "`\(ConfigurationPrinter.value($0))`" } ?? "none"
        }
    }

    /// Lines about a key: description, form, default, variable. About a section: its keys.
    package var lines: [String] {
        var lines = [path, "  " + ExampleConfiguration.plain(outline.about)]
        let keys = outline.shape.keys
        if keys.isEmpty {
            lines.append("  form      \(outline.expected)")
            lines.append("  default   \(ExampleConfiguration.plain(Self.usual(outline, initial)))")
            if let example = outline.example { lines.append("  example   \(outline.key) = \(example)") }
        } else {
            let width = (keys.map(\.key.count).max() ?? 0) + 2
            lines += keys.map { "  \($0.key.padded(to: width))\(ExampleConfiguration.plain($0.about))" }
        }
        if let group = outline.group, let siblings = siblings(group) {
            lines.append("  excludes  \(siblings.joined(separator: ", "))")
        }
        lines.append("  variable  \(variable)")
        if keys.isEmpty { lines.append("  reload    \(reload.about)") }
        return lines
    }

    private func siblings(_ group: String) -> [String]? {
        let parent = path.split(separator: ".").dropLast().joined(separator: ".")
        let found = Self.all.filter { topic in
            topic.outline.group == group && topic.path != path
                && topic.path.split(separator: ".").dropLast().joined(separator: ".") == parent
        }
        return found.isEmpty ? nil : found.map(\.outline.key)
    }

    /// The name of the environment variable that sets it; a table's name or number stands for NAME and N.
    var variable: String {
        var steps: [String] = []
        var keys = ConfigurationSchema.outlines
        for step in path.split(separator: ".") {
            steps.append(step.uppercased())
            guard let key = keys.first(where: { $0.key == step }) else { continue }
            keys = key.shape.keys
            if case .tables(_, let identity) = key.shape, steps.count < path.split(separator: ".").count + 1,
                key.key != outline.key
            {
                steps.append(identity == nil ? "N" : "NAME")
            }
        }
        return ConfigurationLayers.prefix + steps.joined(separator: "__")
    }

    /// What is set now: one line for each table that may have the key.
    package func current(_ loaded: LoadedConfiguration) -> [String] {
        guard let root = ConfigurationSchema.root.write(loaded.configuration), outline.shape.keys.isEmpty else {
            return []
        }
        return values(path.split(separator: ".").map(String.init)[...], root, "", "").map { place in
            let value = place.node.map(ConfigurationPrinter.value) ?? "not set"
            return "\(place.name) = \(value)  (\(loaded.origins.text(of: place.path, in: loaded.configuration)))"
        }
    }

    private func values(
        _ steps: ArraySlice<String>, _ node: ConfigurationNode?, _ name: String, _ path: String
    ) -> [(name: String, path: String, node: ConfigurationNode?)] {
        guard let step = steps.first else { return [(name, path, node)] }
        let rest = steps.dropFirst()
        func below(_ text: String, _ step: String) -> String { text.isEmpty ? step : "\(text).\(step)" }
        if step == "NAME" {
            return (node?.entries ?? []).flatMap {
                values(rest, $0.node, below(name, $0.key), below(path, $0.key))
            }
        }
        guard let inner = node?[step] else {
            return rest.isEmpty && node != nil ? [(below(name, step), below(path, step), nil)] : []
        }
        guard case .array(let elements) = inner.content, !rest.isEmpty else {
            return values(rest, inner, below(name, step), below(path, step))
        }
        return elements.enumerated().flatMap { index, element in
            var label = "\(index)"
            if case .string(let text)? = element["name"]?.content { label = text }
            return values(rest, element, "\(below(name, step)).\(label)", "\(below(path, step))[\(index)]")
        }
    }
}

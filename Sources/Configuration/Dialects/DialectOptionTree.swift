import JSONText

/// A dialect's own settings as they were written, so that a complaint about one can say where it stands.
///
/// The schema does not know them: each dialect reads its own. Descriptions of dialects are read in the same way.
package struct DialectOptionTree: Sendable {
    /// A table. Strings are expanded.
    private(set) var node = ConfigurationNode(.table([]))
    /// Texts that came from elsewhere, and may be secrets.
    private var expanded: Set<String> = []

    package var isEmpty: Bool { node.entries.isEmpty }

    /// The options as a dialect reads them.
    package var json: JSONValue { Self.json(node) }

    private static func json(_ node: ConfigurationNode) -> JSONValue {
        switch node.content {
        case .table(let entries): .object(entries.map { JSONValue.Member($0.key, json($0.node)) })
        case .array(let elements): .array(elements.map(json))
        case .string(let text), .date(let text): .string(text)
        case .integer(let number): .integer(number)
        case .real(let number): JSONValue.number(number)
        case .boolean(let flag): .bool(flag)
        }
    }

    // MARK: - Reading

    /// Merges a table into this one: inner tables are merged, other values are replaced.
    mutating func lay(_ upper: ConfigurationNode, _ reader: inout ConfigurationReader) {
        guard let upper = expand(upper, &reader) else { return }
        Self.lay(upper, over: &node)
    }

    private static func lay(_ upper: ConfigurationNode, over lower: inout ConfigurationNode) {
        guard case .table(let entries) = upper.content, case .table(var result) = lower.content else {
            lower = upper
            return
        }
        for entry in entries {
            guard let index = result.firstIndex(where: { $0.key == entry.key }) else {
                result.append(entry)
                continue
            }
            lay(entry.node, over: &result[index].node)
            result[index].keyOrigin = entry.keyOrigin
        }
        lower = ConfigurationNode(.table(result), origin: upper.origin)
    }

    private mutating func expand(_ node: ConfigurationNode, _ reader: inout ConfigurationReader) -> ConfigurationNode? {
        switch node.content {
        case .table(let entries):
            var kept: [ConfigurationNode.Entry] = []
            for var entry in entries {
                guard let inner = expand(entry.node, &reader) else { continue }
                entry.node = inner
                kept.append(entry)
            }
            return ConfigurationNode(.table(kept), origin: node.origin)
        case .array(let elements):
            return ConfigurationNode(.array(elements.compactMap { expand($0, &reader) }), origin: node.origin)
        case .string(let raw):
            guard node.origin.layer == .file else { return Self.typed(raw, origin: node.origin) }
            guard let text = reader.string(node) else { return nil }
            if raw.contains("${") { expanded.insert(text) }
            return ConfigurationNode(.string(text), origin: node.origin)
        default: return node
        }
    }

    /// A variable's value: parsed as TOML where that is possible, else text.
    private static func typed(_ text: String, origin: ConfigurationOrigin) -> ConfigurationNode {
        let first = text.utf8.first { $0 != 0x20 }
        let mayBeTOML = text == "true" || text == "false" || first.map { "{[\"+-0123456789".utf8.contains($0) } == true
        if mayBeTOML, let document = try? TOMLReader.parse(Array("value = \(text)".utf8), path: ""),
            let value = document["value"], document.entries.count == 1
        {
            if case .date = value.content { return ConfigurationNode(.string(text), origin: origin) }
            return value.relocated(to: origin)
        }
        return ConfigurationNode(.string(text), origin: origin)
    }

    // MARK: - Writing

    /// How printing treats a part of the options.
    enum Part {
        /// Texts that say where things are in frames: nothing that is called a secret is one.
        case rules
        /// A template, an address, or an option.
        case frames
        /// A header or the body of a login: any text may be a secret, under any name.
        case secrets
    }

    /// The options for a printed configuration; possible secrets are blanked.
    var printed: ConfigurationNode {
        var node = printed(self.node, key: "", .frames)
        node.isInline = true
        return node
    }

    func printed(_ node: ConfigurationNode, key: String, _ part: Part) -> ConfigurationNode {
        switch node.content {
        case .table(let entries):
            let open = ["post", "token", "refresh", "expires"]
            return ConfigurationNode(
                .table(
                    entries.map { entry in
                        let inner = part == .secrets && open.contains(entry.key) ? .rules : part
                        return ConfigurationNode.Entry(
                            key: entry.key, keyOrigin: .builtIn, node: printed(entry.node, key: entry.key, inner))
                    }))
        case .array(let elements): return ConfigurationNode(.array(elements.map { printed($0, key: key, part) }))
        case .string(let text):
            let shown =
                switch part {
                case .rules: Secret.printed(text, key: "", fromElsewhere: expanded)
                case .frames: Secret.printed(text, key: key, fromElsewhere: expanded)
                case .secrets: text.contains("{token}") || text.hasPrefix("{{account.") ? text : Secret.blank
                }
            return ConfigurationNode(.string(shown))
        default: return ConfigurationNode(node.content)
        }
    }

    // MARK: - Places

    /// The deepest written node along `path`, the key in front of it, and whether it is the whole path.
    private func place(of path: [String]) -> (node: ConfigurationNode, key: ConfigurationOrigin?, isWritten: Bool) {
        var place = node
        var key: ConfigurationOrigin?
        for step in path {
            if case .array(let elements) = place.content, let index = Int(step), elements.indices.contains(index) {
                (place, key) = (elements[index], nil)
            } else if let entry = place.entries.first(where: { $0.key == step }) {
                (place, key) = (entry.node, entry.keyOrigin)
            } else {
                return (place, key, false)
            }
        }
        return (place, key, true)
    }

    func isWritten(_ path: [String]) -> Bool { place(of: path).isWritten }

    /// Where the setting at `path` was written; the nearest table above it where it was not.
    func origin(of path: [String], isUnknown: Bool) -> ConfigurationOrigin {
        let found = place(of: path)
        // An unknown name is wrong where the name stands, a wrong value where the value does.
        if isUnknown, found.isWritten, let key = found.key { return key }
        return found.node.origin
    }
}

extension DialectOptionTree: Equatable {
    /// Compares the values, wherever they were written.
    package static func == (a: Self, b: Self) -> Bool { a.json == b.json }
}

extension ConfigurationForm where Value == DialectOptionTree {
    static var dialectOptions: Self {
        Self(expected: "a table of options, such as { name = \"value\" }", shape: .map(dash: false)) {
            node, value, reader in
            guard case .table = node.content else {
                reader.report(
                    node.origin,
                    "expected a table of options, such as { name = \"value\" }, found \(node.content.kindName)")
                return
            }
            value.lay(node, &reader)
        } write: {
            $0.printed
        }
    }
}

import BridgeTypes

/// One row of the schema: a key, the field it fills, how it is written, and what operators read about it.
struct ConfigurationKey<Section>: Sendable {
    let outline: ConfigurationOutline
    let read: @Sendable (ConfigurationNode, inout Section, inout ConfigurationReader) -> Void
    let write: @Sendable (Section) -> ConfigurationNode?
    /// Sets the field to that of another section.
    let copy: @Sendable (_ from: Section, _ to: inout Section) -> Void
}

extension ConfigurationKey {
    init<Value>(
        _ name: String, _ field: any WritableKeyPath<Section, Value> & Sendable, _ form: ConfigurationForm<Value>,
        group: String? = nil, reload: ReloadEffect? = nil, about: String, usual: String? = nil, example: String? = nil
    ) {
        self.init(
            outline: ConfigurationOutline(
                key: name, group: group, shape: form.shape, expected: form.expected, reload: reload, about: about,
                usual: usual, example: example),
            read: { node, section, reader in form.read(node, &section[keyPath: field], &reader) },
            write: { form.write($0[keyPath: field]) },
            copy: { form.copy($0[keyPath: field], &$1[keyPath: field]) })
    }

    var name: String { outline.key }
    var reload: ReloadEffect? { outline.reload }

    /// The same key for a table that has this section's fields in `field`.
    func lifted<Outer>(to field: any WritableKeyPath<Outer, Section> & Sendable) -> ConfigurationKey<Outer> {
        let (read, write, copy) = (self.read, self.write, self.copy)
        return ConfigurationKey<Outer>(
            outline: outline,
            read: { node, outer, reader in read(node, &outer[keyPath: field], &reader) },
            write: { write($0[keyPath: field]) },
            copy: { copy($0[keyPath: field], &$1[keyPath: field]) })
    }

    /// Tables by name, `[backends.NAME]`, in the order in which they were written.
    ///
    /// - Parameters:
    ///   - label: the field that holds the name.
    ///   - expected: the form, for messages; nil: `[name.NAME]`.
    ///   - check: returns a complaint about an invalid name.
    ///   - initial: the value that a table's own keys are laid over.
    init<Element: Sendable>(
        named name: String, _ field: any WritableKeyPath<Section, [Element]> & Sendable,
        _ keys: [ConfigurationKey<Element>], label: any WritableKeyPath<Element, String> & Sendable,
        expected: String? = nil, inline: Bool = false, check: @escaping @Sendable (String) -> String? = { _ in nil },
        initial: @escaping @Sendable (Section) -> Element,
        reload: ReloadEffect? = nil, about: String, usual: String? = nil, example: String? = nil
    ) {
        let row = ConfigurationForm<Element>.section(keys, inline: inline)
        let expected = expected ?? "[\(name).NAME]"
        self.init(
            outline: ConfigurationOutline(
                key: name, shape: .named(keys.map(\.outline)), expected: expected, reload: reload, about: about,
                usual: usual, example: example),
            read: { node, section, reader in
                guard case .table(let entries) = node.content else {
                    return reader.report(node.origin, "expected \(expected), found \(node.content.kindName)")
                }
                section[keyPath: field] = []
                for entry in entries {
                    if let complaint = check(entry.key) { reader.report(entry.keyOrigin, complaint) }
                    var item = initial(section)
                    item[keyPath: label] = entry.key
                    reader.descend(entry.key, origin: entry.node.origin) { row.read(entry.node, &item, &$0) }
                    section[keyPath: field].append(item)
                }
            },
            write: { section in
                let items = section[keyPath: field]
                guard !items.isEmpty else { return nil }
                return .table(
                    items.compactMap { item in row.write(item).map { (item[keyPath: label], $0) } }, inline: inline)
            },
            copy: { $1[keyPath: field] = $0[keyPath: field] })
    }

    /// An array of tables, `[[rooms]]`. A written array replaces the default.
    ///
    /// - Parameters:
    ///   - identity: the key that identifies a table, where there is one.
    ///   - initial: the value that a table's own keys are laid over; may depend on rows above this one in the schema.
    ///   - below: the same where it depends on the table's own keys; nil: `initial`.
    init<Element: Sendable>(
        tables name: String, _ field: any WritableKeyPath<Section, [Element]> & Sendable,
        _ keys: [ConfigurationKey<Element>], identity: String? = nil,
        initial: @escaping @Sendable (Section) -> Element,
        below: @escaping @Sendable (ConfigurationNode, Section, ConfigurationReader) -> Element? = { _, _, _ in nil },
        reload: ReloadEffect? = nil, about: String, usual: String? = nil, example: String? = nil
    ) {
        let row = ConfigurationForm<Element>.section(keys)
        self.init(
            outline: ConfigurationOutline(
                key: name, shape: .tables(keys.map(\.outline), identity: identity), expected: "[[\(name)]]",
                reload: reload, about: about, usual: usual, example: example),
            read: { node, section, reader in
                guard case .array(let elements) = node.content else {
                    return reader.report(node.origin, "expected [[\(name)]], found \(node.content.kindName)")
                }
                section[keyPath: field] = []
                for (index, element) in elements.enumerated() {
                    var item = below(element, section, reader) ?? initial(section)
                    reader.descend("[\(index)]", origin: element.origin) { row.read(element, &item, &$0) }
                    section[keyPath: field].append(item)
                }
            },
            write: { section in ConfigurationNode(.array(section[keyPath: field].compactMap(row.write))) },
            copy: { $1[keyPath: field] = $0[keyPath: field] })
    }
}

extension ConfigurationForm where Value: Sendable {
    /// A table with the given keys.
    ///
    /// - Parameter inline: printed as `{ a = 1 }` instead of under a heading of its own.
    static func section(_ keys: [ConfigurationKey<Value>], inline: Bool = false) -> Self {
        Self(expected: "a table", shape: .table(keys.map(\.outline))) { node, value, reader in
            guard case .table(let entries) = node.content else {
                reader.report(node.origin, "expected a table, found \(node.content.kindName)")
                return
            }
            read(withoutOverruled(entries, keys: keys, reader: &reader), keys: keys, into: &value, reader: &reader)
        } write: { value in
            .table(keys.compactMap { key in key.write(value).map { (key.name, $0) } }, inline: inline)
        } copy: { old, new in
            for key in keys { key.copy(old, &new) }
        }
    }

    private static func read(
        _ entries: [ConfigurationNode.Entry], keys: [ConfigurationKey<Value>], into value: inout Value,
        reader: inout ConfigurationReader
    ) {
        for entry in entries where !keys.contains(where: { $0.name == entry.key }) {
            if let sentence = PlannedKeys.sentence(reader.path + [entry.key]) {
                reader.report(entry.keyOrigin, "\"\(entry.key)\": \(sentence)")
                continue
            }
            let hint = NearestName.hint(for: entry.key, among: keys.map(\.name))
            reader.report(entry.keyOrigin, "unknown key \"\(entry.key)\"\(hint)")
        }
        // In the schema's order: rooms are laid over the defaults, wherever these stand in the file.
        for key in keys {
            guard let entry = entries.first(where: { $0.key == key.name }) else { continue }
            reader.descend(entry.key, origin: entry.node.origin) { key.read(entry.node, &value, &$0) }
        }
    }

    /// Settles groups of keys that exclude each other: a higher layer's choice wins, two choices in one are reported.
    private static func withoutOverruled(
        _ entries: [ConfigurationNode.Entry], keys: [ConfigurationKey<Value>], reader: inout ConfigurationReader
    ) -> [ConfigurationNode.Entry] {
        var chosen: [String: ConfigurationNode.Entry] = [:]
        func group(of entry: ConfigurationNode.Entry) -> String? {
            // An empty string is the documented way to leave one of them unset.
            if case .string("") = entry.node.content { return nil }
            return keys.first { $0.name == entry.key }?.outline.group
        }
        for entry in entries {
            guard let group = group(of: entry) else { continue }
            guard let other = chosen[group] else {
                chosen[group] = entry
                continue
            }
            if entry.keyOrigin.layer > other.keyOrigin.layer {
                chosen[group] = entry
            } else if entry.keyOrigin.layer == other.keyOrigin.layer {
                reader.report(
                    entry.keyOrigin, "\"\(entry.key)\" and \"\(other.key)\" exclude each other; keep one of them")
            }
        }
        return entries.filter { entry in
            group(of: entry).map { chosen[$0]?.key == entry.key } ?? true
        }
    }
}

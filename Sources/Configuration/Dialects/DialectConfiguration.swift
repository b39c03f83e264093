import BridgeTypes
import DescribedDialects
import Dialects
import JSONText

// [dialects.NAME]: backends that are described in the configuration instead of being built in.

/// A described backend. Names are unique and none is that of a built-in dialect.
package struct DialectConfiguration: Equatable, Sendable {
    package var name: String
    /// As written; nil when the description stands in the configuration itself.
    package var file: String?
    /// The description.
    package var json: JSONValue
    /// The same, compiled.
    package var definition: CustomDefinition
    /// The description as it was written in the configuration; empty when it is in a file.
    var tree = DialectOptionTree()

    package static func == (a: Self, b: Self) -> Bool { a.name == b.name && a.file == b.file && a.json == b.json }
}

extension ConfigurationForm where Value == String {
    static var dialect: Self {
        Self(expected: "the name of a dialect", shape: .leaf) { node, value, reader in
            guard case .string = node.content else {
                reader.report(node.origin, "expected the name of a dialect, found \(node.content.kindName)")
                return
            }
            guard let text = reader.string(node) else { return }
            if reader.dialectNames.contains(text) {
                value = text
            } else if let row = DialectTable.row(named: text) {
                value = row.name
            } else if text == "custom" {
                reader.report(node.origin, "a custom dialect is described in [dialects.NAME] and used by that name")
            } else {
                let names = DialectTable.rows.flatMap { [$0.name] + $0.aliases } + reader.dialectNames
                let hint = NearestName.hint(for: text, among: names)
                let known = (DialectTable.names + reader.dialectNames).joined(separator: ", ")
                reader.report(node.origin, "unknown dialect \"\(text)\"\(hint); this version has: \(known)")
            }
        } write: {
            ConfigurationNode(.string($0))
        }
    }
}

extension ConfigurationForm where Value == [DialectConfiguration] {
    /// Tables by name, each with `file` alone or with the description itself.
    static var dialects: Self {
        let expected = "tables such as [dialects.NAME]"
        return Self(expected: expected, shape: .leaf) { node, value, reader in
            guard case .table(let entries) = node.content else {
                reader.report(node.origin, "expected \(expected), found \(node.content.kindName)")
                return
            }
            for entry in entries {
                reader.descend(entry.key, origin: entry.node.origin) { reader in
                    if let complaint = complaint(entry.key) { reader.report(entry.keyOrigin, complaint) }
                    reader.addDialect(named: entry.key)
                    if let dialect = DescribedDialect(name: entry.key, node: entry.node).read(&reader) {
                        value.append(dialect)
                    }
                }
            }
        } write: { dialects in
            if dialects.isEmpty { return nil }
            return ConfigurationNode(
                .table(
                    dialects.map {
                        ConfigurationNode.Entry(key: $0.name, keyOrigin: .builtIn, node: DescribedDialect.node($0))
                    }))
        }
    }

    private static func complaint(_ name: String) -> String? {
        if DialectTable.row(named: name) != nil || name == "custom" {
            return "\"\(name)\" is the name of a built-in dialect"
        }
        return ConfigurationChecks.roomName(name) == nil && name != "*"
            ? nil : "a dialect's name is 1 to \(ConfigurationChecks.maxChannelBytes - 1) of a-z 0-9 _ -"
    }
}

/// Reads one `[dialects.NAME]`.
private struct DescribedDialect {
    var name: String
    var node: ConfigurationNode

    func read(_ reader: inout ConfigurationReader) -> DialectConfiguration? {
        guard case .table(let entries) = node.content else {
            reader.report(node.origin, "expected a table, found \(node.content.kindName)")
            return nil
        }
        guard let file = node["file"] else {
            let count = reader.problems.count
            var tree = DialectOptionTree()
            tree.lay(node, &reader)
            // A text that could not be made is no reason for a second complaint.
            guard reader.problems.count == count else { return nil }
            var dialect = compile(tree.json, file: nil, &reader) { problem in
                tree.origin(of: problem.path, isUnknown: !problem.known.isEmpty)
            }
            dialect?.tree = tree
            return dialect
        }
        for entry in entries where entry.key != "file" {
            reader.report(entry.keyOrigin, "\"\(entry.key)\" has no place beside \"file\"")
        }
        guard let written = reader.string(file) else { return nil }
        let path = Self.path(written, beside: file.origin)
        guard let text = reader.contents(ofFile: path, origin: file.origin) else { return nil }
        do throws(JSONError) {
            let count = reader.problems.count
            let json = Self.expanded(try JSONValue(parsing: text), [], path, &reader)
            guard reader.problems.count == count else { return nil }
            return compile(json, file: written, &reader) { _ in .path(path) }
        } catch {
            reader.report(Self.position(error.offset, in: text, path), "no JSON: \(error.reason.rawValue)")
            return nil
        }
    }

    /// A file's strings with their variables, as strings of the configuration have them.
    private static func expanded(
        _ json: JSONValue, _ path: [String], _ file: String, _ reader: inout ConfigurationReader
    ) -> JSONValue {
        switch json {
        case .string(let text) where text.contains("${"):
            do throws(InterpolationError) {
                return .string(try Interpolation.expand(text, environment: reader.environment))
            } catch {
                let pointer = DialectOptionError(path: path, sentence: "").pointer
                reader.report(.path(file), "\(pointer): \(error.message)")
                return json
            }
        case .array(let elements):
            return .array(elements.enumerated().map { expanded($0.element, path + ["\($0.offset)"], file, &reader) })
        case .object(let members):
            return .object(
                members.map { JSONValue.Member($0.key, expanded($0.value, path + [$0.key], file, &reader)) })
        default: return json
        }
    }

    private func compile(
        _ json: JSONValue, file: String?, _ reader: inout ConfigurationReader,
        origin: (DialectOptionError) -> ConfigurationOrigin
    ) -> DialectConfiguration? {
        do throws(CustomDefinitionError) {
            return DialectConfiguration(name: name, file: file, json: json, definition: try CustomDefinition(json))
        } catch {
            for problem in error.problems { reader.report(origin(problem), sentence(problem, isInFile: file != nil)) }
            return nil
        }
    }

    /// The faulty path and the complaint.
    private func sentence(_ problem: DialectOptionError, isInFile: Bool) -> String {
        guard !problem.known.isEmpty, let word = problem.path.last else {
            let pointer = problem.pointer
            return pointer.isEmpty ? "dialect \"\(name)\" \(problem.sentence)" : "\(pointer): \(problem.sentence)"
        }
        var parent = problem
        parent.path.removeLast()
        let pointer = parent.pointer
        return (pointer.isEmpty ? "" : "\(pointer): ") + "\(problem.sentence) \"\(word)\""
            + NearestName.hint(for: word, among: problem.known + (isInFile || !pointer.isEmpty ? [] : ["file"]))
    }

    /// A path in the configuration is relative to the file that it stands in.
    private static func path(_ written: String, beside origin: ConfigurationOrigin) -> String {
        guard !written.hasPrefix("/"), case .file(let configuration, _, _) = origin,
            let slash = configuration.lastIndex(of: "/")
        else { return written }
        return configuration[...slash] + written
    }

    private static func position(_ offset: Int, in text: String, _ path: String) -> ConfigurationOrigin {
        let before = text.utf8.prefix(offset)
        let line = before.count { $0 == UInt8(ascii: "\n") } + 1
        let lastLine = before.suffix(
            from: before.lastIndex(of: UInt8(ascii: "\n")).map { before.index(after: $0) } ?? before.startIndex)
        return .file(path: path, line: line, column: lastLine.count { $0 & 0xC0 != 0x80 } + 1)
    }

    // MARK: - Writing

    static func node(_ dialect: DialectConfiguration) -> ConfigurationNode {
        if let file = dialect.file {
            return ConfigurationNode(.table([entry("file", ConfigurationNode(.string(file)))]))
        }
        return ConfigurationNode(
            .table(
                dialect.tree.node.entries.map { member in
                    let part: DialectOptionTree.Part =
                        switch member.key {
                        case "decode", "unwrap": .rules
                        case "headers", "login", "refresh": .secrets
                        default: .frames
                        }
                    return entry(member.key, dialect.tree.printed(member.node, key: member.key, part))
                }))
    }

    private static func entry(_ key: String, _ node: ConfigurationNode) -> ConfigurationNode.Entry {
        var node = node
        node.isInline = true
        return ConfigurationNode.Entry(key: key, keyOrigin: .builtIn, node: node)
    }
}

/// The example configuration: every key with its default and its description, made from the schema.
///
/// It loads, and opens nothing beyond loopback: tables that do are commented out, with a `#` right in front of the key.
/// Keys without a default that could be written are shown behind `# `, with a space.
package enum ExampleConfiguration {
    /// Where comments begin, in characters.
    private static let commentColumn = 35
    /// Longest line, in characters.
    private static let width = 130

    package static var text: String {
        guard let root = ConfigurationSchema.root.write(ConfigurationSchema.sample) else { return "" }
        var sections = [ExampleTexts.head]
        let shared = ConfigurationSchema.outlines.first { $0.key == "room_defaults" }?.shape.keys.map(\.key) ?? []
        for outline in ConfigurationSchema.outlines {
            let key = outline.key
            switch outline.shape {
            case .table:
                sections += tables(outline, "[\(key)]", path: key, root[key], mark: "")
            case .tables(_, _):
                let isOpen = key == "listeners" || key == "rooms"
                sections += tables(
                    outline, "[[\(key)]]", path: key, root[key]?.elements.first, mark: isOpen ? "" : "#",
                    without: key == "rooms" ? shared : [])
            case .named:
                let entry = root[key]?.entries.first
                sections += tables(
                    outline, "[\(key).\(entry?.key ?? "NAME")]", path: key, entry?.node, mark: "#", without: shared)
            case .leaf, .list, .map:
                sections.append(wrapped(plain(outline.about), width - 2).map { "# \($0)\n" }.joined())
            }
            sections += ExampleTexts.further[key] ?? []
        }
        return sections.joined(separator: "\n")
    }

    // MARK: - Tables

    /// The table and those within it that have a heading of their own.
    private static func tables(
        _ outline: ConfigurationOutline, _ heading: String, path: String, _ node: ConfigurationNode?, mark: String,
        without skipped: [String] = []
    ) -> [String] {
        var text = line(mark + heading, plain(outline.about))
        var below: [String] = []
        for key in outline.shape.keys where !skipped.contains(key.key) {
            let written = node?[key.key]
            if let written, isHeaded(key, written) {
                let inner = "\(path).\(key.key)"
                below += tables(key, "[\(inner)]", path: inner, written, mark: mark)
            } else if let example = key.example {
                text += line("# \(key.key) = \(example)", comment(key))
            } else if let written {
                text += line("\(mark)\(key.key) = \(ConfigurationPrinter.value(written))", comment(key))
            }
        }
        return [text] + below
    }

    /// Whether a table's keys are shown each with its description.
    static func isHeaded(_ outline: ConfigurationOutline, _ node: ConfigurationNode) -> Bool {
        guard case .table(let keys) = outline.shape else { return false }
        return !node.isInline || keys.count > 3
    }

    // MARK: - Comments

    private static func comment(_ outline: ConfigurationOutline) -> String {
        let about = plain(outline.about)
        guard let usual = outline.usual.map(plain) else { return about }
        return usual == "required" ? "\(about); required" : "\(about); default: \(usual)"
    }

    /// Markdown without its marks.
    static func plain(_ text: String) -> String { text.replacing("`", with: "").replacing("**", with: "") }

    private static func line(_ text: String, _ comment: String) -> String {
        let column = max(commentColumn, text.count + 2)
        // Too little room behind the value.
        let first = width - column - 2 < 24 ? 0 : width - column - 2
        var lines = wrapped(comment, width - commentColumn - 2, first: first)
        let head = lines.removeFirst()
        let rest = lines.map { String(repeating: " ", count: commentColumn) + "# \($0)\n" }.joined()
        return head.isEmpty ? "\(text)\n\(rest)" : "\(text.padded(to: column))# \(head)\n\(rest)"
    }

    /// The text in lines of at most `width` characters, the first of at most `first`.
    private static func wrapped(_ text: String, _ width: Int, first: Int? = nil) -> [String] {
        var lines = [""]
        for word in text.split(separator: " ") {
            let room = lines.count == 1 ? first ?? width : width
            let last = lines[lines.count - 1]
            if last.isEmpty, room >= word.count {
                lines[lines.count - 1] = String(word)
            } else if last.count + 1 + word.count <= room {
                lines[lines.count - 1] += " " + word
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }
}

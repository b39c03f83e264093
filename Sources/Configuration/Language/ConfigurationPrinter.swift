import WireBytes

/// Writes a configuration as TOML that loads again; passwords, header values and query values are blanked.
package enum ConfigurationPrinter {
    /// - Parameter remark: a comment on the setting at a path such as `rooms[0].url`; nil: none.
    package static func text(
        _ configuration: Configuration, remark: (_ path: String) -> String? = { _ in nil }
    ) -> String {
        guard let root = ConfigurationSchema.root.write(configuration) else { return "" }
        var sections: [String] = []
        for entry in root.entries { append(entry, heading: entry.key, path: entry.key, remark, to: &sections) }
        return sections.joined(separator: "\n")
    }

    private static func append(
        _ entry: ConfigurationNode.Entry, heading: String, path: String, _ remark: (String) -> String?,
        to sections: inout [String]
    ) {
        if case .array(let elements) = entry.node.content {
            for (index, element) in elements.enumerated() {
                sections.append("[[\(heading)]]\n" + body(element, path: "\(path)[\(index)]", remark))
            }
            return
        }
        let own = body(entry.node, path: path, remark)
        // A table of named tables has nothing to say by itself.
        if !own.isEmpty || entry.node.entries.isEmpty { sections.append("[\(heading)]\n" + own) }
        for inner in entry.node.entries where isSection(inner.node) {
            append(
                inner, heading: "\(heading).\(inner.key)", path: "\(path).\(inner.key)", remark, to: &sections)
        }
    }

    private static func isSection(_ node: ConfigurationNode) -> Bool {
        if case .table = node.content { return !node.isInline }
        return false
    }

    private static func body(
        _ table: ConfigurationNode, path: String, _ remark: (String) -> String?
    ) -> String {
        table.entries.filter { !isSection($0.node) }.map { entry in
            let line = "\(key(entry.key)) = \(value(entry.node))"
            guard let text = remark("\(path).\(entry.key)") else { return line + "\n" }
            return line.padded(to: remarkColumn) + "  # \(text)\n"
        }.joined()
    }

    /// Where remarks begin, in characters.
    private static let remarkColumn = 38

    private static func key(_ text: String) -> String {
        let isBare =
            !text.isEmpty
            && text.utf8.allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == 0x5F || $0 == 0x2D }
        return isBare ? text : quoted(text)
    }

    static func value(_ node: ConfigurationNode) -> String {
        switch node.content {
        case .string(let text): return quoted(text.replacing("$", with: "$$"))
        case .integer(let number): return "\(number)"
        case .real(let number): return "\(number)"
        case .boolean(let flag): return "\(flag)"
        case .date(let text): return text
        case .array(let elements): return "[" + elements.map(value).joined(separator: ", ") + "]"
        case .table(let entries):
            if entries.isEmpty { return "{}" }
            return "{ " + entries.map { "\(key($0.key)) = \(value($0.node))" }.joined(separator: ", ") + " }"
        }
    }

    /// A TOML basic string. Source: TOML 1.0.0, "String".
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            case "\r": result += "\\r"
            case _ where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value):
                let digits = String(scalar.value, radix: 16, uppercase: true)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

extension String {
    /// With spaces behind it up to `width` characters.
    func padded(to width: Int) -> String { self + String(repeating: " ", count: max(width - count, 0)) }
}

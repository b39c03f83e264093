/// Where a setting was written, as problems and logs name it.
package enum ConfigurationOrigin: Hashable, Sendable, CustomStringConvertible {
    /// 1-based; columns count code points.
    case file(path: String, line: Int, column: Int)
    /// A file as a whole, for one that cannot be read.
    case path(String)
    case environment(String)
    /// A flag as typed, `--listen`.
    case flag(String)
    case builtIn

    package var description: String {
        switch self {
        case .file(let path, let line, let column): "\(path):\(line):\(column)"
        case .path(let path): path
        case .environment(let name): name
        case .flag(let name): name
        case .builtIn: "configuration"
        }
    }

    /// Which source wins over which: flag, environment, file, default.
    enum Layer: Int, Comparable, Sendable {
        case builtIn, file, environment, flag
        static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
    }

    var layer: Layer {
        switch self {
        case .file, .path: .file
        case .environment: .environment
        case .flag: .flag
        case .builtIn: .builtIn
        }
    }
}

/// One thing that is wrong, and where.
package struct ConfigurationProblem: Hashable, Sendable, CustomStringConvertible {
    package var origin: ConfigurationOrigin
    package var message: String

    package var description: String { "\(origin): \(message)" }
}

/// Everything that is wrong with a configuration, in reading order: the file from top to bottom, then the environment,
/// then flags.
package struct ConfigurationError: Error, Equatable, CustomStringConvertible {
    package var problems: [ConfigurationProblem]

    package init(_ problems: [ConfigurationProblem]) {
        self.problems = problems.enumerated().sorted { a, b in
            let (x, y) = (a.element.origin, b.element.origin)
            if x.layer != y.layer { return x.layer < y.layer }
            if case .file(let p, let i, let c) = x, case .file(let q, let j, let d) = y {
                return (p, i, c, a.offset) < (q, j, d, b.offset)
            }
            return a.offset < b.offset
        }.map(\.element)
    }

    /// One problem a line.
    package var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// A written value before the schema has interpreted it.
///
/// The file, the environment and the flags all become such trees; they are laid over each other and read once by the
/// schema, so that a setting's type, limits and messages are the same wherever it comes from.
struct ConfigurationNode: Equatable, Sendable {
    enum Content: Equatable, Sendable {
        /// In document order; keys are unique.
        case table([Entry])
        case array([ConfigurationNode])
        case string(String)
        case integer(Int64)
        case real(Double)
        case boolean(Bool)
        case date(String)

        /// The name in "expected …, found …".
        var kindName: String {
            switch self {
            case .table: "a table"
            case .array: "an array"
            case .string: "a string"
            case .integer: "an integer"
            case .real: "a number"
            case .boolean: "true or false"
            case .date: "a date"
            }
        }
    }

    /// For printing: whether a table stands on one line. The reader does not care.
    var isInline = false
    /// For comparing: the hash of a secret that is printed blank.
    private var secretHash: Int?

    /// A value that is printed as `text`, without the secret in it, and is equal only where that is.
    static func hiding(_ secret: some Hashable, as text: String = Secret.blank) -> Self {
        var node = Self(.string(text))
        node.secretHash = secret.hashValue
        return node
    }

    struct Entry: Equatable, Sendable {
        var key: String
        var keyOrigin: ConfigurationOrigin
        var node: ConfigurationNode
    }

    private(set) var content: Content
    let origin: ConfigurationOrigin

    init(_ content: Content, origin: ConfigurationOrigin = .builtIn) {
        self.content = content
        self.origin = origin
    }

    /// A table to be printed.
    ///
    /// - Parameter inline: printed as `{ a = 1 }` instead of under a heading of its own.
    static func table(_ entries: [(key: String, node: ConfigurationNode)], inline: Bool) -> ConfigurationNode {
        var table = ConfigurationNode(.table(entries.map { Entry(key: $0.key, keyOrigin: .builtIn, node: $0.node) }))
        table.isInline = inline
        return table
    }

    /// The entries of a table; empty for anything else.
    var entries: [Entry] {
        if case .table(let entries) = content { return entries }
        return []
    }

    /// The elements of an array; empty for anything else.
    var elements: [ConfigurationNode] {
        if case .array(let elements) = content { return elements }
        return []
    }

    subscript(key: String) -> ConfigurationNode? { entries.first { $0.key == key }?.node }

    /// Inserts or replaces the value under `key`.
    mutating func set(_ key: String, to node: ConfigurationNode) {
        var entries = self.entries
        let entry = Entry(key: key, keyOrigin: node.origin, node: node)
        if let index = entries.firstIndex(where: { $0.key == key }) {
            entries[index] = entry
        } else {
            entries.append(entry)
        }
        content = .table(entries)
    }

    /// The same tree with every position replaced, for a value that came as a whole from one variable.
    func relocated(to origin: ConfigurationOrigin) -> ConfigurationNode {
        switch content {
        case .table(let entries):
            return ConfigurationNode(
                .table(entries.map { Entry(key: $0.key, keyOrigin: origin, node: $0.node.relocated(to: origin)) }),
                origin: origin)
        case .array(let elements):
            return ConfigurationNode(.array(elements.map { $0.relocated(to: origin) }), origin: origin)
        default: return ConfigurationNode(content, origin: origin)
        }
    }
}

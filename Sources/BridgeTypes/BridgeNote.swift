/// An entry of the operator's log. Never contains secrets or chat text.
public struct BridgeNote: Equatable, Sendable {
    public enum Level: Int, Sendable, Comparable {
        case error, warn, info, debug, trace

        public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
    }

    public var level: Level
    /// A stable name for machines, such as `upstream-lost`.
    public var event: String
    /// A sentence for people.
    public var text: String
    /// Stable keys: `room`, `client`, `reason`, `close-code`, `length`.
    public var metadata: NoteMetadata

    public init(_ level: Level, _ event: String, _ text: String, _ metadata: NoteMetadata = [:]) {
        self.level = level
        self.event = event
        self.text = text
        self.metadata = metadata
    }
}

/// Keys and values of a note, as a list: it is made for each, and few are ever looked at.
public struct NoteMetadata: Equatable, Sendable, ExpressibleByDictionaryLiteral {
    /// No key stands twice.
    private var values: [(String, String)]

    public init(dictionaryLiteral elements: (String, String)...) { values = elements }

    public subscript(key: String) -> String? {
        get { values.first { $0.0 == key }?.1 }
        set {
            values.removeAll { $0.0 == key }
            if let newValue { values.append((key, newValue)) }
        }
    }

    /// By key, so that the same event always reads the same, without those that are empty.
    public var sorted: [(key: String, value: String)] {
        values.filter { !$0.1.isEmpty }.sorted { $0.0 < $1.0 }.map { (key: $0.0, value: $0.1) }
    }

    /// With those of another in front of these.
    public func behind(_ others: NoteMetadata) -> NoteMetadata {
        var all = others
        for (key, value) in values { all[key] = value }
        return all
    }

    public static func == (a: Self, b: Self) -> Bool {
        a.values.count == b.values.count && a.values.allSatisfy { b[$0.0] == $0.1 }
    }
}

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
    public var metadata: [String: String]

    public init(_ level: Level, _ event: String, _ text: String, _ metadata: [String: String] = [:]) {
        self.level = level
        self.event = event
        self.text = text
        self.metadata = metadata
    }
}

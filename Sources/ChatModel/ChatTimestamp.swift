/// A wall-clock time as chat backends mean it: whole milliseconds since 1970-01-01T00:00:00Z.
public struct ChatTimestamp: Comparable, Hashable, Sendable {
    public var milliseconds: Int64

    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    public static func < (a: Self, b: Self) -> Bool { a.milliseconds < b.milliseconds }
}

import WireBytes

/// A line as it was typed.
struct TypedLine: Equatable {
    var text: String
    /// It was begun while a secret was asked for, or what would be asked was not known.
    var isHidden = false
}

/// Lines that were typed and wait for the server's answer to those before.
///
/// Each was typed for the question behind the one before. Where an answer is refused, that is asked again instead: the
/// lines behind it answer nothing any more, and a password among them would be taken for a name, or for a message.
struct TypedAhead {
    /// Beyond it the terminal is not read.
    static let maxLines = 200
    /// For a terminal that has ended: what it has sent is given so long.
    private static let endPatience: Duration = .seconds(60)

    private var lines: [TypedLine] = []
    /// Those in front of it are taken: one read may bring thousands.
    private var first = 0
    private var isPaused = false
    private var endsAt: MonotonicInstant?

    var isEmpty: Bool { first == lines.count }
    /// The terminal sends no more.
    var hasEnded: Bool { endsAt != nil }
    /// When a terminal that has ended is left, whatever waits.
    var deadline: MonotonicInstant? { endsAt }

    mutating func append(_ line: TypedLine) { lines.append(line) }

    mutating func next() -> TypedLine? {
        guard !isEmpty else { return nil }
        defer {
            first += 1
            if isEmpty { removeAll() }
        }
        return lines[first]
    }

    mutating func removeAll() { (lines, first) = ([], 0) }

    mutating func end(now: MonotonicInstant) { endsAt = now + Self.endPatience }

    /// - Returns: whether more may be read, where that has changed.
    mutating func takeReads() -> Bool? {
        guard (lines.count - first > Self.maxLines) != isPaused else { return nil }
        isPaused.toggle()
        return !isPaused
    }
}

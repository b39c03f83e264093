import WireBytes

/// Lines that were typed and wait for the server's answer to those before.
struct TypedAhead {
    /// Beyond it the terminal is not read.
    static let maxLines = 200
    /// For a terminal that has ended: what it has sent is given so long.
    private static let endPatience: Duration = .seconds(60)

    private var lines: [String] = []
    private var isPaused = false
    private var endsAt: MonotonicInstant?

    var isEmpty: Bool { lines.isEmpty }
    /// The terminal sends no more.
    var hasEnded: Bool { endsAt != nil }
    /// When a terminal that has ended is left, whatever waits.
    var deadline: MonotonicInstant? { endsAt }

    mutating func append(_ line: String) { lines.append(line) }

    mutating func next() -> String? { lines.isEmpty ? nil : lines.removeFirst() }

    mutating func end(now: MonotonicInstant) { endsAt = now + Self.endPatience }

    /// - Returns: whether more may be read, where that has changed.
    mutating func takeReads() -> Bool? {
        guard (lines.count > Self.maxLines) != isPaused else { return nil }
        isPaused.toggle()
        return !isPaused
    }
}

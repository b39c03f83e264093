import WireBytes

/// Answers to the server's PINGs, held back until the terminal has what was sent before.
///
/// Telnet has a command for that, the timing mark, which not every client answers.
struct ReceiptMarks {
    private static let patience: Duration = .seconds(10)

    /// Nil: it was not asked.
    private var isAnswered: Bool?
    private var waiting: [(token: String, at: MonotonicInstant)] = []

    /// Whether asking makes sense.
    var areUseful: Bool { isAnswered != false }

    var deadline: MonotonicInstant? { waiting.first.map { $0.at + Self.patience } }

    /// The terminal was asked for a mark.
    ///
    /// - Returns: false: the PING is answered at once. Whether a terminal knows marks is seen by the first.
    mutating func asked(for token: String, now: MonotonicInstant) -> Bool {
        guard isAnswered == true else { return false }
        waiting.append((token, now))
        return true
    }

    /// The terminal has answered.
    ///
    /// - Returns: the token of the PING to be answered.
    mutating func received() -> String? {
        isAnswered = true
        return waiting.isEmpty ? nil : waiting.removeFirst().token
    }

    /// - Returns: tokens of the PINGs to be answered: all, once a mark has not come, and no more marks are asked for.
    mutating func expired(now: MonotonicInstant) -> [String] {
        guard let deadline, deadline <= now else { return [] }
        isAnswered = false
        defer { waiting = [] }
        return waiting.map(\.token)
    }
}

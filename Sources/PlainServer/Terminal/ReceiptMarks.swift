/// Answers to the server's PINGs, held back until the terminal has what was sent before.
///
/// Telnet has a command for that, the timing mark, which not every client answers. One that does and then falls silent is as
/// good as gone: the server ends the connection when its PING is not answered for long.
struct ReceiptMarks {
    private var areAnswered = false
    private var waiting: [String] = []

    /// The terminal was asked for a mark.
    ///
    /// - Returns: false: the PING is answered at once. Whether a terminal knows marks is seen by the first.
    mutating func asked(for token: String) -> Bool {
        if areAnswered { waiting.append(token) }
        return areAnswered
    }

    /// The terminal has answered.
    ///
    /// - Returns: the token of the PING to be answered.
    mutating func received() -> String? {
        areAnswered = true
        return waiting.isEmpty ? nil : waiting.removeFirst()
    }
}

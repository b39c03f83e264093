/// What waits for a client's PONG. At most one PING of these is on its way.
final class LineReceipts {
    /// Waiting calls remembered for a client that does not answer; what more would wait is not called.
    static let maxWaiting = 100
    /// In front of every token, so that no other PONG is taken for an answer.
    static let prefix = "cb-"

    private var number: UInt64 = 0
    private var asked: [() -> Void] = []
    private var waiting: [() -> Void] = []
    private(set) var isAsking = false
    /// The next PING is wanted for the client's cursors. What it asks about is not known before it goes: everything that was
    /// written by then.
    private var isWantedForCursors = false

    /// - Returns: false when there are too many.
    func add(_ received: @escaping () -> Void) -> Bool {
        guard waiting.count < Self.maxWaiting else { return false }
        waiting.append(received)
        return true
    }

    func askForCursors() { isWantedForCursors = true }

    /// None is on its way, and somebody wants to know.
    var isWanted: Bool { !isAsking && (isWantedForCursors || !waiting.isEmpty) }

    /// The token for the next PING; nil while one is on its way, or nobody wants to know.
    ///
    /// - Parameter cursors: is called before those that wait.
    func ask(_ cursors: (() -> Void)?) -> String? {
        isWantedForCursors = false
        guard !isAsking, cursors != nil || !waiting.isEmpty else { return nil }
        isAsking = true
        number += 1
        // In front: what the others do may ask again at once, and that asks about the lines of rooms as well.
        asked = (cursors.map { [$0] } ?? []) + waiting
        waiting = []
        return token
    }

    private var token: String { Self.prefix + String(number, radix: 36) }

    /// Whom to call now that a PONG with `token` came.
    func answered(_ token: String) -> [() -> Void] {
        guard isAsking, token == self.token else { return [] }
        isAsking = false
        defer { asked = [] }
        return asked
    }
}

/// Callbacks that wait for a client's PONG. At most one PING of these is pending.
final class DeliveryAcks {
    /// Callbacks stored for a client that does not answer; further ones are not called.
    static let maxWaiting = 100
    /// Prefix of every token, so that no other PONG is taken for an answer.
    static let prefix = "cb-"

    private var number: UInt64 = 0
    private var asked: [() -> Void] = []
    private var waiting: [() -> Void] = []
    private(set) var isAsking = false
    /// The next PING is wanted for the delivery cursors. Its scope is known only when it is sent: everything written by
    /// then.
    private var isWantedForCursors = false

    /// - Returns: false: there are too many.
    func add(_ received: @escaping () -> Void) -> Bool {
        guard waiting.count < Self.maxWaiting else { return false }
        waiting.append(received)
        return true
    }

    func askForCursors() { isWantedForCursors = true }

    /// A PING is wanted, and none is pending.
    var isWanted: Bool { !isAsking && (isWantedForCursors || !waiting.isEmpty) }

    /// The token of the next PING; nil: one is pending, or none is wanted.
    ///
    /// - Parameter cursors: called before the waiting callbacks.
    func ask(_ cursors: (() -> Void)?) -> String? {
        isWantedForCursors = false
        guard !isAsking, cursors != nil || !waiting.isEmpty else { return nil }
        isAsking = true
        number += 1
        // First, since the others may ask again at once, and that asks about the lines of rooms as well.
        asked = (cursors.map { [$0] } ?? []) + waiting
        waiting = []
        return token
    }

    private var token: String { Self.prefix + String(number, radix: 36) }

    /// The callbacks that a PONG with `token` completes.
    func answered(_ token: String) -> [() -> Void] {
        guard isAsking, token == self.token else { return [] }
        isAsking = false
        defer { asked = [] }
        return asked
    }
}

import WireBytes

/// The schedule of acknowledgement requests to the IRC users of a room, which move the delivery cursors.
package final class CursorRound {
    /// The wait of the first unacknowledged line for others, so that a conversation costs one PING and not one a line.
    package static let pause: Duration = .seconds(2)
    /// Lines after which a round starts early, so that no more are sent twice.
    package static let manyLines: Int64 = 200

    /// The end of the last round.
    private var askedUpTo: Int64 = -1
    private var isDue = false
    private var isUrgent = false

    /// - Returns: the pause before the round, where a new one is due.
    func linesWritten(upTo newest: Int64) -> Duration? {
        guard newest > askedUpTo else { return nil }
        let wasDue = isDue
        isDue = true
        if !isUrgent, newest - askedUpTo > Self.manyLines {
            isUrgent = true
            return .zero
        }
        return wasDue ? nil : Self.pause
    }

    func begin(upTo newest: Int64) {
        askedUpTo = newest
        isDue = false
        isUrgent = false
    }
}

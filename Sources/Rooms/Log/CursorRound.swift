import WireBytes

/// When the IRC users of a room are asked next how far they came.
package final class CursorRound {
    /// The first unacknowledged line waits so long for others, so that a conversation costs one PING and not one a line.
    package static let pause: Duration = .seconds(2)
    /// More lines than this are not worth getting twice.
    package static let manyLines: Int64 = 200

    /// Everybody was asked about everything up to here.
    private var askedUpTo: Int64 = -1
    private var isDue = false
    private var isUrgent = false

    /// - Returns: the pause before the round, where that is new.
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

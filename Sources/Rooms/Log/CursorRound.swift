/// When the IRC users of a room are asked next.
package struct CursorRound {
    /// The first unacknowledged line waits so long for others, so that a talk costs one PING and not one a line.
    package static let pause: Duration = .seconds(2)
    /// More lines than this are not worth getting twice.
    package static let manyLines: Int64 = 200

    /// Everybody was asked about everything up to here.
    var askedUpTo: Int64 = -1
    package var isDue = false
    var isUrgent = false
}

/// How much the long answers of one client look at in a turn.
final class WalkBudget {
    /// People and rooms, found or not: a fraction of a millisecond. A client that asks for people whom nobody fits must not hold
    /// up the others for as long as looking at ten thousand of them takes.
    static let limit = 256

    private(set) var count = 0

    var isSpent: Bool { count >= Self.limit }

    /// Another client's answers.
    func begin() { count = 0 }

    func spend(_ steps: Int = 1) { count += steps }

    /// The others come first.
    func spendAll() { count = Self.limit }
}

/// Why a message was given up: the clause of its author's notice.
package struct FailureReason: Equatable, Sendable {
    let clause: String
    /// The backend may have it.
    let isArrivalOpen: Bool

    init(_ clause: String, isArrivalOpen: Bool = false) {
        self.clause = clause
        self.isArrivalOpen = isArrivalOpen
    }

    /// What became of the message, and why; without a full stop.
    package var sentence: String {
        isArrivalOpen ? "It is not known whether this was delivered, since \(clause)" : "Not delivered, \(clause)"
    }

    /// The same for the log.
    var logSentence: String {
        isArrivalOpen
            ? "it is not known whether a message from IRC was delivered, since \(clause)"
            : "a message from IRC was not delivered: \(clause)"
    }

    // MARK: - Stored

    /// The end of a stored text.
    private static let open = ", and whether it arrived is not known"

    init(stored: String) {
        let isOpen = stored.hasSuffix(Self.open)
        self.init(isOpen ? String(stored.dropLast(Self.open.count)) : stored, isArrivalOpen: isOpen)
    }

    var stored: String { isArrivalOpen ? clause + Self.open : clause }
}

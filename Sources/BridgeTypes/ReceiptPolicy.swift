/// When an IRC user's read receipts are sent to the backend.
public enum ReceiptPolicy: String, Sendable, CaseIterable {
    /// When the read marker moves.
    case marker
    /// Also when a user without read markers sends a message: earlier messages count as read.
    case speaking
    case off
}

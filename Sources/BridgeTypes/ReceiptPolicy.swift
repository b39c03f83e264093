/// When an IRC user's reading is told to the backend.
public enum ReceiptPolicy: String, Sendable, CaseIterable {
    /// When the read marker moves.
    case marker
    /// Also when somebody without read markers speaks: they read what came before.
    case speaking
    case off
}

import BridgeTypes
import ChatModel
import Dialects
import Identities
import Media
import Upstream
import WireBytes

/// An IRC user's typing state, as reported to the backend.
struct OutgoingTyping {
    /// Shortest interval between reports, at any rate of the client.
    static let minInterval: Duration = .milliseconds(300)
    /// Without a refresh the typing is over.
    static let expiry: Duration = .seconds(6)

    /// The client's last typing notification.
    var refreshedAt: MonotonicInstant
    /// The last report to the backend; nil: none yet.
    var toldAt: MonotonicInstant?

    /// The next step: a repeated report, or the end.
    func nextStep(repeating interval: Duration) -> MonotonicInstant {
        let end = refreshedAt + Self.expiry
        return toldAt.map { min($0 + interval, end) } ?? end
    }
}

import BridgeTypes
import ChatModel
import Dialects
import Identities
import Media
import Upstream
import WireBytes

/// An IRC user's typing, as the backend is told of it.
struct OutgoingTyping {
    /// Never more often than this, whatever the client does.
    static let minInterval: Duration = .milliseconds(300)
    /// Without a refresh the typing is over.
    static let expiry: Duration = .seconds(6)

    /// When the client last said so.
    var refreshedAt: MonotonicInstant
    /// When the backend was told of it last; nil: not yet.
    var toldAt: MonotonicInstant?

    /// When there is something to do about it next: say it again, or end it.
    func nextStep(repeating interval: Duration) -> MonotonicInstant {
        let end = refreshedAt + Self.expiry
        return toldAt.map { min($0 + interval, end) } ?? end
    }
}

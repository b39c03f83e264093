import ChatModel
import WireBytes

/// A backend's complaint about the room itself: that it is unknown, or read-only for the account.
///
/// | state     | set by                                   | ends                                                       |
/// |-----------|------------------------------------------|------------------------------------------------------------|
/// | unknown   | an error; the link fails                 | link usable, link stopped                                  |
/// | read-only | an error before the link is usable       | link lost, link stopped                                    |
/// | read-only | an error later, such as about a message  | the same; and after ``retryInterval``, to try it once more |
package final class RoomAccess {
    /// A backend does not tell that a room can be written in again.
    package static let retryInterval: Duration = .seconds(60)

    private struct Complaint {
        var state: ChatError.RoomState
        /// The backend's, scrubbed and printable.
        var words: String
        var until: MonotonicInstant?
    }

    private var complaint: Complaint?
    /// By the events that were handled; the link itself may be ahead of them.
    private var isUp = false

    func refused(_ state: ChatError.RoomState, _ words: String, at now: MonotonicInstant) {
        let isLasting = state == .unknown || !isUp
        complaint = Complaint(state: state, words: words, until: isLasting ? nil : now + Self.retryInterval)
    }

    func linkCameUp() {
        isUp = true
        end(.unknown)
    }

    func linkWentDown() {
        isUp = false
        end(.readOnly)
    }

    func linkStopped() {
        isUp = false
        complaint = nil
    }

    private func end(_ state: ChatError.RoomState) { if complaint?.state == state { complaint = nil } }

    /// The backend's words, if it says that the room is in this state.
    package func words(_ state: ChatError.RoomState, now: MonotonicInstant) -> String? {
        guard let complaint, complaint.state == state, complaint.until.map({ now < $0 }) ?? true else { return nil }
        return complaint.words
    }
}

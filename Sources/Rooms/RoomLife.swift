import ChatModel
import WireBytes

/// Whether a room has to do with its backend now: somebody is here, wants in, or the stored room is still being read.
package final class RoomLife {
    /// When the last IRC user left, in a room that has a link only while somebody is there.
    package private(set) var emptySince: MonotonicInstant?
    /// The link is being closed because nobody is there.
    package private(set) var isLeaving = false
    /// The stored room is being read; the link waits for it.
    package private(set) var isLoading = false
    /// JOINs wait for the link that is being opened.
    package private(set) var isOpening = false
    /// Former authors whose accounts were purged, and their replacement, while the stored room is being read.
    private var disowned: [ChatID: ChatID] = [:]

    func opens() { isOpening = true }

    /// Returns whether JOINs waited.
    func opened() -> Bool {
        defer { isOpening = false }
        return isOpening
    }

    func occupied() { emptySince = nil }

    func vacated(at now: MonotonicInstant) { emptySince = now }

    func leaves() { isLeaving = true }

    /// Returns whether the link was being closed because nobody was there.
    @discardableResult
    func left() -> Bool {
        defer { isLeaving = false }
        return isLeaving
    }

    func loads() { isLoading = true }

    func loaded() {
        isLoading = false
        disowned = [:]
    }

    /// The stored room may have been read before the store hears of this.
    func disowns(_ author: ChatID, as nobody: ChatID) { if isLoading { disowned[author] = nobody } }

    func replacement(of author: ChatID) -> ChatID? { disowned[author] }
}

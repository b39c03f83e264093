import ChatModel
import WireBytes

/// The reasons for a room's link: present users, waiting JOINs, or a stored room that is still being read.
package final class RoomLife {
    /// The time at which the last IRC user left an on-demand room; nil: one is present, or there is no link to close.
    package private(set) var emptySince: MonotonicInstant?
    /// The link is being closed because the room is empty.
    package private(set) var isLeaving = false
    /// The stored room is being read; the link waits for it.
    package private(set) var isLoading = false
    /// JOINs wait for the link that is being opened.
    package private(set) var isOpening = false
    /// Former authors whose accounts were purged, and their replacement, while the stored room is being read.
    private var disowned: [ChatID: ChatID] = [:]
    /// People erased while the stored room is being read.
    private(set) var erased: [StoredPerson] = []

    func opens() { isOpening = true }

    /// Returns whether JOINs waited.
    func opened() -> Bool {
        defer { isOpening = false }
        return isOpening
    }

    func occupied() { emptySince = nil }

    func vacated(at now: MonotonicInstant) { emptySince = now }

    func leaves() { isLeaving = true }

    /// There is no link to close any more.
    func stopped() { emptySince = nil }

    /// Returns whether the link was being closed because the room was empty.
    @discardableResult
    func left() -> Bool {
        defer { isLeaving = false }
        return isLeaving
    }

    func loads() { isLoading = true }

    func loaded() {
        isLoading = false
        (disowned, erased) = ([:], [])
    }

    /// The stored room may have been read before the store applies this.
    func disowns(_ author: ChatID, as nobody: ChatID) { if isLoading { disowned[author] = nobody } }

    func erases(_ person: StoredPerson) { if isLoading { erased.append(person) } }

    func replacement(of author: ChatID) -> ChatID? { disowned[author] }
}

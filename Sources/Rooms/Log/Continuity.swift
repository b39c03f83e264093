import BridgeTypes
import ChatModel
import Upstream
import WireBytes

/// Until when a room's order is complete, and since when messages may be missing from it.
package final class Continuity {
    /// Up to when everything that the backend sent over this link has come, and was handled; nil: there was no link.
    package private(set) var proof: LinkProof?
    /// Messages since then may be missing; nil: none are.
    package private(set) var missingSince: Now?
    /// They are missing because somebody entered then and there was no link; nil: for another reason.
    private(set) var awaitedSince: Now?
    /// When the member who enters now asked to, after a wait.
    private(set) var askedSince: Now?
    /// When messages were shown again though something was missing in front of them.
    private(set) var gapEnd: Now?
    /// Since when the login on the socket has ended: the backend sends nothing meanwhile.
    private var loginExpiredAt: Now?
    /// The time that the newest line bears in front of the gap; nil: there is none, or no gap.
    private(set) var lastBeforeGap: ChatTimestamp?
    /// Until when the order is complete, as persisted last, and when that was.
    private(set) var persistedUntil: ChatTimestamp?
    private(set) var persistedAt: MonotonicInstant?

    /// Up to when everything said is known to have come over the link.
    func seenUntil(_ now: Now) -> Now { proof?.until ?? now }

    func linkProven(_ proof: LinkProof?) { self.proof = proof }

    // MARK: - Something is missing

    func missing(since: Now) { missingSince = since }

    /// The link is gone, or is given up.
    func lostSight() {
        gapEnd = nil
        awaitedSince = nil
    }

    func gapOpened(behind line: ChatTimestamp?) { lastBeforeGap = line }

    func loginExpired(_ now: Now) { loginExpiredAt = loginExpiredAt ?? seenUntil(now) }

    func loginRenewed(_ now: Now) {
        missingSince = missingSince ?? loginExpiredAt ?? seenUntil(now)
        loginExpiredAt = nil
    }

    /// Messages are shown again.
    func shownAgain(_ now: Now) { gapEnd = gapEnd ?? now }

    /// The gap was filled, or the room was told of it.
    func settled() { missingSince = nil }

    func filled() {
        missingSince = nil
        gapEnd = nil
    }

    // MARK: - Members who are here before the link is

    func awaits(since: Now) {
        if missingSince == nil, awaitedSince == nil { awaitedSince = since }
    }

    func noLongerAwaits() { awaitedSince = nil }

    func entering<Result>(askedAt: Now, _ enter: () -> Result) -> Result {
        askedSince = askedAt
        defer { askedSince = nil }
        return enter()
    }

    // MARK: - Persisted

    /// Returns whether that is news to the store.
    func persists(until: ChatTimestamp, at now: MonotonicInstant) -> Bool {
        persistedAt = now
        // Also one that is earlier: clocks are put back.
        guard until != persistedUntil else { return false }
        persistedUntil = until
        return true
    }

    func restored(until: ChatTimestamp?) { persistedUntil = until }
}

import BridgeTypes
import ChatModel
import Upstream
import WireBytes

/// The end of a room's complete order, and the beginning of a gap.
package final class Continuity {
    /// The time until which all that the backend sent over this link was received and handled; nil: there was no link.
    package private(set) var proof: LinkProof?
    /// The beginning of possibly missing messages; nil: none are.
    package private(set) var missingSince: Now?
    /// The time of a JOIN without a link that opened the gap; nil: another reason.
    private(set) var awaitedSince: Now?
    /// The time of a delayed JOIN command that is being processed.
    private(set) var askedSince: Now?
    /// The end of the gap: messages are shown again.
    private(set) var gapEnd: Now?
    /// The time at which the login on the socket expired: the backend sends no events meanwhile.
    private var loginExpiredAt: Now?
    /// The time of the newest line in front of the gap; nil: there is none, or no gap.
    private(set) var lastBeforeGap: ChatTimestamp?
    /// The last persisted end of the complete order, and the time of that.
    private(set) var persistedUntil: ChatTimestamp?
    private(set) var persistedAt: MonotonicInstant?

    /// The time until which all messages have come over the link.
    func seenUntil(_ now: Now) -> Now { proof?.until ?? now }

    func linkProven(_ proof: LinkProof?) { self.proof = proof }

    // MARK: - Gaps

    func missing(since: Now) { missingSince = since }

    /// The link is lost, or is given up.
    func invalidatePresence() {
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

    /// The gap was filled, or was reported to the room.
    func settled() { missingSince = nil }

    func filled() {
        missingSince = nil
        gapEnd = nil
    }

    // MARK: - Members before the link is up

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

    /// Returns whether the store needs the new value.
    func persists(until: ChatTimestamp, at now: MonotonicInstant) -> Bool {
        persistedAt = now
        // Also an earlier one: clocks are set back.
        guard until != persistedUntil else { return false }
        persistedUntil = until
        return true
    }

    func restored(until: ChatTimestamp?) { persistedUntil = until }
}

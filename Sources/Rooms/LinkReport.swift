import BridgeTypes
import Dialects
import WireBytes

/// An outage of a link, reported once.
package struct LinkOutage {
    package let since: MonotonicInstant
    package private(set) var reason: String
    package let wasUp: Bool
    /// The refusal by the backend, with the next attempt far off, was reported.
    private(set) var isRefusalTold = false

    init(since: MonotonicInstant, reason: String, wasUp: Bool) {
        self.since = since
        self.reason = reason
        self.wasUp = wasUp
    }

    mutating func goesOn(_ reason: String, isRefused: Bool) {
        self.reason = reason
        isRefusalTold = isRefused
    }
}

/// Reports about a room's link, to its members and to the operator.
package final class LinkReport {
    package private(set) var outage: LinkOutage?
    /// The link was not up for longer than ``RoomSettings/giveUpAfter``.
    private(set) var hasFailed = false
    private var isOtherRoomNoted = false
    /// Why the last call for a history failed; nil: it did not.
    package private(set) var historyFailure: String?
    /// Undecodable frames, by reason.
    package private(set) var droppedFrames: [DropReason: Int] = [:]

    func historyAnswered(failure: String?) { historyFailure = failure }

    /// Returns whether this outage is new.
    func lost(_ reason: String, wasUp: Bool, at now: MonotonicInstant) -> Bool {
        guard outage == nil else { return false }
        outage = LinkOutage(since: now, reason: reason, wasUp: wasUp)
        return true
    }

    /// Returns whether members are to be notified of the refusal; once per outage.
    func refused(_ reason: String) -> Bool {
        guard outage?.isRefusalTold == false else { return false }
        outage?.goesOn(reason, isRefused: true)
        return true
    }

    func gaveUp() { hasFailed = true }

    /// The link is up, or no longer wanted.
    func recovered() { hasFailed = false }

    /// Ends the outage and returns it.
    @discardableResult
    func takeOutage() -> LinkOutage? {
        defer { outage = nil }
        return outage
    }

    /// Returns whether to log that the socket also carries other rooms; once.
    func notesOtherRoom() -> Bool {
        defer { isOtherRoomNoted = true }
        return !isOtherRoomNoted
    }

    /// Returns the number of frames dropped for this reason.
    func dropped(_ reason: DropReason) -> Int {
        droppedFrames[reason, default: 0] += 1
        return droppedFrames[reason, default: 0]
    }
}

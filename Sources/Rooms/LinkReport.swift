import BridgeTypes
import Dialects
import WireBytes

/// Trouble with a link, told once.
package struct LinkOutage {
    package let since: MonotonicInstant
    package private(set) var reason: String
    package let wasUp: Bool
    /// It was told that the backend refuses us and that the next try is far off.
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

/// What members and the operator were told of a room's link.
package final class LinkReport {
    package private(set) var outage: LinkOutage?
    private var isOtherRoomNoted = false
    /// Frames that gave nothing, by reason.
    package private(set) var droppedFrames: [DropReason: Int] = [:]

    /// Returns whether that is news.
    func lost(_ reason: String, wasUp: Bool, at now: MonotonicInstant) -> Bool {
        guard outage == nil else { return false }
        outage = LinkOutage(since: now, reason: reason, wasUp: wasUp)
        return true
    }

    /// Returns whether members are to be told that the backend refuses us; once an outage.
    func refused(_ reason: String) -> Bool {
        guard outage?.isRefusalTold == false else { return false }
        outage?.goesOn(reason, isRefused: true)
        return true
    }

    /// Returns the trouble that is over.
    @discardableResult
    func takeOutage() -> LinkOutage? {
        defer { outage = nil }
        return outage
    }

    /// Whether the operator is to be told that the socket carries other rooms too; not a second time.
    func notesOtherRoom() -> Bool {
        defer { isOtherRoomNoted = true }
        return !isOtherRoomNoted
    }

    /// Returns how many were dropped for this reason.
    func dropped(_ reason: DropReason) -> Int {
        droppedFrames[reason, default: 0] += 1
        return droppedFrames[reason, default: 0]
    }
}

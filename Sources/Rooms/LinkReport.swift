import BridgeTypes
import Dialects
import WireBytes

/// An outage of a link, reported once; that of a link that never was up once for each reason.
package struct LinkOutage {
    package let since: MonotonicInstant
    package private(set) var reason: String
    package let wasUp: Bool
    /// Members were notified. Not of a link that is opened anew on purpose, unless its first try fails.
    package private(set) var isTold: Bool
    /// The refusal by the backend, with the next attempt far off, was reported.
    private(set) var isRefusalTold = false
    private var reasons: [String] = []
    /// Reasons may contain what changes with each attempt.
    private static let maxReasons = 4

    init(since: MonotonicInstant, reason: String, wasUp: Bool, isTold: Bool = true) {
        self.since = since
        self.reason = reason
        self.wasUp = wasUp
        self.isTold = isTold
        reasons = [reason]
    }

    /// For whom a failure is news.
    enum News {
        case none, operators, everybody
    }

    mutating func fails(_ reason: String) -> News {
        guard isTold else {
            isTold = true
            self.reason = reason
            return .everybody
        }
        if !wasUp { self.reason = reason }
        guard reasons.count < Self.maxReasons, !reasons.contains(reason) else { return .none }
        reasons.append(reason)
        // A link that was up comes back mostly, and how it was down in between says nothing of the room.
        return wasUp ? .operators : .everybody
    }

    mutating func goesOn(_ reason: String, isRefused: Bool) {
        self.reason = reason
        isTold = true
        isRefusalTold = isRefused
    }
}

/// Reports about a room's link, to its members and to the operator.
package final class LinkReport {
    package private(set) var outage: LinkOutage?
    /// The link was not up for longer than ``RoomSettings/giveUpAfter``.
    private(set) var hasFailed = false
    /// Frames of the session before it was usable, the opening.
    private var openingFrames: UInt64 = 0
    private var toldComplaints: [(words: String, at: MonotonicInstant)] = []
    /// A backend may say something new each time.
    private static let maxToldComplaints = 8
    /// After this a complaint is told once more: who is in the room now may not have seen it.
    private static let complaintMemory: Duration = .seconds(60 * 60)
    private var isOtherRoomNoted = false
    private var isReusedIDNoted = false
    /// Why the last call for a history failed; nil: it did not.
    package private(set) var historyFailure: String?
    /// Undecodable frames, by reason.
    package private(set) var droppedFrames: [DropReason: Int] = [:]

    /// A history that was called for had messages.
    private(set) var hasHistory = false

    func historyCame() { hasHistory = true }

    func historyAnswered(failure: String?) { historyFailure = failure }

    /// Returns for whom this outage, or its reason, is news.
    func lost(_ reason: String, wasUp: Bool, at now: MonotonicInstant) -> LinkOutage.News {
        if let news = outage?.fails(reason) { return news }
        outage = LinkOutage(since: now, reason: reason, wasUp: wasUp)
        return .everybody
    }

    /// A usable link is opened anew on purpose.
    func replaced(_ reason: String, at now: MonotonicInstant) {
        outage = outage ?? LinkOutage(since: now, reason: reason, wasUp: true, isTold: false)
    }

    /// Returns whether members are to be notified of the refusal; once per outage.
    func refused(_ reason: String) -> Bool {
        guard outage?.isRefusalTold == false else { return false }
        outage?.goesOn(reason, isRefused: true)
        return true
    }

    func cameUp(frameCount: UInt64) { openingFrames = frameCount }

    /// Returns whether members are to be notified of what the backend complains about; once for each complaint.
    ///
    /// - Parameter frameCount: how many frames of ours the backend may mean. After others than those of the opening it may
    ///   mean typing, a receipt, or what was answered before.
    func complained(_ words: String, isUp: Bool, frameCount: UInt64, at now: MonotonicInstant) -> Bool {
        guard !isUp || frameCount == openingFrames else { return false }
        toldComplaints.removeAll { now - $0.at >= Self.complaintMemory }
        guard toldComplaints.count < Self.maxToldComplaints, !toldComplaints.contains(where: { $0.words == words })
        else { return false }
        toldComplaints.append((words, now))
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

    /// Returns whether to log that the backend gave an id again; once.
    func notesReusedID() -> Bool {
        defer { isReusedIDNoted = true }
        return !isReusedIDNoted
    }

    /// Frames that were expected to be of the dialect, as it is configured now.
    private(set) var misreadFrames = 0

    func dialectMayBeOther() { misreadFrames = 0 }

    /// Returns the number of frames dropped for this reason.
    func dropped(_ reason: DropReason) -> Int {
        // Those of other types may be many, and of no interest.
        if reason != .unknownType { misreadFrames += 1 }
        droppedFrames[reason, default: 0] += 1
        return droppedFrames[reason, default: 0]
    }
}

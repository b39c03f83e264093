import BridgeTypes
import ChatModel
import WireBytes

/// The instant up to which everything that the backend sent over a link is known to have arrived.
///
/// The time at which something is read proves nothing: a proxy that stalled, or a process that was stopped, releases
/// old frames late, to a loop that is on time.
///
/// | proof                                   | proves arrival up to                                                 |
/// |-----------------------------------------|------------------------------------------------------------------------|
/// | the link became usable                  | its subscription was sent; without one, its handshake                |
/// | a ping was answered                     | that ping was sent                                                   |
/// | a message, where the server stamps them | its time, by the backend's clock as the most timely message showed it  |
///
/// The local wall clock may be set at any time, so a message's time is compared with the monotonic clock: the backend's
/// leads that by the lead of the most timely message, also one of an earlier link. Where a time seems later by the
/// local wall clock, that counts: a first message may be late as well.
///
/// A gap begins there. It may be reported too long; reported too short, a message would be lost without notice.
package struct LinkProof {
    /// A peer that answers none of so many pings answers none; the oldest are dropped.
    private static let maxAsked = 16

    package private(set) var until: Now
    /// Pings under way, oldest first.
    private var asked: [(ref: String, isInJSON: Bool, at: Now)] = []
    /// The most, in milliseconds, by which the time of a message over this link led the monotonic clock as it came.
    private var lead: Int64?
    /// The same of the link before.
    private let formerLead: Int64?

    /// - Parameter former: of the link before.
    package init(since now: Now, after former: LinkProof? = nil) {
        until = now
        formerLead = former.flatMap { $0.lead ?? $0.formerLead }
    }

    package mutating func asked(_ ref: String, isInJSON: Bool = false, at now: Now) {
        if asked.count == Self.maxAsked { asked.removeFirst() }
        asked.append((ref, isInJSON, now))
    }

    /// An answer settles its ping and those before it. Inside the JSON one may not say to which it is; then it is to the oldest.
    ///
    /// - Returns: when the ping was sent; nil: the answer is to none.
    @discardableResult
    package mutating func answered(_ ref: String?) -> MonotonicInstant? {
        let index = ref.map { ref in asked.firstIndex { $0.ref == ref } } ?? asked.firstIndex(where: \.isInJSON)
        guard let index else { return nil }
        let sent = asked[index].at
        advance(to: sent)
        asked.removeFirst(index + 1)
        return sent.monotonic
    }

    /// A message arrived that the server stamped with this time.
    package mutating func stamped(_ at: ChatTimestamp, now: Now) {
        let (ahead, overAhead) = at.milliseconds.subtractingReportingOverflow(now.monotonic.nanoseconds / 1_000_000)
        let (age, overAge) = now.wall.milliseconds.subtractingReportingOverflow(at.milliseconds)
        guard !overAhead, !overAge else { return }
        let known = lead.map { max($0, formerLead ?? $0) } ?? formerLead
        lead = max(lead ?? ahead, ahead)
        // From the future, with nothing to compare it with: that proves nothing.
        guard known != nil || age >= 0 else { return }
        let (late, overLate) = max(known ?? ahead, ahead).subtractingReportingOverflow(ahead)
        guard !overLate else { return }
        advance(to: now.earlier(by: max(late, age)))
    }

    private mutating func advance(to moment: Now) { if moment.monotonic > until.monotonic { until = moment } }
}

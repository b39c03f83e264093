import ChatModel
import WireBytes

/// Up to when everything that the backend sent over a link is known to have arrived.
///
/// The moment at which something is read proves nothing: a proxy that stalled, or a process that was stopped, releases old
/// frames late, to a loop that is on time.
///
/// | what proves                             | up to when                                                           |
/// |-----------------------------------------|------------------------------------------------------------------------|
/// | the link became usable                  | its subscription was sent; without one, its handshake                |
/// | a ping was answered                     | that ping was sent                                                   |
/// | a message, where the server stamps them | its time, less what the backend's clock was seen to lead ours by      |
///
/// A gap begins there. It may be told too long; told too short, something would be lost unsaid.
struct LinkProof {
    /// A peer that answers none of so many pings answers none; the oldest are dropped.
    private static let maxAsked = 16

    private(set) var until: Now
    /// Pings under way, oldest first.
    private var asked: [(ref: String, isInJSON: Bool, at: Now)] = []
    /// The most, in milliseconds, by which a message's time was later than its arrival. With a clock that leads, a late
    /// message would seem to be on time.
    private var lead: Int64 = 0

    init(since now: Now) { until = now }

    mutating func asked(_ ref: String, isInJSON: Bool = false, at now: Now) {
        if asked.count == Self.maxAsked { asked.removeFirst() }
        asked.append((ref, isInJSON, now))
    }

    /// An answer settles its ping and those before it. Inside the JSON one may not say to which it is; then it is to the oldest.
    mutating func answered(_ ref: String?) {
        let index = ref.map { ref in asked.firstIndex { $0.ref == ref } } ?? asked.firstIndex(where: \.isInJSON)
        guard let index else { return }
        advance(to: asked[index].at)
        asked.removeFirst(index + 1)
    }

    /// A message arrived that the server stamped with this time.
    mutating func stamped(_ at: ChatTimestamp, now: Now) {
        let (age, over) = now.wall.milliseconds.subtractingReportingOverflow(at.milliseconds)
        guard !over, age > .min else { return }
        lead = max(lead, -age)
        let (late, overLate) = age.addingReportingOverflow(lead)
        guard !overLate else { return }
        advance(to: now.earlier(by: late))
    }

    private mutating func advance(to moment: Now) { if moment.monotonic > until.monotonic { until = moment } }
}

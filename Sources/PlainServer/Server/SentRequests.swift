import WireBytes

/// What was sent with a label and is not answered yet: the person's messages, and requests such as for a history.
struct SentRequests {
    /// An echo that comes later is worth a word.
    static let echoPatience: Duration = .seconds(1)

    private var lastLabel = 0
    /// Oldest first.
    private var messages: [(label: String, text: String, at: MonotonicInstant)] = []
    private var requests: Set<String> = []

    /// Messages that the server has not shown yet.
    var messageCount: Int { messages.count }

    /// Messages are under way for longer than is usual.
    func isSlow(now: MonotonicInstant) -> Bool {
        messages.first.map { now - $0.at >= Self.echoPatience } ?? false
    }

    /// When ``isSlow(now:)`` becomes true; nil: it is, or nothing is under way.
    func deadline(now: MonotonicInstant) -> MonotonicInstant? {
        isSlow(now: now) ? nil : messages.first.map { $0.at + Self.echoPatience }
    }

    /// - Returns: the label of a message.
    mutating func message(_ text: String, now: MonotonicInstant) -> String {
        let label = nextLabel()
        messages.append((label, text, now))
        return label
    }

    /// - Returns: the label of a request.
    mutating func request() -> String {
        let label = nextLabel()
        requests.insert(label)
        return label
    }

    private mutating func nextLabel() -> String {
        lastLabel += 1
        return "p\(lastLabel)"
    }

    /// Something with this label has come, or nil where it has none.
    ///
    /// - Returns: the text of the message that it confirms or refuses.
    mutating func takeMessage(_ label: String?) -> String? {
        messages.firstIndex { $0.label == label }.map { messages.remove(at: $0).text }
    }

    /// - Returns: it answers a request.
    mutating func takeRequest(_ label: String?) -> Bool { label.flatMap { requests.remove($0) } != nil }
}

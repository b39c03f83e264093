import ChatModel
import WireBytes

/// Requests for the backend's ids of relayed messages, resolved by a history.
final class IDLookups {
    /// Open requests, at most.
    private static let capacity = 100
    /// Pause between lookups caused by upstream people.
    private static let pause: Duration = .seconds(2)

    typealias Request = (msgid: String, found: (ChatID?) -> Void)

    private var requests: [Request] = []
    private var notBefore = MonotonicInstant(nanoseconds: .min)

    var isEmpty: Bool { requests.isEmpty }
    var isFull: Bool { requests.count >= Self.capacity }

    func append(_ msgid: String, _ found: @escaping (ChatID?) -> Void) { requests.append((msgid, found)) }

    func takeAll() -> [Request] {
        defer { requests = [] }
        return requests
    }

    /// Returns whether an upstream person may cause a lookup now.
    func takeTurn(at now: MonotonicInstant) -> Bool {
        guard !isFull, !isEmpty || now >= notBefore else { return false }
        notBefore = now + Self.pause
        return true
    }
}

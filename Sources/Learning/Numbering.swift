import JSONText
import WireBytes

/// The characters before the number of a frame, and before the same number in the frame that answers it: `42` and `43` of
/// Socket.IO's `421["message",{}]` and `431[{}]`.
///
/// In a ``LearnedFrame`` the number has a place of its own, which descriptions do not have: there it is the rest of
/// `/prefix`.
struct Numbering: Hashable {
    static let pointer = "/number"

    let sent: String
    let received: String

    /// Nil: no frame is answered by one with the same number.
    init?(_ frames: [RecordedFrame]) {
        var pairs: [Numbering: Set<String>] = [:]
        let prefixes = frames.map { $0.text.prefix { !"{[\"".contains($0) } }
        for (index, frame) in frames.enumerated() where frame.isSent && prefixes[index].count < frame.text.count {
            for later in frames.indices.dropFirst(index + 1)
            where !frames[later].isSent && prefixes[later].count < frames[later].text.count {
                if let (pair, number) = Self.common(prefixes[index], prefixes[later]) {
                    pairs[pair, default: []].insert(number)
                }
            }
        }
        let best = pairs.max { ($0.value.count, $1.key.sent) < ($1.value.count, $0.key.sent) }
        guard let best else { return nil }
        self = best.key
    }

    private init(sent: String, received: String) {
        self.sent = sent
        self.received = received
    }

    /// The digits at the end of both, and what stands before these.
    private static func common(_ sent: Substring, _ received: Substring) -> (Numbering, number: String)? {
        guard sent.utf8.count == received.utf8.count, sent != received else { return nil }
        let pairs = zip(sent.utf8.reversed(), received.utf8.reversed())
        let count = pairs.prefix { $0 == $1 && ASCII.isDigit($0) }.count
        guard count > 0, count < sent.utf8.count else { return nil }
        let numbering = Numbering(sent: String(sent.dropLast(count)), received: String(received.dropLast(count)))
        return (numbering, String(sent.suffix(count)))
    }

    /// The number of a frame; nil: it has none.
    func number(_ prefix: Substring, isSent: Bool) -> Substring? {
        let begin = isSent ? sent : received
        guard prefix.hasPrefix(begin) else { return nil }
        let number = prefix.dropFirst(begin.count)
        return !number.isEmpty && number.utf8.allSatisfy { ASCII.isDigit($0) } ? number : nil
    }

    /// The place of the number in a description.
    var field: JSONValue { .object([.init("ptr", .string("/prefix")), .init("after", .string(received))]) }
}

import ChatModel
import WireBytes

/// The older history of a room, while it is in use.
final class HeldOlderHistory {
    private(set) var current: OlderHistory?

    func begin(border: Int64?, beginning: [StoredMessage], now: MonotonicInstant) -> OlderHistory {
        let older = OlderHistory(border: border, beginning: beginning, now: now)
        current = older
        return older
    }

    func drop() { current = nil }
}

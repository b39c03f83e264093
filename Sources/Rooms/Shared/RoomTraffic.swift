import ChatModel

/// What crossed a room since it was opened.
package final class RoomTraffic {
    package enum Kind: String, CaseIterable {
        /// To IRC: shown messages of upstream users. To the backend: messages of IRC users that it has confirmed.
        case message
        case typing
        /// Receipts, of reading and delivery.
        case read
        case join
        /// Leaves.
        case part
        case other
    }

    package private(set) var down = Counts()
    package private(set) var up = Counts()
    package private(set) var lastMessageAt: ChatTimestamp?

    package struct Counts: Equatable, Sendable {
        private var counts = [Int](repeating: 0, count: Kind.allCases.count)

        package subscript(kind: Kind) -> Int { counts[kind.index] }

        fileprivate mutating func add(_ kind: Kind) { counts[kind.index] += 1 }
    }

    func shown(at now: ChatTimestamp) {
        down.add(.message)
        lastMessageAt = now
    }

    func confirmed(at now: ChatTimestamp) {
        up.add(.message)
        lastMessageAt = now
    }

    /// Messages are counted when they are shown.
    func received(_ event: ChatEvent) { if let kind = Kind(event) { down.add(kind) } }

    /// Messages are counted when they are confirmed.
    func sent(_ command: ChatCommand) { if let kind = Kind(command) { up.add(kind) } }
}

extension RoomTraffic.Kind {
    fileprivate var index: Int {
        switch self {
        case .message: 0
        case .typing: 1
        case .read: 2
        case .join: 3
        case .part: 4
        case .other: 5
        }
    }

    /// Nil: messages, and the housekeeping of the link.
    fileprivate init?(_ event: ChatEvent) {
        switch event {
        case .message, .history, .ready, .auth, .account, .ping, .pong: return nil
        case .typing: self = .typing
        case .receipt: self = .read
        case .join: self = .join
        case .leave: self = .part
        case .edit, .delete, .presence, .reaction, .system, .topic, .error: self = .other
        }
    }

    fileprivate init?(_ command: ChatCommand) {
        switch command {
        case .message, .auth, .subscribe, .fetch, .ping, .pong: return nil
        case .typing: self = .typing
        case .receipt: self = .read
        case .join: self = .join
        case .leave: self = .part
        case .edit, .delete, .presence, .reaction: self = .other
        }
    }
}

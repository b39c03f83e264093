import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

/// Receipts reported to each author, by reader.
package final class ReceiptNotices {
    /// Coalescing: at most one line a reader and author in this time.
    package static let interval: Duration = .seconds(2)
    /// Author and reader pairs retained; past it the table starts anew (a receipt may then be reported twice).
    package static let capacity = 20_000

    package struct Key: Hashable {
        package var author: ClientID
        package var reader: PersonID
    }

    struct Mark {
        var msgid: String
        var sequence: Int
    }

    package struct State {
        package var read = -1
        package var delivered = -1
        var toldAt: MonotonicInstant?
        var pendingRead: Mark?
        var pendingDelivered: Mark?
    }

    /// The positions reported before this table existed.
    package struct Told: Equatable {
        package var delivered = -1
        package var read = -1
    }

    private var states: [Key: State] = [:]
    /// The pairs of each side, so that ten thousand people who leave at once cost ten thousand steps.
    private var readersOf: [ClientID: Set<PersonID>] = [:]
    private var authorsOf: [PersonID: Set<ClientID>] = [:]
    /// Keys of `states` with a pending report.
    private var pending: Set<Key> = []

    /// Records a receipt. True when a report is pending.
    ///
    /// - Parameter before: an earlier report to the author; evaluated when the pair is new.
    func record(
        _ key: Key, state: ChatReceipt.State, mark: Mark, before: @autoclosure () -> Told? = nil
    ) -> Bool {
        if states.count >= Self.capacity, states[key] == nil {
            states = [:]
            readersOf = [:]
            authorsOf = [:]
            pending = []
        }
        var entry = states[key] ?? before().map { State(read: $0.read, delivered: $0.delivered) } ?? State()
        switch state {
        case .read:
            guard mark.sequence > entry.read, mark.sequence > entry.pendingRead?.sequence ?? -1 else { return false }
            entry.pendingRead = mark
            // Read implies delivered.
            if let delivered = entry.pendingDelivered, delivered.sequence <= mark.sequence {
                entry.pendingDelivered = nil
            }
        case .delivered:
            let known = max(entry.delivered, entry.read, entry.pendingRead?.sequence ?? -1)
            guard mark.sequence > known, mark.sequence > entry.pendingDelivered?.sequence ?? -1 else { return false }
            entry.pendingDelivered = mark
        case .sent: return false
        }
        states[key] = entry
        readersOf[key.author, default: []].insert(key.reader)
        authorsOf[key.reader, default: []].insert(key.author)
        pending.insert(key)
        return true
    }

    /// Removes the pending report for `key`; nil while the pause after the last line lasts.
    func takeDue(_ key: Key, now: MonotonicInstant) -> (delivered: Mark?, read: Mark?)? {
        guard var entry = states[key], entry.pendingRead != nil || entry.pendingDelivered != nil else { return nil }
        if let told = entry.toldAt, now - told < Self.interval { return nil }
        let due = (entry.pendingDelivered, entry.pendingRead)
        entry.delivered = max(entry.delivered, due.0?.sequence ?? -1, due.1?.sequence ?? -1)
        entry.read = max(entry.read, due.1?.sequence ?? -1)
        entry.pendingDelivered = nil
        entry.pendingRead = nil
        entry.toldAt = now
        states[key] = entry
        pending.remove(key)
        return due
    }

    /// The readers of an author's messages, and their positions.
    package func readers(of author: ClientID) -> [(reader: PersonID, told: Told)] {
        (readersOf[author] ?? []).compactMap { reader in
            states[Key(author: author, reader: reader)].map { state in
                let read = max(state.read, state.pendingRead?.sequence ?? -1)
                return (
                    reader,
                    Told(delivered: max(state.delivered, state.pendingDelivered?.sequence ?? -1), read: read)
                )
            }
        }
    }

    /// The positions reported to the author.
    package func told(_ key: Key) -> Told? { states[key].map { Told(delivered: $0.delivered, read: $0.read) } }

    /// Pairs with a report waiting for the pause, in a fixed order.
    package var waiting: [Key] {
        pending.sorted { ($0.author.rawValue, $0.reader.rawValue) < ($1.author.rawValue, $1.reader.rawValue) }
    }

    package var isWaiting: Bool { !pending.isEmpty }

    /// The number of pairs.
    package var count: Int { states.count }

    package func forget(author: ClientID) {
        for reader in readersOf[author] ?? [] { remove(Key(author: author, reader: reader)) }
    }

    package func forget(reader: PersonID) {
        for author in authorsOf[reader] ?? [] { remove(Key(author: author, reader: reader)) }
    }

    private func remove(_ key: Key) {
        states[key] = nil
        pending.remove(key)
        readersOf[key.author]?.remove(key.reader)
        if readersOf[key.author]?.isEmpty == true { readersOf[key.author] = nil }
        authorsOf[key.reader]?.remove(key.author)
        if authorsOf[key.reader]?.isEmpty == true { authorsOf[key.reader] = nil }
    }
}

/// Receipts reported to authors, by identity and not by connection, so that none is repeated after a restart.
package final class ReportedReceipts {
    package typealias Told = ReceiptNotices.Told

    private var authors: [ChatID: [Person.RemoteKey: Told]] = [:]
    private var count = 0

    package func told(author: ChatID, reader: Person.RemoteKey) -> Told? { authors[author]?[reader] }

    package func readers(of author: ChatID) -> [Person.RemoteKey: Told] { authors[author] ?? [:] }

    package func forget(author: ChatID) { count -= authors.removeValue(forKey: author)?.count ?? 0 }

    func forget(reader: ChatPerson) {
        for (author, readers) in authors {
            for key in readers.keys where StoredPerson.areSame(key.person, reader) {
                authors[author]?[key] = nil
                count -= 1
            }
        }
    }

    /// - Returns: the new positions; nil when there is no progress.
    @discardableResult
    package func enter(author: ChatID, reader: Person.RemoteKey, _ told: Told) -> Told? {
        let known = authors[author]?[reader]
        let risen = Told(
            delivered: max(told.delivered, known?.delivered ?? -1), read: max(told.read, known?.read ?? -1))
        guard risen != known else { return nil }
        if known == nil {
            if count >= ReceiptNotices.capacity { (authors, count) = ([:], 0) }
            count += 1
        }
        authors[author, default: [:]][reader] = risen
        return risen
    }
}

import ChatModel
import Rooms

/// Changes that the store had no room for, until it has.
///
/// Small, important ones are written again, with their state of that time: newer changes of the same subject may have
/// been stored meanwhile, and a stale one behind them would win.
package final class StoreOverflow {
    /// Limit of changes to write again. Without a working store messages of IRC users are refused, so these are the
    /// outcomes of messages accepted before, and read positions and actions since.
    static let capacity = 10_000

    /// Limit of rooms and conversations with a gap to report, about 200 bytes each: twice all that can exist at a time.
    static let maxPlaces = 2 * PrivateConversations.maxCount

    struct Period: Equatable {
        var from: ChatTimestamp
        var to: ChatTimestamp
    }

    /// The subject of a change; only the last change of a subject counts.
    enum Thing: Hashable {
        case upstreamID(StoredRoomKey, msgid: String)
        case text(StoredRoomKey, msgid: String)
        case takenBack(StoredRoomKey, msgid: String)
        case marker(StoredRoomKey, ChatID)
        case receipt(StoredRoomKey, author: ChatID, reader: ChatPerson)
        case identity(backend: String, ChatPerson)
        case account(String)
        case conversation(StoredRoomKey)
        case nick(String)
        case choices(String)
        case historyUnasked(StoredRoomKey)

        /// Nil: it is not written again. Messages leave a gap; acceptances are refused with a notice; the position up
        /// to which a room was received is superseded by later ones; cursors, memberships and the outcomes of messages
        /// are retried elsewhere; bookmarks of mirrors are superseded too; and an account that could not be stored is dropped, so nothing of an
        /// earlier one has to be purged for it.
        init?(_ change: StoreOperation) {
            switch change {
            case .learn(let room, let msgid, _): self = .upstreamID(room, msgid: msgid)
            case .edit(let room, let msgid, _): self = .text(room, msgid: msgid)
            case .takeBack(let room, let msgid), .restore(let room, let msgid): self = .takenBack(room, msgid: msgid)
            case .marker(let room, let marker): self = .marker(room, marker.reader)
            case .receipt(let room, let receipt):
                self = .receipt(room, author: receipt.author, reader: Self.keyed(receipt.reader))
            case .identity(let known): self = .identity(backend: known.backend, Self.keyed(known.person))
            case .removeIdentity(let backend, let person): self = .identity(backend: backend, Self.keyed(person))
            case .removeAccount(let name): self = .account(name)
            case .removeConversation(let key): self = .conversation(key)
            case .nick(let known): self = .nick(known.folded)
            case .removeNick(let folded): self = .nick(folded)
            case .choices(let chosen): self = .choices(chosen.account)
            case .historyUnasked(let room, _): self = .historyUnasked(room)
            case .message, .accept, .live, .cursor, .dropCursor, .membership, .endMembership, .mirrored, .bookmark,
                .outboxState, .leaveOutbox, .account, .removeAuthor:
                return nil
            }
        }

        /// Keyed by the id where there is one, with any name.
        private static func keyed(_ person: ChatPerson) -> ChatPerson {
            person.id == nil ? person : ChatPerson(id: person.id)
        }
    }

    struct Lost {
        var change: StoreOperation
        /// The ticket of the refused write.
        var ticket: StoreTicket
        fileprivate var number: Int
    }

    /// The period of the missing messages, by room.
    private(set) var messages: [StoredRoomKey: Period] = [:]
    private var lost: [Thing: Lost] = [:]
    private var lastNumber = 0
    private var newest: StoreTicket?
    /// The newest accepted write ahead of the lost ones: once it is settled there is room again.
    private(set) var waitsFor: StoreTicket?

    package var isEmpty: Bool { newest == nil }

    /// The last change of each subject, in the order of the losses.
    private var again: [Lost] { lost.values.sorted { $0.number < $1.number } }

    /// Takes the changes to write again, and the periods of the missing messages. There is room again.
    func take() -> (again: [Lost], messages: [StoredRoomKey: Period]) {
        defer { (lost, messages, newest, waitsFor) = ([:], [:], nil, nil) }
        return (again, messages)
    }

    func add(_ changes: [StoreOperation], _ ticket: StoreTicket, at now: ChatTimestamp) {
        let before = StoreTicket(rawValue: ticket.rawValue &- 1)
        if newest != before { waitsFor = before }
        newest = ticket
        for change in changes {
            if case .message(let key, let message) = change,
                messages[key] != nil || messages.count < Self.maxPlaces
            {
                let from = min(message.gapFrom ?? message.at, message.at, now)
                let period = messages[key] ?? Period(from: from, to: now)
                messages[key] = Period(from: min(period.from, from), to: max(period.to, now))
            }
            guard let thing = Thing(change), lost[thing] != nil || lost.count < Self.capacity else { continue }
            lastNumber += 1
            lost[thing] = Lost(change: change, ticket: ticket, number: lastNumber)
        }
    }
}

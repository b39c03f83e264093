import ChatModel
import Rooms

/// What the store had no room for, until it has.
///
/// What is small and matters is handed over again, and then as it is by that time: newer changes of the same thing found room
/// meanwhile, and an old one behind them would win.
package final class UnkeptChanges {
    /// Things that are handed over again at most. Messages of IRC users are refused while nothing can be kept, so what is left
    /// are the ends of those that were accepted before, and what people read and did meanwhile.
    static let capacity = 10_000

    /// Rooms and conversations that are told of a gap, each about 200 bytes: all that there can be at a time, twice.
    static let maxPlaces = 2 * PrivateConversations.maxCount

    struct Period: Equatable {
        var from: ChatTimestamp
        var to: ChatTimestamp
    }

    /// What a change is about: of the changes of one thing the last one counts.
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

        /// Nil: it is not handed over again. Messages leave a gap; acceptances are refused aloud; how far a room was heard is
        /// told anew by what comes later; cursors, rooms of accounts and what became of messages are owed elsewhere; and an
        /// account that could not be stored is given up, so nothing of an earlier one need be forgotten for it.
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
            case .message, .accept, .live, .cursor, .dropCursor, .membership, .endMembership, .outboxState,
                .leaveOutbox, .account, .removeAuthor:
                return nil
            }
        }

        /// By the id where there is one, whatever the name is.
        private static func keyed(_ person: ChatPerson) -> ChatPerson {
            person.id == nil ? person : ChatPerson(id: person.id)
        }
    }

    struct Lost {
        var change: StoreOperation
        /// The order that found no room.
        var ticket: StoreTicket
        fileprivate var number: Int
    }

    /// When the messages were said that are missing, by room.
    private(set) var messages: [StoredRoomKey: Period] = [:]
    private var lost: [Thing: Lost] = [:]
    private var lastNumber = 0
    private var newest: StoreTicket?
    /// The newest order in front of them that the store did take: when it is settled there is room again.
    private(set) var waitsFor: StoreTicket?

    package var isEmpty: Bool { newest == nil }

    /// The last change of each, in the order in which they were lost.
    private var again: [Lost] { lost.values.sorted { $0.number < $1.number } }

    /// There is room again. Returns what is to be handed over, and when the messages were said that are missing.
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

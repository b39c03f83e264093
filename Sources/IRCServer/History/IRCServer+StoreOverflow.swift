import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms

// Store overflow: warnings to the authors, and recovery once there is room again.

extension IRCServer {
    /// Handles changes that the store refused; small, important ones are written again later.
    package func storeDidLose(_ changes: [StoreOperation], _ ticket: StoreTicket) {
        if unkept.isEmpty {
            context.note(.error, "store-overflow", "the write queue is full; messages are not stored")
        }
        unkept.add(changes, ticket, at: context.now.wall)
    }

    /// Recovers from an overflow: the writes ahead of the loss are on disk, so there is room again.
    package func makeUpForLosses() {
        guard context.ledger.condition == .sound, let ticket = unkept.waitsFor, context.ledger.isSettled(ticket)
        else { return }
        let (again, messages) = unkept.take()
        context.note(.warn, "store-gap", "messages are stored again; some are missing")
        let open = Dictionary(rooms.map { ($0.storedKey, $0) }, uniquingKeysWith: { first, _ in first })
        for lost in again {
            if let change = present(lost, open) { context.keep(change) }
        }
        for room in rooms {
            if let period = messages[room.storedKey] {
                room.reportUnpersisted(from: period.from, to: period.to, context)
            }
        }
        let conversations = messages.filter { $0.key.parties != nil }
        for (key, period) in conversations.sorted(by: { $0.key.room < $1.key.room }) {
            keepUnkept(in: key, from: period.from, to: period.to)
        }
    }

    /// The present state of a lost change; nil: the store is correct without it.
    private func present(_ lost: StoreOverflow.Lost, _ rooms: [StoredRoomKey: Room]) -> StoreOperation? {
        switch lost.change {
        case .edit(let room, let msgid, _):
            return context.ledger.isEdited(room, msgid, after: lost.ticket) ? nil : lost.change
        case .takeBack(let room, let msgid), .restore(let room, let msgid):
            guard let entry = rooms[room]?.entry(msgid: msgid) else { return lost.change }
            return entry.isTakenBack ? .takeBack(room, msgid: msgid) : .restore(room, msgid: msgid)
        case .marker(let key, let marker): return present(marker, key, rooms[key]).map { .marker(key, $0) }
        case .receipt(let key, var receipt):
            guard let room = rooms[key] else { return lost.change }
            let reader = Person.RemoteKey(
                backend: key.backend, id: receipt.reader.id,
                name: receipt.reader.id == nil ? receipt.reader.name : nil)
            guard let told = room.reportedReceipts.told(author: receipt.author, reader: reader) else { return nil }
            receipt.deliveredSequence = Int64(told.delivered)
            receipt.readSequence = Int64(told.read)
            return .receipt(key, receipt)
        case .identity(let known): return context.identities.storeChange(of: known.person, backend: known.backend)
        case .removeIdentity(let backend, let person):
            return context.identities.storeChange(of: person, backend: backend)
        case .removeAccount(let name):
            let isBack = [accounts[name]?.name, registrations.name(written: name)].contains { written in
                written.map { TextBytes.areSame($0, name) } ?? false
            }
            return isBack ? nil : lost.change
        case .removeConversation(let key):
            guard let parties = key.parties else { return nil }
            let pair = PrivateConversations.Pair(parties.one, parties.other)
            // Removal would include newer messages, so the old ones stay.
            return privateMessages.conversations.contains(pair) && pair.storedKey == key ? nil : lost.change
        case .nick(let known): return privateMessages.conversations.kept(folded: known.folded)
        case .removeNick(let folded): return privateMessages.conversations.kept(folded: folded)
        case .choices(let chosen): return .choices(choices.stored(of: chosen.account))
        default: return lost.change
        }
    }

    private func present(_ marker: StoredMarker, _ key: StoredRoomKey, _ room: Room?) -> StoredMarker? {
        if key == PrivateMarkers.storedKey { return privateMessages.markers.stored(marker.reader) }
        guard let room else { return marker }
        return room.marker(ofAuthor: marker.reader).map {
            StoredMarker(reader: marker.reader, at: $0.at, sequence: Int64($0.sequence))
        }
    }

    // MARK: - Private conversations

    /// Warns the authors of private messages that were delivered, but are missing from the history.
    package func tellUnkept(_ changes: [StoreOperation], _ ticket: StoreTicket) {
        for case .message(let key, let message) in changes where message.kind != .gap {
            guard let parties = key.parties, let (id, person) = context.identities.person(nick: message.nick) else {
                continue
            }
            let own = AccountName.fold(party(person))
            let partner = PrivateConversations.Pair(parties.one, parties.other).partner(of: own)
            let author = sessions(of: id).first { session in
                NumberedClientName.isSame(session.clientName, message.client)
                    && session.lastKept.map { $0 >= ticket } ?? false
            }
            guard let author else { continue }
            let name = PrivateConversations.nick(ofVisitor: partner) ?? nick(of: partner) ?? name(of: partner)
            deliver(
                .warn(
                    "PRIVMSG", "CANNOT_STORE", PrintableText.word(name),
                    text: "Delivered, but not stored, the write queue is full: " + MessageText.excerpt(message.text),
                    source: settings.serverName), to: author.id)
        }
    }

    /// Persists a gap in a conversation, which both parties see in its history.
    private func keepUnkept(in key: StoredRoomKey, from: ChatTimestamp, to: ChatTimestamp) {
        guard let parties = key.parties else { return }
        let pair = PrivateConversations.Pair(parties.one, parties.other)
        guard privateMessages.conversations.contains(pair), pair.storedKey == key else { return }
        let place = privateMessages.takePlace(in: pair, by: "", at: nil)
        let from = min(from, to)
        // Not the time of a lost message: paging on from one must not find this line, which is behind newer messages.
        let end = ChatTimestamp(milliseconds: to.milliseconds &+ 1)
        let msgid = context.messageID(
            backend: key.backend, room: key.room, sender: ChatID("gap"),
            id: ChatID("\(place) \(from.milliseconds) \(to.milliseconds)"))
        context.keep(
            .message(
                key,
                StoredMessage(
                    kind: .gap, sequence: place, msgid: msgid, at: end, backendAt: to, gapFrom: from,
                    nick: settings.serverName,
                    source: settings.serverName,
                    text: "*** What was said \(Room.span(from, to)) could not be stored.")))
    }
}

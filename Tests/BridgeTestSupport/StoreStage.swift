import BridgeCore
import BridgeTypes
public import ChatModel
import IRCServer

/// A simulated store: writes are queued until they are committed, at once or by the test, and a crash preserves the
/// committed ones.
public struct StoreStage {
    /// The committed state.
    public private(set) var disk: StoredState
    /// Writes are committed at once; otherwise by ``commit(_:)``.
    public var commits = true
    /// Acceptances are refused for this reason.
    public var refusal: String?
    /// The store fails for this reason: acceptances are refused, other writes are queued.
    public var failure: String?
    /// The capacity of the write queue; further writes overflow.
    public var room = Int.max
    /// Otherwise queries are held.
    public var answersQuestions = true
    /// The number of queries to answer; further ones are held.
    public var questionsToAnswer = Int.max
    /// Steps of searches that were answered.
    public private(set) var searchStepCount = 0
    /// Bytes of text that each step of a search has looked at beside those of the disk.
    public var searchedBesides = 0
    /// The reason of failing queries.
    public var readFailure: StoreFailure?
    /// Uncommitted writes.
    public private(set) var waiting: [(ticket: StoreTicket, changes: [StoreOperation], number: Int)] = []
    /// All writes, committed or not.
    public private(set) var orders: [StoreOperation] = []
    private var allowed = 0
    private var toldFailure: String?
    private var settled = StoreTicket(rawValue: 0)
    private var overflowed: [(ticket: StoreTicket, changes: [StoreOperation])] = []
    /// Writes that fitted the queue.
    private var handedOver = 0
    /// Each is answered after so many commits, or when the store fails.
    private var questions: [(question: BridgeAction, after: Int)] = []
    /// Reverted changes, with the earlier values.
    private var withdrawn: [String: [StoredMessage]] = [:]

    public init(_ disk: StoredState = StoredState()) { self.disk = disk }

    /// The state of an earlier process.
    public mutating func prepare(_ changes: [StoreOperation]) {
        for change in changes { apply(change) }
    }

    private mutating func apply(_ change: StoreOperation) {
        if case .takeBack(let key, let msgid) = change {
            withdrawn[msgid] = disk.rooms[key]?.messages.filter { $0.msgid == msgid || $0.wasDone(to: msgid) }
        }
        disk.apply(change)
        guard case .restore(let key, let msgid) = change, let rows = withdrawn.removeValue(forKey: msgid) else {
            return
        }
        for row in rows {
            guard let index = disk.rooms[key]?.messages.firstIndex(where: { $0.msgid == row.msgid }) else { continue }
            disk.rooms[key]?.messages[index] = row
        }
    }

    /// The same store after a crash: uncommitted writes are lost.
    public var afterCrash: StoreStage { StoreStage(disk) }

    /// Commits the oldest queued writes.
    public mutating func commit(_ count: Int = .max) { allowed = min(count, waiting.count) }

    /// Removes the oldest messages of a room, as by age.
    public mutating func removeOldest(_ count: Int, of key: StoredRoomKey) {
        let rest = messages(of: key).dropFirst(count)
        disk.rooms[key]?.messages = Array(rest)
        disk.listConversation(key)
    }

    public mutating func takeOrders() -> [StoreOperation] {
        defer { orders = [] }
        return orders
    }

    mutating func ordered(_ ticket: StoreTicket, _ changes: [StoreOperation]) {
        orders += changes
        guard waiting.count < room else { return overflowed.append((ticket, changes)) }
        handedOver += 1
        waiting.append((ticket, changes, handedOver))
    }

    mutating func asked(_ question: BridgeAction) { questions.append((question, handedOver)) }

    mutating func answerOne(_ bridge: Bridge, _ now: Now) -> Bool {
        if !overflowed.isEmpty {
            let (ticket, changes) = overflowed.removeFirst()
            bridge.storeOverflowed(ticket, changes, now: now)
            return true
        }
        if failure != toldFailure {
            toldFailure = failure
            bridge.storeConditionChanged(failure.map { .failing($0) } ?? .sound, now: now)
            return true
        }
        if let failure {
            if refuseWaiting(bridge, failure, now) { return true }
            return answerQuestion(bridge, now)
        }
        let count = commits ? waiting.count : min(allowed, waiting.count)
        allowed = 0
        if count > 0 {
            let orders = Array(waiting[..<count])
            waiting.removeFirst(count)
            var refused: [StoreTicket] = []
            for (ticket, changes, _) in orders {
                for change in changes where refusal == nil || !change.isAcceptance { apply(change) }
                if refusal != nil, changes.contains(where: \.isAcceptance) { refused.append(ticket) }
            }
            settled = orders.last?.ticket ?? settled
            bridge.storeSettled(through: settled, refused: refused, reason: refusal, now: now)
            return true
        }
        return answerQuestion(bridge, now)
    }

    /// As in the store: the rest of the writes is queued; empty ones settle with the one before them.
    private mutating func refuseWaiting(_ bridge: Bridge, _ reason: String, _ now: Now) -> Bool {
        var refused: [StoreTicket] = []
        var left: [(ticket: StoreTicket, changes: [StoreOperation], number: Int)] = []
        for (ticket, changes, number) in waiting {
            let rest = changes.filter { !$0.isAcceptance }
            if rest.count < changes.count { refused.append(ticket) }
            if !rest.isEmpty {
                left.append((ticket, rest, number))
            } else if left.isEmpty {
                settled = ticket
            } else {
                left[left.count - 1].ticket = ticket
            }
        }
        waiting = left
        guard !refused.isEmpty else { return false }
        bridge.storeSettled(through: settled, refused: refused, reason: reason, now: now)
        return true
    }

    /// Committed state, and queued state while the store fails.
    private var shown: StoredState {
        guard failure != nil else { return disk }
        var stage = self
        for change in waiting.flatMap(\.changes) { stage.apply(change) }
        return stage.disk
    }

    private mutating func answerQuestion(_ bridge: Bridge, _ now: Now) -> Bool {
        guard let (question, after) = questions.first, answersQuestions, questionsToAnswer > 0,
            failure != nil || waiting.first.map({ $0.number > after }) ?? true
        else { return false }
        questions.removeFirst()
        questionsToAnswer -= 1
        let shown = shown
        func messages(of key: StoredRoomKey) -> [StoredMessage] {
            (shown.rooms[key]?.messages ?? []).sorted { $0.sequence < $1.sequence }
        }
        switch question {
        case .loadRoom(let id, let key):
            bridge.roomLoaded(
                id, readFailure.map { .failure($0) } ?? .success(shown.rooms[key] ?? StoredRoom()), now: now)
        case .readMessages(let id, let key, let after, let through, let limit):
            let found = messages(of: key).filter { $0.sequence > after && $0.sequence <= through }
            bridge.messagesRead(
                id, readFailure.map { .failure($0) } ?? .success(Array(found.prefix(limit))), now: now)
        case .findPlaces(let id, let key, let query):
            let rows = messages(of: key)
            bridge.placesFound(
                id, readFailure.map { .failure($0) } ?? .success(StoredPlaces(query, of: rows)), now: now)
        case .searchMessages(let id, let key, let search):
            searchStepCount += 1
            var step = search.step(in: messages(of: key))
            step.byteCount += searchedBesides
            bridge.messagesSearched(id, readFailure.map { .failure($0) } ?? .success(step), now: now)
        default: break
        }
        return true
    }

    private func messages(of key: StoredRoomKey) -> [StoredMessage] {
        (disk.rooms[key]?.messages ?? []).sorted { $0.sequence < $1.sequence }
    }
}

extension StoredRoom {
    fileprivate mutating func forget(_ author: ChatID, as nobody: ChatID) {
        markers.removeAll { $0.reader == author || $0.reader.rawValue.hasPrefix(author.canonical + " ") }
        receipts.removeAll { $0.author == author }
        for index in outbox.indices where outbox[index].author == author {
            outbox[index].author = nobody
            outbox[index].client = nil
            if outbox[index].state == .failed { outbox[index].state = .told }
        }
    }
}

extension StoredState {
    /// Applies one change by the store's rules.
    mutating func apply(_ change: StoreOperation) {
        switch change {
        case .accept(let entry): rooms[entry.room, default: StoredRoom()].outbox.append(entry)
        case .outboxState(let id, let state, let confirmedPieces, let reason):
            changeOutbox { entries in
                for index in entries.indices where entries[index].id == id {
                    entries[index].state = state
                    entries[index].confirmedPieces = confirmedPieces
                    entries[index].reason = reason
                }
            }
        case .leaveOutbox(let id): changeOutbox { $0.removeAll { $0.id == id } }
        case .message(let key, let message):
            var room = rooms[key] ?? StoredRoom()
            room.messages.removeAll { $0.msgid == message.msgid }
            room.messages.append(message)
            room.nextSequence = max(room.nextSequence, message.sequence + 1)
            rooms[key] = room
            listConversation(key)
        case .learn(let key, let msgid, let upstreamID):
            changeMessage(key, msgid) { $0.upstreamID = upstreamID }
        case .edit(let key, let msgid, let text):
            changeMessage(key, msgid) { message in
                message.text = text
                message.sentAs = nil
            }
        case .takeBack(let key, let msgid):
            changeMessage(key, msgid) { $0.takeBack() }
            guard let messages = rooms[key]?.messages else { return }
            for index in messages.indices where messages[index].wasDone(to: msgid) {
                rooms[key]?.messages[index].takeBack()
            }
        // The owner of the disk restores the earlier value.
        case .restore: break
        case .marker(let key, let marker):
            rooms[key, default: StoredRoom()].markers.removeAll { $0.reader == marker.reader }
            rooms[key, default: StoredRoom()].markers.append(marker)
        case .receipt(let key, let receipt):
            rooms[key, default: StoredRoom()].receipts.removeAll {
                $0.author == receipt.author && $0.reader == receipt.reader
            }
            rooms[key, default: StoredRoom()].receipts.append(receipt)
        case .live(let key, let until, let counted):
            rooms[key, default: StoredRoom()].liveUntil = until
            rooms[key, default: StoredRoom()].liveCounted = counted
        case .historyUnasked(let key, let isUnasked): rooms[key, default: StoredRoom()].isHistoryUnasked = isUnasked
        case .identity(let identity):
            forget(identity.backend, identity.person)
            identities.append(identity)
        case .removeIdentity(let backend, let person): forget(backend, person)
        case .cursor(let cursor):
            drop(cursor.account, cursor.client, cursor.room)
            cursors.append(cursor)
        case .dropCursor(let account, let client, let room): drop(account, client, room)
        case .account(let account):
            accounts.removeAll { $0.name == account.name }
            accounts.append(account)
        case .removeAccount(let name): accounts.removeAll { $0.name == name }
        case .removeAuthor(let author, let nobody):
            for key in rooms.keys { rooms[key]?.forget(author, as: nobody) }
        case .removeConversation(let key):
            rooms[key] = nil
            conversations.removeAll { $0.key == key }
        case .nick(let nick):
            nicks.removeAll { $0.folded == nick.folded }
            nicks.append(nick)
        case .removeNick(let folded): nicks.removeAll { $0.folded == folded }
        case .choices(let chosen):
            choices.removeAll { $0.account == chosen.account }
            if !chosen.isEmpty { choices.append(chosen) }
        case .membership(let known):
            memberships.removeAll { $0.account == known.account && $0.room == known.room }
            memberships.append(known)
            memberships.sort { ($0.account, $0.position) < ($1.account, $1.position) }
        case .endMembership(let account, let room):
            memberships.removeAll { $0.account == account && $0.room == room }
        case .mirrored(let known):
            mirrored.removeAll { $0.mirror == known.mirror && $0.room == known.room && $0.msgid == known.msgid }
            mirrored.append(known)
        case .bookmark(let known):
            bookmarks.removeAll { ($0.mirror, $0.subject) == (known.mirror, known.subject) }
            bookmarks.append(known)
            bookmarks.sort { ($0.mirror, $0.subject) < ($1.mirror, $1.subject) }
        }
    }

    fileprivate mutating func listConversation(_ key: StoredRoomKey) {
        conversations.removeAll { $0.key == key }
        guard key.parties != nil, let room = rooms[key] else { return }
        let said = room.messages.filter { $0.kind != .event }
        conversations.append(
            StoredConversation(
                key: key, newestAt: said.last?.at, nextSequence: room.nextSequence,
                speakers: Set(said.suffix(StoredConversation.speakingCount).compactMap(\.account))))
        let never = ChatTimestamp(milliseconds: .min)
        conversations.sort { $0.newestAt ?? never > $1.newestAt ?? never }
    }

    private mutating func changeOutbox(_ change: (inout [StoredOutboxEntry]) -> Void) {
        for key in rooms.keys { change(&rooms[key, default: StoredRoom()].outbox) }
    }

    private mutating func changeMessage(
        _ key: StoredRoomKey, _ msgid: String, _ change: (inout StoredMessage) -> Void
    ) {
        guard let index = rooms[key]?.messages.firstIndex(where: { $0.msgid == msgid }) else { return }
        change(&rooms[key, default: StoredRoom()].messages[index])
    }

    private mutating func forget(_ backend: String, _ person: ChatPerson) {
        identities.removeAll {
            $0.backend == backend
                && (person.id != nil ? $0.person.id == person.id : $0.person.id == nil && $0.person.name == person.name)
        }
    }

    private mutating func drop(_ account: String, _ client: String, _ room: StoredRoomKey) {
        cursors.removeAll { $0.account == account && $0.client == client && $0.room == room }
    }
}

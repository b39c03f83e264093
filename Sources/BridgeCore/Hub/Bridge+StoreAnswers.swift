import Accounts
public import BridgeTypes
public import ChatModel
import IRCServer
import Identities
import Rooms
import Upstream
import WireBytes

// Results of the store. Called by the driver only.

extension Bridge {
    /// Writes were settled.
    ///
    /// - Parameters:
    ///   - ticket: this one and all before it are settled.
    ///   - refused: those of them whose acceptances were not stored; their other changes are stored or will be.
    ///   - reason: of the refusals, as a part of a sentence.
    public func storeSettled(through ticket: StoreTicket, refused: [StoreTicket], reason: String?, now: Now) {
        context.now = now
        context.ledger.settle(through: ticket, refused: refused)
        context.ledger.repay()
        storeDidSettle(refused: Set(refused), reason: reason ?? "the store refused it")
        irc.registrationsSettled()
        irc.makeUpForLosses()
        for change in irc.cursors.takeLost() { context.keep(change) }
        for change in irc.memberships.takeLost() { context.keep(change) }
        if irc.unkept.isEmpty { context.ledger.forgetEdits() }
    }

    /// A write was dropped because the store's queue is full. Its ticket never settles by itself.
    public func storeOverflowed(_ ticket: StoreTicket, _ changes: [StoreOperation], now: Now) {
        context.now = now
        context.ledger.lose(ticket)
        context.ledger.owe(changes)
        // Before the PONG that their authors wait for.
        irc.tellUnkept(changes, ticket)
        storeDidOverflow(ticket, reason: "the write queue is full")
        irc.registrationsLost(ticket)
        irc.storeDidLose(changes, ticket)
        irc.cursors.lose(changes)
        irc.memberships.recordLost(changes)
    }

    /// The store began or ceased to fail.
    public func storeConditionChanged(_ condition: StoreCondition, now: Now) {
        context.now = now
        guard condition != context.ledger.condition else { return }
        context.ledger.report(condition)
        switch condition {
        case .sound:
            context.ledger.repay()
            context.note(.info, "store-sound", "messages are stored again")
            for room in rooms { room.notice("Messages are stored again.") }
            irc.makeUpForLosses()
            irc.offersChanged()
        case .failing(let reason):
            context.note(
                .error, "store-failing", "cannot write to the store: \(reason): make room on the disk, or mend it",
                ["reason": reason])
            for room in rooms { room.notice(Room.unkeptSentence(reason)) }
            irc.registrationsFailed()
            irc.offersChanged()
            irc.releasePongs()
        }
    }

    // MARK: - Acceptances

    /// Notifies the lanes of settled acceptances and recorded attempts.
    private func storeDidSettle(refused: Set<StoreTicket>, reason: String) {
        for (room, lane) in lanesAwaitingStore() {
            room.storeSettled(lane, refused: refused, reason: reason, context)
        }
        irc.releasePongs()
        finishIfIdle()
    }

    private func storeDidOverflow(_ ticket: StoreTicket, reason: String) {
        for (room, lane) in lanesAwaitingStore() { room.storeOverflowed(lane, ticket, reason: reason, context) }
        irc.releasePongs()
        finishIfIdle()
    }

    private func lanesAwaitingStore() -> [(room: Room, lane: SendLane)] {
        context.takeLanesAwaitingStore().compactMap { roomTable.lane($0) }
    }

    // MARK: - Queries

    /// The answer to `.readMessages`.
    public func messagesRead(_ id: StoreReadID, _ outcome: Result<[StoredMessage], StoreFailure>, now: Now) {
        context.now = now
        switch irc.storeQuestions.end(id) {
        case .history(let answer): irc.historyRead(id, outcome, answer)
        case .redaction(let client, let redaction): irc.redactionRead(id, outcome, redaction, for: client)
        case .backlog(let client, let room): irc.backlogRead(id, outcome, of: room, for: client)
        case nil: break
        }
    }

    /// The answer to `.searchMessages`.
    public func messagesSearched(_ id: StoreReadID, _ outcome: Result<StoredSearchStep, StoreFailure>, now: Now) {
        context.now = now
        guard case .history(let answer)? = irc.storeQuestions.end(id) else { return }
        irc.historySearched(id, outcome, answer)
    }

    /// The answer to `.findPlaces`.
    public func placesFound(_ id: StoreReadID, _ outcome: Result<StoredPlaces, StoreFailure>, now: Now) {
        context.now = now
        switch irc.storeQuestions.end(id) {
        case .history(let answer): irc.historyPlaced(id, outcome, answer)
        case .redaction(let client, let redaction): irc.redactionPlaced(id, outcome, redaction, for: client)
        case .backlog, nil: break
        }
    }

    /// The answer to `.loadRoom`.
    public func roomLoaded(_ id: RoomID, _ outcome: Result<StoredRoom, StoreFailure>, now: Now) {
        context.now = now
        switch outcome {
        case .success(let stored): finishLoading(id, stored)
        case .failure(let failure): openWithoutHistory(id, failure.sentence)
        }
    }

    func roomLoadTimedOut(_ id: RoomID) { openWithoutHistory(id, "the disk does not answer") }

    private func openWithoutHistory(_ id: RoomID, _ reason: String) {
        guard let room = room(id), room.isLoading else { return }
        context.note(
            .error, "room-not-loaded", "cannot read a room from the store: \(reason)",
            ["room": room.settings.name, "reason": reason])
        finishLoading(id, nil)
    }

    /// - Parameter stored: nil: not readable.
    private func finishLoading(_ id: RoomID, _ stored: StoredRoom?) {
        defer { irc.loadEnded(id) }
        // No room is opened during shutdown.
        guard lifecycle.isServing || lifecycle.phase == .draining, let room = room(id), room.isLoading else {
            return
        }
        room.loaded(stored, context)
        irc.orderIsKnown(room)
        if room.missingSince != nil { room.opened(context) }
        // Failures of clients that joined during loading.
        for client in room.locals.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
            guard let session = irc.sessions[client] else { continue }
            irc.tellUntold(room, session)
            irc.pullLongAnswers(session)
        }
    }
}

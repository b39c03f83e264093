public import ChatModel
import WireBytes

// What the store says, brought to whom it concerns.

extension Bridge {
    /// Orders are on disk.
    ///
    /// - Parameters:
    ///   - ticket: this one and all before it are settled.
    ///   - refused: those of them whose acceptances are not kept; what else they changed is kept, or will be.
    ///   - reason: why, as a part of a sentence.
    public func storeSettled(through ticket: StoreTicket, refused: [StoreTicket], reason: String?, now: Now) {
        context.now = now
        context.ledger.settle(through: ticket, refused: refused)
        context.ledger.repay()
        storeDidSettle(refused: Set(refused), reason: reason ?? "the store refused it")
        registrationsSettled()
        makeUpForLosses()
        keepLostCursors()
        keepLostMemberships()
        if context.unkept.isEmpty { context.ledger.forgetEdits() }
    }

    /// An order found no room in the store: nothing of it is kept. Its ticket never settles by itself.
    public func storeOverflowed(_ ticket: StoreTicket, _ changes: [StoreOperation], now: Now) {
        context.now = now
        context.ledger.lose(ticket)
        context.ledger.owe(changes)
        // In front of the PONG that their authors wait for.
        tellUnkept(changes, ticket)
        storeDidOverflow(ticket, reason: "too much waits for the disk")
        registrationsLost(ticket)
        storeDidLose(changes, ticket)
        cursorsLost(changes)
        membershipsLost(changes)
    }

    /// The store began or ceased to keep what it is given.
    public func storeConditionChanged(_ condition: StoreCondition, now: Now) {
        context.now = now
        guard condition != context.ledger.condition else { return }
        context.ledger.condition = condition
        switch condition {
        case .sound:
            context.ledger.repay()
            context.note(.info, "store-sound", "what is said is kept again")
            for room in rooms { room.notice("What is said is kept again.") }
            makeUpForLosses()
            offersChanged()
        case .failing(let reason):
            context.note(.error, "store-failing", "nothing can be kept: \(reason)", ["reason": reason])
            for room in rooms { room.notice(Room.unkeptSentence(reason)) }
            registrationsFailed()
            offersChanged()
            releasePongs()
        }
    }

    // MARK: - Rooms that are not open

    /// What waits for rooms that are not open stays on disk until they are: when they are configured again, or somebody
    /// joins a room of the template. Then it goes, or its author is told that it is too old.
    func noteMessagesWithoutRoom(_ stored: StoredState) {
        let open = Set(rooms.map(\.storedKey))
        let others = stored.rooms.filter { !open.contains($0.key) }
        for (key, room) in others.sorted(by: { ($0.key.backend, $0.key.room) < ($1.key.backend, $1.key.room) }) {
            let waiting = room.outbox.count { $0.state == .queued || $0.state == .written }
            guard waiting > 0 else { continue }
            context.note(
                .warn, "messages-without-room", "messages from IRC wait for a room that is not open",
                ["backend": key.backend, "room": key.room, "messages": String(waiting)])
        }
    }

    // MARK: - Identities

    /// How often people who are here are kept as seen. A tenth of a percent of the time for which nicks stay theirs does
    /// not matter.
    static let identitiesInterval: Duration = .seconds(24 * 60 * 60)

    func identitiesTimerFired() {
        context.identities.keepPresent()
        context.timers.set(.identities, at: context.now.monotonic + Self.identitiesInterval)
    }

    // MARK: - Rooms that are opened later

    /// The answer to `.readMessages`.
    public func messagesRead(_ id: StoreReadID, _ outcome: Result<[StoredMessage], StoreFailure>, now: Now) {
        context.now = now
        if let answer = historyReads.removeValue(forKey: id) { return historyRead(id, outcome, answer) }
        if let asker = redactionReads.removeValue(forKey: id) { return redactionRead(id, outcome, asker) }
        backlogRead(id, outcome)
    }

    /// The answer to `.searchMessages`.
    public func messagesSearched(_ id: StoreReadID, _ outcome: Result<StoredSearchStep, StoreFailure>, now: Now) {
        context.now = now
        guard let answer = historyReads.removeValue(forKey: id) else { return }
        historySearched(id, outcome, answer)
    }

    /// The answer to `.findPlaces`.
    public func placesFound(_ id: StoreReadID, _ outcome: Result<StoredPlaces, StoreFailure>, now: Now) {
        context.now = now
        if let asker = redactionReads.removeValue(forKey: id) { return redactionPlaced(id, outcome, asker) }
        guard let answer = historyReads.removeValue(forKey: id) else { return }
        historyPlaced(id, outcome, answer)
    }

    /// The answer to `.loadRoom`.
    public func roomLoaded(_ id: RoomID, _ outcome: Result<StoredRoom, StoreFailure>, now: Now) {
        context.now = now
        switch outcome {
        case .success(let stored): finishLoading(id, stored)
        case .failure(let failure): goOnWithoutThePast(id, failure.sentence)
        }
    }

    /// Longest wait for what is kept of a room: a disk that stalls is not to keep people from speaking.
    static let roomLoadWait: Duration = .seconds(10)

    /// Has what is kept of a room read.
    func load(_ room: Room) {
        room.beginLoading()
        context.timers.set(.roomLoad(room.id), at: context.now.monotonic + Self.roomLoadWait)
        context.ask(.loadRoom(room.id, room.storedKey))
    }

    func roomLoadTimedOut(_ id: RoomID) { goOnWithoutThePast(id, "the disk does not answer") }

    private func goOnWithoutThePast(_ id: RoomID, _ reason: String) {
        guard let room = room(id), room.isLoading else { return }
        context.note(
            .error, "room-not-loaded", "what is kept of a room cannot be read: \(reason)",
            ["room": room.settings.name, "reason": reason])
        finishLoading(id, nil)
    }

    /// - Parameter stored: nil: it cannot be read.
    private func finishLoading(_ id: RoomID, _ stored: StoredRoom?) {
        context.timers.cancel(.roomLoad(id))
        // A bridge that closes its links opens none.
        guard phase == .running || phase == .draining, let room = room(id), room.isLoading else { return }
        room.loaded(stored, context)
        orderIsKnown(room)
        if room.missingSince != nil { room.opened(context) }
        // When they entered, nobody knew what failed of theirs.
        for client in room.locals.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
            guard let session = sessions[client] else { continue }
            tellUntold(room, session)
            pullLongAnswers(session)
        }
    }
}

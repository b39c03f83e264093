import ChatModel
import IRCProtocol
import WireBytes

// An account is in its rooms whether or not one of its clients is here: whoever logs in is there again, without a JOIN. What
// puts an account into a room is a JOIN of any of its clients, what takes it out a PART or a KICK; a connection that ends, by
// QUIT or otherwise, changes nothing, nor does the end of the process where something is kept.
//
// A client comes back to one room after the other, as its queue takes what it is told, and each is entered as by a JOIN: so
// what it missed comes behind the names, from its own cursor. Rooms that cannot be entered are passed over in silence, as nobody
// asked: those that are gone for good, or are not the account's any more, are forgotten; those that are only shut, or whose
// backend does not say yet which rooms it has, are not.

/// A change of an account's rooms that found no room in the store.
struct LostMembership: Hashable {
    var account: String
    var room: StoredRoomKey
}

extension Bridge {
    /// About what a client is told of a room that it enters, in bytes: JOIN, topic, read marker. Names and whatever else is
    /// long count by themselves.
    static let entranceByteCount = 1024
    /// Links that are opened for a client at the same time; it waits for them together.
    private static let openingAtOnce = 16
    /// So many times the usual burst is what it may ask for beside, when it comes.
    private static let arrivalBursts: Double = 2
    /// A client that does not answer is in its rooms after this.
    private static let arrivalPatience: Duration = .seconds(3)

    /// Whether clients of the account come back to its rooms: as the person chose, else as the configuration has it.
    func rejoins(_ account: String) -> Bool { context.choices.rejoins(AccountBook.fold(account)) ?? settings.rejoins }

    // MARK: - Which rooms

    /// The client is in the room, and so is its account.
    func rememberMembership(_ room: Room, _ session: IRCSession) {
        guard let account = session.account?.name, rejoins(account) else { return }
        switch memberships.add(room.storedKey, channel: room.channel, to: account) {
        case .known: break
        case .added: keepMembership(of: account, in: room.storedKey, for: session)
        case .full:
            if memberships.isFullForTheFirstTime() {
                context.note(
                    .warn, "memberships-full",
                    "too many rooms of accounts are remembered; who enters more joins them by hand the next time")
            }
            guard makeRoomForMembership(of: account, session),
                memberships.add(room.storedKey, channel: room.channel, to: account) == .added
            else { return }
            keepMembership(of: account, in: room.storedKey, for: session)
        }
    }

    /// The account's oldest room in which it is not gives way. False: there is none such.
    private func makeRoomForMembership(of account: String, _ session: IRCSession) -> Bool {
        let present = Set(session.rooms.compactMap { room($0)?.storedKey })
        guard let oldest = memberships.rooms(of: account).first(where: { !present.contains($0.room) }) else {
            return false
        }
        forgetMembership(of: account, in: oldest.room, for: session)
        return true
    }

    /// The account is not in the room any more.
    ///
    /// - Parameter author: whoever sees to that, and waits for the disk at the next PING.
    func forgetMembership(of account: String, in room: StoredRoomKey, for author: IRCSession?) {
        guard memberships.remove(room, from: account) else { return }
        keepMembership(of: account, in: room, for: author)
    }

    /// Somebody leaves a room in which they are not: they do not want to come back to it either.
    func forgetMembership(channel: String, _ session: IRCSession) {
        guard let account = session.account?.name else { return }
        let folded = settings.casemapping.fold(channel)
        let meant = memberships.rooms(of: account).first { settings.casemapping.fold($0.channel) == folded }
        if let meant { forgetMembership(of: account, in: meant.room, for: session) }
    }

    /// Has the store keep how it stands.
    private func keepMembership(of account: String, in room: StoredRoomKey, for author: IRCSession?) {
        if context.isDurable { author?.lastKept = context.ledger.next }
        if let membership = memberships.membership(of: account, in: room) {
            context.keep(.membership(membership))
        } else {
            context.keep(.endMembership(account: account, room))
        }
    }

    // MARK: - Coming back

    /// Has a client that has just come enter the rooms in which the account's other clients are, and those in which it was.
    ///
    /// Clients that fetch what they missed ask which rooms have something new as soon as they are welcome, and for each of these
    /// for what came after the newest line that they have then. So the first line of a room must not come before that
    /// answer: they come in when they have answered a PING that went out behind the welcome.
    func comeBack(_ session: IRCSession) {
        guard let account = session.account?.name, session.caps.contains(.chatHistory), session.person != nil,
            sessions(of: session.person).contains(where: { !$0.rooms.isEmpty })
                || rejoins(account) && !memberships.rooms(of: account).isEmpty
        else { return comeIn(session) }
        session.isArriving = true
        // They ask at once, and what is said until they have their answers they show twice.
        session.budget.give(session.budget.burst * Self.arrivalBursts)
        let isAsked = whenReceived(by: session) { [weak self, weak session] in
            guard let self, let session, session.isArriving else { return }
            arrive(session)
        }
        context.timers.set(
            .arriving(session.id), at: context.now.monotonic + (isAsked ? Self.arrivalPatience : .zero))
    }

    /// The client asked for what it missed, or has had the time to.
    func arrive(_ session: IRCSession) {
        guard session.isArriving else { return }
        session.isArriving = false
        context.timers.cancel(.arriving(session.id))
        comeIn(session)
        pullLongAnswers(session)
        processInput(session)
    }

    private func comeIn(_ session: IRCSession) {
        let other = sessions(of: session.person).first { $0 !== session && !$0.isArriving }
        for id in other?.rooms ?? [] { if let room = room(id) { enter(room, session) } }
        bringBack(session)
    }

    /// Has the client enter the rooms of its account in which it is not.
    func bringBack(_ session: IRCSession) {
        guard let account = session.account?.name, rejoins(account), session.person != nil else { return }
        let present = Set(session.rooms.compactMap { room($0)?.storedKey })
        guard let first = memberships.rooms(of: account).first(where: { !present.contains($0.room) }) else { return }
        appendRejoin(account, from: first.position, session)
    }

    private func appendRejoin(_ account: String, from position: Int64, _ session: IRCSession) {
        let step = { [unowned self, unowned session] in rejoinStep(account, from: position, session) }
        session.appendLongAnswer(
            LongAnswer(unread: step) {
                step()
                return .last(nil)
            })
    }

    /// Has the client enter one of the rooms, and goes on behind what it is told of that.
    private func rejoinStep(_ account: String, from position: Int64, _ session: IRCSession) {
        // It may be somebody else since, or have chosen otherwise.
        guard session.account?.name == account, rejoins(account), phase == .running else { return }
        var position = position
        var opening = 0
        while opening < Self.openingAtOnce {
            guard let next = memberships.first(of: account, from: position) else { return }
            position = next.position + 1
            walkedCount += 1
            guard let room = room(of: next, session), !session.rooms.contains(room.id) else { break }
            if entranceWaits(room, session) {
                awaitEntrance(to: room, isAsked: false, session)
                opening += 1
                continue
            }
            session.undrainedBytes += Self.entranceByteCount
            // Not pulled from here: those may be on their way back too, and would pull this one.
            for other in enterWithOthers(room, session) where other.hasLongAnswers {
                context.emit(.notifyWhenDrained(other.id))
            }
            break
        }
        appendRejoin(account, from: position, session)
    }

    /// The room, where the client may enter it now.
    private func room(of membership: StoredMembership, _ session: IRCSession) -> Room? {
        guard let known = openRoom(membership) else { return templateRoom(of: membership, session) }
        guard let person = session.person.flatMap({ context.identities[$0] }) else { return nil }
        guard mayEnter(known, session) else {
            forgetMembership(of: membership.account, in: membership.room, for: nil)
            return nil
        }
        guard barrier(to: known, session) != nil else { return known }
        if known.moderation.isBanned(person) {
            forgetMembership(of: membership.account, in: membership.room, for: nil)
        }
        return nil
    }

    private func openRoom(_ membership: StoredMembership) -> Room? {
        if let called = room(channel: membership.channel), called.storedKey == membership.room { return called }
        // The configuration may call it otherwise today.
        return rooms.first { $0.storedKey == membership.room }
    }

    private func templateRoom(of membership: StoredMembership, _ session: IRCSession) -> Room? {
        guard let template = settings.template, template.backend == membership.room.backend else {
            forgetMembership(of: membership.account, in: membership.room, for: nil)
            return nil
        }
        // The name may lead elsewhere today.
        guard room(channel: membership.channel) == nil else { return nil }
        let renamed = templateListing?.channel(of: membership.room.room, casemapping: settings.casemapping)
        return templateRoom(renamed ?? membership.channel, session, isComingBack: true)
    }

    /// The backend said which rooms it has: who waited for that goes on.
    func bringBackWaiting() {
        for client in waitingJoins.takeReturning() {
            guard let session = sessions[client] else { continue }
            bringBack(session)
            pullLongAnswers(session)
            processInput(session)
        }
    }

    /// The client comes back when the backend says which rooms it has. Nobody asked and nobody is told, so that may take as long
    /// as the backend is away.
    func awaitReturn(_ session: IRCSession) {
        waitingJoins.append(returning: session.id)
        askForTemplateRooms()
    }

    // MARK: - Over the end of the process

    /// Takes up what an earlier process kept. After the accounts.
    func restoreMemberships(_ stored: [StoredMembership]) {
        // The configuration may write the name otherwise today.
        for kept in stored { memberships.restore(kept, of: accounts[kept.account]?.name ?? kept.account) }
    }

    /// Somebody made an account of this name: the rooms of one that had it before are not theirs.
    func forgetMemberships(ofEarlier name: String) {
        let folded = AccountBook.fold(name)
        for account in memberships.accounts(where: { AccountBook.fold($0) == folded }) {
            for kept in memberships.rooms(of: account) { forgetMembership(of: account, in: kept.room, for: nil) }
        }
    }

    func membershipsLost(_ changes: [StoreOperation]) {
        for change in changes {
            switch change {
            case .membership(let kept): lostMemberships.insert(LostMembership(account: kept.account, room: kept.room))
            case .endMembership(let account, let room):
                lostMemberships.insert(LostMembership(account: account, room: room))
            default: break
            }
        }
    }

    /// There is room again: what was lost is said again, as it stands now.
    func keepLostMemberships() {
        guard !lostMemberships.isEmpty else { return }
        let lost = lostMemberships.sorted {
            ($0.account, $0.room.backend, $0.room.room) < ($1.account, $1.room.backend, $1.room.room)
        }
        lostMemberships = []
        for change in lost { keepMembership(of: change.account, in: change.room, for: nil) }
    }

    // MARK: - What people choose

    func chooseRejoining(_ word: String?, _ row: ServiceCommandTable.Row, _ session: IRCSession) {
        guard let account = session.account?.name else {
            return say("Rooms are remembered for accounts, and you are not logged in.", to: session)
        }
        switch word.map(IRCCasemapping.ascii.fold) {
        case nil: break
        case "on":
            guard context.choices.setRejoins(true, AccountBook.fold(account)) else { return sayFull(to: session) }
            keepChoices(of: session)
            for room in session.rooms.compactMap({ room($0) }) { rememberMembership(room, session) }
        case "off":
            guard context.choices.setRejoins(false, AccountBook.fold(account)) else { return sayFull(to: session) }
            keepChoices(of: session)
            for kept in memberships.rooms(of: account) { forgetMembership(of: account, in: kept.room, for: session) }
        default: return say("Usage: \(row.usage)", to: session)
        }
        say(
            rejoins(account)
                ? "When you log in you are in your rooms again, until you leave them."
                : "When your last client is gone you are in no room; the next one joins by itself.", to: session)
    }
}

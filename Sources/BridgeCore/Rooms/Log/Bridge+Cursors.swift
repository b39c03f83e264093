import ChatModel
import IRCProtocol
import WireBytes

// Whether a client with a cursor has what was written to it.
//
// A connection follows the cursor in each room that it enters: what it was given since then, in order and without a hole,
// is in `Followed.written`, or is the whole room while it gets live lines. Now and then a PING asks; its PONG proves that
// the client has all that was written before, and moves the cursor there. Several connections of one client (a new one,
// and an old one that hangs) each move the same cursor, forward only, by what they were given themselves. Once they are known for
// two clients, each has its own; see ``TwinName``.

/// What one connection has got of its rooms: how far its client's cursors may move, and what it is still to get of what was
/// said before it entered.
final class Following {
    /// Whose cursors these are; another, when others of the same name turn up. Nil: it has none.
    var client: ClientKey?
    var rooms: [RoomID: Followed] = [:]
    /// Of the rooms of which it still gets what was said before, in the order in which it entered them.
    var backlogs: [Backlog] = []
    /// Bytes of live lines that wait for these.
    var heldByteCount = 0
    /// More than may wait did: the connection is about to be closed, and nothing that it was given counts any more.
    var isOverfull = false
    var isAsking = false
    /// When it was asked last.
    var askedAt: MonotonicInstant?
    /// When to ask whether the client has what was written; nil: nothing is to be asked.
    var askAt: MonotonicInstant?
    var lastStay: UInt64 = 0

    func backlog(of room: RoomID) -> Backlog? { backlogs.first { $0.room == room } }
}

/// One room that a connection follows.
struct Followed {
    /// Names the stay, so that an answer about an earlier one changes nothing.
    let stay: UInt64
    /// Everything up to here was written, whatever else was.
    var written: Int64
    /// Everything that is said is written.
    var isLive: Bool
    /// Everything up to here was received.
    var received: Int64
}

/// When the IRC users of a room are asked next.
struct CursorRound {
    /// The first unacknowledged line waits so long for others, so that a talk costs one PING and not one a line.
    static let pause: Duration = .seconds(2)
    /// More lines than this are not worth getting twice.
    static let manyLines: Int64 = 200

    /// Everybody was asked about everything up to here.
    var askedUpTo: Int64 = -1
    var isDue = false
    var isUrgent = false
}

/// A cursor whose change found no room in the store.
struct LostCursor: Hashable {
    var client: ClientKey
    var room: StoredRoomKey
}

extension Bridge {
    // MARK: - Entering and leaving

    /// What the session has got of its rooms, by cursors; nil where nothing is kept, and for clients without an account.
    func following(_ session: IRCSession) -> Following? {
        if let known = session.following, known.client != nil { return known }
        guard context.isDurable, let account = session.account, let name = session.clientName else { return nil }
        let following = session.following ?? Following()
        following.client = ClientKey(account: account.name, client: name)
        session.following = following
        return following
    }

    /// The session is in the room now, and gets what is said after `newest`.
    ///
    /// - Parameter backlog: what it gets before that.
    func follow(_ room: Room, _ session: IRCSession, from newest: Int64, _ backlog: Backlog?) {
        guard let following = following(session) ?? session.following ?? backlog.map({ _ in Following() }) else {
            return
        }
        session.following = following
        if let backlog { following.backlogs.append(backlog) }
        guard let client = following.client else { return }
        following.lastStay += 1
        if let backlog, backlog.kind == .missed {
            following.rooms[room.id] = Followed(
                stay: following.lastStay, written: backlog.start, isLive: false, received: backlog.start)
            return cursors.use(client, in: room.storedKey)
        }
        guard let place = cursors.place(of: client, in: room.storedKey) else {
            following.rooms[room.id] = Followed(
                stay: following.lastStay, written: newest, isLive: following.backlog(of: room.id) == nil,
                received: newest)
            return enterCursor(client, room.storedKey, at: newest, for: session)
        }
        cursors.use(client, in: room.storedKey)
        // Who logged in after entering has not got what was said before; the cursor waits for the next time. Whoever can ask
        // for it has it in hand.
        guard place >= newest || settings.limits.backlog <= 0 || session.caps.contains(.chatHistory) else { return }
        following.rooms[room.id] = Followed(
            stay: following.lastStay, written: newest, isLive: true, received: place)
        if place < newest { askSoon(session, following) }
    }

    func enterCursor(_ client: ClientKey, _ room: StoredRoomKey, at place: Int64, for session: IRCSession) {
        let account = session.account.flatMap { person(of: $0) }
        let present = Set(sessions(of: session.person ?? account).compactMap { $0.following?.client?.client })
        let gone = cursors.enter(client, in: room, at: place, present: present)
        keep(client, room, at: place, for: session)
        for (client, room) in gone {
            context.keep(.dropCursor(account: client.account, client: client.client, room))
        }
        guard let other = gone.first(where: { $0.client != client })?.client else { return }
        context.note(
            .info, "client-forgotten", "an account has too many clients; the one unused for longest is forgotten",
            ["account": other.account, "client": TwinName(other.client).shown])
    }

    func keep(_ client: ClientKey, _ room: StoredRoomKey, at place: Int64, for session: IRCSession?) {
        session?.lastKept = context.ledger.next
        context.keep(
            .cursor(StoredCursor(account: client.account, client: client.client, room: room, sequence: place)))
    }

    /// Whether the client was in the room, and did not leave it since: it only lost its connection.
    func isMember(of room: Room, _ session: IRCSession) -> Bool {
        guard let account = session.account, let name = session.clientName else { return false }
        return cursors.place(of: ClientKey(account: account.name, client: name), in: room.storedKey) != nil
    }

    /// The account was put out of the room: none of its clients is there any more, connected or not.
    func dropCursors(of account: String, in room: Room, for author: IRCSession) {
        for client in cursors.drop(account: account, in: room.storedKey) {
            author.lastKept = context.ledger.next
            context.keep(.dropCursor(account: client.account, client: client.client, room.storedKey))
        }
    }

    /// The person left the room by their own wish, with this client among others.
    func dropCursor(_ room: Room, _ session: IRCSession, for author: IRCSession) {
        guard let client = session.following?.client, cursors.drop(client, in: room.storedKey) else { return }
        author.lastKept = context.ledger.next
        context.keep(.dropCursor(account: client.account, client: client.client, room.storedKey))
    }

    // MARK: - Asking

    func cursorsTimerFired(_ room: Room) {
        room.beginCursorRound()
        let clients = room.locals.keys.filter { sessions[$0]?.following != nil }
        for client in clients.sorted(by: { $0.rawValue < $1.rawValue }) {
            guard let session = sessions[client], let following = session.following else { continue }
            // Every room has a round of its own; who is in many is not asked by each.
            if let askedAt = following.askedAt, context.now.monotonic - askedAt < CursorRound.pause {
                askSoon(session, following)
            } else {
                ask(session, following)
            }
        }
    }

    /// Up to where everything in the room was written to the client.
    private func written(_ id: RoomID, _ followed: Followed) -> Int64 {
        guard followed.isLive, let room = room(id) else { return followed.written }
        return max(followed.written, Int64(room.recent.lastSequence))
    }

    /// How much of what was written to it in the room of which this is most the client did not acknowledge.
    private func open(_ following: Following) -> Int64 {
        following.rooms.map { written($0.key, $0.value) - $0.value.received }.max() ?? 0
    }

    /// Lines wait to be acknowledged that no round of a room asks about.
    func askSoon(_ session: IRCSession, _ following: Following) {
        guard !following.isAsking else { return }
        let open = open(following)
        guard open > 0 else { return }
        let now = context.now.monotonic
        let due = open > CursorRound.manyLines || phase == .asking ? now : now + CursorRound.pause
        following.askAt = min(following.askAt ?? due, due)
        setTimer(session, following)
    }

    func ask(_ session: IRCSession, _ following: Following) {
        guard !following.isAsking, !following.isOverfull else { return }
        following.askAt = nil
        askForCursors(session)
    }

    /// A PING goes: what is to be done when everything that was written until now has come; nil: nothing is to be asked.
    func cursorQuestion(_ session: IRCSession, _ following: Following) -> (() -> Void)? {
        guard !following.isAsking, !following.isOverfull else { return nil }
        following.askAt = nil
        var asked: [(room: RoomID, stay: UInt64, upTo: Int64)] = []
        for (id, followed) in following.rooms {
            let upTo = written(id, followed)
            if upTo > followed.received { asked.append((id, followed.stay, upTo)) }
        }
        guard !asked.isEmpty else { return nil }
        following.isAsking = true
        following.askedAt = context.now.monotonic
        return { [weak self, weak session] in
            guard let self, let session else { return }
            self.received(asked, by: session)
        }
    }

    private func received(_ asked: [(room: RoomID, stay: UInt64, upTo: Int64)], by session: IRCSession) {
        guard let following = session.following, let client = following.client else { return }
        following.isAsking = false
        for (id, stay, upTo) in asked.sorted(by: { $0.room.index < $1.room.index }) {
            guard let followed = following.rooms[id], followed.stay == stay, let room = room(id) else { continue }
            following.rooms[id]?.received = max(followed.received, upTo)
            if cursors.move(client, in: room.storedKey, to: upTo) {
                keep(client, room.storedKey, at: upTo, for: session)
            }
        }
        askSoon(session, following)
        if hasEverything(following) { answeredLast(session) }
    }

    // MARK: - When the bridge stops

    /// What is said from now on in the client's rooms is not for this connection: it comes when the client is back. Not where it
    /// still gets what was said before, and what is said now behind that.
    func stopShowing(_ session: IRCSession, _ following: Following) {
        for (id, followed) in following.rooms where followed.isLive {
            following.rooms[id]?.written = written(id, followed)
            following.rooms[id]?.isLive = false
            if let room = room(id) { setHeld(session.id, true, in: room) }
        }
    }

    /// The client has acknowledged whatever was written to it in its rooms.
    func hasEverything(_ following: Following) -> Bool {
        !following.isAsking && following.backlogs.isEmpty && open(following) <= 0
    }

    // MARK: - Time

    func setTimer(_ session: IRCSession, _ following: Following) {
        let dues = [following.askAt] + following.backlogs.map(\.deadline)
        let due = following.isOverfull ? context.now.monotonic : dues.compactMap { $0 }.min()
        if let due {
            context.timers.set(.following(session.id), at: due)
        } else {
            context.timers.cancel(.following(session.id))
        }
    }

    func followingTimerFired(_ session: IRCSession) {
        guard let following = session.following else { return }
        if following.isOverfull {
            return close(session, reason: "Too much was said while you got older messages")
        }
        if let askAt = following.askAt, askAt <= context.now.monotonic { ask(session, following) }
        for backlog in following.backlogs {
            if let deadline = backlog.deadline, deadline <= context.now.monotonic { giveUp(backlog, session) }
        }
        setTimer(session, following)
    }

    // MARK: - A store that loses changes

    func cursorsLost(_ changes: [StoreOperation]) {
        for change in changes {
            switch change {
            case .cursor(let cursor):
                lostCursors.insert(
                    LostCursor(
                        client: ClientKey(account: cursor.account, client: cursor.client), room: cursor.room))
            case .dropCursor(let account, let client, let room):
                lostCursors.insert(LostCursor(client: ClientKey(account: account, client: client), room: room))
            default: break
            }
        }
    }

    /// There is room again: what was lost is said again, as it stands now.
    func keepLostCursors() {
        guard !lostCursors.isEmpty else { return }
        let lost = lostCursors.sorted {
            ($0.client.account, $0.client.client, $0.room.backend, $0.room.room)
                < ($1.client.account, $1.client.client, $1.room.backend, $1.room.room)
        }
        lostCursors = []
        for cursor in lost {
            if let place = cursors.place(of: cursor.client, in: cursor.room) {
                keep(cursor.client, cursor.room, at: place, for: nil)
            } else {
                context.keep(
                    .dropCursor(account: cursor.client.account, client: cursor.client.client, cursor.room))
            }
        }
    }
}

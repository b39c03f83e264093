import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms
import WireBytes

// Delivery cursors: acknowledgement of the lines written to a client.
//
// A connection follows the cursor in each room that it enters: `FollowedRoom.written` is the end of the lines written to it
// since then, in order and without a gap; while it gets live lines, that is the whole room. From time to time a PING
// asks for an acknowledgement; its PONG proves that the client has received everything written before, and moves the
// cursor there. Several connections of one client (a new one, and an old one that hangs) each move the same cursor,
// forward only, by the lines written to them. Once they are recognized as two clients, each has its own; see
// ``NumberedClientName``.

extension IRCServer {
    // MARK: - Entering and leaving

    /// The delivery state of the session by cursors; nil without a store, and for clients without an account.
    func following(_ session: IRCSession) -> FollowedRooms? {
        if let known = session.following, known.client != nil { return known }
        guard context.isDurable, let account = session.account, let name = session.clientName else { return nil }
        let following = session.beginFollowing()
        following.assign(ClientKey(account: account.name, client: name))
        return following
    }

    /// Follows a room that the session has entered; it gets the messages after `newest`.
    ///
    /// - Parameter backlog: the messages before these.
    func follow(_ room: Room, _ session: IRCSession, from newest: Int64, _ backlog: Backlog?) {
        guard let following = following(session) ?? session.following ?? backlog.map({ _ in session.beginFollowing() })
        else { return }
        if let backlog { following.begin(backlog) }
        guard let client = following.client else { return }
        if let backlog, backlog.kind == .missed {
            following.enter(room.id, written: backlog.start, received: backlog.start, isLive: false)
            return cursors.use(client, in: room.storedKey)
        }
        guard let place = place(of: client, in: room, session) else {
            following.enter(room.id, written: newest, received: newest, isLive: following.backlog(of: room.id) == nil)
            return enterCursor(client, room.storedKey, at: newest, for: session)
        }
        cursors.use(client, in: room.storedKey)
        // A client that logged in after entering lacks the older messages; the cursor stays for its next join. Clients
        // with chathistory request them.
        guard place >= newest || settings.limits.backlog <= 0 || session.caps.contains(.chatHistory) else { return }
        following.enter(room.id, written: newest, received: place, isLive: true)
        if place < newest { askSoon(session, following) }
    }

    /// The sequence number up to which a client has a room: by its cursor, or by what this connection was shown in earlier
    /// stays; nil: it has no cursor.
    func place(of client: ClientKey, in room: Room, _ session: IRCSession) -> Int64? {
        cursors.place(of: client, in: room.storedKey).map { max($0, session.shown[room.storedKey] ?? $0) }
    }

    /// A stay that the user did not end is over: the cursor moves once the client has what was written to it.
    func settleCursor(_ room: Room, _ session: IRCSession) {
        guard let following = session.following, let client = following.client,
            let place = following.written(in: room.id, newestPlace)
        else { return }
        whenReceived(by: session) { [weak self, weak session, key = room.storedKey] in
            guard let self, cursors.move(client, in: key, to: place) else { return }
            keep(client, key, at: place, for: session)
        }
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
            ["account": other.account, "client-name": NumberedClientName(other.client).shown])
    }

    func keep(_ client: ClientKey, _ room: StoredRoomKey, at place: Int64, for session: IRCSession?) {
        session?.kept(under: context.ledger.next)
        context.keep(.cursor(StoredCursor(account: client.account, client: client.client, room: room, sequence: place)))
    }

    /// Drops the cursors of an account that was removed from the room: of all its clients, connected or not.
    func dropCursors(of account: String, in room: Room, for author: IRCSession) {
        for client in cursors.drop(account: account, in: room.storedKey) {
            author.kept(under: context.ledger.next)
            context.keep(.dropCursor(account: client.account, client: client.client, room.storedKey))
        }
    }

    /// Drops the client's cursor: the user left the room deliberately, with this client among others.
    func dropCursor(_ room: Room, _ session: IRCSession, for author: IRCSession) {
        guard let client = session.following?.client, cursors.drop(client, in: room.storedKey) else { return }
        author.kept(under: context.ledger.next)
        context.keep(.dropCursor(account: client.account, client: client.client, room.storedKey))
    }

    // MARK: - Acknowledgement requests

    package func cursorsTimerFired(_ room: Room) {
        room.beginCursorRound()
        let clients = room.locals.keys.filter { sessions[$0]?.following != nil }
        for client in clients.sorted(by: { $0.rawValue < $1.rawValue }) {
            guard let session = sessions[client], let following = session.following else { continue }
            // Every room has a round of its own; a client in many rooms is not asked in each.
            if let askedAt = following.askedAt, context.now.monotonic - askedAt < CursorRound.pause {
                askSoon(session, following)
            } else {
                ask(session, following)
            }
        }
    }

    /// The sequence number of a room's newest message; nil: there is no such room.
    func newestPlace(_ id: RoomID) -> Int64? { room(id).map { Int64($0.lastSequence) } }

    /// Schedules a request for pending lines that no room's round covers.
    func askSoon(_ session: IRCSession, _ following: FollowedRooms) {
        guard !following.isAsking else { return }
        let open = following.open(newestPlace)
        guard open > 0 else { return }
        let now = context.now.monotonic
        following.ask(at: open > CursorRound.manyLines || lifecycle.isHandingOver ? now : now + CursorRound.pause)
        outbound.setTimer(session, following)
    }

    func ask(_ session: IRCSession, _ following: FollowedRooms) {
        if following.askNow() { askForCursors(session) }
    }

    /// The handler of the acknowledgement by a PING that is sent now; nil: nothing is pending.
    func cursorQuestion(_ session: IRCSession, _ following: FollowedRooms) -> (() -> Void)? {
        let asked = following.question(now: context.now.monotonic, newestPlace)
        guard !asked.isEmpty else { return nil }
        return { [weak self, weak session] in
            guard let self, let session else { return }
            self.received(asked, by: session)
        }
    }

    private func received(_ asked: [FollowedRooms.Question], by session: IRCSession) {
        guard let following = session.following, let client = following.client else { return }
        for question in following.answered(asked) {
            guard let room = room(question.room) else { continue }
            if cursors.move(client, in: room.storedKey, to: question.upTo) {
                keep(client, room.storedKey, at: question.upTo, for: session)
            }
        }
        askSoon(session, following)
        if following.hasEverything(newestPlace) { answeredLast(session) }
    }

    // MARK: - Shutdown

    /// Stops live lines in the client's rooms: it gets them after it reconnects. Rooms with a backlog in progress go
    /// on, with the live lines behind it.
    func stopShowing(_ session: IRCSession, _ following: FollowedRooms) {
        for id in following.stopShowing(newestPlace) {
            if let room = room(id) { setHeld(session.id, true, in: room) }
        }
    }

    // MARK: - Acknowledgements

    /// Calls `received` once the client has certainly received everything written to it before; never, if it
    /// disconnects first.
    ///
    /// - Returns: false: too many calls are pending for this client, and `received` is not called.
    @discardableResult
    func whenReceived(by session: IRCSession, _ received: @escaping () -> Void) -> Bool {
        guard session.state != .closed else { return false }
        let receipts = session.beginReceipts()
        guard receipts.add(received) else { return false }
        askNext(session, receipts)
        return true
    }

    /// Requests an acknowledgement of the lines of its rooms, now or once the pending one is there.
    func askForCursors(_ session: IRCSession) {
        guard session.state != .closed else { return }
        let receipts = session.beginReceipts()
        receipts.askForCursors()
        askNext(session, receipts)
    }

    /// Sends the next PING, if none is in flight and one is wanted. Its answer covers the lines of rooms in any case.
    private func askNext(_ session: IRCSession, _ receipts: DeliveryAcks) {
        guard receipts.isWanted else { return }
        let question = session.following.flatMap { cursorQuestion(session, $0) }
        if let token = receipts.ask(question) { sendPing(token, session) }
    }

    func pongReceived(_ token: String?, _ session: IRCSession) {
        guard let token, let receipts = session.lineReceipts else { return }
        for call in receipts.answered(token) { call() }
        askNext(session, receipts)
    }

    /// Bypasses `Outbound.write`: a PING belongs to no answer and no batch.
    private func sendPing(_ token: String, _ session: IRCSession) {
        context.write { IRCEncoder.append(IRCMessage(command: "PING", params: [token]), to: &$0) }
        emit(.send(session.id, context.takeWritten()))
    }

    func whenReceived(by client: ClientID, _ received: @escaping () -> Void) {
        if let session = sessions[client] { whenReceived(by: session, received) }
    }
}

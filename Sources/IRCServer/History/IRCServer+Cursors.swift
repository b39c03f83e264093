import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms
import WireBytes

// Whether a client with a cursor has what was written to it.
//
// A connection follows the cursor in each room that it enters: what it was given since then, in order and without a hole,
// is in `Followed.written`, or is the whole room while it gets live lines. Now and then a PING asks; its PONG proves that
// the client has all that was written before, and moves the cursor there. Several connections of one client (a new one,
// and an old one that hangs) each move the same cursor, forward only, by what they were given themselves. Once they are known for
// two clients, each has its own; see ``NumberedClientName``.

extension IRCServer {
    // MARK: - Entering and leaving

    /// What the session has got of its rooms, by cursors; nil where nothing is kept, and for clients without an account.
    func following(_ session: IRCSession) -> Following? {
        if let known = session.following, known.client != nil { return known }
        guard context.isDurable, let account = session.account, let name = session.clientName else { return nil }
        let following = session.beginFollowing()
        following.assign(ClientKey(account: account.name, client: name))
        return following
    }

    /// The session is in the room now, and gets what is said after `newest`.
    ///
    /// - Parameter backlog: what it gets before that.
    func follow(_ room: Room, _ session: IRCSession, from newest: Int64, _ backlog: Backlog?) {
        guard let following = following(session) ?? session.following ?? backlog.map({ _ in session.beginFollowing() })
        else { return }
        if let backlog { following.begin(backlog) }
        guard let client = following.client else { return }
        if let backlog, backlog.kind == .missed {
            following.enter(room.id, written: backlog.start, received: backlog.start, isLive: false)
            return cursors.use(client, in: room.storedKey)
        }
        guard let place = cursors.place(of: client, in: room.storedKey) else {
            following.enter(room.id, written: newest, received: newest, isLive: following.backlog(of: room.id) == nil)
            return enterCursor(client, room.storedKey, at: newest, for: session)
        }
        cursors.use(client, in: room.storedKey)
        // Who logged in after entering has not got what was said before; the cursor waits for the next time. Whoever can ask
        // for it has it in hand.
        guard place >= newest || settings.limits.backlog <= 0 || session.caps.contains(.chatHistory) else { return }
        following.enter(room.id, written: newest, received: place, isLive: true)
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
            ["account": other.account, "client": NumberedClientName(other.client).shown])
    }

    func keep(_ client: ClientKey, _ room: StoredRoomKey, at place: Int64, for session: IRCSession?) {
        session?.kept(under: context.ledger.next)
        context.keep(.cursor(StoredCursor(account: client.account, client: client.client, room: room, sequence: place)))
    }

    /// The account was put out of the room: none of its clients is there any more, connected or not.
    func dropCursors(of account: String, in room: Room, for author: IRCSession) {
        for client in cursors.drop(account: account, in: room.storedKey) {
            author.kept(under: context.ledger.next)
            context.keep(.dropCursor(account: client.account, client: client.client, room.storedKey))
        }
    }

    /// The person left the room by their own wish, with this client among others.
    func dropCursor(_ room: Room, _ session: IRCSession, for author: IRCSession) {
        guard let client = session.following?.client, cursors.drop(client, in: room.storedKey) else { return }
        author.kept(under: context.ledger.next)
        context.keep(.dropCursor(account: client.account, client: client.client, room.storedKey))
    }

    // MARK: - Asking

    package func cursorsTimerFired(_ room: Room) {
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

    /// The place of the newest message of a room; nil: there is no such room.
    func newestPlace(_ id: RoomID) -> Int64? { room(id).map { Int64($0.lastSequence) } }

    /// Lines wait to be acknowledged that no round of a room asks about.
    func askSoon(_ session: IRCSession, _ following: Following) {
        guard !following.isAsking else { return }
        let open = following.open(newestPlace)
        guard open > 0 else { return }
        let now = context.now.monotonic
        following.ask(at: open > CursorRound.manyLines || lifecycle.phase == .asking ? now : now + CursorRound.pause)
        outbound.setTimer(session, following)
    }

    func ask(_ session: IRCSession, _ following: Following) {
        if following.askNow() { askForCursors(session) }
    }

    /// A PING goes: what is to be done when everything that was written until now has come; nil: nothing is to be asked.
    func cursorQuestion(_ session: IRCSession, _ following: Following) -> (() -> Void)? {
        let asked = following.question(now: context.now.monotonic, newestPlace)
        guard !asked.isEmpty else { return nil }
        return { [weak self, weak session] in
            guard let self, let session else { return }
            self.received(asked, by: session)
        }
    }

    private func received(_ asked: [Following.Question], by session: IRCSession) {
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

    // MARK: - When the bridge stops

    /// What is said from now on in the client's rooms is not for this connection: it comes when the client is back. Not where it
    /// still gets what was said before, and what is said now behind that.
    func stopShowing(_ session: IRCSession, _ following: Following) {
        for id in following.stopShowing(newestPlace) {
            if let room = room(id) { setHeld(session.id, true, in: room) }
        }
    }

    // MARK: - Whether lines were received

    /// Calls `received` when the client has certainly got everything that was written to it before this; never, when it
    /// goes before that.
    ///
    /// - Returns: false: too many wait for this client already, and `received` is not called.
    @discardableResult
    func whenReceived(by session: IRCSession, _ received: @escaping () -> Void) -> Bool {
        guard session.state != .closed else { return false }
        let receipts = session.beginReceipts()
        guard receipts.add(received) else { return false }
        askNext(session, receipts)
        return true
    }

    /// Asks the client, now or as soon as it has answered, whether it has what was written to it in its rooms.
    func askForCursors(_ session: IRCSession) {
        guard session.state != .closed else { return }
        let receipts = session.beginReceipts()
        receipts.askForCursors()
        askNext(session, receipts)
    }

    /// Sends the next PING, if none is on its way and somebody wants to know. Whoever it is, the answer stands for the lines
    /// of rooms as well.
    private func askNext(_ session: IRCSession, _ receipts: LineReceipts) {
        guard receipts.isWanted else { return }
        let question = session.following.flatMap { cursorQuestion(session, $0) }
        if let token = receipts.ask(question) { sendPing(token, session) }
    }

    func pongReceived(_ token: String?, _ session: IRCSession) {
        guard let token, let receipts = session.lineReceipts else { return }
        for call in receipts.answered(token) { call() }
        askNext(session, receipts)
    }

    /// Past the exit door: a PING belongs to no answer and no batch.
    private func sendPing(_ token: String, _ session: IRCSession) {
        IRCEncoder.append(IRCMessage(command: "PING", params: [token]), to: &context.writer)
        emit(.send(session.id, context.writer.take()))
    }

    func whenReceived(by client: ClientID, _ received: @escaping () -> Void) {
        if let session = sessions[client] { whenReceived(by: session, received) }
    }
}

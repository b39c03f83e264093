import BridgeTypes
import ChatModel
import Dialects
import Digests
import Upstream
import WireBytes

// One way to the backend. A room has a lane over its own link, for all users without another, and one over the link of
// each account that is logged in as itself (`OwnLink`). Messages wait in its outbox, are written at the backend's rate,
// and stay until they are confirmed: the states are at the head of Outbox.swift. The lane knows no people: it passes
// the outcome of messages to its room, which shows it and notifies their authors.
//
// | file                   | contents                                                                                          |
// |------------------------|---------------------------------------------------------------------------------------------------|
// | SendLane               | writing queued messages, deadlines                                                                |
// | SendLane+Confirmation  | confirmed, refused and deferred messages                                                          |
// | SendLane+Storage       | persistence: acceptances, attempts, arrivals                                                      |
// | SendLane+Failures      | failed messages, until their authors are notified                                                 |

/// The unconfirmed messages and the link of one way to the backend.
package class SendLane {
    /// The room's, or one of its own in place of a room's, for all that is addressed by rooms: timers, slots, actions.
    package final let id: RoomID
    package final let link: UpstreamSession
    /// The room's; the lane has no settings beside those of its link but the limits of its queue.
    final let roomName: String
    final private var maxMessages: Int
    final private var maxAge: Duration
    /// The account whose login the link uses; empty: the room's.
    package final let account: String
    /// The identity of the link, and the backend's properties of the room.
    package final private(set) var dialectContext: DialectContext
    final var outbox: Outbox
    /// The room's.
    final let traffic: RoomTraffic
    final let failureNotices = FailureNotices()
    final var sendBudget: SendBudget
    final var delivery: DeliveryConfirmation
    /// The deadline that the timer of the outbox is set to.
    final private var armedFor: MonotonicInstant?
    final private var typingBudget = TokenBucket(rate: 10, burst: 20)
    /// Delivered messages whose upstream ids are unknown.
    final let sent = UnidentifiedMessages()
    final let reactions = OwnReactions()
    final private var pendingReceipts: [PendingReceipt] = []
    /// The read position of the link's account.
    package final private(set) var readSequence = -1
    /// A marker moved since the last call to mark the room as read.
    final private var isMarkReadDue = false

    typealias PendingReceipt = (reader: ChatPerson, id: ChatID, state: ChatReceipt.State)

    init(
        account: String, settings: RoomSettings, link: UpstreamSession, sendBudget: SendBudget, outbox: Outbox,
        traffic: RoomTraffic, dialectContext: DialectContext
    ) {
        self.id = link.room
        roomName = settings.name
        maxMessages = settings.queueMaxMessages
        maxAge = settings.queueMaxAge
        self.account = account
        self.sendBudget = sendBudget
        self.outbox = outbox
        self.traffic = traffic
        self.dialectContext = dialectContext
        delivery = DeliveryConfirmation(link.traits)
        self.link = link
    }

    package final var traits: DialectTraits { link.traits }

    /// The backend accepts messages over the link now.
    var canSpeak: Bool { link.isUp }

    /// The backend's identification of the link is known, or not needed.
    var isIdentified: Bool { true }

    /// The sender in the frames of a message, as far as is known now.
    func sender(of message: ChatMessage, nick: String) -> ChatPerson { message.sender }

    final func sender(of entry: OutboxEntry) -> ChatPerson { sender(of: entry.message, nick: entry.origin.who.nick) }

    /// Whether retransmission is idempotent.
    final var mayRepeatMessages: Bool { traits.messageIDOrigin == .client }

    // MARK: - Identity

    /// Registers another identity of the lane. Returns whether it is new.
    @discardableResult
    final func isAlso(_ id: ChatID) -> Bool { dialectContext.addSelf(id) }

    final func isAlso(_ person: ChatPerson) { dialectContext.addSelf(person) }

    final func isNoLonger(_ id: ChatID) { dialectContext.removeSelf(id) }

    final func isNoLonger(_ person: ChatPerson) { dialectContext.removeSelf(person) }

    /// Records the backend's own name of the room.
    package final func announced(_ ready: ChatReady) { dialectContext.announced(ready) }

    // MARK: - Writing

    package final var isFull: Bool { outbox.count >= maxMessages }
    /// All messages are written.
    package final var isIdle: Bool { !outbox.hasQueued && pendingReceipts.isEmpty }

    /// Queues a message; it is written when allowed.
    final func submit(_ entry: consuming OutboxEntry, _ context: RoomsContext) {
        if context.isDurable {
            entry.accept(with: context.ledger.next)
            persistAcceptance(entry, context)
        }
        outbox.append(entry)
    }

    /// Writes queued messages as far as allowed.
    ///
    /// - Parameters:
    ///   - isOpen: new messages may be sent.
    ///   - willWrite: is called with each message's author and id before its frames.
    /// - Returns: messages that no frame can carry.
    final func write(
        isOpen: Bool, _ context: RoomsContext, willWrite: (OutboxEntry.Author, ChatID?) -> Void
    ) -> [Failure] {
        var failures: [Failure] = []
        let now = context.now.monotonic
        let recordsAttempts = recordsAttempts(context)
        if recordsAttempts { writeIntended(isOpen: isOpen, context) }
        while maySend(isOpen: isOpen), !recordsAttempts || outbox.mayRecordAttempt(now),
            var message = outbox.nextMessage,
            let author = outbox.nextAuthor, sendBudget.take(now: now)
        {
            willWrite(author, message.id)
            let sender = sender(of: message, nick: author.nick)
            if sender != message.sender { message.sender = sender }
            let encoded = link.settings.dialect.encode(.message(message), context: dialectContext)
            switch encoded {
            case .frame, .several:
                guard writeNext(message, encoded, author, recordsAttempts, context) else { return failures }
            case .unsupported(.tooLong) where splitNext(): continue
            case .unsupported(let reason):
                if let refused = outbox.removeNext() {
                    failures.append(
                        giveUp(
                            refused,
                            why: FailureReason("the backend's format cannot carry it (\(reason.rawValue))"), context))
                }
            }
        }
        while maySend(isOpen: isOpen), !outbox.hasQueued, let receipt = pendingReceipts.first,
            sendBudget.take(now: now)
        {
            pendingReceipts.removeFirst()
            send(
                .receipt(
                    ChatReceipt(
                        state: receipt.state, ids: [receipt.id], by: receipt.reader, at: context.now.wall,
                        room: link.settings.upstreamRoom)), context)
        }
        return failures
    }

    /// The backend accepts messages.
    final func maySend(isOpen: Bool) -> Bool { isOpen && canSpeak && !link.isRenewing }

    /// Writes the next entry, or intends to: it is written once its attempt is persisted. False: the link is lost.
    private func writeNext(
        _ message: ChatMessage, _ encoded: EncodedCommand, _ author: OutboxEntry.Author,
        _ recordsAttempts: Bool, _ context: RoomsContext
    ) -> Bool {
        if recordsAttempts {
            guard let entry = outbox.next else { return false }
            outbox.markNextRecording(context.ledger.next, encoded.frames ?? [])
            recordAttempt(entry, context)
            context.awaitStore(id)
            return true
        }
        guard link.send(encoded, context) else { return false }
        outbox.markNextWritten(at: context.now.monotonic, frameCount: link.frameCount)
        if let tap = context.tap { tap(RoomPassage(.toBackend(.message(message)), over: self)) }
        context.latency.messageWritten(after: context.now.monotonic - author.acceptedAt)
        return true
    }

    private func writeIntended(isOpen: Bool, _ context: RoomsContext) {
        while maySend(isOpen: isOpen), let entry = outbox.nextRecorded(through: context.ledger.settled),
            link.send(entry.frames, context)
        {
            outbox.markRecordedWritten(at: context.now.monotonic, frameCount: link.frameCount)
            if let tap = context.tap { tap(RoomPassage(.toBackend(.message(entry.message)), over: self)) }
            context.latency.messageWritten(after: context.now.monotonic - entry.acceptedAt)
        }
    }

    /// Sends a command whose loss does no harm; true when it went to the socket.
    @discardableResult
    package final func send(_ command: ChatCommand, _ context: RoomsContext) -> Bool {
        guard canSpeak, link.send(link.settings.dialect.encode(command, context: dialectContext), context) else {
            return false
        }
        traffic.sent(command)
        if let tap = context.tap { tap(RoomPassage(.toBackend(command), over: self)) }
        return true
    }

    /// The same for a user's action within the rate limit. False: the limit is reached.
    final func takeBudget(_ context: RoomsContext) -> Bool { sendBudget.take(now: context.now.monotonic) }

    package final func nextGrant(_ context: RoomsContext) -> MonotonicInstant {
        sendBudget.nextGrant(now: context.now.monotonic)
    }

    final func isPaced(at now: MonotonicInstant) -> Bool {
        canSpeak && outbox.hasQueued && sendBudget.nextGrant(now: now) > now
    }

    final func takeTypingBudget(_ context: RoomsContext) -> Bool { typingBudget.take(now: context.now.monotonic) }

    // MARK: - Timers

    /// The room has other settings.
    func take(_ settings: RoomSettings, usesAccount: Bool) {
        maxMessages = settings.queueMaxMessages
        maxAge = settings.queueMaxAge
        link.take(linkSettings(settings), usesAccount: usesAccount)
    }

    func linkSettings(_ room: RoomSettings) -> LinkSettings { room.link }

    /// - Parameter grant: the time of another pending write.
    final func arm(isOpen: Bool, also grant: MonotonicInstant?, _ context: RoomsContext) {
        var due = MonotonicInstant.earlier(outbox.nextDeadline(maxAge: maxAge), grant)
        if maySend(isOpen: isOpen),
            outbox.mayRecordAttempt(context.now.monotonic) && outbox.hasQueued || !pendingReceipts.isEmpty
        {
            let grant = nextGrant(context)
            due = due.map { min($0, grant) } ?? grant
        }
        guard due != armedFor else { return }
        armedFor = due
        if let due { context.set(.outbox(id), at: due) } else { context.cancel(.outbox(id)) }
    }

    final func outboxTimerFired() { armedFor = nil }

    /// Fails expired messages. The timer never fires twice for the same reason, with or without a usable link.
    final func expire(_ context: RoomsContext) -> [Failure] {
        let now = context.now.monotonic
        let expired = giveUp(outbox.expire(maxAge: maxAge, now: now), context)
        _ = outbox.mayRecordAttempt(now)
        forget(outbox.takeDelivered(due: now), context)
        return expired
    }

    /// Returns messages that have waited for long without a notice.
    final func takeWaiting(_ context: RoomsContext) -> [OutboxEntry] {
        outbox.takeWaitAnnouncements(now: context.now.monotonic)
    }

    /// The link is lost, with its in-flight messages. Returns unresolvable ones.
    final func linkLost(_ context: RoomsContext) -> [Failure] {
        persistWithdrawals(outbox.linkLost(mayRepeat: mayRepeatMessages, now: context.now.monotonic), context)
        delivery.linkLost()
        pendingReceipts = []
        guard traits.history == .none, delivery.confirmation == .none else { return [] }
        return giveUp(outbox.giveUpUnknown(), context)
    }

    /// Fails everything at shutdown.
    final func giveUpAll(why: String, _ context: RoomsContext) -> [Failure] {
        pendingReceipts = []
        return Self.onceEach(outbox.takeAll()).map {
            giveUp($0, why: FailureReason(why, isArrivalOpen: $0.isArrivalOpen), context)
        }
    }

    // MARK: - Receipts

    /// More than this waits only when the rate is far exceeded; the newest matter most.
    final func addReceipts(_ receipts: some Sequence<PendingReceipt>) {
        pendingReceipts += receipts
        let most = 4 * Room.maxReceiptsPerMarker
        if pendingReceipts.count > most { pendingReceipts.removeFirst(pendingReceipts.count - most) }
    }

    /// Where receipts are cumulative, a newer one of the same reader replaces the older.
    final func setReceipt(_ reader: ChatPerson, upTo id: ChatID) {
        pendingReceipts.removeAll { $0.reader == reader }
        addReceipts([(reader, id, .read)])
    }

    package final func read(upTo sequence: Int) { readSequence = max(readSequence, sequence) }

    /// Interval between calls that mark a room as read: a reader who scrolls moves the marker with every line.
    static let markReadInterval: Duration = .seconds(2)

    /// Calls the backend to mark the room as read, now or soon.
    final func callMarkRead(_ context: RoomsContext) {
        guard context.due(.markRead(id)) == nil else { return isMarkReadDue = true }
        isMarkReadDue = false
        context.requestMarkRead(id)
        context.set(.markRead(id), at: context.now.monotonic + Self.markReadInterval)
    }

    package final func markReadTimerFired(_ context: RoomsContext) { if isMarkReadDue { callMarkRead(context) } }

    // MARK: - Splitting

    /// Replaces an entry that is too long by pieces; false when it cannot be split.
    private func splitNext() -> Bool {
        guard let entry = outbox.next, entry.part == nil, let pieces = pieces(of: entry) else { return false }
        outbox.splitNext(pieces)
        return true
    }

    /// The link is usable for the first time since the start: now the frame size is known, and pieces sent before are
    /// recognised.
    final func cutRestored() {
        for entry in outbox.takeUncut() where entry.part == nil {
            guard let id = entry.message.id,
                case .unsupported(.tooLong) = link.settings.dialect.encode(
                    .message(entry.message), context: dialectContext),
                let pieces = pieces(of: entry)
            else { continue }
            outbox.split(id: id, pieces)
        }
    }

    /// The unconfirmed pieces of an entry; nil when it cannot be split.
    private func pieces(of entry: OutboxEntry) -> [OutboxEntry]? {
        guard let messages = pieces(of: entry.message), messages.count > 1 else { return nil }
        let group = outbox.newGroup()
        let arrived = entry.confirmedPieces < messages.count ? entry.confirmedPieces : 0
        return messages.enumerated().dropFirst(arrived).map { index, message in
            var piece = entry
            piece.message = message
            piece.part = OutboxEntry.Part(group: group, index: index, whole: entry.message.id)
            piece.confirmedPieces = arrived
            return piece
        }
    }

    /// The id of a piece after the first: deterministic for the message.
    private func id(ofPiece index: Int, of whole: ChatID) -> ChatID {
        let namespace = UUIDText.parse(whole.rawValue) ?? Array(whole.rawValue.utf8)
        let id = UUIDv5.make(namespace: namespace, name: "piece \(index)")
        guard traits.idsAreNumbers else { return ChatID(id) }
        return ChatID(number: id.utf8.reduce(0) { $0 &* 31 &+ UInt64($1) })
    }

    private func pieces(of message: ChatMessage) -> [ChatMessage]? {
        var pieces: [ChatMessage] = []
        var rest = message
        while let end = link.settings.dialect.cut(of: rest, context: dialectContext) {
            guard end < rest.text.endIndex else { return pieces + [rest] }
            var front = rest
            front.text = String(rest.text[..<end])
            // The end of the piece stands for the line end or blank at which it was split.
            if front.text.utf8.count > 1, front.text.hasSuffix("\n") || front.text.hasSuffix(" ") {
                front.text.unicodeScalars.removeLast()
            }
            front.attachments = []
            pieces.append(front)
            rest.text = String(rest.text[end...])
            rest.id = message.id.map { id(ofPiece: pieces.count, of: $0) }
            rest.replyTo = nil
        }
        return nil
    }

    /// Once for all pieces of a message.
    static func onceEach(_ entries: [OutboxEntry]) -> [OutboxEntry] {
        var seen: Set<UInt64> = []
        return entries.filter { $0.part.map { seen.insert($0.group).inserted } ?? true }
    }

    // MARK: - Account reset

    /// Reassigns the messages of `author`, a purged account. Returns failures whose notices are cancelled.
    final func disown(_ author: ChatID, as nobody: ChatID) -> [FailedMessages.Item] {
        outbox.disown(author, as: nobody)
    }

    final func eraseFailed() -> [FailedMessages.Item] { outbox.eraseFailed() }

    /// The client's messages belong to its new name, and no longer to all of its old name.
    final func renameClient(_ client: ClientID, to name: String) { outbox.renameClient(client, to: name) }
}

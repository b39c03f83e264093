import BridgeTypes
import ChatModel
import Dialects
import Digests
import Upstream
import WireBytes

// One way up. A room has a lane over its own link, for everybody who has no other, and one over the link of each account that is
// logged in as itself (`OwnLink`). What was said waits in its outbox, is written as fast as the backend wants it, and stays until
// the backend has it: the states are at the head of Outbox.swift. The lane knows no people: what became of messages it gives to
// its room, which shows it and has their authors hear of it.
//
// | file                   | what                                                                                              |
// |------------------------|---------------------------------------------------------------------------------------------------|
// | SendLane               | what waits is written, in time or never                                                           |
// | SendLane+Confirmation  | what the backend has, refuses or puts off, and how that is known                                  |
// | SendLane+Storage       | what the disk has of it: acceptances, intentions, arrivals                                        |
// | SendLane+Failures      | what was given up, until its author is told                                                       |

/// What people say over one link of a room, until the backend has it.
package class SendLane {
    /// The room's, or one of its own in the place of a room's, for everything that is addressed by rooms: timers, slots, actions.
    package final let id: RoomID
    package final let link: UpstreamSession
    /// The room's.
    package final let settings: RoomSettings
    package final let traits: DialectTraits
    /// Whose login the link shows; empty: the room's.
    package final let account: String
    /// As whom the link speaks, and what the backend said of the room.
    package final private(set) var dialectContext: DialectContext
    final var outbox: Outbox
    final let failureNotices = FailureNotices()
    final var sendBudget: SendBudget
    final var delivery: DeliveryConfirmation
    final private var typingBudget = TokenBucket(rate: 10, burst: 20)
    /// What the backend has under ids that nobody told us.
    final let sent = SentMessages()
    final let reactions = OwnReactions()
    final private var pendingReceipts: [PendingReceipt] = []
    /// Up to where the link's account has read.
    package final private(set) var readSequence = -1
    /// A marker moved since the backend was last called to mark the room as read.
    final private var isMarkReadDue = false

    typealias PendingReceipt = (reader: ChatPerson, id: ChatID, state: ChatReceipt.State)

    init(
        account: String, settings: RoomSettings, link: UpstreamSession, sendBudget: SendBudget, outbox: Outbox,
        dialectContext: DialectContext
    ) {
        self.id = link.room
        self.settings = settings
        self.account = account
        self.sendBudget = sendBudget
        self.outbox = outbox
        self.dialectContext = dialectContext
        traits = settings.dialect.traits
        delivery = DeliveryConfirmation(traits)
        self.link = link
    }

    /// What goes over the link now is heard.
    var canSpeak: Bool { link.isUp }

    /// As whom the backend sees it is known, or nothing depends on it.
    var isIdentified: Bool { true }

    /// Who speaks in the frames of a message, as far as is known now.
    func sender(of entry: OutboxEntry) -> ChatPerson { entry.message.sender }

    /// Whether sending a message again cannot make a second one of it.
    final var mayRepeatMessages: Bool { traits.messageIDOrigin == .client }

    // MARK: - As whom it speaks

    /// What comes from this person upstream is the lane's own. Returns whether that was news.
    @discardableResult
    final func isAlso(_ id: ChatID) -> Bool { dialectContext.addSelf(id) }

    final func isAlso(_ person: ChatPerson) { dialectContext.addSelf(person) }

    final func isNoLonger(_ id: ChatID) { dialectContext.removeSelf(id) }

    final func isNoLonger(_ person: ChatPerson) { dialectContext.removeSelf(person) }

    /// The backend said how it calls the room.
    package final func announced(_ ready: ChatReady) { dialectContext.announced(ready) }

    // MARK: - Writing

    package final var isFull: Bool { outbox.count >= settings.queueMaxMessages }
    /// All that people said is written.
    package final var isIdle: Bool { !outbox.hasQueued && pendingReceipts.isEmpty }

    /// Takes what was said; it is written when it may.
    final func submit(_ entry: OutboxEntry, _ context: RoomsContext) {
        var entry = entry
        if context.isDurable {
            entry.state = .accepting(context.ledger.next)
            keepAcceptance(entry, context)
        }
        outbox.append(entry)
    }

    /// Writes what may be written.
    ///
    /// - Parameters:
    ///   - isOpen: what is said now is heard as new.
    ///   - willWrite: is called with each message before its frames.
    /// - Returns: what no frame can carry.
    final func write(
        isOpen: Bool, _ context: RoomsContext, willWrite: (OutboxEntry) -> Void
    ) -> [Failure] {
        var failures: [Failure] = []
        let now = context.now.monotonic
        let keepsIntentions = keepsIntentions(context)
        if keepsIntentions { writeIntended(isOpen: isOpen, context) }
        while maySend(isOpen: isOpen), !keepsIntentions || outbox.mayIntend(now), let entry = outbox.next,
            sendBudget.take(now: now)
        {
            willWrite(entry)
            var message = entry.message
            message.sender = sender(of: entry)
            let encoded = settings.dialect.encode(.message(message), context: dialectContext)
            switch encoded {
            case .frame(let frame) where keepsIntentions: intend(entry, [frame], context)
            case .several(let frames) where keepsIntentions: intend(entry, frames, context)
            case .frame, .several:
                guard link.send(encoded.frames ?? [], context) else { return failures }
                outbox.markNextWritten(at: now, frameCount: link.frameCount)
            case .unsupported(.tooLong) where splitNext(entry): continue
            case .unsupported(let reason):
                if let refused = outbox.removeNext() {
                    failures.append(
                        giveUp(refused, why: "the backend's format cannot carry it (\(reason.rawValue))", context))
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
                        room: settings.upstreamRoom)), context)
        }
        return failures
    }

    /// The backend takes what it is told.
    final func maySend(isOpen: Bool) -> Bool { isOpen && canSpeak && !link.isRenewing }

    /// The next entry is written when it is on disk that it may have been.
    private func intend(_ entry: OutboxEntry, _ frames: [EncodedFrame], _ context: RoomsContext) {
        outbox.markNextIntending(context.ledger.next, frames)
        keepIntention(entry, context)
        context.awaitStore(id)
    }

    private func writeIntended(isOpen: Bool, _ context: RoomsContext) {
        while maySend(isOpen: isOpen), let entry = outbox.nextIntended(through: context.ledger.settled),
            link.send(entry.frames, context)
        {
            outbox.markIntendedWritten(at: context.now.monotonic, frameCount: link.frameCount)
        }
    }

    /// Sends a command whose loss does no harm; true when it went to the socket.
    @discardableResult
    package final func send(_ command: ChatCommand, _ context: RoomsContext) -> Bool {
        guard canSpeak, let frames = settings.dialect.encode(command, context: dialectContext).frames else {
            return false
        }
        return link.send(frames, context)
    }

    /// The same, of what a person does and is to be kept within what the backend wants. False: it is not wanted now.
    final func takeBudget(_ context: RoomsContext) -> Bool { sendBudget.take(now: context.now.monotonic) }

    package final func nextGrant(_ context: RoomsContext) -> MonotonicInstant {
        sendBudget.nextGrant(now: context.now.monotonic)
    }

    final func takeTypingBudget(_ context: RoomsContext) -> Bool { typingBudget.take(now: context.now.monotonic) }

    // MARK: - In time

    /// - Parameter grant: when something else wants to be written.
    final func arm(isOpen: Bool, also grant: MonotonicInstant?, _ context: RoomsContext) {
        var due = [outbox.nextDeadline(maxAge: settings.queueMaxAge), grant].compactMap { $0 }.min()
        if maySend(isOpen: isOpen),
            outbox.mayIntend(context.now.monotonic) && outbox.hasQueued || !pendingReceipts.isEmpty
        {
            let grant = nextGrant(context)
            due = due.map { min($0, grant) } ?? grant
        }
        if let due { context.timers.set(.outbox(id), at: due) } else { context.timers.cancel(.outbox(id)) }
    }

    /// What grew too old. Whether or not anything can be written now, the timer does not come due for the same reason again.
    final func expire(_ context: RoomsContext) -> [Failure] {
        let now = context.now.monotonic
        let expired = giveUp(outbox.expire(maxAge: settings.queueMaxAge, now: now), context)
        _ = outbox.mayIntend(now)
        forget(outbox.takeDelivered(due: now), context)
        return expired
    }

    /// What has waited for long without a word about it.
    final func takeWaiting(_ context: RoomsContext) -> [OutboxEntry] {
        outbox.takeWaitAnnouncements(now: context.now.monotonic)
    }

    /// The link is gone, and with it what was on its way. Returns of what nothing tells whether it arrived, and nothing will.
    final func linkLost(_ context: RoomsContext) -> [Failure] {
        keepWithdrawals(outbox.linkLost(mayRepeat: mayRepeatMessages, now: context.now.monotonic), context)
        delivery.linkLost()
        pendingReceipts = []
        guard traits.history == .none, delivery.confirmation == .none else { return [] }
        return giveUp(outbox.giveUpUnsettled(), context)
    }

    /// Nothing more can be delivered by this process.
    final func giveUpAll(why: String, _ context: RoomsContext) -> [Failure] {
        pendingReceipts = []
        return Self.onceEach(outbox.takeAll()).map {
            giveUp($0, why: $0.isArrivalOpen ? why + Self.arrivalOpen : why, context)
        }
    }

    // MARK: - Receipts

    /// More than this waits only when the rate is far exceeded; the newest say most.
    final func addReceipts(_ receipts: some Sequence<PendingReceipt>) {
        pendingReceipts += receipts
        let most = 4 * Room.maxReceiptsPerMarker
        if pendingReceipts.count > most { pendingReceipts.removeFirst(pendingReceipts.count - most) }
    }

    /// Where a receipt means all before, another one of the same reader says nothing more.
    final func setReceipt(_ reader: ChatPerson, upTo id: ChatID) {
        pendingReceipts.removeAll { $0.reader == reader }
        addReceipts([(reader, id, .read)])
    }

    package final func read(upTo sequence: Int) { readSequence = max(readSequence, sequence) }

    /// Calls that mark a room as read keep this distance: a reader who scrolls moves the marker with every line.
    static let markReadInterval: Duration = .seconds(2)

    /// Has the backend called to mark the room as read, now or soon.
    final func callMarkRead(_ context: RoomsContext) {
        guard context.timers[.markRead(id)] == nil else { return isMarkReadDue = true }
        isMarkReadDue = false
        context.requestMarkRead(id)
        context.timers.set(.markRead(id), at: context.now.monotonic + Self.markReadInterval)
    }

    package final func markReadTimerFired(_ context: RoomsContext) { if isMarkReadDue { callMarkRead(context) } }

    // MARK: - Longer than a frame

    /// Puts pieces in the place of an entry that is too long; false when it cannot be cut.
    private func splitNext(_ entry: OutboxEntry) -> Bool {
        guard entry.part == nil, let pieces = pieces(of: entry) else { return false }
        outbox.splitNext(pieces)
        return true
    }

    /// The link is usable for the first time since the start: now it is known how long a frame can be, and pieces that went
    /// up before are recognised.
    final func cutRestored() {
        for entry in outbox.takeUncut() where entry.part == nil {
            guard let id = entry.message.id,
                case .unsupported(.tooLong) = settings.dialect.encode(.message(entry.message), context: dialectContext),
                let pieces = pieces(of: entry)
            else { continue }
            outbox.split(id: id, pieces)
        }
    }

    /// An entry in pieces, without those that have arrived; nil when it cannot be cut.
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

    /// The id of a piece after the first: the same each time the message is cut.
    private static func id(ofPiece index: Int, of whole: ChatID) -> ChatID {
        let namespace = UUIDText.parse(whole.rawValue) ?? Array(whole.rawValue.utf8)
        return ChatID(UUIDv5.make(namespace: namespace, name: "piece \(index)"))
    }

    private func pieces(of message: ChatMessage) -> [ChatMessage]? {
        var pieces: [ChatMessage] = []
        var rest = message
        while let end = settings.dialect.cut(of: rest, context: dialectContext) {
            guard end < rest.text.endIndex else { return pieces + [rest] }
            var front = rest
            front.text = String(rest.text[..<end])
            // The end of the piece stands for the line end or blank at which it was cut.
            if front.text.utf8.count > 1, front.text.hasSuffix("\n") || front.text.hasSuffix(" ") {
                front.text.unicodeScalars.removeLast()
            }
            front.attachments = []
            pieces.append(front)
            rest.text = String(rest.text[end...])
            rest.id = message.id.map { Self.id(ofPiece: pieces.count, of: $0) }
            rest.replyTo = nil
        }
        return nil
    }

    /// Once for all pieces of a message.
    static func onceEach(_ entries: [OutboxEntry]) -> [OutboxEntry] {
        var seen: Set<UInt64> = []
        return entries.filter { $0.part.map { seen.insert($0.group).inserted } ?? true }
    }

    // MARK: - People

    /// Who was `author` is somebody else now. Returns whose failures nobody is to be told any more.
    final func disown(_ author: ChatID, as nobody: ChatID) -> [FailedMessages.Item] {
        outbox.disown(author, as: nobody)
    }

    /// What the client said is its own, and no longer everybody's of its old name.
    final func renameClient(_ client: ClientID, to name: String) { outbox.renameClient(client, to: name) }
}

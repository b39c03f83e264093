import ChatModel
import Dialects
import WireBytes

// One way up. A room has a lane over its own link, for everybody who has no other, and one over the link of each account that is
// logged in as itself (`OwnLink`). What was said waits in its outbox, is written as fast as the backend wants it, and stays until
// the backend has it: the states are at the head of Outbox.swift.

/// What people say over one link of a room, until the backend has it.
class SendLane {
    /// The room's, or one of its own in the place of a room's, for everything that is addressed by rooms: timers, slots, actions.
    final let id: RoomID
    final let link: UpstreamSession
    /// Whose login the link shows; empty: the room's.
    final let account: String
    /// As whom the link speaks, and what the backend said of the room.
    final var dialectContext: DialectContext
    /// As whom the backend sees it is known, or nothing depends on it.
    final var isIdentified = true
    final var outbox: Outbox
    final let failureNotices = FailureNotices()
    final var sendBudget: SendBudget
    final var delivery: DeliveryConfirmation
    final var typingBudget = TokenBucket(rate: 10, burst: 20)
    /// What the backend has under ids that nobody told us.
    final var sent = SentMessages()
    final var reactions = OwnReactions()
    final var pendingReceipts: [(reader: ChatPerson, id: ChatID, state: ChatReceipt.State)] = []
    /// Up to where the link's account has read.
    final var readSequence = -1
    /// A marker moved since the backend was last called to mark the room as read.
    final var isMarkReadDue = false

    init(
        id: RoomID, account: String, settings: RoomSettings, sendBudget: SendBudget, outbox: Outbox,
        dialectContext: DialectContext
    ) {
        self.id = id
        self.account = account
        self.sendBudget = sendBudget
        self.outbox = outbox
        self.dialectContext = dialectContext
        delivery = DeliveryConfirmation(settings.dialect.traits)
        link = UpstreamSession(room: id, settings: settings)
    }

    /// What goes over the link now is heard.
    var canSpeak: Bool { link.isUp }

    /// Who speaks in the frames of a message, as far as is known now.
    func sender(of entry: OutboxEntry) -> ChatPerson { entry.message.sender }

    // MARK: - Confirmation

    /// Asks whether what was written has been read, where nothing else confirms it.
    final func probe(_ context: BridgeContext) {
        if delivery.acceptsPongs, outbox.hasInFlight { link.probeDelivery(context) }
    }

    /// The backend answered a message, in whatever way.
    final func answered(_ context: BridgeContext) {
        guard delivery.answered() else { return }
        context.note(
            .info, "echo-learned", "the backend answers our messages; answers are waited for from now on",
            ["room": link.settings.name])
    }

    /// The message that came back, on a wire that tells us no ids.
    final func takeSent(_ message: ChatMessage, isHistory: Bool, _ context: BridgeContext) -> SentMessages.Entry? {
        if isHistory { return sent.takeNewest(text: message.text) }
        guard let entry = sent.takeEchoed(text: message.text, now: context.now.monotonic) else { return nil }
        answered(context)
        return entry
    }

    // MARK: - Receipts

    /// More than this waits only when the rate is far exceeded; the newest say most.
    final func addReceipts(_ receipts: some Sequence<(reader: ChatPerson, id: ChatID, state: ChatReceipt.State)>) {
        pendingReceipts += receipts
        let most = 4 * Room.maxReceiptsPerMarker
        if pendingReceipts.count > most { pendingReceipts.removeFirst(pendingReceipts.count - most) }
    }
}

import BridgeTypes
import ChatModel
import Dialects
import Upstream
import WireBytes

// What became of messages that were written: the backend has them, refuses them or puts them off, or nobody knows.

extension SendLane {
    // MARK: - What the backend has

    final func confirm(id: ChatID, sender: ChatID? = nil) -> OutboxEntry? { outbox.confirm(id: id, sender: sender) }
    final func confirm(sender: ChatID?, text: String) -> OutboxEntry? { outbox.confirm(sender: sender, text: text) }
    final func confirm(senderName: String, text: String) -> OutboxEntry? {
        outbox.confirm(senderName: senderName, text: text)
    }

    /// One that was given up, and has arrived all the same.
    final func takeLate(ref: ChatID) -> OutboxEntry? { outbox.takeLate(ref: ref) }
    final func takeLate(id: ChatID, sender: ChatID?) -> OutboxEntry? { outbox.takeLate(id: id, sender: sender) }
    final func takeLate(sender: ChatID?, text: String) -> OutboxEntry? { outbox.takeLate(sender: sender, text: text) }

    /// One that a pong confirmed, and a history has. Nothing more is to be learned of it.
    final func takeDelivered(id: ChatID, _ context: RoomsContext) -> OutboxEntry? {
        guard let kept = outbox.takeDelivered(id: id) else { return nil }
        forget([kept], context)
        return kept
    }

    /// The backend answered a message, in whatever way.
    package final func answered(_ context: RoomsContext) {
        guard delivery.answered() else { return }
        context.note(
            .info, "echo-learned", "the backend answers our messages; answers are waited for from now on",
            ["room": link.settings.name])
    }

    /// The message that came back, on a wire that tells us no ids.
    final func takeSent(_ message: ChatMessage, isHistory: Bool, _ context: RoomsContext) -> SentMessages.Entry? {
        if isHistory { return sent.takeNewest(text: message.text) }
        guard let entry = sent.takeEchoed(text: message.text, now: context.now.monotonic) else { return nil }
        answered(context)
        return entry
    }

    // MARK: - Pongs

    /// Asks whether what was written has been read, where nothing else confirms it.
    final func probe(_ context: RoomsContext) {
        if delivery.acceptsPongs, outbox.hasInFlight { link.probeDelivery(context) }
    }

    /// The backend's connection has read so many frames of this session.
    package final func hasRead(frameCount: UInt64, _ context: RoomsContext) {
        if delivery.hasRead(frameCount: frameCount) {
            context.note(
                .info, "echo-absent",
                "the backend does not answer our messages; from now on a pong confirms what was written before its ping",
                ["room": link.settings.name])
        }
    }

    /// The next message that this confirms; nil: it confirms no more.
    final func takeRead(upTo frameCount: UInt64) -> OutboxEntry? {
        delivery.acceptsPongs ? outbox.takeWritten(upTo: frameCount) : nil
    }

    /// Messages went unanswered for long: the peer must show that it reads what we write. False: an answer was promised, so a
    /// history is to tell.
    package final func doubt(_ context: RoomsContext) -> Bool {
        delivery.missed(frameCount: link.frameCount)
        // A peer that never answered a ping is only asked for any sign of life: this one it may not answer either.
        let isDemand = link.hasAnsweredPing || delivery.confirmation != .none
        link.checkLiveness(isDemand: isDemand, dialectContext, context)
        // Also the protocol's own, whatever the wire has beside it: its answer is in order.
        guard delivery.answers != .promised else { return false }
        link.probeDelivery(context)
        return true
    }

    /// So many frames count as read: a peer that answers no pings has given another sign of life since messages went
    /// unanswered. Nil: nothing was in doubt, or is still.
    final var readWithoutPong: UInt64? {
        guard let frameCount = delivery.doubtedAt, link.isUp, !link.hasAnsweredPing, link.pingSentAt == nil,
            link.demand == nil
        else { return nil }
        return frameCount
    }

    /// An answer is missing that a history may stand for.
    final func takeDoubtful(_ context: RoomsContext) -> Bool { outbox.takeDoubtful(now: context.now.monotonic) }

    /// Messages went unanswered for long over a link that lives: a history may tell what became of them.
    final func unsettleDoubtful(_ context: RoomsContext) -> Bool {
        outbox.unsettleDoubtful(now: context.now.monotonic)
    }

    /// The backend complained of something, and a pong confirmed messages a moment ago: a history is to tell whether it has
    /// them. They do not go again; the author of one that is missing hears that. False: there are none.
    final func suspectDelivered(_ complaint: String, _ context: RoomsContext) -> Bool {
        let now = context.now.monotonic
        return outbox.suspectDelivered(since: now + (.zero - SentMessages.complaintWindow), now: now, complaint)
    }

    /// A history was asked for at `asked` and lacks these as far as it reaches. Returns what is given up for it.
    final func settleMissing(
        asked: MonotonicInstant, reaches: (OutboxEntry) -> Bool, _ context: RoomsContext
    ) -> [Failure] {
        let given = outbox.settleMissing(
            asked: asked, patience: CatchUp.patience, isOnce: delivery.confirmation == .none, reaches: reaches)
        let repeated = given.filter(\.isRepeated).map { entry in
            let said = entry.complaint.map { "the backend complained of something (\($0)), and its" }
            return giveUp(entry, why: "\(said ?? "the backend's") history does not have it", context)
        }
        return repeated + giveUp(given.filter { !$0.isRepeated }, context)
    }

    // MARK: - What the backend refuses

    /// It names what it refuses; nil: that is no message on its way.
    final func refuse(_ ref: String, or bare: String) -> OutboxEntry? {
        outbox.refuse(id: ChatID(ref)) ?? outbox.refuse(id: ChatID(bare))
    }

    /// It names nothing, and only one is in flight.
    final func refuseOnly(_ context: RoomsContext) -> OutboxEntry? {
        // Where everything is answered in order, an answer may take its time.
        let isOrdered = traits.confirmation == .receipt && traits.messageIDOrigin == .server
        let now = context.now.monotonic
        return outbox.refuseOnly(
            since: isOrdered ? MonotonicInstant(nanoseconds: .min) : now + (.zero - SentMessages.complaintWindow))
    }

    /// Nothing goes for as long as the backend wants, and then what it did not take goes again.
    ///
    /// - Parameter refs: what it names; empty: nothing.
    /// - Returns: whether a message is put off.
    final func putOff(_ refs: [String], wait: Int64?, _ context: RoomsContext) -> Bool {
        if let wait { sendBudget.hold(for: .milliseconds(max(wait, 0)), now: context.now.monotonic) }
        keepWithdrawals(outbox.withdrawIntended(), context)
        guard !refs.isEmpty else { return outbox.putOffUnnamed(mayRepeat: mayRepeatMessages) }
        return refs.contains { outbox.putOff(id: ChatID($0)) }
    }
}

import BridgeTypes
import ChatModel
import Dialects
import Upstream
import WireBytes

// The outcome of written messages: confirmed, refused, deferred or unknown.

extension SendLane {
    // MARK: - Confirmed by the backend

    final func confirm(id: ChatID, sender: ChatID? = nil) -> OutboxEntry? { outbox.confirm(id: id, sender: sender) }
    final func confirm(sender: ChatID?, text: String) -> OutboxEntry? { outbox.confirm(sender: sender, text: text) }
    final func confirm(senderName: String, text: String) -> OutboxEntry? {
        outbox.confirm(senderName: senderName, text: text)
    }

    /// Removes a failed message that has arrived all the same.
    final func takeLate(ref: ChatID) -> OutboxEntry? { outbox.takeLate(ref: ref) }
    final func takeLate(id: ChatID, sender: ChatID?) -> OutboxEntry? { outbox.takeLate(id: id, sender: sender) }
    final func takeLate(sender: ChatID?, text: String) -> OutboxEntry? { outbox.takeLate(sender: sender, text: text) }

    /// Removes a message that a pong confirmed and a history has. Nothing more is to be learned of it.
    final func takeDelivered(id: ChatID, _ context: RoomsContext) -> OutboxEntry? {
        guard let kept = outbox.takeDelivered(id: id) else { return nil }
        forget([kept], context)
        return kept
    }

    /// The backend answered a message, in any way.
    package final func answered(_ context: RoomsContext) {
        guard delivery.answered() else { return }
        context.note(
            .info, "echo-learned", "the backend answers our messages; answers are waited for from now on",
            ["room": link.settings.name])
    }

    /// Removes the message that an echo matches, on a wire without ids for senders.
    final func takeSent(_ message: ChatMessage, isHistory: Bool, _ context: RoomsContext) -> UnidentifiedMessages.Entry?
    {
        if isHistory { return sent.takeNewest(text: message.text) }
        guard let entry = sent.takeEchoed(text: message.text, now: context.now.monotonic) else { return nil }
        answered(context)
        return entry
    }

    // MARK: - Pongs

    /// Sends a ping behind written messages, where nothing else confirms them.
    final func probe(_ context: RoomsContext) {
        if delivery.acceptsPongs, outbox.hasInFlight { link.probeDelivery(context) }
    }

    /// The backend's connection has read this many frames of the session.
    package final func hasRead(frameCount: UInt64, _ context: RoomsContext) {
        if delivery.hasRead(frameCount: frameCount) {
            context.note(
                .info, "echo-absent",
                "the backend does not answer our messages; from now on a pong confirms what was written before its ping",
                ["room": link.settings.name])
        }
    }

    /// The next message confirmed by that; nil: none is left.
    final func takeRead(upTo frameCount: UInt64) -> OutboxEntry? {
        delivery.acceptsPongs ? outbox.takeWritten(upTo: frameCount) : nil
    }

    /// Messages went unanswered for long: the peer must prove that it reads. False: an answer was promised, so a
    /// history decides.
    package final func doubt(_ context: RoomsContext) -> Bool {
        delivery.missed(frameCount: link.frameCount)
        // A peer that never answered a ping only has to give any sign of life; it may not answer this one either.
        let requiresAnswer = link.hasAnsweredPing || delivery.confirmation != .none
        link.checkLiveness(requiresAnswer: requiresAnswer, dialectContext, context)
        // The protocol's own ping is sent as well: its answer is in order.
        guard delivery.answers != .promised else { return false }
        link.probeDelivery(context)
        return true
    }

    /// The frame count that another sign of life proves read, for a peer that answers no pings. Nil: nothing was in
    /// doubt, or is still.
    final var readWithoutPong: UInt64? {
        guard let frameCount = delivery.doubtedAt, link.isUp, !link.hasAnsweredPing, link.pingSentAt == nil,
            link.livenessProbe == nil
        else { return nil }
        return frameCount
    }

    /// Marks unanswered messages as doubtful; a history may resolve them.
    final func takeDoubtful(_ context: RoomsContext) -> Bool { outbox.takeDoubtful(now: context.now.monotonic) }

    /// Unanswered messages over a live link become unknown, for a history to resolve.
    final func markDoubtfulUnknown(_ context: RoomsContext) -> Bool {
        outbox.markDoubtfulUnknown(now: context.now.monotonic)
    }

    /// The backend complained shortly after a pong confirmed messages: a history decides. They are not sent again; the
    /// author of a missing one is notified. False: there are none.
    final func suspectDelivered(_ complaint: String, _ context: RoomsContext) -> Bool {
        let now = context.now.monotonic
        return outbox.suspectDelivered(since: now + (.zero - UnidentifiedMessages.complaintWindow), now: now, complaint)
    }

    /// A history requested at `asked` lacks these as far as it reaches. Returns messages given up for it.
    final func settleMissing(
        asked: MonotonicInstant, reaches: (OutboxEntry) -> Bool, _ context: RoomsContext
    ) -> [Failure] {
        let given = outbox.settleMissing(
            asked: asked, patience: CatchUp.patience, isOnce: delivery.confirmation == .none, reaches: reaches)
        let repeated = given.filter(\.isRepeated).map { entry in
            let said = entry.complaint.map { "the backend complained of something (\($0)), and its" }
            return giveUp(entry, why: FailureReason("\(said ?? "the backend's") history does not have it"), context)
        }
        return repeated + giveUp(given.filter { !$0.isRepeated }, context)
    }

    // MARK: - Refused by the backend

    /// A refusal with a reference; nil: no message on its way matches.
    final func refuse(_ ref: String, or bare: String) -> OutboxEntry? {
        outbox.refuse(id: ChatID(ref)) ?? outbox.refuse(id: ChatID(bare))
    }

    /// A refusal without a reference, with one message in flight.
    final func refuseOnly(_ context: RoomsContext) -> OutboxEntry? {
        // Where all is answered in order, an answer may take its time.
        let isOrdered = traits.confirmation == .receipt && traits.messageIDOrigin == .server
        let now = context.now.monotonic
        return outbox.refuseOnly(
            since: isOrdered
                ? MonotonicInstant(nanoseconds: .min) : now + (.zero - UnidentifiedMessages.complaintWindow))
    }

    /// Pauses sending as requested by the backend; deferred messages are sent again after that.
    ///
    /// - Parameter refs: the references; empty: none.
    /// - Returns: whether a message is deferred.
    final func putOff(_ refs: [String], wait: Int64?, _ context: RoomsContext) -> Bool {
        if let wait { sendBudget.hold(for: .milliseconds(max(wait, 0)), now: context.now.monotonic) }
        persistWithdrawals(outbox.withdrawRecording(), context)
        guard !refs.isEmpty else { return outbox.putOffUnnamed(mayRepeat: mayRepeatMessages) }
        return refs.contains { outbox.putOff(id: ChatID($0)) }
    }
}

import BridgeTypes
import ChatModel
import Dialects
import Upstream
import WireBytes

// Restoring the outbox of the previous process.

extension Outbox {
    /// Restores persisted entries, oldest first.
    mutating func restore(_ stored: [StoredOutboxEntry], _ settings: RoomSettings, _ now: Now) {
        var newest: MonotonicInstant?
        var entries: [OutboxEntry] = []
        for left in stored {
            let accepted = max(
                Self.acceptance(of: left, settings, now), newest ?? MonotonicInstant(nanoseconds: .min))
            newest = accepted
            let entry = OutboxEntry(left, acceptedAt: accepted, settings)
            switch left.state {
            case .queued, .written, .delivered: entries.append(entry)
            case .failed: _ = failures.remember(entry, reason: FailureReason(stored: left.reason ?? ""), isTold: false)
            case .told: _ = failures.remember(entry, reason: FailureReason(stored: left.reason ?? ""), isTold: true)
            }
        }
        restore(entries)
    }

    /// The time of acceptance on a monotonic clock that began anew. With any change of the wall clock, the message is
    /// neither from the future nor older than its maximum age. One that IRC has seen leaves time for the history that shows
    /// what became of it: given up at once, it would be shown again when that comes.
    private static func acceptance(
        of left: StoredOutboxEntry, _ settings: RoomSettings, _ now: Now
    ) -> MonotonicInstant {
        let (age, isAbsurd) = now.wall.milliseconds.subtractingReportingOverflow(left.acceptedAt.milliseconds)
        let most = settings.queueMaxAge.wholeNanoseconds / 1_000_000
        let processing = DeliveredMessages.processingTime.wholeNanoseconds / 1_000_000
        let oldest = left.state == .delivered ? max(most - processing, 0) : most + 1
        return now.monotonic + .milliseconds(-min(max(isAbsurd ? most : age, 0), oldest))
    }
}

extension OutboxEntry {
    init(_ left: StoredOutboxEntry, acceptedAt: MonotonicInstant, _ settings: RoomSettings) {
        let mayRepeat = settings.dialect.traits.messageIDOrigin == .client
        self.init(
            message: ChatMessage(
                id: left.id, room: settings.upstreamRoom, sender: left.sender, text: left.sentAs, at: left.acceptedAt,
                attachments: left.attachments, replyTo: left.replyTo),
            origin: Origin(
                puppet: left.author, who: RoomSpeaker(nick: left.nick, source: left.source, account: left.account),
                text: left.text,
                clientTags: left.clientTags.map { ($0.name, $0.value) }, clientName: left.client),
            state: left.state == .delivered || left.state == .written && !mayRepeat ? .unknownAfterDisconnect : .queued,
            acceptedAt: acceptedAt,
            // Its author has been waiting for longer than the announcement delay.
            isWaitAnnounced: true, confirmedPieces: left.confirmedPieces, isRestored: true,
            // With client-made ids, the attempt is not persisted.
            mayHaveArrived: mayRepeat, saidAfter: left.saidAfter.map { Int(clamping: $0) },
            line: left.clientTags.first { $0.name == RelayedName.tag }?.value.map { .relayed(left.clientTags, by: $0) },
            isShown: left.state == .delivered)
    }
}

import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import Identities
import Media
import Upstream
import WireBytes

// The outcome of written messages: confirmed, refused or unknown.

extension Room {
    /// Whether retransmission is idempotent.
    var mayRepeatMessages: Bool { lane.mayRepeatMessages }

    // MARK: - Pongs

    /// The backend's connection has read this many frames of the session.
    package func hasRead(frameCount: UInt64, over lane: SendLane, _ context: RoomsContext) {
        lane.hasRead(frameCount: frameCount, context)
        while let entry = lane.takeRead(upTo: frameCount) {
            // A late echo is deduplicated.
            if mayRepeatMessages, let id = entry.message.id {
                _ = seenIDs.insert(duplicateKey(id, lane.sender(of: entry).id))
            }
            confirmed(
                entry, by: .connection, upstreamID: mayRepeatMessages ? entry.message.id : nil, at: nil, lane, context)
        }
        lane.probe(context)
    }

    /// A peer without pongs has shown another sign of life since messages went unanswered, which counts instead.
    func settleDoubt(_ lane: SendLane, _ context: RoomsContext) {
        if let frameCount = lane.readWithoutPong { hasRead(frameCount: frameCount, over: lane, context) }
    }

    // MARK: - Receipts that confirm

    func confirmByReceipt(_ receipt: ChatReceipt, over lane: SendLane, _ context: RoomsContext) {
        if answersDelete(receipt, context) { return }
        let isServerID = traits.messageIDOrigin == .server
        if let ref = receipt.ref.map({ ChatID($0) }) {
            if let entry = takeAnswered(ref, over: lane, context) {
                let upstreamID = isServerID ? receipt.ids.first : entry.message.id
                arrived(entry, upstreamID: upstreamID, at: receipt.at, lane, context)
            }
            return
        }
        guard receipt.state == .sent || traits.confirmation == .receipt else { return }
        for messageID in receipt.ids {
            guard let entry = takeAnswered(messageID, over: lane, context) else { continue }
            // An echo in addition is deduplicated.
            _ = seenIDs.insert(duplicateKey(messageID, lane.sender(of: entry).id))
            confirmed(entry, upstreamID: messageID, at: receipt.at, lane, context)
        }
    }

    /// Removes the message that an answer names; it may have been given up.
    private func takeAnswered(_ id: ChatID, over lane: SendLane, _ context: RoomsContext) -> OutboxEntry? {
        if !lane.outbox.contains(id: id), let late = lane.takeLate(ref: id) {
            tellLateArrival(late, context)
            return late
        }
        guard let entry = lane.confirm(id: id) else { return nil }
        if entry.state != .unknownAfterDisconnect { lane.answered(context) }
        return entry
    }

    /// Whether a receipt answers a deletion, rather than a message in flight.
    func answersDelete(_ receipt: ChatReceipt, _ context: RoomsContext) -> Bool {
        guard traits.answersDeletes, receipt.state == .sent, let ref = receipt.ref, let target = receipt.ids.first
        else {
            return false
        }
        let bare = Self.bare(ref)
        return bare != ref && bare == target.rawValue && answered(target: target, context)
    }

    // MARK: - Refusals

    func errorReceived(_ error: ChatError, over lane: SendLane, _ context: RoomsContext) {
        let words = lane.link.printable(error.text.isEmpty ? error.code : error.text)
        if putOff(error, lane, words, context) { return }
        var entry: OutboxEntry?
        if let ref = error.ref {
            let bare = Self.bare(ref)
            if lane === self.lane, refusesHistory(ref, or: bare, words, context) { return }
            entry = lane.refuse(ref, or: bare)
            if entry == nil, !actionRefused(ref: ref, over: lane.id, words, context),
                !actionRefused(ref: bare, over: lane.id, words, context)
            {
                tellComplaint(error, lane, words, context)
            }
        } else if !error.isFatal, maySend(lane) {
            entry = takeOnlyInFlight(error, lane, words, context)
        } else {
            tellComplaint(error, lane, words, context)
        }
        guard let entry else { return }
        failed(entry, why: "the backend refused it (\(words))", lane, context)
        arm(lane, context)
        releaseDecided(context)
    }

    /// A complaint about the opening explains why the room is silent. Where it ends the link, the outage tells it.
    private func tellComplaint(_ error: ChatError, _ lane: SendLane, _ words: String, _ context: RoomsContext) {
        guard lane === self.lane, own.isEmpty, error.roomState != .unknown, lane.link.isUp || !error.isFatal,
            report.complained(
                words, isUp: lane.link.isUp, frameCount: lane.link.frameCount, at: context.now.monotonic)
        else { return }
        notice("\(settings.url.host) reports an error: \(words.hasSuffix(".") ? words : words + ".")")
    }

    private func refusesHistory(_ ref: String, or bare: String, _ words: String, _ context: RoomsContext) -> Bool {
        if catchUp.takeRefused(ref, bare) {
            historyFailed(words, context)
            return true
        }
        return olderRefused(ref: ref, or: bare, context)
    }

    /// A complaint without a reference concerns the only thing in flight, and is ignored where there are several: it
    /// might report another user's message as refused. Returns a message; an action is handled here.
    private func takeOnlyInFlight(
        _ error: ChatError, _ lane: SendLane, _ words: String, _ context: RoomsContext
    ) -> OutboxEntry? {
        let now = context.now.monotonic
        let messages = lane.outbox.inFlight
        let actions = pendingActions.countInFlight(
            over: lane.id, within: UnidentifiedMessages.complaintWindow, now: now)
        guard messages + actions == 1 else {
            if messages + actions == 0 { tellComplaint(error, lane, words, context) }
            context.note(
                .warn, "complaint-unclear", "the backend refused something and does not say which message it means",
                ["room": lane.link.settings.name])
            lookForSuspects(lane, words, context)
            return nil
        }
        if actions == 1 {
            _ = onlyActionRefused(over: lane.id, words, context)
            return nil
        }
        return lane.refuseOnly(context)
    }

    /// Rate limited by the backend: sending pauses for the requested time, then deferred messages are sent again;
    /// likewise while an expired login is renewed. False for other errors, or where no message is deferred.
    private func putOff(_ error: ChatError, _ lane: SendLane, _ words: String, _ context: RoomsContext) -> Bool {
        let isLoginEnded = lane.link.isLoginEnded || lane.link.isRenewing && error.ref != nil
        guard isLoginEnded || error.retryAfterMilliseconds != nil, !error.isFatal else { return false }
        let refs = error.ref.map { [$0, Self.bare($0)] } ?? []
        let isPutOff =
            lane.putOff(refs, wait: error.retryAfterMilliseconds, context)
            || refs.isEmpty && onlyActionRefused(over: lane.id, words, context)
        arm(lane, context)
        releaseDecided(context)
        return isPutOff || error.ref == nil
    }

    /// The reference without the request kind that some wires put in front.
    package static func bare(_ ref: String) -> String {
        ref.utf8.lastIndex(of: UInt8(ascii: ":")).map { String(ref[ref.utf8.index(after: $0)...]) } ?? ref
    }

    // MARK: - Time

    package func outboxTimerFired(_ lane: SendLane, _ context: RoomsContext) {
        lane.outboxTimerFired()
        tell(lane.expire(context), lane, context)
        tellWaiting(lane.takeWaiting(context), isUp: lane.link.isUp, context)
        if lane.takeDoubtful(context) {
            if lane === self.lane, lane.delivery.confirmation != .none { doubtAccount(context) }
            if !lane.doubt(context) { lookForDoubtful(lane, context) }
        }
        pump(lane, context)
    }
}

import ChatModel
import Dialects
import Digests
import WireBytes

// What became of messages that were written: confirmed, refused, or nobody knows.

extension Room {
    /// Whether sending a message again cannot make a second one of it.
    var mayRepeatMessages: Bool { traits.messageIDOrigin == .client }

    // MARK: - Pongs

    /// The backend's connection has read so many frames of this session.
    func serverHasRead(frameCount: UInt64, over lane: SendLane, _ context: BridgeContext) {
        if lane.delivery.hasRead(frameCount: frameCount) {
            context.note(
                .info, "echo-absent",
                "the backend does not answer our messages; from now on a pong confirms what was written before its ping",
                ["room": lane.link.settings.name])
        }
        guard lane.delivery.acceptsPongs else { return }
        while let entry = lane.outbox.takeWritten(upTo: frameCount) {
            // Should it come back all the same, it is known.
            if mayRepeatMessages, let id = entry.message.id {
                _ = duplicates.insert(duplicateKey(id, lane.sender(of: entry).id))
            }
            confirmed(
                entry, by: .connection, upstreamID: mayRepeatMessages ? entry.message.id : nil, at: nil, lane, context)
        }
        lane.probe(context)
    }

    /// Messages went unanswered for long: the peer must show that it reads what we write.
    func doubt(_ lane: SendLane, _ context: BridgeContext) {
        lane.delivery.missed(frameCount: lane.link.frameCount)
        // A peer that never answered a ping is only asked for any sign of life: this one it may not answer either.
        let isDemand = lane.link.hasAnsweredPing || lane.delivery.confirmation != .none
        lane.link.checkLiveness(isDemand: isDemand, lane.dialectContext, context)
        // Also the protocol's own, whatever the wire has beside it: its answer is in order.
        if lane.delivery.answers == .promised {
            lookForDoubtful(lane, context)
        } else {
            lane.link.probeDelivery(context)
        }
    }

    /// A peer that answers no pings has given another sign of life since messages went unanswered: that must do.
    func settleDoubt(_ lane: SendLane, _ context: BridgeContext) {
        let link = lane.link
        guard let frameCount = lane.delivery.doubtedAt, link.isUp, !link.hasAnsweredPing, link.pingSentAt == nil,
            link.demand == nil
        else { return }
        serverHasRead(frameCount: frameCount, over: lane, context)
    }

    // MARK: - Receipts that confirm

    func confirmByReceipt(_ receipt: ChatReceipt, over lane: SendLane, _ context: BridgeContext) {
        if answersDelete(receipt, context) { return }
        let isServerID = traits.messageIDOrigin == .server
        if let ref = receipt.ref.map({ ChatID($0) }) {
            let late = lane.outbox.contains(id: ref) ? nil : lane.outbox.takeLate(ref: ref)
            if let late { tellLateArrival(late, context) }
            if let entry = late ?? lane.outbox.confirm(id: ref, sender: nil) {
                if late == nil, entry.state != .unsettled { lane.answered(context) }
                let upstreamID = isServerID ? receipt.ids.first : entry.message.id
                arrived(entry, upstreamID: upstreamID, at: receipt.at, lane, context)
            }
            return
        }
        guard receipt.state == .sent || traits.confirmation == .receipt else { return }
        for messageID in receipt.ids {
            guard let entry = lane.outbox.confirm(id: messageID, sender: nil) else { continue }
            lane.answered(context)
            // Should it come back as well, it is known.
            _ = duplicates.insert(duplicateKey(messageID, lane.sender(of: entry).id))
            confirmed(entry, upstreamID: messageID, at: receipt.at, lane, context)
        }
    }

    /// The answer to a deletion, which names that and not a message of ours on its way.
    func answersDelete(_ receipt: ChatReceipt, _ context: BridgeContext) -> Bool {
        guard traits.answersDeletes, receipt.state == .sent, let ref = receipt.ref, let target = receipt.ids.first
        else {
            return false
        }
        let bare = Self.bare(ref)
        return bare != ref && bare == target.rawValue && answered(target: target, context)
    }

    // MARK: - Refusals

    func errorReceived(_ error: ChatError, over lane: SendLane, _ context: BridgeContext) {
        let words = lane.link.told(error.text.isEmpty ? error.code : error.text)
        if putOff(error, lane, words, context) { return }
        var entry: OutboxEntry?
        if let ref = error.ref {
            let bare = Self.bare(ref)
            if lane === self.lane, refusesHistory(ref, or: bare, words, context) { return }
            entry = lane.outbox.refuse(id: ChatID(ref)) ?? lane.outbox.refuse(id: ChatID(bare))
            if entry == nil, !actionRefused(ref: ref, over: lane.id, words, context) {
                _ = actionRefused(ref: bare, over: lane.id, words, context)
            }
        } else if !error.isFatal, maySend(lane) {
            entry = takeOnlyInFlight(lane, words, context)
        }
        guard let entry else { return }
        failed(entry, why: "the backend refused it (\(words))", lane, context)
        arm(lane, context)
        releaseDecided(context)
    }

    private func refusesHistory(_ ref: String, or bare: String, _ words: String, _ context: BridgeContext) -> Bool {
        if let asked = catchUp.ref, asked == ref || asked == bare {
            catchUp.ref = nil
            historyFailed(words, context)
            return true
        }
        return olderRefused(ref: ref, or: bare, context)
    }

    /// A complaint that names nothing belongs to the only thing in flight, and to none where there are several: the message
    /// of another person would be reported as refused. Returns a message; an action is dealt with.
    private func takeOnlyInFlight(_ lane: SendLane, _ words: String, _ context: BridgeContext) -> OutboxEntry? {
        let now = context.now.monotonic
        let messages = lane.outbox.inFlight
        let actions = openActions.countInFlight(over: lane.id, within: SentMessages.complaintWindow, now: now)
        guard messages + actions == 1 else {
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
        // Where everything is answered in order, an answer may take its time.
        let isOrdered = traits.confirmation == .receipt && traits.messageIDOrigin == .server
        let since = isOrdered ? MonotonicInstant(nanoseconds: .min) : now + (.zero - SentMessages.complaintWindow)
        return lane.outbox.refuseOnly(since: since)
    }

    /// Too much was sent: nothing goes for as long as the backend wants, and then what it did not take goes again. So it does
    /// when the login has ended and another is awaited. False where it is neither, or where it was no message that is put off.
    private func putOff(_ error: ChatError, _ lane: SendLane, _ words: String, _ context: BridgeContext) -> Bool {
        let isLoginEnded = lane.link.isLoginEnded || lane.link.isRenewing && error.ref != nil
        guard isLoginEnded || error.retryAfterMilliseconds != nil, !error.isFatal else { return false }
        if let wait = error.retryAfterMilliseconds {
            lane.sendBudget.hold(for: .milliseconds(max(wait, 0)), now: context.now.monotonic)
        }
        keepWithdrawals(lane.outbox.withdrawIntended(), context)
        var isPutOff: Bool
        if let ref = error.ref {
            isPutOff = lane.outbox.putOff(id: ChatID(ref)) || lane.outbox.putOff(id: ChatID(Self.bare(ref)))
        } else {
            isPutOff =
                lane.outbox.putOffUnnamed(mayRepeat: mayRepeatMessages)
                || onlyActionRefused(over: lane.id, words, context)
        }
        arm(lane, context)
        releaseDecided(context)
        return isPutOff || error.ref == nil
    }

    /// Some wires put the kind of request in front.
    static func bare(_ ref: String) -> String {
        ref.utf8.lastIndex(of: UInt8(ascii: ":")).map { String(ref[ref.utf8.index(after: $0)...]) } ?? ref
    }

    // MARK: - Longer than a frame

    /// Puts pieces in the place of an entry that is too long; false when it cannot be cut.
    func splitNext(_ entry: OutboxEntry, _ lane: SendLane) -> Bool {
        guard entry.part == nil, let pieces = pieces(of: entry) else { return false }
        lane.outbox.splitNext(pieces)
        return true
    }

    /// An entry in pieces, without those that have arrived; nil when it cannot be cut.
    func pieces(of entry: OutboxEntry) -> [OutboxEntry]? {
        guard let messages = pieces(of: entry.message), messages.count > 1 else { return nil }
        lastPartGroup += 1
        let arrived = entry.confirmedPieces < messages.count ? entry.confirmedPieces : 0
        return messages.enumerated().dropFirst(arrived).map { index, message in
            var piece = entry
            piece.message = message
            piece.part = OutboxEntry.Part(group: lastPartGroup, index: index, whole: entry.message.id)
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
        while let end = settings.dialect.cut(of: rest, context: lane.dialectContext) {
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
}

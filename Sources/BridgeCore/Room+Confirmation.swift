import ChatModel
import Dialects
import Digests
import IRCProtocol
import WireBytes

// What became of messages that were written: confirmed, refused, or nobody knows.

extension Room {
    /// How messages over the room's link are confirmed: as the wire says, or as it was found to do.
    var confirmation: DialectTraits.Confirmation { delivery.confirmation }

    /// Whether sending a message again cannot make a second one of it.
    var mayRepeatMessages: Bool { traits.messageIDOrigin == .client }

    // MARK: - What the backend does

    /// The backend answered a message of ours, in whatever way.
    ///
    /// - Parameter own: the link over which the message went; nil: the room's.
    func answered(_ own: OwnLink?, _ context: BridgeContext) {
        guard own?.delivery.answered() ?? delivery.answered() else { return }
        context.note(
            .info, "echo-learned", "the backend answers our messages; answers are waited for from now on",
            ["room": own?.link.settings.name ?? settings.name])
    }

    /// The message of ours that came back, on a wire that tells us no ids.
    func takeSent(_ message: ChatMessage, isHistory: Bool, _ context: BridgeContext) -> SentMessages.Entry? {
        if isHistory { return sentMessages.takeNewest(text: message.text) }
        guard let sent = sentMessages.takeEchoed(text: message.text, now: context.now.monotonic) else { return nil }
        answered(nil, context)
        return sent
    }

    // MARK: - Pongs

    /// Asks whether what was written over a link has been read, where nothing else confirms it.
    func probe(_ own: OwnLink?, _ context: BridgeContext) {
        if let own {
            if own.delivery.acceptsPongs, own.outbox.hasInFlight { own.link.probeDelivery(context) }
        } else if delivery.acceptsPongs, outbox.hasInFlight {
            link.probeDelivery(context)
        }
    }

    /// The backend's connection has read so many frames of this session.
    func serverHasRead(frameCount: UInt64, _ own: OwnLink?, _ context: BridgeContext) {
        if own?.delivery.hasRead(frameCount: frameCount) ?? delivery.hasRead(frameCount: frameCount) {
            context.note(
                .info, "echo-absent",
                "the backend does not answer our messages; from now on a pong confirms what was written before its ping",
                ["room": own?.link.settings.name ?? settings.name])
        }
        guard own?.delivery.acceptsPongs ?? delivery.acceptsPongs else { return }
        while let entry = own.map({ $0.outbox.takeWritten(upTo: frameCount) }) ?? outbox.takeWritten(upTo: frameCount) {
            // Should it come back all the same, it is known.
            if mayRepeatMessages, let id = entry.message.id {
                _ = duplicates.insert(duplicateKey(id, own?.speaker(nick: "").id ?? entry.message.sender.id))
            }
            confirmed(
                entry, by: .connection, upstreamID: mayRepeatMessages ? entry.message.id : nil, at: nil, own, context)
        }
        probe(own, context)
    }

    /// Messages went unanswered for long: the peer must show that it reads what we write.
    func doubt(_ own: OwnLink?, _ context: BridgeContext) {
        let link = own?.link ?? link
        if let own {
            own.delivery.missed(frameCount: link.frameCount)
        } else {
            delivery.missed(frameCount: link.frameCount)
        }
        // A peer that never answered a ping is only asked for any sign of life: this one it may not answer either.
        let isDemand = link.hasAnsweredPing || (own?.delivery.confirmation ?? confirmation) != .none
        link.checkLiveness(isDemand: isDemand, own?.dialectContext ?? dialectContext, context)
        // Also the protocol's own, whatever the wire has beside it: its answer is in order.
        if (own?.delivery.answers ?? delivery.answers) == .promised {
            lookForDoubtful(own, context)
        } else {
            link.probeDelivery(context)
        }
    }

    /// A peer that answers no pings has given another sign of life since messages went unanswered: that must do.
    func settleDoubt(_ own: OwnLink?, _ context: BridgeContext) {
        let link = own?.link ?? link
        guard let frameCount = own?.delivery.doubtedAt ?? delivery.doubtedAt, link.isUp, !link.hasAnsweredPing,
            link.pingSentAt == nil, link.demand == nil
        else { return }
        serverHasRead(frameCount: frameCount, own, context)
    }

    // MARK: - Receipts that confirm

    func confirmByReceipt(_ receipt: ChatReceipt, _ context: BridgeContext) {
        if answersDelete(receipt, context) { return }
        let isServerID = traits.messageIDOrigin == .server
        if let ref = receipt.ref.map({ ChatID($0) }) {
            let late = outbox.contains(id: ref) ? nil : outbox.takeLate(ref: ref)
            if let late { tellLateArrival(late, context) }
            if let entry = late ?? outbox.confirm(id: ref, sender: nil) {
                if late == nil, entry.state != .unsettled { answered(nil, context) }
                let upstreamID = isServerID ? receipt.ids.first : entry.message.id
                arrived(entry, upstreamID: upstreamID, at: receipt.at, nil, context)
            }
            return
        }
        guard receipt.state == .sent || traits.confirmation == .receipt else { return }
        for messageID in receipt.ids {
            guard let entry = outbox.confirm(id: messageID, sender: nil) else { continue }
            answered(nil, context)
            // Should it come back as well, it is known.
            _ = duplicates.insert(duplicateKey(messageID, entry.message.sender.id))
            confirmed(entry, upstreamID: messageID, at: receipt.at, context)
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

    func errorReceived(_ error: ChatError, _ context: BridgeContext) {
        context.note(
            error.isFatal ? .error : .warn, "backend-error", link.told(error.text),
            ["room": settings.name, "code": link.told(error.code)])
        let words = link.told(error.text.isEmpty ? error.code : error.text)
        if putOff(error, nil, words, context) { return }
        if let ref = error.ref {
            let bare = Self.bare(ref)
            if let asked = catchUp.ref, asked == ref || asked == bare {
                catchUp.ref = nil
                return historyFailed(words, context)
            }
            if olderRefused(ref: ref, or: bare, context) { return }
            if let entry = outbox.refuse(id: ChatID(ref)) ?? outbox.refuse(id: ChatID(bare)) {
                refused(entry, words, context)
            } else if !actionRefused(ref: ref, over: id, words, context) {
                _ = actionRefused(ref: bare, over: id, words, context)
            }
            return
        }
        guard !error.isFatal, isLive else { return }
        if let entry = takeOnlyInFlight(nil, words, context) { refused(entry, words, context) }
    }

    /// A complaint that names nothing belongs to the only thing in flight, and to none where there are several: the message
    /// of another person would be reported as refused. Returns a message; an action is dealt with.
    func takeOnlyInFlight(_ own: OwnLink?, _ words: String, _ context: BridgeContext) -> OutboxEntry? {
        let (now, link) = (context.now.monotonic, own?.id ?? id)
        let messages = own?.outbox.inFlight ?? outbox.inFlight
        let actions = openActions.countInFlight(over: link, within: SentMessages.complaintWindow, now: now)
        guard messages + actions == 1 else {
            context.note(
                .warn, "complaint-unclear", "the backend refused something and does not say which message it means",
                ["room": own?.link.settings.name ?? settings.name])
            lookForSuspects(own, words, context)
            return nil
        }
        if actions == 1 {
            _ = onlyActionRefused(over: link, words, context)
            return nil
        }
        // Where everything is answered in order, an answer may take its time.
        let isOrdered = traits.confirmation == .receipt && traits.messageIDOrigin == .server
        let since = isOrdered ? MonotonicInstant(nanoseconds: .min) : now + (.zero - SentMessages.complaintWindow)
        return own?.outbox.refuseOnly(since: since) ?? outbox.refuseOnly(since: since)
    }

    /// Too much was sent: nothing goes for as long as the backend wants, and then what it did not take goes again. So it does
    /// when the login has ended and another is awaited. False where it is neither, or where it was no message that is put off.
    func putOff(_ error: ChatError, _ own: OwnLink?, _ words: String, _ context: BridgeContext) -> Bool {
        let link = own?.link ?? link
        let isLoginEnded = link.isLoginEnded || link.isRenewing && error.ref != nil
        guard isLoginEnded || error.retryAfterMilliseconds != nil, !error.isFatal else { return false }
        if let wait = error.retryAfterMilliseconds {
            let pause: Duration = .milliseconds(max(wait, 0))
            let now = context.now.monotonic
            if let own {
                own.sendBudget.hold(for: pause, now: now)
            } else {
                sendBudget.hold(for: pause, now: now)
            }
        }
        var isPutOff: Bool
        keepWithdrawals(own?.outbox.withdrawIntended() ?? outbox.withdrawIntended(), context)
        func putOff(_ id: ChatID) -> Bool { own?.outbox.putOff(id: id) ?? outbox.putOff(id: id) }
        if let ref = error.ref {
            isPutOff = putOff(ChatID(ref)) || putOff(ChatID(Self.bare(ref)))
        } else {
            let mayRepeat = mayRepeatMessages
            let isMessage =
                own?.outbox.putOffUnnamed(mayRepeat: mayRepeat) ?? outbox.putOffUnnamed(mayRepeat: mayRepeat)
            isPutOff = isMessage || onlyActionRefused(over: own?.id ?? id, words, context)
        }
        if let own { arm(own, context) } else { armOutbox(context) }
        releaseDecided(context)
        return isPutOff || error.ref == nil
    }

    /// Some wires put the kind of request in front.
    static func bare(_ ref: String) -> String {
        ref.utf8.lastIndex(of: UInt8(ascii: ":")).map { String(ref[ref.utf8.index(after: $0)...]) } ?? ref
    }

    private func refused(_ entry: OutboxEntry, _ words: String, _ context: BridgeContext) {
        failed(entry, why: "the backend refused it (\(words))", context)
        armOutbox(context)
        releaseDecided(context)
    }

    // MARK: - Longer than a frame

    /// Puts pieces in the place of an entry that is too long; false when it cannot be cut.
    func splitNext(_ entry: OutboxEntry, _ context: BridgeContext) -> Bool { splitNext(entry, nil, context) }

    func splitNext(_ entry: OutboxEntry, _ own: OwnLink?, _ context: BridgeContext) -> Bool {
        guard entry.part == nil, let pieces = pieces(of: entry) else { return false }
        if let own { own.outbox.splitNext(pieces) } else { outbox.splitNext(pieces) }
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
}

import ChatModel
import Dialects
import Digests
import IRCProtocol
import WireBytes

// What became of messages that were written: confirmed, refused, or nobody knows.

extension Room {
    /// How messages are confirmed: as the wire says, or as it was found to do.
    var confirmation: DialectTraits.Confirmation {
        guard hasLearnedEcho, traits.confirmation == .none else { return traits.confirmation }
        return traits.messageIDOrigin == .client ? .echoByID : .echoByText
    }

    /// Whether sending a message again cannot make a second one of it.
    var mayRepeatMessages: Bool { traits.messageIDOrigin == .client }

    // MARK: - Echoes nobody promised

    /// The message of ours that came back, on a wire that tells us no ids.
    func takeSent(_ message: ChatMessage, isHistory: Bool, _ context: BridgeContext) -> SentMessages.Entry? {
        if isHistory { return sentMessages.takeNewest(text: message.text) }
        guard let sent = sentMessages.takeEchoed(text: message.text, now: context.now.monotonic) else { return nil }
        if !hasLearnedEcho {
            hasLearnedEcho = true
            context.note(
                .info, "echo-learned", "the backend sends our messages back; they are waited for from now on",
                ["room": settings.name])
        }
        return sent
    }

    /// No echo came where one was expected without a promise: a link that lives carried what was written, so that counts
    /// again.
    func forgetEcho(_ context: BridgeContext) {
        guard isEchoDoubted, isLive, link.pingSentAt == nil, link.demand == nil else { return }
        isEchoDoubted = false
        // It may have come just now.
        guard hasLearnedEcho, outbox.hasDoubtful else { return }
        hasLearnedEcho = false
        context.note(
            .info, "echo-forgotten", "the backend does not send our messages back any more", ["room": settings.name])
        for entry in outbox.takeWritten() { confirmed(entry, upstreamID: nil, at: nil, context) }
    }

    // MARK: - Receipts that confirm

    func confirmByReceipt(_ receipt: ChatReceipt, _ context: BridgeContext) {
        if answersDelete(receipt, context) { return }
        let isServerID = traits.messageIDOrigin == .server
        if let ref = receipt.ref.map({ ChatID($0) }) {
            let late = outbox.contains(id: ref) ? nil : outbox.takeLate(ref: ref)
            if let late { tellLateArrival(late, context) }
            if let entry = late ?? outbox.confirm(id: ref, sender: nil) {
                let upstreamID = isServerID ? receipt.ids.first : entry.message.id
                arrived(entry, upstreamID: upstreamID, at: receipt.at, nil, context)
            }
            return
        }
        guard receipt.state == .sent || traits.confirmation == .receipt else { return }
        for messageID in receipt.ids {
            guard let entry = outbox.confirm(id: messageID, sender: nil) else { continue }
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

    // MARK: - Wires on which people confirm

    /// How long somebody's client may take before the server is asked.
    static let acknowledgementWait: Duration = .milliseconds(500)

    /// When the server is asked next whether it has read what nobody acknowledged.
    var acknowledgementDue: MonotonicInstant? {
        guard traits.acknowledgedByPeople, isLive, let written = outbox.oldestWritten else { return nil }
        return max(written, askedServerAt ?? written) + Self.acknowledgementWait
    }

    func askServer(_ context: BridgeContext) {
        guard let due = acknowledgementDue, due <= context.now.monotonic else { return }
        askedServerAt = context.now.monotonic
        link.checkLiveness(dialectContext, context)
    }

    /// What was written before `sentAt` has arrived.
    func serverHasRead(upTo sentAt: MonotonicInstant, _ context: BridgeContext) {
        guard traits.acknowledgedByPeople else { return }
        for entry in outbox.takeWritten(upTo: sentAt) {
            if let id = entry.message.id { _ = duplicates.insert(duplicateKey(id, entry.message.sender.id)) }
            confirmed(entry, upstreamID: entry.message.id, at: nil, context)
        }
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
        if traits.confirmation == .receipt, traits.messageIDOrigin == .server {
            if oldestActionRefused(over: id, outbox, words, context) { return }
            if let entry = outbox.refuseOldest() { return refused(entry, words, context) }
            _ = lastActionRefused(over: id, words, context)
        } else if lastActionRefused(over: id, words, context) {
            return
        } else if let entry = outbox.refuseNewest(within: SentMessages.complaintWindow, now: context.now.monotonic)
            ?? sentMessages.markComplained(now: context.now.monotonic)
        {
            refused(entry, words, context)
        }
    }

    /// A message of ours came back whose author was told that the backend refused it.
    func tellIfComplained(_ sent: SentMessages.Entry, _ context: BridgeContext) {
        guard sent.isComplained, let entry = sent.entry else { return }
        if let id = entry.message.id { _ = outbox.takeLate(ref: id) }
        tellLateArrival(entry, context)
    }

    /// Too much was sent: nothing goes for as long as the backend wants, and then what it did not take goes again. False
    /// where it is not that, or where it was no message that is put off.
    func putOff(_ error: ChatError, _ own: OwnLink?, _ words: String, _ context: BridgeContext) -> Bool {
        guard let wait = error.retryAfterMilliseconds, !error.isFatal else { return false }
        let pause: Duration = .milliseconds(max(wait, 0))
        let now = context.now.monotonic
        var isPutOff: Bool
        if let own {
            own.sendBudget.hold(for: pause, now: now)
            keepWithdrawals(own.outbox.withdrawIntended(), context)
        } else {
            sendBudget.hold(for: pause, now: now)
            keepWithdrawals(outbox.withdrawIntended(), context)
        }
        func putOff(_ id: ChatID) -> Bool { own?.outbox.putOff(id: id) ?? outbox.putOff(id: id) }
        if let ref = error.ref {
            isPutOff = putOff(ChatID(ref)) || putOff(ChatID(Self.bare(ref)))
        } else {
            isPutOff = lastActionRefused(over: own?.id ?? id, words, context)
            if !isPutOff { isPutOff = own?.outbox.putOffNewest() ?? outbox.putOffNewest() }
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

import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Upstream
import WireBytes

// Classification of a message from the room's link: relayed, repeated or new. In this order, and only here: each check
// removes its match, so that a message is matched once.

extension Room {
    /// The origin of a message.
    enum Origin {
        /// Shown already, by this link or an account's own.
        case known
        /// Its id was seen before.
        case repeated
        /// It confirms a relayed message.
        case confirmed(OutboxEntry)
        /// A relayed message confirmed by other means, under an unknown id of an account.
        case confirmedBefore(ChatID)
        /// A relayed message confirmed without an id; this is its id.
        case named(UnidentifiedMessages.Entry)
        /// It confirms a relayed message that was given up.
        case late(OutboxEntry)
        /// A pending answer decides whether it was relayed.
        case ambiguous
        case news
    }

    /// - Parameter isLateFrame: the message came live after a history had brought it quietly.
    func origin(of message: ChatMessage, isHistory: Bool, isLateFrame: Bool, _ context: RoomsContext) -> Origin {
        if isHistory, takeRelayedRow(message, context) { return .known }
        if takeOwn(message, isHistory: isHistory, isLateFrame: isLateFrame, context) { return .known }
        // Its author may have left or changed their nick since, so the sender may be unknown.
        let isAnyOnItsWay = !lane.outbox.isEmpty || own.hasResting
        if isAnyOnItsWay, let entry = takeConfirmed(message, isHistory: isHistory) { return .confirmed(entry) }
        if traits.messageIDOrigin == .server, isKnownOrPrefixedAsOurs(message),
            let sent = lane.takeSent(message, isHistory: isHistory, context)
        {
            return .named(sent)
        }
        if !isHistory, !isLateFrame, !ambiguous.isReleasing, isAmbiguous(message) { return .ambiguous }
        guard let id = message.id else {
            return isKnownByText(message, isHistory: isHistory, context) ? .known : .news
        }
        if isConfirmedEcho(message, id) { return .confirmedBefore(id) }
        guard seenIDs.insert(duplicateKey(id, message.senderID)) || isLateFrame else { return .repeated }
        guard !lane.outbox.failures.isEmpty else { return .news }
        return takeLate(message, id).map { .late($0) } ?? .news
    }

    /// Removes the relayed message that this confirms. A history row with an id was matched before, with all others
    /// (``matchRelayedRows(_:_:)``), unless it carries the relay's id.
    func takeConfirmed(_ message: ChatMessage, isHistory: Bool) -> OutboxEntry? {
        if let entry = takeResting(message) { return entry }
        if let ref = message.ref, let entry = lane.confirm(id: ChatID(ref)) { return entry }
        switch lane.delivery.confirmation {
        case .echoByText: break
        // The answer may have been lost with the link, and the row come live.
        case .receipt where traits.messageIDOrigin == .server, .none where traits.messageIDOrigin == .server: break
        case .echoByID, .receipt, .none:
            if let id = message.id { return lane.confirm(id: id, sender: echoSender(message)) }
            guard bearsNoID(message, lane) else { return nil }
        }
        guard !bearsClientID(message), !isHistory || message.id == nil else { return nil }
        if settings.identity == .puppet, message.senderID == nil, let name = message.sender.name {
            return lane.confirm(senderName: name, text: message.text)
        }
        let isNamed = settings.identity == .puppet && message.senderID != nil
        guard message.isSelf || mayBeAccount(message.sender) || isNamed else { return nil }
        return lane.confirm(sender: echoSender(message), text: message.text)
    }

    /// Removes the given-up message that this confirms.
    func takeLate(_ message: ChatMessage, _ id: ChatID) -> OutboxEntry? {
        switch traits.messageIDOrigin {
        case .client: return lane.takeLate(id: id, sender: echoSender(message))
        case .server:
            if let ref = message.ref, let entry = lane.takeLate(ref: ChatID(ref)) { return entry }
            guard !bearsClientID(message), message.isSelf || mayBeAccount(message.sender) else { return nil }
            return lane.takeLate(sender: echoSender(message), text: message.text)
        }
    }

    /// Whether a live message is another than the one that came under its id: the backend's ids begin anew.
    ///
    /// It names a message of ours on its way, or has another text and a later time than the one that was shown; and one of
    /// ours, which the backend may show with another text and in pieces, is another's now.
    func isAnother(_ message: ChatMessage, than id: ChatID, _ context: RoomsContext) -> Bool {
        let isEcho = message.ref.map { ref in lanes.contains { $0.outbox.contains(id: ChatID(ref)) } } ?? false
        let isLater =
            recent.entry(upstreamID: id).map { known in
                known.isOlder(than: message) && (known.puppet == nil || !mayBeOurs(message, known))
            } ?? false
        guard isEcho || isLater else { return false }
        if report.notesReusedID() {
            context.note(
                .warn, "id-reused", "the backend gave an id again, to another message: its ids begin anew",
                ["room": settings.name, "id": link.printable(id.rawValue)])
        }
        return true
    }

    private func mayBeOurs(_ message: ChatMessage, _ known: RecentLog.Entry) -> Bool {
        message.isSelf || mayBeAccount(message.sender) || own.speaking(message.sender) != nil
            || message.senderID == known.puppet
    }

    /// Whether the message has neither id nor reference while the fate of one is unknown that was written over an earlier link:
    /// there it may come like that, and its text is all the evidence.
    func bearsNoID(_ message: ChatMessage, _ lane: SendLane) -> Bool {
        traits.messageIDOrigin == .server && message.id == nil && message.ref == nil && lane.outbox.hasUnknown
    }

    /// Whether the message carries its client-made id, so that its text is no further evidence.
    func bearsClientID(_ message: ChatMessage) -> Bool { traits.returnsClientIDs && message.ref != nil }

    /// The required sender of an echo: where one account speaks for all, the backend assigns its id.
    private func echoSender(_ message: ChatMessage) -> ChatID? {
        settings.identity == .single ? nil : message.senderID
    }

    /// Whether an unpromised echo is from the account, or from an unknown sender with the relay's prefix.
    func isKnownOrPrefixedAsOurs(_ message: ChatMessage) -> Bool {
        message.isSelf || mayBeAccount(message.sender) && !sendsSenderName && !settings.singlePrefix.isEmpty
    }

    /// Whether this is the echo of a message confirmed by other means, under the account's unknown id.
    func isConfirmedEcho(_ message: ChatMessage, _ id: ChatID) -> Bool {
        traits.messageIDOrigin == .client && !message.isSelf && mayBeAccount(message.sender)
            && recent.entry(upstreamID: id)?.puppet != nil
    }

    /// Whether the copy over an account's own link may have the reference that this one over the room's link has not.
    func isUnnamedCopy(_ message: ChatMessage, _ own: OwnLink) -> Bool {
        own.delivery.confirmation == .echoByID && message.id != nil && message.ref == nil && !self.own.hearsReferences
    }

    /// Whether a pending answer can identify this message, from an unrelated sender, as a relayed one.
    func isAmbiguous(_ message: ChatMessage) -> Bool {
        guard traits.messageIDOrigin == .server, message.id != nil else { return false }
        let own = own.speaking(message.sender)
        if traits.confirmation == .echoByID {
            return own.map { isUnnamedCopy(message, $0) && $0.outbox.oldestWritten != nil } ?? false
        }
        guard traits.confirmation == .receipt else { return false }
        if let own { return own.outbox.oldestWritten != nil }
        guard lane.outbox.oldestWritten != nil else { return false }
        if message.isSelf || message.senderID == nil && message.sender.name == nil { return true }
        return mayBeAccount(message.sender) && lane.outbox.hasWritten(inFrontOf: message.text)
    }

    /// Whether a message without an id was shown before, by its text.
    func isKnownByText(_ message: ChatMessage, isHistory: Bool, _ context: RoomsContext) -> Bool {
        if isHistory { return seenTexts.isKnownFromHistory(message) }
        return seenTexts.isKnownLive(
            message, connection: catchUp.connection, isSettling: catchUp.isSettling(context.now.monotonic))
    }

    /// Removes a message that waits for an own link, and has arrived already.
    func takeResting(_ message: ChatMessage) -> OutboxEntry? {
        guard own.hasResting else { return nil }
        return message.ref.flatMap { own.confirmResting(ChatID($0)) }
            ?? (traits.messageIDOrigin == .client ? message.id.flatMap(own.confirmResting) : nil)
    }
}

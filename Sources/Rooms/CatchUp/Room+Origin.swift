import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Upstream
import WireBytes

// Is a message that the room's link brought one of ours, a repetition, or news? Asked here alone, and in this order: each
// question takes out what it finds, so that a message is recognised once.

extension Room {
    /// Whose a message is.
    enum Origin {
        /// Shown already, by this link or an account's own.
        case known
        /// Its id was seen before.
        case repeated
        /// It confirms a message of ours.
        case confirmed(OutboxEntry)
        /// It is one of ours that was confirmed by other means, under an account's id that was not known.
        case confirmedBefore(ChatID)
        /// It is one of ours that was confirmed without an id; this is it.
        case named(SentMessages.Entry)
        /// It confirms one of ours that was given up.
        case late(OutboxEntry)
        /// An answer that is on its way tells whether it is ours.
        case undecided
        case news
    }

    /// - Parameter isLateFrame: the message came live after a history had brought it quietly.
    func origin(of message: ChatMessage, isHistory: Bool, isLateFrame: Bool, _ context: RoomsContext) -> Origin {
        if isHistory, takeOwnRow(message, context) { return .known }
        if takeOwn(message, isHistory: isHistory, context) { return .known }
        // Its author may have left or changed their nick since, so it need not look like one of us.
        if let entry = takeConfirmed(message, isHistory: isHistory) { return .confirmed(entry) }
        if traits.messageIDOrigin == .server, isKnownOrPrefixedAsOurs(message),
            let sent = lane.takeSent(message, isHistory: isHistory, context)
        {
            return .named(sent)
        }
        if !isHistory, !isLateFrame, !undecided.isReleasing, isUndecided(message) { return .undecided }
        guard let id = message.id else {
            return isKnownByText(message, isHistory: isHistory, context) ? .known : .news
        }
        if isConfirmedEcho(message, id) { return .confirmedBefore(id) }
        guard duplicates.insert(duplicateKey(id, message.sender.id)) || isLateFrame else { return .repeated }
        return takeLate(message, id).map { .late($0) } ?? .news
    }

    /// The message of ours that this is. A row of a history that has an id was recognised before, with all others
    /// (``recogniseOwnRows(_:_:)``), unless it names ours.
    func takeConfirmed(_ message: ChatMessage, isHistory: Bool) -> OutboxEntry? {
        if let entry = takeResting(message) { return entry }
        if let ref = message.ref, let entry = lane.confirm(id: ChatID(ref)) { return entry }
        switch lane.delivery.confirmation {
        case .echoByText: break
        // The answer may have been lost with the link, and the row come live.
        case .receipt where traits.messageIDOrigin == .server, .none where traits.messageIDOrigin == .server: break
        case .echoByID, .receipt, .none:
            guard let id = message.id else { return nil }
            return lane.confirm(id: id, sender: echoSender(message))
        }
        guard !bearsClientID(message), !isHistory || message.id == nil else { return nil }
        if settings.identity == .puppet, message.sender.id == nil, let name = message.sender.name {
            return lane.confirm(senderName: name, text: message.text)
        }
        let isNamed = settings.identity == .puppet && message.sender.id != nil
        guard message.isSelf || mayBeAccount(message.sender) || isNamed else { return nil }
        return lane.confirm(sender: echoSender(message), text: message.text)
    }

    /// The message of ours that this is after all, given up meanwhile.
    func takeLate(_ message: ChatMessage, _ id: ChatID) -> OutboxEntry? {
        switch traits.messageIDOrigin {
        case .client: return lane.takeLate(id: id, sender: echoSender(message))
        case .server:
            if let ref = message.ref, let entry = lane.takeLate(ref: ChatID(ref)) { return entry }
            guard !bearsClientID(message), message.isSelf || mayBeAccount(message.sender) else { return nil }
            return lane.takeLate(sender: echoSender(message), text: message.text)
        }
    }

    /// Whether the message says which id its client gave it, so that its text tells nothing more.
    func bearsClientID(_ message: ChatMessage) -> Bool { traits.returnsClientIDs && message.ref != nil }

    /// By whom a message of ours must be: where one account speaks for all, its id is the backend's to know.
    private func echoSender(_ message: ChatMessage) -> ChatID? {
        settings.identity == .single ? nil : message.sender.id
    }

    /// Of a message that nobody promised to send back: it is the account's, or looks so by the prefix, which others do
    /// not write by chance.
    func isKnownOrPrefixedAsOurs(_ message: ChatMessage) -> Bool {
        message.isSelf || mayBeAccount(message.sender) && !sendsSenderName && !settings.singlePrefix.isEmpty
    }

    /// A message of ours that was confirmed by other means comes back under the account's id, which was not known.
    func isConfirmedEcho(_ message: ChatMessage, _ id: ChatID) -> Bool {
        traits.messageIDOrigin == .client && !message.isSelf && mayBeAccount(message.sender)
            && recent.entry(upstreamID: id)?.puppet != nil
    }

    /// Whether an answer that is on its way can make this message one of ours, which it does not look like.
    func isUndecided(_ message: ChatMessage) -> Bool {
        guard traits.messageIDOrigin == .server, traits.confirmation == .receipt, message.id != nil else {
            return false
        }
        if let own = own.speaking(message.sender) { return own.outbox.oldestWritten != nil }
        guard lane.outbox.oldestWritten != nil else { return false }
        if message.isSelf || message.sender.id == nil && message.sender.name == nil { return true }
        return mayBeAccount(message.sender) && lane.outbox.hasWritten(inFrontOf: message.text)
    }

    /// Whether a message without an id was shown before, as far as its words tell.
    func isKnownByText(_ message: ChatMessage, isHistory: Bool, _ context: RoomsContext) -> Bool {
        if isHistory { return textDuplicates.isKnownFromHistory(message) }
        return textDuplicates.isKnownLive(
            message, connection: catchUp.connection, isSettling: catchUp.isSettling(context.now.monotonic))
    }

    /// The message waits for an own link that is not open, and has arrived already.
    func takeResting(_ message: ChatMessage) -> OutboxEntry? {
        guard own.hasResting else { return nil }
        return message.ref.flatMap { own.confirmResting(ChatID($0)) }
            ?? (traits.messageIDOrigin == .client ? message.id.flatMap(own.confirmResting) : nil)
    }
}

import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// Messages of accounts with own links, sent over these or elsewhere.

extension Room {
    /// Handles a message of such an account. True when there is nothing left to show.
    ///
    /// - Parameters:
    ///   - overOwnLink: the link that brought it; nil: the room's.
    ///   - isLateFrame: the message came live after a history had brought it quietly.
    func takeOwn(
        _ message: ChatMessage, overOwnLink link: OwnLink? = nil, isHistory: Bool, isLateFrame: Bool = false,
        _ context: RoomsContext
    ) -> Bool {
        guard !own.isEmpty else { return false }
        return traits.messageIDOrigin == .client
            ? takeOwnByID(message, link, context)
            : takeOwnByText(message, link, isHistory: isHistory, isLateFrame: isLateFrame, context)
    }

    /// The same by client-made id, with any sender.
    func takeOwnByID(_ message: ChatMessage, _ link: OwnLink?, _ context: RoomsContext) -> Bool {
        guard let id = message.id, let account = own.messageIDs.owner(of: id), let own = own[account],
            link == nil || link === own
        else { return false }
        if !own.isPerson(message.sender) {
            // The backend may assign another sender id than the relay's. No other client can know a fresh message id
            // before the backend broadcasts it, so the first message with one is the relayed one; later ones prove
            // nothing.
            guard own.outbox.contains(id: id) || !own.isLearned else { return false }
            own.recognised(message.sender)
            claim(own, context)
        }
        own.recognised(message.sender)
        _ = seenIDs.insert(duplicateKey(id, message.senderID))
        _ = seenIDs.insert(duplicateKey(id, own.speaker(nick: "").id))
        if link == nil { saw(message, context) }
        if let entry = own.confirm(id: id) {
            if link === own, entry.state != .unknownAfterDisconnect { own.answered(context) }
            confirmed(entry, upstreamID: id, at: message.at, own, context)
        } else if let entry = own.takeLate(ref: id) {
            tellLateArrival(entry, context)
            confirmed(entry, upstreamID: id, at: message.at, own, context)
        }
        return true
    }

    func takeOwnByText(
        _ message: ChatMessage, _ link: OwnLink?, isHistory: Bool, isLateFrame: Bool, _ context: RoomsContext
    ) -> Bool {
        guard let own = own.speaking(message.sender), link == nil || link === own else { return false }
        if link == nil, !isHistory, message.ref != nil { self.own.hearReferences() }
        var message = message
        if let id = message.id, !isLateFrame, seenIDs.contains(duplicateKey(id, nil)) {
            if link === own, takeShownElsewhere(message, under: id, own, context) { return true }
            guard !isHistory, isAnother(message, than: id, context) else { return true }
            message.id = nil
        } else if message.id == nil, link == nil, isKnownByText(message, isHistory: isHistory, context) {
            return true
        }
        let isUnnamed = link == nil && !isHistory && !isLateFrame && isUnnamedCopy(message, own)
        // The own link's copy says which message this is, if any.
        if isUnnamed, !ambiguous.isReleasing, isAmbiguous(message) { return false }
        var late: OutboxEntry?
        var entry = message.ref.flatMap { own.confirm(id: ChatID($0)) }
        // A history row was matched before, with all others.
        if entry == nil, !isHistory || message.id == nil {
            entry =
                traits.confirmation == .echoByID && !isUnnamed && !bearsNoID(message, own)
                ? message.id.flatMap { own.confirm(id: $0) }
                : own.confirm(sender: nil, text: message.text)
        }
        if entry == nil {
            late =
                message.ref.flatMap { own.takeLate(ref: ChatID($0)) }
                ?? own.takeLate(sender: nil, text: message.text)
        }
        if let entry = entry ?? late {
            if link == nil { saw(message, context) }
            if late != nil { tellLateArrival(entry, context) }
            // The room's link shows it to all; only its copy over the own link is an answer.
            if link === own, late == nil, entry.state != .unknownAfterDisconnect { own.answered(context) }
            if traits.confirmation == .echoByID, link === own, message.id != nil {
                // In the place of its copy over the room's link, where that came first.
                arrived(entry, upstreamID: message.id, at: message.at, own, context)
                return true
            }
            if let id = message.id { _ = seenIDs.insert(duplicateKey(id, nil)) }
            confirmed(entry, upstreamID: message.id, at: message.at, own, context)
            return true
        }
        guard message.id != nil else {
            // It may come over the own link too, and must stay known until the room's link had it.
            guard link == nil else { return true }
            let sent =
                isHistory
                ? own.sent.takeNewest(text: message.text)
                : own.sent.takeEchoed(text: message.text, now: context.now.monotonic)
            if sent == nil { show(message, context) }
            return true
        }
        // For a history the ids were learned before, newest first.
        guard !isHistory, let sent = own.sent.takeEchoed(text: message.text, now: context.now.monotonic) else {
            return false
        }
        if link == nil { saw(message, context) } else { own.answered(context) }
        learn(message.id, of: sent, own, context)
        return true
    }

    /// Takes an echo whose copy over the room's link came long before, and was shown as said elsewhere.
    private func takeShownElsewhere(
        _ message: ChatMessage, under id: ChatID, _ own: OwnLink, _ context: RoomsContext
    ) -> Bool {
        // Its id may have begun anew since.
        guard let ref = message.ref.map({ ChatID($0) }), own.isShownElsewhere(id),
            recent.entry(upstreamID: id)?.isOlder(than: message) != true
        else { return false }
        var entry = own.confirm(id: ref)
        if let late = entry == nil ? own.takeLate(ref: ref) : nil {
            tellLateArrival(late, context)
            entry = late
        }
        guard let entry else { return false }
        own.answered(context)
        // Of a message in pieces one was shown, and not the whole.
        if entry.part != nil {
            confirmed(entry, upstreamID: nil, at: message.at, own, context)
        } else {
            _ = own.persistArrival(entry, by: .backend, context)
            arm(own, context)
        }
        releaseDecided(context)
        return true
    }

    /// Learns the ids of messages sent over own links, from a history.
    func learnOwnSent(_ messages: [ChatMessage], _ context: RoomsContext) {
        learnOwnSentBefore(messages, context)
        guard traits.messageIDOrigin == .server, own.values.contains(where: { !$0.sent.isEmpty }) else { return }
        for message in messages.reversed() {
            guard let id = message.id, !seenIDs.contains(duplicateKey(id, nil)),
                let own = own.speaking(message.sender), let sent = own.sent.takeNewest(text: message.text)
            else { continue }
            learn(id, of: sent, own, context)
            catchUp.saw(id: id, at: message.at, wall: context.now.wall)
        }
    }

    /// The same for messages from before the start: their links may not be open again.
    func learnOwnSentBefore(_ messages: [ChatMessage], _ context: RoomsContext) {
        guard own.hasSentBefore else { return }
        for message in messages.reversed() {
            guard let id = message.id, !seenIDs.contains(duplicateKey(id, nil)),
                let msgid = own.takeSentBefore(message)
            else { continue }
            learn(id, of: msgid, context)
            catchUp.saw(id: id, at: message.at, wall: context.now.wall)
        }
    }
}

import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// Events of the link.

extension Room {
    package func handle(_ events: [LinkEvent], _ context: RoomsContext) {
        for event in events {
            switch event {
            case .up: linkCameUp(context)
            case .down(let reason, let wasUp, let retryIn):
                linkWentDown(reason, wasUp, retryIn, context)
                opened(context)
            case .replaced(let reason, let wasUp): linkWasReplaced(reason, wasUp, context)
            case .chat(let chat, let byteCount):
                if let tap = context.tap { tap(RoomPassage(.fromBackend(chat), over: lane)) }
                chatArrived(chat, byteCount: byteCount, context)
            case .loginRenewed(let isLate): if isLate { loginWasRenewed(context) } else { pump(lane, context) }
            case .pong(_, let frameCount): hasRead(frameCount: frameCount, over: lane, context)
            case .dropped(let reason, let byteCount, let typeKey, let place):
                frameDropped(reason, byteCount: byteCount, typeKey: typeKey, place, context)
            case .stopped: linkStopped(context)
            }
        }
        // Not earlier: the events of one read are fully handled only now.
        continuity.linkProven(link.proof)
        settleDoubt(lane, context)
    }

    private func linkCameUp(_ context: RoomsContext) {
        continuity.linkProven(link.proof)
        report.cameUp(frameCount: link.frameCount)
        context.note(
            .info, "upstream-up", "linked to the backend", ["room": settings.name, "host": settings.url.host])
        joinBatches.linkCameUp(at: context.now.monotonic)
        if settings.relayNick != nil { _ = sharedPerson(context) }
        context.cancel(.netsplit(id))
        expectsNoLink(context)
        lane.cutRestored()
        access.linkCameUp()
        opened(context)
        beginCatchingUp(context)
    }

    /// Reports the recovered link, once incoming messages are shown again.
    func tellLinkIsBack(_ context: RoomsContext) {
        guard let outage = report.takeOutage(), outage.isTold else { return }
        let seconds = Int((context.now.monotonic - outage.since) / .seconds(1))
        let unknown = lane.outbox.unknownCount
        let queued = lane.outbox.count - unknown
        var waiting = queued == 0 ? "" : "; \(queued) waiting message\(queued == 1 ? " goes" : "s go") now"
        if unknown > 0 { waiting += "; whether \(unknown) sent before arrived is not known yet" }
        notice(
            outage.wasUp
                ? "The link to \(settings.url.host) is back after \(PrintableText.spoken(seconds: seconds))" + waiting
                    + "."
                : "This room is linked to \(settings.url.host) now" + waiting + ".")
    }

    private func linkWentDown(_ reason: String, _ wasUp: Bool, _ retryIn: Duration, _ context: RoomsContext) {
        access.linkWentDown()
        // The backend's text may end in a full stop; this notice has its own.
        let reason = reason.hasSuffix(".") ? String(reason.dropLast()) : reason
        let isNewRefusal = link.isRefused && report.outage?.isRefusalTold != true
        let news = report.lost(reason, wasUp: wasUp, at: context.now.monotonic)
        context.note(
            news == .none && !isNewRefusal ? .info : .warn, wasUp ? "upstream-lost" : "upstream-failed", reason,
            [
                "room": settings.name, "host": settings.url.host,
                "retry-in": String(retryIn.wholeNanoseconds / 1_000_000) + "ms", "failures": String(link.failures),
            ])
        if let degradedAfter = settings.backoff.degradedAfter, link.failures == degradedAfter {
            context.note(
                .error, "room-degraded", "the room stays without its backend; trying goes on",
                ["room": settings.name, "failures": String(link.failures)])
        }
        leaveSession(wasUp, context)
        let isFar = retryIn >= .seconds(60)
        let next =
            isFar
            ? "The next try is in \(PrintableText.spoken(seconds: Int(retryIn / .seconds(1))))"
                + (link.awaitsCredentials ? ", or within 10 s of other credentials." : ".")
            : "Trying goes on."
        let isFirstRefusal = link.isRefused && report.refused(reason)
        guard news == .everybody || isFirstRefusal else { return }
        if link.isRefused { return notice("\(settings.url.host) refuses the bridge: \(reason). \(next)") }
        notice(
            wasUp || report.outage?.wasUp == true
                ? "The link to \(settings.url.host) was lost: \(reason). " + (isFar ? next + " " : "")
                    + "What you write is queued and sent when it is back."
                : "\(settings.url.host) cannot be reached: \(reason). Trying goes on.")
    }

    /// The link is opened anew on purpose. Members hear of it if that fails, and of what was missed.
    private func linkWasReplaced(_ reason: String, _ wasUp: Bool, _ context: RoomsContext) {
        access.linkWentDown()
        context.note(
            .info, "upstream-reopened", reason, ["room": settings.name, "host": settings.url.host])
        leaveSession(wasUp, context)
        if wasUp { report.replaced(reason, at: context.now.monotonic) }
    }

    /// The session has ended, for any reason.
    private func leaveSession(_ wasUp: Bool, _ context: RoomsContext) {
        for person in remotes.typing { endTyping(person, announced: true, context) }
        lost(lane, context)
        context.cancel(.settling(id))
        decideAll(context)
        if wasUp {
            continuity.linkProven(link.proof)
            loseSight(context)
            expectLink(context)
            context.set(.netsplit(id), at: context.now.monotonic + JoinBatches.splitAfter)
        }
        catchUpLinkLost(context)
    }

    func chatReceived(_ event: ChatEvent, _ context: RoomsContext) {
        if waitsForDecision(event, context) { return }
        traffic.received(event)
        switch event {
        case .message(let message): messageReceived(message, isHistory: false, context)
        case .history(let history): historyReceived(history, context)
        case .typing(let typing): typingReceived(typing, context)
        case .receipt(let receipt): receiptReceived(receipt, context)
        case .join(let membership) where !membership.isSelf && own.speaking(membership.user) == nil:
            _ = present(membership.user, mayWait: true, context)
        case .leave(let membership) where !membership.isSelf:
            let key = IdentityMap.remoteKey(membership.user, backend: settings.backend)
            if let person = context.identities.known(key) { remoteLeft(person, reason: nil, isTold: true, context) }
        case .join, .leave: break
        case .presence(let presence): presenceReceived(presence, context)
        case .system(let system): show(.announced(link.scrubbed(system.text)))
        case .topic(let topic): topicReceived(topic, context)
        case .account(let person): accountIdentified(person, context)
        case .edit(let edit): editReceived(edit, context)
        case .reaction(let reaction): reactionReceived(reaction, context)
        case .delete(let delete): deleteReceived(delete, context)
        case .error(let error):
            context.note(
                error.isFatal ? .error : .warn, "backend-error", link.printable(error.text),
                ["room": settings.name, "code": link.printable(error.code)])
            if let state = error.roomState {
                access.refused(
                    state, link.printable(error.text.isEmpty ? error.code : error.text), at: context.now.monotonic)
            }
            errorReceived(error, over: lane, context)
        case .ready(let ready): lane.announced(ready)
        // The link answers pings.
        case .ping, .pong: break
        case .auth(let auth):
            if auth.state == .expired { continuity.loginExpired(context.now) }
            context.note(
                auth.state == .ok ? .debug : .error, "backend-auth", "login on the socket: \(auth.state.rawValue)",
                ["room": settings.name])
        }
    }

    /// The configuration's topic is fixed; any other gives way to the backend's.
    private func topicReceived(_ topic: ChatTopic, _ context: RoomsContext) {
        let text = IdentityMap.realname(link.scrubbed(topic.text), maxBytes: RoomModeration.maxTopicBytes)
        guard settings.topic.isEmpty,
            moderation.takeTopic(text, from: context.settings.serverName, at: context.now.wall)
        else { return }
        let server = context.settings.serverName
        let msgid = context.messageID(backend: settings.backend, room: settings.upstreamRoom, sender: nil, id: nil)
        enterEvent(
            ["TOPIC", text], msgid: msgid, by: RoomSpeaker(nick: server, source: server), at: context.now.wall, context)
        show(.topic(text))
    }

    // MARK: - Messages

    func messageReceived(_ message: ChatMessage, isHistory: Bool, _ context: RoomsContext) {
        var message = markedAsOurs(message)
        let isLateFrame =
            !isHistory && message.id.map { catchUp.takeQuiet(duplicateKey($0, message.senderID)) } ?? false
        // A server-made id is unique, whatever the sender.
        if traits.messageIDOrigin == .server, !isLateFrame, let id = message.id,
            seenIDs.contains(duplicateKey(id, message.senderID))
        {
            guard !isHistory, isAnother(message, than: id, context) else { return }
            message.id = nil
        }
        saw(message, context)
        catchUp.ringTurned(to: seenIDs.total)
        switch origin(of: message, isHistory: isHistory, isLateFrame: isLateFrame, context) {
        case .known: break
        case .repeated:
            // Confirmed by a pong before; this is its echo.
            if message.isSelf, !isHistory { lane.answered(context) }
        case .confirmed(let entry):
            learnAccount(from: message, context)
            if let id = message.id { _ = seenIDs.insert(duplicateKey(id, message.senderID)) }
            // A message written over an earlier link may arrive late; that is no echo.
            if !isHistory, entry.state != .unknownAfterDisconnect { lane.answered(context) }
            confirmed(entry, upstreamID: message.id, at: message.at, lane, context)
        case .confirmedBefore(let id):
            learnAccount(from: message, context)
            _ = seenIDs.insert(duplicateKey(id, message.senderID))
        case .named(let sent):
            learnAccount(from: message, context)
            learn(message.id, of: sent, lane, context)
        case .late(let entry):
            learnAccount(from: message, context)
            tellLateArrival(entry, context)
            confirmed(entry, upstreamID: message.id, at: message.at, lane, context)
        case .ambiguous: hold(.message(message), context)
        case .news:
            if message.isSelf {
                learnAccountName(from: message)
                context.note(
                    .info, "unknown-own-message", "a message under one of our ids that we did not send is shown",
                    ["room": settings.name])
            }
            if let id = message.id { own.speaking(message.sender)?.shownElsewhere(id) }
            show(message, context)
        }
    }

    package func show(_ message: ChatMessage, _ context: RoomsContext) {
        var message = withoutSecrets(message, context)
        if !message.attachments.isEmpty { message = keepingFiles(message, context) }
        // Another bridge brought it here.
        if settings.isMirrored {
            let (text, origin) = OriginChain.split(message.text)
            if let tag = origin.storedTag {
                message.text = text
                message.annotations.append(tag)
            }
        }
        let quoted = ownWordsQuoted(message)
        let (speaker, who, name) = speaker(of: message, context)
        endTyping(speaker, announced: false, context)
        guard let who else { return }
        let text = withNicks(name == nil ? message.text : sharedPrefix(message.sender) + message.text, context)
        var shown = message
        if text != message.text { shown.text = text }
        let msgid = context.messageID(
            backend: settings.backend, room: settings.upstreamRoom,
            sender: traits.messageIDOrigin == .client ? message.senderID : nil, id: message.id)
        // In the log since the first history, and not shown then.
        let remembered = recent.time(of: msgid)
        let at = remembered ?? beginLine(message.at, context)
        let original = message.replyTo.flatMap { recent.entry(upstreamID: $0) }
        let address = address(ofReplyTo: original?.msgid, by: who.nick, text)
        guard !message.isEmpty else { return }
        traffic.shown(at: context.now.wall)
        context.latency.messageShown()
        context.noteChat("down", room: settings.name, nick: who.nick, text)
        if remembered == nil {
            enter(
                stored(
                    message, msgid: msgid, at: at, nick: who.nick, source: who.source, account: who.account, text: text),
                by: own.isEmpty ? nil : clients(of: speaker, context).first.flatMap { locals[$0]?.puppet },
                nick: quoted?.nick ?? name ?? who.nick, text: quoted?.text ?? message.text, context)
        }
        show(
            .said(
                RoomMessage(
                    msgid: msgid, at: at, speaker: who,
                    words: .upstream(shown), files: message.attachments.isEmpty ? nil : fileLinks(context),
                    whole: msgid, replyTo: original?.msgid, address: address, annotations: message.annotations)),
            to: RoomAudience(by: .present(speaker)))
        reportDelivery(of: message, context)
    }

    /// The person that is shown as the author.
    ///
    /// - Returns: `name`: the author's own, where they have no nick; nil: they have one.
    private func speaker(
        of message: ChatMessage, _ context: RoomsContext
    ) -> (PersonID, who: RoomSpeaker?, name: String?) {
        if let person = present(personBehind(message.sender), context) {
            return (person, remotes.speaker(person, context.identities) ?? shownSpeaker(person, context), nil)
        }
        let person = sharedPerson(context)
        return (person, shownSpeaker(person, context), sharedName(message.sender))
    }

    private func shownSpeaker(_ person: PersonID, _ context: RoomsContext) -> RoomSpeaker? {
        context.identities[person].map { RoomSpeaker($0) }
    }

    // MARK: - Typing

    private func typingReceived(_ typing: ChatTyping, _ context: RoomsContext) {
        // An own link's typing on IRC was already shown, and its typing elsewhere is not shown.
        guard !typing.isSelf, own.speaking(typing.sender) == nil, let personID = present(typing.sender, context)
        else { return }
        switch typing.state {
        case .stop: endTyping(personID, announced: true, context)
        case .start:
            let now = context.now.monotonic
            let ttl = typing.ttlMilliseconds.map { Duration.milliseconds(min(max($0, 500), 30_000)) }
            context.set(.typingIn(personID, id), at: now + (ttl ?? Self.typingExpiry))
            // Also after a message or a stop in between: a flood of frames must not become a flood of notices.
            guard remotes.types(personID, at: now) else { return }
            announceTyping(personID, true, context)
        }
    }

    /// The person stopped typing. A message implies that (`announced: false`).
    package func endTyping(_ personID: PersonID, announced: Bool, _ context: RoomsContext) {
        // A timer that is left finds no typing to end, and the next start sets it anew.
        guard remotes.stopsTyping(personID) else { return }
        context.cancel(.typingIn(personID, id))
        if announced { announceTyping(personID, false, context) }
    }

    private func announceTyping(_ personID: PersonID, _ isTyping: Bool, _ context: RoomsContext) {
        guard let person = context.identities[personID] else { return }
        if settings.isMirrored { context.emit(.typing(id, nick: person.nick, isTyping)) }
        show(.typing(RoomSpeaker(person), isTyping: isTyping), to: RoomAudience(by: .present(personID)))
    }

    // MARK: - Receipts

    private func receiptReceived(_ receipt: ChatReceipt, _ context: RoomsContext) {
        confirmByReceipt(receipt, over: lane, context)
        if receipt.state == .sent { return }
        // Some wires broadcast receipts; only those for relayed messages matter here.
        guard !receipt.isSelf, receipt.by.id != nil || receipt.by.name != nil else { return }
        let ours = receipt.ids.compactMap { recent.entry(upstreamID: $0) }.filter { $0.puppet != nil }
        guard !ours.isEmpty, let reader = present(receipt.by, context) else { return }
        tellAuthors(of: ours, reader: reader, state: receipt.state, context)
    }

    // MARK: - On demand

    /// Admits waiting JOINs: the link is up, or the wait is over.
    package func opened(_ context: RoomsContext) {
        guard life.opened() else { return }
        context.cancel(.opening(id))
        frontEnd.roomOpened(id)
    }

    func linkStopped(_ context: RoomsContext) {
        expectsNoLink(context)
        access.linkStopped()
        guard life.left() else { return }
        report.takeOutage()
        removeUpstreamPeople(context)
        // A user joined meanwhile; their messages are sent even if they have left again.
        if isWanted { return startLink(context) }
        life.stopped()
        frontEnd.roomFellSilent(id)
    }
}

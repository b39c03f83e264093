import BridgeTypes
import ChatModel
import Dialects
import Identities
import Media
import Upstream
import WireBytes

// What IRC users say and do, on its way up.

extension Room {
    // MARK: - Messages

    /// What was said over the room's own link and is not confirmed.
    package var waitingCount: Int { lane.outbox.count }

    /// Nothing waits to be sent or confirmed, over whichever link.
    package var isSilent: Bool { lanes.allSatisfy(\.outbox.isEmpty) }

    /// Messages that wait, of one author.
    package func waitingCount(of puppet: ChatID) -> Int {
        lanes.reduce(0) { count, lane in
            lane.outbox.isEmpty ? count : count + lane.outbox.entries.count { $0.origin.puppet == puppet }
        }
    }

    /// Writes what may be written, and arms the timer for what may not yet.
    package func pump(_ lane: SendLane, _ context: RoomsContext) {
        let failures = lane.write(isOpen: isOpen(lane), context) { entry in
            stopTyping(entry.origin, context)
            if lane !== self.lane, mayRepeatMessages, let id = entry.message.id {
                own.messageIDs.insert(id, of: lane.account)
            }
        }
        tell(failures, lane, context)
        if lane === self.lane, lane.isIdle { sayPresence(context) }
        lane.probe(context)
        arm(lane, context)
    }

    /// What is said now is heard as new: over the room's link not before the past has come.
    private func isOpen(_ lane: SendLane) -> Bool { lane !== self.lane || catchUp.state == .live }

    /// The backend takes what it is told.
    func maySend(_ lane: SendLane) -> Bool { lane.maySend(isOpen: isOpen(lane)) }

    /// Who says something types no longer.
    func stopTyping(_ origin: OutboxEntry.Origin, _ context: RoomsContext) {
        if let client = origin.client, locals[client]?.person == origin.person { stopTyping(client, context) }
    }

    func arm(_ lane: SendLane, _ context: RoomsContext) {
        lane.arm(
            isOpen: isOpen(lane), also: lane === self.lane ? nextPresenceGrant(context) : nil, context)
    }

    /// The link is gone, and with it what was on its way.
    package func lost(_ lane: SendLane, _ context: RoomsContext) {
        tell(lane.linkLost(context), lane, context)
        openActionsLinkLost(lane.id, context)
        arm(lane, context)
    }

    func tellWaiting(_ entries: [OutboxEntry], isUp: Bool, _ context: RoomsContext) {
        for entry in entries {
            guard let client = authorClient(entry.origin, context) else { continue }
            frontEnd.tell(.queued(entry.origin.text, isUp: isUp), in: self, to: client, label: nil)
        }
    }

    /// The backend has it: now the others see it, and the author gets the echo.
    func confirmed(
        _ entry: OutboxEntry, by proof: SendLane.ArrivalProof = .backend, upstreamID: ChatID?, at: ChatTimestamp?,
        _ lane: SendLane, _ context: RoomsContext
    ) {
        defer { arm(lane, context) }
        // IRC said it once, so it is shown once: with the last piece, and not again after it was shown.
        guard lane.keepArrival(entry, by: proof, context) else { return }
        if entry.isShown { return learnShown(entry, upstreamID, lane, context) }
        let origin = entry.origin
        let shownAt = lineTime(entry.message.at ?? at, context)
        let id = upstreamID ?? entry.message.id
        // Where pongs confirm, an earlier process may have shown it before the backend's id was known.
        let isOurs = lane.delivery.acceptsPongs
        let msgid = shownID(of: entry, upstreamID: isOurs ? nil : upstreamID, context)
        let isIDKnown = upstreamID != nil || traits.messageIDOrigin == .client
        if !isIDKnown {
            lane.sent.append(SentMessages.Entry(msgid: msgid, entry: entry, writtenAt: context.now.monotonic))
        }
        // Under the nick of now: nobody is called by the old one any more.
        let person = (origin.person ?? locals[puppet: origin.puppet]?.person).flatMap { context.identities[$0] }
        let source = person?.source ?? origin.source
        enter(
            msgid: msgid, upstreamID: isIDKnown ? id : nil, puppet: origin.puppet, nick: origin.nick,
            text: MessageText.action(origin.text) ?? origin.text, at: shownAt, context
        ) { sequence in
            let sentAs = entry.message.text
            return StoredMessage(
                sequence: sequence, msgid: msgid, upstreamID: isIDKnown ? id : nil,
                sender: lane.sender(of: entry), at: shownAt, backendAt: at,
                nick: person?.nick ?? origin.nick, source: source, account: origin.account, text: origin.text,
                sentAs: sentAs == origin.text ? nil : sentAs, attachments: entry.message.attachments,
                replyTo: origin.replyTo,
                clientTags: origin.clientTags.map { StoredTag(name: $0.name, value: $0.value) },
                author: origin.puppet, client: origin.clientName)
        }
        recent.went(up: entry.message.text, msgid: msgid)
        let client = authorClient(origin, context)
        let speaker = (origin.person ?? locals[puppet: origin.puppet]?.person).flatMap { context.identities[$0] }
        show(
            .said(
                RoomMessage(
                    msgid: msgid, at: shownAt,
                    speaker: RoomSpeaker(
                        nick: person?.nick ?? origin.nick, source: source, account: origin.account,
                        isBot: person?.isBot == true),
                    words: .typed(SpokenText(text: origin.text, cuts: origin.cuts)),
                    address: address(ofReplyTo: origin.replyTo, by: origin.nick, origin.text),
                    annotations: origin.clientTags.map { StoredTag(name: $0.name, value: $0.value) })),
            to: RoomAudience(
                author: client, label: origin.label, twins: twins(of: client, origin, context), by: speaker))
    }

    /// The process ends: what waits goes after the restart, and whoever said it hears that.
    private func tellKept(_ context: RoomsContext) {
        var waiting: [ClientID: [OutboxEntry]] = [:]
        for entry in lanes.flatMap(\.outbox.entries)
        where entry.part.map({ $0.index == 0 }) ?? true {
            if let client = authorClient(entry.origin, context) { waiting[client, default: []].append(entry) }
        }
        for (client, all) in waiting.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            // What the disk has not taken is not accepted, but may still be.
            let (entries, open) = (all.filter { !$0.isAccepting }, all.filter(\.isAccepting))
            for entry in open {
                frontEnd.tell(
                    .notStored(
                        entry.origin.text,
                        why: "The bridge stops and the disk has not taken it yet, so it may be lost"), in: self,
                    to: client, label: nil)
            }
            guard let first = entries.first else { continue }
            frontEnd.tell(
                .kept(first.origin.text, count: entries.count), in: self, to: client, label: nil)
        }
    }

    /// Nothing more can be delivered by this process: every author gets the text back, unless it is kept for the next.
    package func failEverything(why: String, _ context: RoomsContext) {
        if context.isDurable { return tellKept(context) }
        for lane in lanes {
            tell(lane.giveUpAll(why: why, context), lane, context)
            arm(lane, context)
        }
    }

    func tellLateArrival(_ entry: OutboxEntry, _ context: RoomsContext) {
        guard let author = locals[puppet: entry.origin.puppet]?.person else { return }
        for client in clients(of: author, context) {
            frontEnd.tell(.deliveredLate(entry.origin.text), in: self, to: client, label: nil)
        }
    }

    // MARK: - What only IRC users see

    // MARK: - Typing
}

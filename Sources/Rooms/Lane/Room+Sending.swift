import BridgeTypes
import ChatModel
import Dialects
import Identities
import Media
import Upstream
import WireBytes

// Sending the messages and actions of IRC users.

extension Room {
    // MARK: - Messages

    /// The number of unconfirmed messages of the room's own link.
    package var waitingCount: Int { lane.outbox.count }

    /// When the oldest queued or unconfirmed message over any link was accepted; nil: there is none.
    package var waitingSince: MonotonicInstant? { lanes.compactMap(\.outbox.oldestAcceptedAt).min() }

    /// The number of queued and unconfirmed messages over any link.
    package var waitingCountOfAll: Int { lanes.reduce(0) { $0 + $1.outbox.count } }

    /// The number of sent and unconfirmed messages over any link.
    package var unconfirmedCount: Int { lanes.reduce(0) { $0 + $1.outbox.nextToWrite } }

    /// When the oldest of these was accepted; nil: there is none.
    package var unconfirmedSince: MonotonicInstant? { lanes.compactMap(\.outbox.oldestSentAcceptedAt).min() }

    /// Messages wait for the rate at which they may be sent over a link.
    package func isPaced(at now: MonotonicInstant) -> Bool { lanes.contains { $0.isPaced(at: now) } }

    /// No message is queued or unconfirmed, over any link.
    package var isSilent: Bool { lanes.allSatisfy(\.outbox.isEmpty) }

    /// The number of queued and unconfirmed messages of an author.
    package func waitingCount(of puppet: ChatID) -> Int {
        lanes.reduce(0) { count, lane in
            lane.outbox.isEmpty ? count : count + lane.outbox.entries.count { $0.origin.puppet == puppet }
        }
    }

    /// Writes queued messages, and arms the timer for the rest.
    package func pump(_ lane: SendLane, _ context: RoomsContext) {
        let failures = lane.write(isOpen: isOpen(lane), context) { author, id in
            if let client = author.client, locals[client]?.person == author.person { stopTyping(client, context) }
            if lane !== self.lane, mayRepeatMessages, let id {
                own.messageIDs.insert(id, of: lane.account)
            }
        }
        tell(failures, lane, context)
        if lane === self.lane, lane.isIdle { sayPresence(context) }
        lane.probe(context)
        arm(lane, context)
    }

    /// New messages may be sent: over the room's link only once it has caught up.
    private func isOpen(_ lane: SendLane) -> Bool { lane !== self.lane || catchUp.state == .live }

    /// The backend accepts messages.
    func maySend(_ lane: SendLane) -> Bool { lane.maySend(isOpen: isOpen(lane)) }

    func arm(_ lane: SendLane, _ context: RoomsContext) {
        lane.arm(
            isOpen: isOpen(lane), also: lane === self.lane ? nextPresenceGrant(context) : nil, context)
        if lane.outbox.isSettled { settled(lane, context) }
    }

    /// Nothing waits in a lane. A link that lingers without a timer has waited for that alone.
    func settled(_ lane: SendLane, _ context: RoomsContext) {
        let since = lane === self.lane ? emptySince : own[lane.account]?.emptySince
        guard since != nil, context.due(.linger(lane.id)) == nil else { return }
        context.set(.linger(lane.id), at: context.now.monotonic)
    }

    /// The link is lost, with its in-flight messages.
    package func lost(_ lane: SendLane, _ context: RoomsContext) {
        tell(lane.linkLost(context), lane, context)
        pendingActionsLinkLost(lane.id, context)
        arm(lane, context)
        releaseDecided(context)
    }

    /// It was written, and is not written again: it waits for what shows whether it arrived.
    private func isOnTheWire(_ entry: OutboxEntry) -> Bool { entry.isArrivalOpen && !mayRepeatMessages }

    func tellWaiting(_ entries: [OutboxEntry], isUp: Bool, _ context: RoomsContext) {
        for entry in entries {
            guard let client = authorClient(entry.origin, context) else { continue }
            frontEnd.tell(
                .queued(entry.origin.text, isUp: isUp || isOnTheWire(entry)), in: self, to: client, label: nil)
        }
    }

    /// The backend has a message: it is shown to the others and echoed to its author.
    func confirmed(
        _ entry: OutboxEntry, by proof: SendLane.ArrivalProof = .backend, upstreamID: ChatID?, at: ChatTimestamp?,
        _ lane: SendLane, _ context: RoomsContext
    ) {
        defer { arm(lane, context) }
        // IRC sent one message, so one is shown: with the last piece, and only once.
        guard lane.persistArrival(entry, by: proof, context) else { return }
        if entry.isShown { return learnShown(entry, upstreamID, lane, context) }
        traffic.confirmed(at: context.now.wall)
        let origin = entry.origin
        let shownAt = beginLine(entry.message.at ?? at, context)
        let id = upstreamID ?? entry.message.id
        // Where pongs confirm, an earlier process may have shown it before the backend's id was known.
        let isOurs = lane.delivery.acceptsPongs
        let msgid = shownID(of: entry, upstreamID: isOurs ? nil : upstreamID, context)
        let isIDKnown = upstreamID != nil || traits.messageIDOrigin == .client
        if !isIDKnown {
            lane.sent.append(UnidentifiedMessages.Entry(msgid: msgid, entry: entry, writtenAt: context.now.monotonic))
        }
        // Under the present nick; an old one may be free again.
        let author = origin.person ?? locals[puppet: origin.puppet]?.person
        let person = author.flatMap { context.identities[$0] }
        let source = person?.source ?? origin.who.source
        let isErased = origin.puppet == .erased
        let sentAs = entry.message.text
        var row = StoredMessage(
            sequence: Int64(recent.nextSequence), msgid: msgid, upstreamID: isIDKnown ? id : nil,
            sender: lane.sender(of: entry), at: shownAt, backendAt: at, nick: person?.nick ?? origin.who.nick,
            source: source, account: origin.who.account, text: origin.text,
            sentAs: sentAs == origin.text ? nil : sentAs, attachments: entry.message.attachments,
            replyTo: origin.replyTo, clientTags: origin.clientTags.map { StoredTag(name: $0.name, value: $0.value) },
            author: origin.puppet, client: origin.clientName)
        if isErased { row.erase() }
        enter(
            row, by: origin.puppet, nick: origin.who.nick, text: MessageText.action(origin.text) ?? origin.text, context
        )
        noteArrival(of: origin, msgid: msgid, context)
        if isErased { recent.erase(msgid: msgid) } else { recent.went(up: entry.message.text, msgid: msgid) }
        let client = authorClient(origin, context)
        show(
            .said(
                RoomMessage(
                    msgid: msgid, at: shownAt,
                    speaker: RoomSpeaker(
                        nick: person?.nick ?? origin.who.nick, source: source, account: origin.who.account,
                        isBot: person?.isBot == true),
                    words: .typed(SpokenText(text: origin.text, cuts: origin.cuts)),
                    address: address(ofReplyTo: origin.replyTo, by: origin.who.nick, origin.text),
                    annotations: origin.clientTags.map { StoredTag(name: $0.name, value: $0.value) })),
            to: RoomAudience(
                // Labels are those of a connection; a later one has its own.
                author: client, label: client == origin.client ? origin.label : nil,
                twins: twins(of: client, origin, context), by: author.map { .present($0) }))
    }

    /// Notifies authors at shutdown that their messages remain queued for the restart.
    private func notifyPersisted(_ context: RoomsContext) {
        var waiting: [ClientID: [OutboxEntry]] = [:]
        for entry in lanes.flatMap(\.outbox.entries)
        where entry.part.map({ $0.index == 0 }) ?? true {
            if let client = authorClient(entry.origin, context) { waiting[client, default: []].append(entry) }
        }
        for (client, all) in waiting.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            // A message that is not persisted yet is not accepted, but may still be.
            let (entries, open) = (all.filter { !$0.isAccepting }, all.filter(\.isAccepting))
            for entry in open {
                frontEnd.tell(
                    .notStored(
                        entry.origin.text,
                        why: "The bridge stops and the disk has not taken it yet, so it may be lost"), in: self,
                    to: client, label: nil)
            }
            for entry in entries where isOnTheWire(entry) {
                frontEnd.tell(.queued(entry.origin.text, isUp: true), in: self, to: client, label: nil)
            }
            let waiting = entries.filter { !isOnTheWire($0) }
            guard let first = waiting.first else { continue }
            frontEnd.tell(.kept(first.origin.text, count: waiting.count), in: self, to: client, label: nil)
        }
    }

    /// Returns all undeliverable messages to their authors at shutdown, except persisted ones.
    package func failEverything(why: String, _ context: RoomsContext) {
        if context.isDurable { return notifyPersisted(context) }
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
}

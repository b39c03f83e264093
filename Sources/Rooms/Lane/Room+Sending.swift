import BridgeTypes
import ChatModel
import Dialects
import Identities
import Media
import Upstream
import WireBytes

// What IRC users say and do, on its way up.

/// An IRC user's typing, as the backend is told of it.
struct OutgoingTyping {
    /// Never more often than this, whatever the client does.
    static let minInterval: Duration = .milliseconds(300)
    /// Without a refresh the typing is over.
    static let expiry: Duration = .seconds(6)

    /// When the client last said so.
    var refreshedAt: MonotonicInstant
    /// When the backend was told of it last; nil: not yet.
    var toldAt: MonotonicInstant?

    /// When there is something to do about it next: say it again, or end it.
    func nextStep(repeating interval: Duration) -> MonotonicInstant {
        let end = refreshedAt + Self.expiry
        return toldAt.map { min($0 + interval, end) } ?? end
    }
}

/// Why a message was not taken.
package enum SubmitRefusal: Equatable {
    case notInRoom
    case queueFull
}

/// A PRIVMSG to the room, checked by the session.
package struct Submission: Equatable {
    package var words: SpokenText
    /// What the client gave with it for other clients.
    package var annotations: [StoredTag]
    /// The msgid that it answers.
    package var replyTo: String?
    /// To be answered by the echo; nil when there is nothing to answer.
    package var label: String?
    /// The network address of a guest; nil: known by more than that.
    package var network: String?

    package init(
        words: SpokenText, annotations: [StoredTag], replyTo: String? = nil, label: String? = nil,
        network: String? = nil
    ) {
        self.words = words
        self.annotations = annotations
        self.replyTo = replyTo
        self.label = label
        self.network = network
    }

    package var text: String { words.text }
}

extension Room {
    // MARK: - Messages

    package func submit(_ submission: Submission, from client: ClientID, _ context: RoomsContext) -> SubmitRefusal? {
        guard let member = locals[client], let person = context.identities[member.person] else { return .notInRoom }
        let lane = lane(of: person)
        guard !lane.isFull else { return .queueFull }
        spoke(client, context)
        context.noteChat("up", room: settings.name, nick: person.nick, submission.text)
        let answered = submission.replyTo.flatMap { recent.entry(msgid: $0) }.flatMap { $0.isTakenBack ? nil : $0 }
        let replyTo = carriesReplies ? answered?.upstreamID : nil
        let said = context.uploads.find(in: submission.text, backend: settings.backend)
        let message = ChatMessage(
            id: context.freshChatID(), room: settings.upstreamRoom, sender: upstreamPerson(person, member.puppet),
            text: upstreamText(said.text, quoting: replyTo == nil ? answered : nil, person, context),
            at: context.now.wall,
            attachments: said.attachments.isEmpty
                ? ImageLink.attachment(in: submission.text).map { [$0] } ?? [] : said.attachments,
            replyTo: replyTo)
        var entry = OutboxEntry(
            message: message,
            origin: OutboxEntry.Origin(
                client: client, person: member.person, puppet: member.puppet, source: person.source,
                nick: person.nick, account: person.account, text: submission.text, cuts: submission.words.cuts,
                clientTags: submission.annotations.map { ($0.name, $0.value) }, label: submission.label,
                clientName: member.clientName),
            acceptedAt: context.now.monotonic)
        entry.saidAfter = recent.lastSequence
        entry.line = submission.network.map { .network($0) }
        lane.submit(entry, context)
        pump(lane, context)
        return nil
    }

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

    package func outboxTimerFired(_ lane: SendLane, _ context: RoomsContext) {
        tell(lane.expire(context), lane, context)
        tellWaiting(lane.takeWaiting(context), isUp: lane.link.isUp, context)
        if lane.takeDoubtful(context) {
            if lane === self.lane, lane.delivery.confirmation != .none { doubtAccount(context) }
            if !lane.doubt(context) { lookForDoubtful(lane, context) }
        }
        pump(lane, context)
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

    /// The id under which IRC is shown a message of ours.
    func shownID(of entry: OutboxEntry, upstreamID: ChatID? = nil, _ context: RoomsContext) -> String {
        context.messageID(
            backend: settings.backend, room: settings.upstreamRoom,
            sender: traits.messageIDOrigin == .client ? entry.message.sender.id : nil,
            id: upstreamID ?? entry.message.id)
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

    /// Shows to the IRC users of the room alone what the backend cannot carry.
    ///
    /// - Parameters:
    ///   - words: nil: only what the client gave for other clients.
    ///   - isEvent: it has its place in the room's order.
    package func showLocally(
        _ words: SpokenText?, isNotice: Bool = false, annotations: [StoredTag],
        from client: ClientID, label: String? = nil, isEvent: Bool = false, _ context: RoomsContext
    ) -> SubmitRefusal? {
        guard let member = locals[client], let person = context.identities[member.person] else { return .notInRoom }
        let msgid = context.messageID(backend: settings.backend, room: settings.upstreamRoom, sender: nil, id: nil)
        let readers = RoomAudience(author: client, label: label, by: person)
        guard let words else {
            let who = RoomSpeaker(person)
            if isEvent {
                enterEvent(
                    ["TAGMSG"], msgid: msgid, by: who, annotations, author: member.puppet, at: context.now.wall, context
                )
            }
            show(.passed(annotations, by: who, msgid: msgid), to: readers)
            return nil
        }
        show(
            .said(
                RoomMessage(
                    msgid: msgid, at: context.now.wall, speaker: RoomSpeaker(person), isNotice: isNotice,
                    words: .typed(words), annotations: annotations)), to: readers)
        return nil
    }

    // MARK: - Typing

    /// The client says that its user types, or no longer.
    package func typed(_ client: ClientID, isTyping: Bool, _ context: RoomsContext) {
        guard let member = locals[client] else { return }
        guard isTyping else { return stopTyping(client, context) }
        let now = context.now.monotonic
        if var typing = member.typing {
            typing.refreshedAt = now
            return member.types(typing)
        }
        if let last = member.typingSentAt, now - last < OutgoingTyping.minInterval {
            // Too soon after the last: said when the interval is over, if it still holds then.
            member.types(OutgoingTyping(refreshedAt: now))
            context.timers.set(.typingOut(client, id), at: last + OutgoingTyping.minInterval)
            return
        }
        sayTyping(OutgoingTyping(refreshedAt: now), client, member, context)
    }

    private func sayTyping(
        _ typing: OutgoingTyping, _ client: ClientID, _ member: LocalMember, _ context: RoomsContext
    ) {
        var typing = typing
        if let told = accountTypingTold(within: typingRepeat, by: member, context) {
            // The one account types already, for somebody else; this one joins in and goes on when that is due.
            typing.toldAt = told
        } else {
            guard sendTyping(.start, member, context) else { return stopTyping(client, context) }
            typing.toldAt = context.now.monotonic
            if ownLink(of: member, context) == nil { account.typingTold(at: typing.toldAt) }
        }
        member.types(typing, sentAt: context.now.monotonic)
        context.timers.set(.typingOut(client, id), at: typing.nextStep(repeating: typingRepeat))
    }

    package func typingTimerFired(_ client: ClientID, _ context: RoomsContext) {
        guard let member = locals[client], let typing = member.typing else { return }
        let now = context.now.monotonic
        guard now - typing.refreshedAt < OutgoingTyping.expiry else { return stopTyping(client, context) }
        if let told = typing.toldAt, now - told < typingRepeat {
            // Woken for the end, which a refresh has put off since.
            return context.timers.set(.typingOut(client, id), at: typing.nextStep(repeating: typingRepeat))
        }
        sayTyping(typing, client, member, context)
    }

    func stopTyping(_ client: ClientID, _ context: RoomsContext) {
        guard let member = locals[client], member.typing != nil else { return }
        member.stopsTyping()
        context.timers.cancel(.typingOut(client, id))
        // One account for all, or one person at several clients: they type while any of them does.
        let isOwn = ownLink(of: member, context) != nil
        let sharers =
            settings.identity == .single && !isOwn
            ? Array(locals.keys) : clients(of: member.person, context)
        func shares(_ other: LocalMember) -> Bool {
            other.typing != nil && (isOwn || ownLink(of: other, context) == nil)
        }
        if sharers.contains(where: { locals[$0].map(shares) ?? false }) { return }
        if !isOwn { account.typingTold(at: nil) }
        sendTyping(.stop, member, context)
    }

    @discardableResult
    private func sendTyping(_ state: ChatTyping.State, _ member: LocalMember, _ context: RoomsContext) -> Bool {
        let wanted = traits.typingOut
        guard wanted != .none, state == .start || wanted == .startStop,
            let person = context.identities[member.person]
        else { return false }
        let lane = lane(of: person)
        guard lane.canSpeak, lane.takeTypingBudget(context) else { return false }
        let command = ChatCommand.typing(
            ChatTyping(
                state: state, sender: upstreamPerson(person, member.puppet), room: settings.upstreamRoom,
                id: context.freshChatID(), at: context.now.wall))
        return lane.send(command, context)
    }
}

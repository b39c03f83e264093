import BridgeTypes
import ChatModel
import HTTPProtocol
import IRCProtocol
import Identities
import Rooms
import Upstream
import WireBytes

// A room as an IRC channel: its clients, by capabilities, and the lines for its events. A line is built once per form,
// for any number of clients.

final class Channel {
    private(set) var audience = CapabilityGroups()
    /// Lines about taken-back messages for clients that do not know REDACT.
    private var takenBackBudget = TokenBucket.takenBackWords
    /// Lines about reactions for clients without tags.
    private var reactionBudget = TokenBucket(rate: 0.2, burst: 5)
    private let outbound: Outbound
    private let metadata: MetadataSubscriptions
    private let limits: LimitSettings
    private let context: RoomsContext

    private var server: String { context.settings.serverName }

    init(_ outbound: Outbound, _ metadata: MetadataSubscriptions, _ limits: LimitSettings, _ context: RoomsContext) {
        self.limits = limits
        self.outbound = outbound
        self.metadata = metadata
        self.context = context
    }

    // MARK: - Events

    /// Shows an event to the room's clients.
    ///
    /// - Parameter deaf: clients that have muted the person behind the event; hardly ever any.
    func show(_ event: RoomEvent, in room: Room, to readers: RoomAudience, besides deaf: Set<ClientID>) {
        switch event {
        case .said(let message): show(message, in: room, to: readers, besides: deaf)
        case .notice(let text): broadcast(Self.notice(text, in: room, context), in: room)
        case .announced(let text):
            let bodies = MessageRendering.bodies(
                text: text, attachments: [], isEncrypted: false, budget: 400, limits: limits)
            for body in bodies { broadcast(Self.notice(body, in: room, context), in: room) }
        case .topic(let text):
            broadcast(
                IRCMessage(
                    tags: [.time(context.now.wall)], source: server, command: "TOPIC", params: [room.channel, text]),
                in: room)
        case .entered(let arrival): enter(arrival, in: room)
        case .left(let who, let reason):
            broadcast(
                line("PART", by: who, at: context.now.wall, [room.channel] + (reason.map { [$0] } ?? [])), in: room)
        case .returned(let people):
            let batch = beginBatch("netjoin", in: room)
            for arrival in people { enter(arrival, batch: batch, in: room) }
            endBatch(batch, in: room)
        case .separated(let people):
            let batch = beginBatch("netsplit", in: room)
            let ends = ends(of: room).joined(separator: " ")
            for one in people {
                var line = line(
                    one.isSeenElsewhere ? "PART" : "QUIT", by: one.who, at: context.now.wall,
                    one.isSeenElsewhere ? [room.channel, ends] : [ends])
                line.setTag("batch", batch)
                broadcast(line, in: room)
            }
            endBatch(batch, in: room)
        case .typing(let who, let isTyping):
            var line = line("TAGMSG", by: who, at: context.now.wall, [room.channel])
            line.tags.append(IRCTag("+typing", isTyping ? "active" : "done"))
            broadcast(line, except: readers.author, and: deaf, in: room)
        case .passed(let annotations, let who, let msgid):
            var line = line("TAGMSG", by: who, at: context.now.wall, msgid: msgid, [room.channel])
            line.tags += annotations.tags
            show(line, in: room, to: readers, besides: deaf)
        case .takenBack(let entries, let who, let msgid, let reason):
            for entry in entries {
                let params = [room.channel, entry.msgid] + (reason.map { [$0] } ?? [])
                let told =
                    who.map { line("REDACT", by: $0, at: context.now.wall, msgid: msgid, params) }
                    ?? IRCMessage(
                        tags: [.time(context.now.wall)], source: server, command: "REDACT", params: params)
                show(told, in: room, to: readers, besides: deaf)
            }
            tellTakenBack(entries, by: who?.nick, reason: reason, except: readers.author, in: room)
        case .erased(let msgids):
            // No words for clients without REDACT: a name, or a count, would tell of the person.
            for msgid in msgids {
                let params = [room.channel, msgid, "Erased by an administrator"]
                broadcast(
                    IRCMessage(tags: [.time(context.now.wall)], source: server, command: "REDACT", params: params),
                    in: room)
            }
        case .reacted(let reaction, let who): show(reaction, by: who, in: room, to: readers, besides: deaf)
        }
    }

    private func show(_ line: IRCMessage, in room: Room, to readers: RoomAudience, besides deaf: Set<ClientID>) {
        broadcast(line, except: readers.author, and: deaf, in: room)
        if let author = readers.author { outbound.echo([line], to: author, label: readers.label, in: room.id) }
    }

    private func show(_ message: RoomMessage, in room: Room, to readers: RoomAudience, besides deaf: Set<ClientID>) {
        let source = message.speaker?.source ?? server
        let command = message.isNotice ? "NOTICE" : "PRIVMSG"
        // Made for those alone who are shown some.
        let areTagsShown = audience.isShownTags || readers.author != nil || !readers.twins.isEmpty
        let tags = areTagsShown ? tags(of: message) : []
        if case .upstream(let words) = message.words, message.address == nil, words.attachments.isEmpty {
            let budget = IRCTextSplitter.budget(source: source, command: command, target: room.channel)
            if MessageRendering.isOneLine(words.text, budget: budget, limits: limits) {
                let line = IRCMessage(
                    tags: tags, source: source, command: command, params: [room.channel, words.text])
                return show(line, in: room, to: readers, besides: deaf)
            }
        }
        let head = IRCMessage(tags: tags, source: source, command: command, params: [room.channel])
        let said: IRCUtterance
        switch message.words {
        case .typed(let words): said = MessageRendering.utterance(head, words, address: message.address)
        case .upstream(let words):
            let budget = IRCTextSplitter.budget(source: source, command: head.command, target: room.channel)
            said = IRCUtterance(
                head: head,
                lines: MessageRendering.lines(
                    text: words.text, attachments: words.attachments, isEncrypted: words.isEncrypted,
                    budget: budget - (message.address?.utf8.count ?? 0), limits: limits,
                    msgid: message.whole, files: message.files), address: message.address)
        }
        broadcast(said, except: readers.author, and: deaf.union(readers.twins), in: room)
        if let author = readers.author { outbound.echo(said, to: author, label: readers.label, in: room.id) }
        for twin in readers.twins { outbound.echo(said, to: twin, label: nil, in: room.id) }
    }

    private func tags(of message: RoomMessage) -> [IRCTag] {
        var tags = [IRCTag.time(message.at)]
        if let msgid = message.msgid { tags.append(IRCTag("msgid", msgid)) }
        if let account = message.speaker?.account { tags.append(IRCTag("account", account)) }
        if message.speaker?.isBot == true { tags.append(IRCTag("bot")) }
        if let gap = message.gap { tags.append(.gap(gap.from, gap.to)) }
        if let replyTo = message.replyTo {
            tags.append(IRCTag(StoredMessage.replyTag, replyTo))
            tags.append(IRCTag("+draft/reply", replyTo))
        }
        tags += message.annotations.tags
        return tags
    }

    private func show(
        _ reaction: RoomReaction, by who: RoomSpeaker, in room: Room, to readers: RoomAudience,
        besides deaf: Set<ClientID>
    ) {
        var line = line("TAGMSG", by: who, at: reaction.at, msgid: reaction.msgid, [room.channel])
        line.tags += reaction.annotations.tags
        show(line, in: room, to: readers, besides: deaf)
        tellReaction(reaction, by: who, in: room, to: readers, besides: deaf)
    }

    // MARK: - People

    private func enter(_ arrival: RoomArrival, batch: String? = nil, in room: Room) {
        let who = arrival.who
        var lines = [Self.join(who, arrival.realname, in: room, context)]
        if let away = arrival.away {
            lines.append(
                IRCMessage(
                    tags: who.tags(at: context.now.wall), source: who.source, command: "AWAY", params: [away]))
        }
        for var line in lines {
            if let batch { line.setTag("batch", batch) }
            broadcast(line, in: room)
        }
        if let person = arrival.upstream { tellMetadata(of: person, in: room) }
    }

    /// Sends the metadata of an upstream user that entered the room.
    private func tellMetadata(of person: PersonID, in room: Room) {
        guard !metadata.isEmpty,
            let line = context.identities[person].flatMap({ MetadataSubscriptions.line(of: $0, from: server) })
        else { return }
        for client in room.locals.keys.sorted(by: { $0.rawValue < $1.rawValue }) where metadata.wantsNames(client) {
            outbound.deliver(line, to: client, amid: [room.id])
        }
    }

    static func join(_ who: RoomSpeaker, _ realname: String, in room: Room, _ context: RoomsContext) -> IRCMessage {
        IRCMessage(
            tags: who.tags(at: context.now.wall), source: who.source, command: "JOIN",
            params: [room.channel, who.account ?? "*", realname])
    }

    /// The two ends of a netsplit or netjoin, as its batch names them.
    private func ends(of room: Room) -> [String] { [server, room.host] }

    private func beginBatch(_ type: String, in room: Room) -> String {
        let reference = outbound.nextBatchReference()
        broadcast(
            IRCMessage(source: server, command: "BATCH", params: ["+" + reference, type] + ends(of: room)), in: room)
        return reference
    }

    private func endBatch(_ reference: String, in room: Room) {
        broadcast(IRCMessage(source: server, command: "BATCH", params: ["-" + reference]), in: room)
    }

    // MARK: - Lines

    private func line(
        _ command: String, by who: RoomSpeaker, at: ChatTimestamp, msgid: String? = nil, _ params: [String]
    ) -> IRCMessage {
        IRCMessage(tags: who.tags(at: at, msgid: msgid), source: who.source, command: command, params: params)
    }

    /// A notice of the relay.
    static func notice(_ text: String, in room: Room, _ context: RoomsContext) -> IRCMessage {
        IRCMessage(
            tags: [.time(context.now.wall)], source: context.settings.serverName, command: "NOTICE",
            params: [room.channel, "*** " + text])
    }

    // MARK: - Broadcasts

    /// Sends a line to every IRC user in the room.
    ///
    /// - Parameter others: clients that do not get it either; hardly ever any.
    func broadcast(
        _ message: IRCMessage, except: ClientID? = nil, and others: Set<ClientID> = [], in room: Room
    ) {
        for var group in audience.groups where !group.isEmpty {
            if !others.isEmpty { group.remove(others) }
            send(message, to: group, except: except, in: room)
        }
        if context.isDurable { room.linesWritten(context) }
    }

    /// Sends a message to every IRC user in the room.
    private func broadcast(_ said: IRCUtterance, except: ClientID?, and others: Set<ClientID>, in room: Room) {
        if let line = said.single { return broadcast(line, except: except, and: others, in: room) }
        var reference: String?
        for var group in audience.groups where !group.isEmpty {
            if !others.isEmpty { group.remove(others) }
            let lines = said.messages(for: group.profile) {
                let name = reference ?? outbound.nextBatchReference()
                reference = name
                return name
            }
            send(lines, to: group, except: except, in: room)
        }
        if context.isDurable { room.linesWritten(context) }
    }

    private func send(_ message: IRCMessage, to group: CapabilityGroups.Group, except: ClientID?, in room: Room) {
        guard let command = append(message, for: group) else { return }
        outbound.traffic.sent(command, to: Self.readerCount(of: group, except: except))
        send(context.takeWritten(), to: group, except: except, in: room)
    }

    /// Sends lines without any others in between.
    private func send(_ lines: [IRCMessage], to group: CapabilityGroups.Group, except: ClientID?, in room: Room) {
        for line in lines {
            guard let command = append(line, for: group) else { continue }
            outbound.traffic.sent(command, to: Self.readerCount(of: group, except: except))
        }
        let bytes = context.takeWritten()
        if !bytes.isEmpty { send(bytes, to: group, except: except, in: room) }
    }

    /// How many get a line at once: not those that are held, and not the one that is left out.
    private static func readerCount(of group: CapabilityGroups.Group, except: ClientID?) -> Int {
        group.clients.count - (except.map(group.clients.contains) ?? false ? 1 : 0)
    }

    private func append(_ message: IRCMessage, for group: CapabilityGroups.Group) -> String? {
        context.write { message.append(reducedFor: group.profile, nick: "*", to: &$0) }
    }

    private func send(_ bytes: ByteSlice, to group: CapabilityGroups.Group, except: ClientID?, in room: Room) {
        if !group.clients.isEmpty { outbound.fanOut(bytes, to: group.clients, except: except) }
        for client in group.held where client != except { outbound.hold(bytes, for: client, in: room.id) }
    }

    // MARK: - Clients without tags

    /// Notifies clients without `draft/message-redaction` of a redaction.
    ///
    /// They have the message on their screens, so its redaction is worth a line. The line does not repeat the text: its
    /// author does not want to read it again, and logs would have it twice. Redacting a whole room gives one line, and
    /// there are only a few of those per minute.
    ///
    /// Source: IRCv3 message-redaction, "Fallback".
    private func tellTakenBack(
        _ entries: [RecentLog.Entry], by nick: String?, reason: String?, except: ClientID?, in room: Room
    ) {
        let groups = audience.groups.filter { !$0.profile.contains(.messageRedaction) && !$0.isEmpty }
        guard let first = entries.first, !groups.isEmpty, takenBackBudget.take(now: context.now.monotonic) else {
            return
        }
        var what = "\(entries.count) messages"
        if entries.count == 1 {
            let seconds = Int(max(0, context.now.wall.milliseconds - first.at.milliseconds) / 1000)
            what = "a message from \(PrintableText.spoken(seconds: seconds)) ago"
        }
        let authors = Set(entries.map(\.nick))
        if authors.count == 1, first.nick != nick { what += " by \(first.nick)" }
        let sentence = "\(nick ?? room.settings.url.host) took back \(what)"
        let line = Self.notice(sentence + (reason.map { ": " + $0 } ?? "."), in: room, context)
        for group in groups { send(line, to: group, except: except, in: room) }
    }

    /// Notifies clients without tags of a reaction.
    ///
    /// The line is the server's, since a reaction is no message; only a few per minute, since a message with many
    /// reactions would push the conversation off their screens.
    private func tellReaction(
        _ reaction: RoomReaction, by who: RoomSpeaker, in room: Room, to readers: RoomAudience,
        besides deaf: Set<ClientID>
    ) {
        let groups = audience.groups.filter { !$0.profile.contains(.messageTags) && !$0.isEmpty }
        guard !groups.isEmpty, reactionBudget.take(now: context.now.monotonic) else { return }
        let author = reaction.isOnOwn ? "their own" : "\(reaction.original.nick)'s"
        let shown = PrintableText.of(reaction.emoji)
        let deed = reaction.operation == .add ? "reacted with \(shown) to" : "took \(shown) back from"
        let line = Self.notice("\(who.nick) \(deed) \(author): \(reaction.original.excerpt)", in: room, context)
        for var group in groups {
            if !deaf.isEmpty { group.remove(deaf) }
            send(line, to: group, except: readers.author, in: room)
        }
    }

    // MARK: - To one client

    func tell(_ answer: RoomAnswer, in room: Room, to client: ClientID, label: String?) {
        outbound.deliver(line(answer, in: room), to: client, label: label)
    }

    func tell(_ reading: RoomReading, in room: Room, to client: ClientID) {
        for (tag, msgid) in [("+draft/delivered", reading.delivered), ("+draft/read", reading.read)] {
            guard let msgid else { continue }
            var line = line("TAGMSG", by: reading.reader, at: context.now.wall, [room.channel])
            line.tags.append(IRCTag(tag, msgid))
            outbound.deliver(line, to: client)
        }
    }

    func line(_ answer: RoomAnswer, in room: Room) -> IRCMessage {
        func note(_ code: String, _ text: String) -> IRCMessage {
            .note("PRIVMSG", code, room.channel, text: text, source: server)
        }
        func fail(_ code: String, _ text: String) -> IRCMessage {
            .fail("PRIVMSG", code, room.channel, text: text, source: server)
        }
        switch answer {
        case .queued(let text, let isUp):
            return note(
                "QUEUED",
                (isUp
                    ? "Your message has not been confirmed yet: "
                    : "Your message is queued and goes when the link is back: ")
                    + MessageText.excerpt(text))
        case .kept(let text, let count):
            return note(
                "QUEUED",
                (count == 1
                    ? "Your message is queued and goes after the restart: "
                    : "\(count) messages of yours are queued and go after the restart, the first: ")
                    + MessageText.excerpt(text))
        case .deliveredLate(let text):
            return note("DELIVERED_LATE", "It arrived after all: " + MessageText.excerpt(text))
        case .notDelivered(let text, let why):
            return fail("CANNOT_DELIVER", "\(why.sentence): " + MessageText.excerpt(text))
        case .notStored(let text, let why): return fail("CANNOT_STORE", why + ": " + MessageText.excerpt(text))
        case .actionRefused(let refusal, let action, let msgid):
            return refusal.line(action == .takeBack ? "REDACT" : "TAGMSG", room.channel, msgid, from: server)
        case .reactionStays(let limit):
            return .note(
                "TAGMSG", "REACTION_NOT_RELAYED", room.channel,
                text: "\(room.settings.url.host) knows \(limit), so people there do not see yours; IRC users do",
                source: server)
        case .notice(let text): return Self.notice(text, in: room, context)
        }
    }

    // MARK: - Members

    func enter(_ member: LocalMember, isHeld: Bool, in room: Room) {
        guard let profile = outbound.sessions[member.client]?.caps.renderingProfile else { return }
        audience.add(member, profile: profile, isHeld: isHeld) { room.locals[$0] }
    }

    func leave(_ member: LocalMember, in room: Room) { audience.remove(member) { room.locals[$0] } }

    /// The client's capabilities have changed.
    func profileChanged(_ member: LocalMember, _ profile: IRCCapabilitySet, in room: Room) {
        audience.add(member, profile: profile, isHeld: member.isHeld) { room.locals[$0] }
    }

    /// Holds lines for the client, or no longer.
    func setHeld(_ member: LocalMember, _ isHeld: Bool, in room: Room) {
        audience.setHeld(member, isHeld) { room.locals[$0] }
    }
}

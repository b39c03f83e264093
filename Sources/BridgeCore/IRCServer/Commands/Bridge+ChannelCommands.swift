import ChatModel
import IRCProtocol
import WireBytes

// JOIN, PART, NAMES, LIST, TOPIC and MODE: entering rooms, leaving them, and how they are. What people do to each other
// there is in Bridge+Moderation.

/// A LIST on its way to a client.
final class RoomListing {
    enum Place {
        /// The rooms, from this one on.
        case open(next: Int)
        /// Those that the template's backend has and nobody has opened.
        case unopened(next: Int)
    }

    let filter: ListFilter
    var place = Place.open(next: 0)
    /// It waits no longer for the backend to say which rooms it has.
    var isImpatient = false

    init(filter: ListFilter) { self.filter = filter }
}

extension Bridge {
    // MARK: - JOIN and PART

    static let noSuchRoom = "No such room; LIST shows them"

    func noSuchChannel(_ channel: String, _ session: IRCSession) {
        let shown = NickMaker.prefix(of: UpstreamSession.printable(channel), maxBytes: 100)
        reply(session.numeric(.errNoSuchChannel, shown.isEmpty ? "*" : shown, Self.noSuchRoom), session)
    }

    func joinReceived(_ channels: String, _ session: IRCSession) {
        // `JOIN 0` leaves them all: RFC 2812 §3.2.1.
        if channels == "0" {
            for id in session.rooms { if let room = room(id) { part(room, reason: nil, isAsked: true, session) } }
        } else {
            for channel in IRCSession.list(channels) { join(channel, session) }
        }
    }

    func join(_ channel: String, _ session: IRCSession) {
        guard session.isAwaitingEntrance else { return tryToJoin(channel, session) }
        // Answers come in the order of what was asked.
        for line in gathering(session, { tryToJoin(channel, session) }) { session.appendLongAnswer(.line(line)) }
    }

    private func tryToJoin(_ channel: String, _ session: IRCSession) {
        guard let room = room(channel: channel, for: session) ?? templateRoom(channel, session),
            session.person != nil, !session.rooms.contains(room.id)
        else { return }
        if let refusal = spellingRefusal(room, as: channel, session) ?? shareRefusal(room, session) {
            return reply(refusal, session)
        }
        if let barrier = barrier(to: room, session) { return reply(barrier, session) }
        if entranceWaits(room, session) { return awaitEntrance(to: room, isAsked: true, session) }
        for other in enterWithOthers(room, session) { pullLongAnswers(other) }
    }

    /// Puts a client into a room, and the person's other clients.
    ///
    /// - Returns: the others.
    func enterWithOthers(_ room: Room, _ session: IRCSession) -> [IRCSession] {
        // The one who asked first, so that the others in the room are told once, and a label is answered.
        enter(room, session)
        // Those who asked for it too have an answer of their own to it.
        let others = sessions(of: session.person).filter {
            $0 !== session && !$0.isArriving && !$0.isAwaitingEntrance(to: room.id)
        }
        for other in others { enter(room, other) }
        return others
    }

    /// Puts a client into a room and tells it what it must know.
    ///
    /// - Parameter isSilent: the client has the room open already.
    func enter(_ room: Room, _ session: IRCSession, isSilent: Bool = false) {
        guard let personID = session.person, !session.rooms.contains(room.id) else { return }
        let isFirst = room.slots.count == 0
        let isNew = !room.slots.contains(personID)
        let newest = Int64(room.recent.lastSequence)
        let backlog = isSilent || room.isLoading ? nil : backlog(of: room, session)
        room.join(
            session.id, person: personID, clientName: session.clientName,
            hasReadMarker: session.caps.contains(.readMarker), receipts: receiptsChoice(of: session),
            isHeld: backlog != nil, context)
        if templateRooms[room.id] != nil, room.locals.count == 1 { templateOpeners[room.id] = personID }
        session.rooms.append(room.id)
        rememberMembership(room, session)
        if !room.isLoading { follow(room, session, from: newest, backlog) }
        if isNew { entered(personID, room, isFirst: isFirst, session) }
        guard !isSilent, let person = context.identities[personID] else { return }
        reply(Channel.join(RoomSpeaker(person), person.realname, in: room, context), session)
        if !topic(of: room).isEmpty { sendTopic(room, session) }
        reply(markerMessage(room.channel, room.marker(of: session.id)), session)
        if !session.caps.contains(.noImplicitNames) { appendNames(of: room, session) }
        syncMetadata(of: room, session)
        context.note(
            .debug, "client-joined", "an IRC user entered a room", ["room": room.settings.name, "nick": person.nick])
        for notice in room.statusNotices(context) + [room.ownStatusNotice(personID, context)].compactMap(\.self) {
            let line = Channel.notice(notice, in: room, context)
            // Unless it has left meanwhile.
            session.appendLongAnswer(
                LongAnswer { [id = room.id, unowned session] in .last(session.rooms.contains(id) ? line : nil) })
        }
        if let backlog { append(backlog, session) }
        tellUntold(room, session)
    }

    /// Takes a client out of a room; whoever must know is told by the caller.
    func leave(_ room: Room, _ session: IRCSession) {
        endFollowing(room.id, session)
        room.leave(session.id, context)
        session.rooms.removeAll { $0 == room.id }
    }

    func part(_ channels: [String], reason: String?, _ session: IRCSession) {
        for channel in channels { part(channel, reason: reason, session) }
    }

    private func part(_ channel: String, reason: String?, _ session: IRCSession) {
        guard let room = room(channel: channel, for: session) else {
            forgetMembership(channel: channel, session)
            return noSuchChannel(channel, session)
        }
        guard session.rooms.contains(room.id) else {
            forgetMembership(channel: channel, session)
            return reply(session.numeric(.errNotOnChannel, room.channel, "You're not in that room"), session)
        }
        part(room, reason: reason, isAsked: true, session)
    }

    /// - Parameter isAsked: the IRC user wanted it: what is said from now on is not for the person's clients.
    func part(_ room: Room, reason: String?, isAsked: Bool = false, _ session: IRCSession) {
        guard let personID = session.person, let person = context.identities[personID] else { return }
        let line = IRCMessage(
            tags: stamp(person),
            source: person.source, command: "PART", params: [room.channel] + (reason.map { [$0] } ?? []))
        for client in sessions(of: personID) {
            if isAsked, client.rooms.contains(room.id) { dropCursor(room, client, for: session) }
            endFollowing(room.id, client)
        }
        if isAsked, let account = person.account {
            forgetMembership(of: account, in: room.storedKey, for: session)
        }
        reply(line, session)
        broadcast(line, in: room, except: session.id)
        for client in sessions(of: personID) { leave(room, client) }
        session.lastLeft = room.id
    }

    // MARK: - NAMES and LIST

    func list(_ filter: ListFilter, _ session: IRCSession) {
        reply(session.numeric(.rplListStart, "Channel", "Users  Name"), session)
        askForTemplateRooms()
        let listing = RoomListing(filter: filter)
        session.appendLongAnswer(
            LongAnswer(of: listing) { [unowned self, unowned session] in
                switch listing.place {
                case .open(let next): openRoomStep(listing, next, session)
                case .unopened(let next): unopenedRoomStep(listing, next, session)
                }
            })
    }

    private func openRoomStep(_ listing: RoomListing, _ next: Int, _ session: IRCSession) -> LongAnswer.Step {
        walkedCount += 1
        guard let room = firstRoom(from: next) else {
            listing.place = .unopened(next: 0)
            return .more(nil)
        }
        listing.place = .open(next: room.id.index + 1)
        let now = context.now.wall.milliseconds
        let facts = ListFilter.Facts(
            channel: room.channel, people: room.memberCount, age: max(0, now - room.createdAt.milliseconds),
            topicAge: room.moderation.topic.map { max(0, now - $0.setAt.milliseconds) })
        guard listing.filter.passes(facts), mayEnter(room, session) else { return .more(nil) }
        return .more(session.numeric(.rplList, room.channel, String(room.memberCount), topic(of: room)))
    }

    func names(_ channels: [String], _ session: IRCSession) {
        guard !channels.isEmpty else {
            return reply(session.numeric(.rplEndOfNames, "*", "End of /NAMES list"), session)
        }
        for channel in channels {
            if let room = room(channel: channel, for: session) {
                appendNames(of: room, session)
            } else {
                let shown = NickMaker.prefix(of: UpstreamSession.printable(channel), maxBytes: 100)
                session.appendLongAnswer(.line(session.numeric(.rplEndOfNames, shown, "End of /NAMES list")))
            }
        }
    }

    /// 353 … 366. The cursor walks the room's slots.
    private func appendNames(of room: Room, _ session: IRCSession) {
        let id = room.id
        var cursor = 0
        session.appendLongAnswer(
            LongAnswer { [unowned self, unowned session] in namesStep(id, &cursor, session) })
    }

    private func namesStep(_ id: RoomID, _ cursor: inout Int, _ session: IRCSession) -> LongAnswer.Step {
        guard let room = room(id) else { return .last(nil) }
        // Room for the names within 512 bytes.
        let budget = 510 - session.serverName.utf8.count - session.displayNick.utf8.count - room.channel.utf8.count - 16
        let withHosts = session.caps.contains(.userhostInNames)
        var names = ""
        names.reserveCapacity(budget)
        while true {
            let before = cursor
            guard let personID = room.slots.next(&cursor) else { break }
            guard let person = context.identities[personID] else { continue }
            let name = room.moderation.prefixes(of: personID) + (withHosts ? person.source : person.nick)
            guard names.isEmpty || names.utf8.count + 1 + name.utf8.count <= budget else {
                cursor = before
                break
            }
            if !names.isEmpty { names += " " }
            names += name
        }
        guard !names.isEmpty else {
            return .last(session.numeric(.rplEndOfNames, room.channel, "End of /NAMES list"))
        }
        return .more(session.numeric(.rplNamReply, "=", room.channel, names))
    }

    // MARK: - TOPIC and MODE

    private func sendTopic(_ room: Room, _ session: IRCSession) {
        reply(session.numeric(.rplTopic, room.channel, topic(of: room)), session)
        // What came from elsewhere came with the room.
        let given = room.settings.topic.isEmpty ? room.moderation.topic : nil
        reply(
            session.numeric(
                .rplTopicWhoTime, room.channel, given?.setBy ?? settings.serverName,
                String((given?.setAt ?? room.createdAt).milliseconds / 1000)), session)
    }

    func topicReceived(_ channel: String, _ text: String?, _ session: IRCSession) {
        if let text { setTopic(channel, to: text, session) } else { readTopic(channel, session) }
    }

    private func readTopic(_ channel: String, _ session: IRCSession) {
        guard let room = room(channel: channel, for: session) else { return noSuchChannel(channel, session) }
        guard !topic(of: room).isEmpty else {
            return reply(session.numeric(.rplNoTopic, room.channel, "No topic is set"), session)
        }
        sendTopic(room, session)
    }

    func mode(_ target: String, _ params: [String], _ session: IRCSession) {
        if target.hasPrefix("#") { return roomMode(target, params, session) }
        guard settings.casemapping.fold(target) == settings.casemapping.fold(session.displayNick) else {
            if context.identities.person(nick: target) == nil {
                let shown = NickMaker.prefix(of: UpstreamSession.printable(target), maxBytes: 64)
                return reply(session.numeric(.errNoSuchNick, shown, "No such nick"), session)
            }
            return reply(session.numeric(.errUsersDontMatch, "Modes of others are their own"), session)
        }
        ownMode(params, session)
    }
}

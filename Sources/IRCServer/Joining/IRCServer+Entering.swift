import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms
import Upstream

// Entering a room, with the replies to JOIN, and leaving it.

extension IRCServer {
    /// Enters a client into a room, and with it the person's other clients.
    ///
    /// - Returns: the others.
    func enterWithOthers(_ room: Room, _ session: IRCSession) -> [IRCSession] {
        // The requesting client first, so that the room sees one JOIN, and a label is answered.
        enter(room, session)
        // Clients with a pending JOIN of their own to the room get their own answer.
        let others = sessions(of: session.person).filter {
            $0 !== session && !$0.isArriving && !$0.isAwaitingJoin(to: room.id)
        }
        for other in others { enter(room, other) }
        return others
    }

    /// Enters a client into a room and sends the replies to JOIN.
    ///
    /// - Parameter isSilent: the client has the room open already.
    func enter(_ room: Room, _ session: IRCSession, isSilent: Bool = false) {
        guard let personID = session.person, !session.rooms.contains(room.id) else { return }
        let isFirst = room.slots.count == 0
        let isNew = !room.slots.contains(personID)
        let newest = Int64(room.lastSequence)
        let backlog = isSilent || room.isLoading ? nil : backlog(of: room, session)
        room.handle(
            .enter(
                personID, clientName: session.clientName, hasReadMarker: session.caps.contains(.readMarker),
                receipts: receiptsChoice(of: session), isHeld: backlog != nil),
            from: session.id, context)
        roomTable.entered(room, by: personID)
        session.entered(room.id)
        rememberMembership(room, session)
        if !room.isLoading { follow(room, session, from: newest, backlog) }
        if isNew { entered(personID, room, isFirst: isFirst, session) }
        guard !isSilent, let person = context.identities[personID] else { return }
        reply(Channel.join(RoomSpeaker(person), person.realname, in: room, context), session)
        if !topic(of: room).isEmpty { sendTopic(room, session) }
        reply(markerMessage(room.channel, room.marker(of: session.id)), session)
        if !session.caps.contains(.noImplicitNames) { appendNames(of: room, session) }
        syncMetadata(of: room, session)
        note(
            .debug, "client-joined", "an IRC user entered a room", of: session,
            ["room": room.settings.name, "nick": person.nick])
        for notice in room.statusNotices(context) + [room.ownStatusNotice(personID, context)].compactMap(\.self) {
            let line = Channel.notice(notice, in: room, context)
            // The client may have left meanwhile.
            session.appendLongAnswer(
                ReplyGenerator { [id = room.id, unowned session] in .last(session.rooms.contains(id) ? line : nil) })
        }
        if let refusal = readOnly(room, session) {
            session.appendLongAnswer(
                ReplyGenerator { [id = room.id, unowned session] in
                    .last(session.rooms.contains(id) ? refusal : nil)
                })
        }
        if let backlog { append(backlog, session) }
        tellUntold(room, session)
    }

    /// Removes a client from a room; notifying others is up to the caller.
    func leave(_ room: Room, _ session: IRCSession) {
        endFollowing(room.id, session)
        room.handle(.leave, from: session.id, context)
        session.left(room.id)
    }

    /// Removes the client's person from the room, with all its clients, and sends PART.
    ///
    /// - Parameter isAsked: a PART of the IRC user: later messages are not for the person's clients.
    func part(_ room: Room, reason: String?, isAsked: Bool = false, _ session: IRCSession) {
        guard let personID = session.person, let person = context.identities[personID] else { return }
        let line = line("PART", by: person, [room.channel] + (reason.map { [$0] } ?? []))
        for client in sessions(of: personID) {
            if !isAsked {
                settleCursor(room, client)
            } else if client.rooms.contains(room.id) {
                dropCursor(room, client, for: session)
            }
            endFollowing(room.id, client)
        }
        if isAsked, let account = person.account {
            forgetMembership(of: account, in: room.storedKey, for: session)
        }
        reply(line, session)
        broadcast(line, in: room, except: session.id)
        for client in sessions(of: personID) { leave(room, client) }
        session.parted(from: room.id)
    }

    func sendTopic(_ room: Room, _ session: IRCSession) {
        reply(.rplTopic, room.channel, topic(of: room), to: session)
        // A topic from the configuration or the backend has no setter and time.
        let given = room.settings.topic.isEmpty ? room.moderation.topic : nil
        reply(
            .rplTopicWhoTime, room.channel, given?.setBy ?? settings.serverName,
            String((given?.setAt ?? room.createdAt).milliseconds / 1000), to: session)
    }

    /// Replies 353 to 366. The cursor walks the room's slots.
    func appendNames(of room: Room, _ session: IRCSession) {
        let id = room.id
        var cursor = 0
        session.appendLongAnswer(
            ReplyGenerator { [unowned self, unowned session] in namesStep(id, &cursor, session) })
    }

    private func namesStep(_ id: RoomID, _ cursor: inout Int, _ session: IRCSession) -> ReplyGenerator.Step {
        guard let room = room(id) else { return .last(nil) }
        // Budget for the names within 512 bytes.
        let budget = 510 - session.serverName.utf8.count - session.displayNick.utf8.count - room.channel.utf8.count - 16
        let withHosts = session.caps.contains(.userhostInNames)
        var names: [UInt8] = []
        names.reserveCapacity(budget)
        while true {
            let before = cursor
            guard let personID = room.slots.next(&cursor) else { break }
            let shown =
                withHosts ? context.identities[personID]?.source : context.identities.nick(of: personID)
            guard let shown else { continue }
            let prefixes = room.moderation.prefixes(of: personID)
            guard names.isEmpty || names.count + 1 + prefixes.utf8.count + shown.utf8.count <= budget else {
                cursor = before
                break
            }
            if !names.isEmpty { names.append(UInt8(ascii: " ")) }
            if !prefixes.isEmpty { names += prefixes.utf8 }
            names += shown.utf8
        }
        guard !names.isEmpty else {
            return .last(session.numeric(.rplEndOfNames, room.channel, "End of /NAMES list"))
        }
        return .more(
            session.numeric(.rplNamReply, "=", room.channel, String(decoding: names, as: UTF8.self)))
    }

    // MARK: - Operators of the room

    /// Gives operator status in its rooms to a person who became an administrator.
    func promote(_ personID: PersonID, _ session: IRCSession) {
        guard let person = context.identities[personID] else { return }
        for room in session.rooms.compactMap({ room($0) }) where room.moderation.setOperator(personID, true) {
            tellRoom(room, promotion(of: person, in: room), by: session)
        }
    }

    private func promotion(of person: Person, in room: Room) -> IRCMessage {
        IRCMessage(
            tags: [.time(context.now.wall)],
            source: settings.serverName, command: "MODE", params: [room.channel, "+o", person.nick])
    }

    /// Gives operator status to a person entering the room, if first in it or an administrator of the bridge.
    ///
    /// - Parameter isFirst: the room was empty, on both sides.
    func entered(_ personID: PersonID, _ room: Room, isFirst: Bool, _ session: IRCSession) {
        room.moderation.used(invitationOf: personID)
        guard isFirst || operators.contains(personID), room.moderation.setOperator(personID, true), !isFirst,
            let person = context.identities[personID]
        else { return }
        broadcast(promotion(of: person, in: room), in: room, except: session.id)
    }
}

import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms
import Upstream

// MODE, KICK, INVITE and TOPIC: moderation of a room.

extension IRCServer {
    /// Bytes of a mask in the ban list.
    static let maxMaskBytes = 200

    /// The room of a moderator's command; nil after a refusal.
    private func moderatedRoom(_ channel: String, _ session: IRCSession) -> Room? {
        guard let room = room(channel: channel, for: session) else {
            noSuchChannel(channel, session)
            return nil
        }
        guard session.rooms.contains(room.id) else {
            notInRoom(room, session)
            return nil
        }
        guard mayModerate(room, session) else {
            notModerating(room, session)
            return nil
        }
        return room
    }

    /// Sends an IRC user's action to all clients in the room, and records it in the room's history.
    private func tellEvent(
        _ room: Room, _ command: String, _ params: [String], by person: Person, _ session: IRCSession
    ) {
        let now = context.now.wall
        let msgid = context.messageID(
            backend: room.settings.backend, room: room.settings.upstreamRoom, sender: nil, id: nil)
        let who = RoomSpeaker(person)
        let line = IRCMessage(
            tags: who.tags(at: now, msgid: msgid), source: person.source, command: command,
            params: [room.channel] + params)
        tellRoom(room, line, by: session)
        room.enterEvent([command] + params, msgid: msgid, by: who, at: now, context)
    }

    // MARK: - MODE

    /// MODE of a room.
    ///
    /// Source: modern.ircdocs.horse, "MODE message", "Channel Modes".
    func roomMode(_ channel: String, _ params: [String], _ session: IRCSession) {
        guard let room = room(channel: channel, for: session) else { return noSuchChannel(channel, session) }
        guard let modes = params.first, !modes.isEmpty else {
            reply(.rplChannelModeIs, room.channel, room.moderation.modeString, to: session)
            return reply(.rplCreationTime, room.channel, String(room.createdAt.milliseconds / 1000), to: session)
        }
        // The ban list is public; clients request it automatically.
        if ["b", "+b", "-b"].contains(modes), params.count == 1 { return listBans(of: room, session) }
        guard let room = moderatedRoom(channel, session), let personID = session.person else { return }
        var changes = RoomModeChanges()
        var rest = params.dropFirst()
        var isSet = true
        var count = 0
        for letter in modes {
            switch letter {
            case "+": isSet = true
            case "-": isSet = false
            default:
                count += 1
                guard count <= Self.maxModeChanges else { continue }
                change(letter, isSet, &rest, room, by: personID, &changes, session)
            }
        }
        guard !changes.isEmpty, let person = context.identities[personID] else { return }
        tellEvent(room, "MODE", changes.params, by: person, session)
    }

    private func change(
        _ letter: Character, _ isSet: Bool, _ rest: inout ArraySlice<String>, _ room: Room, by moderator: PersonID,
        _ changes: inout RoomModeChanges, _ session: IRCSession
    ) {
        switch letter {
        case "o", "v":
            guard let nick = rest.popFirst() else { return needMore(session) }
            guard let target = member(nick, of: room, session) else { return }
            let isNews =
                letter == "o"
                ? room.moderation.setOperator(target.id, isSet) : room.moderation.setVoiced(target.id, isSet)
            if isNews { changes.add(letter, isSet, target.person.nick) }
        case "b":
            guard let text = rest.popFirst() else { return listBans(of: room, session) }
            ban(text, isSet, room, by: moderator, &changes, session)
        case "n":
            // Always set: a request to set it changes nothing.
            if !isSet {
                reply(.errUnknownMode, "n", "is always set: nobody speaks in a room without being in it", to: session)
            }
        default:
            guard let flag = RoomModeration.Flag(rawValue: letter) else {
                return reply(
                    .errUnknownMode, PrintableText.word(String(letter)), "is no mode of \(room.channel)", to: session)
            }
            if room.moderation.set(flag, isSet, isLasting: operators.contains(moderator)) {
                changes.add(letter, isSet, nil)
            }
        }
    }

    private func needMore(_ session: IRCSession) {
        needMoreParams("MODE", session)
    }

    /// An IRC user in the room; nil after a refusal.
    private func member(_ nick: String, of room: Room, _ session: IRCSession) -> (id: PersonID, person: Person)? {
        guard let (id, person) = context.identities.person(nick: nick) else {
            reply(.errNoSuchNick, PrintableText.word(nick), "No such nick", to: session)
            return nil
        }
        guard room.slots.contains(id) else {
            reply(.errUserNotInChannel, person.nick, room.channel, "They aren't in that room", to: session)
            return nil
        }
        guard person.isLocal else {
            reply(
                .errChanOPrivsNeeded, room.channel,
                "\(person.nick) is on \(person.host), where IRC operators have no say", to: session)
            return nil
        }
        return (id, person)
    }

    private func ban(
        _ text: String, _ isSet: Bool, _ room: Room, by moderator: PersonID, _ changes: inout RoomModeChanges,
        _ session: IRCSession
    ) {
        let clean = PrintableText.of(text, maxBytes: Self.maxMaskBytes)
        guard !clean.isEmpty, !clean.utf8.contains(0x20), !clean.hasPrefix(":") else { return }
        let mask = PersonMask(IRCMask(IRCMask.hostmask(clean), casemapping: settings.casemapping))
        guard isSet else {
            if let removed = room.moderation.unban(mask) { changes.add("b", false, removed) }
            return
        }
        let outcome = room.moderation.ban(
            RoomModeration.Ban(
                mask: mask, setBy: session.displayNick, setAt: context.now.wall,
                isLasting: operators.contains(moderator)))
        switch outcome {
        case .added: changes.add("b", true, mask.text)
        case .known: break
        case .full:
            reply(.errBanListFull, room.channel, mask.text, "The ban list is full", to: session)
        }
    }

    private func listBans(of room: Room, _ session: IRCSession) {
        for ban in room.moderation.bans {
            session.appendLine(
                .rplBanList, room.channel, ban.mask.text, ban.setBy, String(ban.setAt.milliseconds / 1000))
        }
        session.appendLine(.rplEndOfBanList, room.channel, "End of channel ban list")
    }

    // MARK: - KICK

    /// Source: modern.ircdocs.horse, "KICK message".
    func kick(_ channels: [String], _ nicks: [String], reason: String?, _ session: IRCSession) {
        guard channels.count == 1 || channels.count == nicks.count else {
            return needMoreParams("KICK", session)
        }
        for (index, nick) in nicks.enumerated() {
            let channel = channels.count == 1 ? channels[0] : channels[index]
            guard let room = moderatedRoom(channel, session) else {
                // One refusal per room is enough.
                if channels.count == 1 { return }
                continue
            }
            guard let target = member(nick, of: room, session), let kicker = session.person,
                let person = context.identities[kicker]
            else { continue }
            let why = reason.map { IdentityMap.realname($0, maxBytes: Self.maxKickBytes) }
            let clients = sessions(of: target.id).filter { $0.rooms.contains(room.id) }
            // Later messages are not for them.
            for client in clients { endFollowing(room.id, client) }
            if let account = target.person.account {
                dropCursors(of: account, in: room, for: session)
                forgetMembership(of: account, in: room.storedKey, for: session)
            }
            tellEvent(
                room, "KICK", [target.person.nick, why.flatMap { $0.isEmpty ? nil : $0 } ?? person.nick], by: person,
                session)
            for client in clients { leave(room, client) }
            context.note(
                .info, "client-kicked", "an IRC user was removed from a room",
                ["room": room.settings.name, "nick": target.person.nick, "by": person.nick])
        }
    }

    // MARK: - INVITE

    func inviteReceived(_ nick: String?, to channel: String?, _ session: IRCSession) {
        guard let nick else { return listInvitations(session) }
        guard let channel else { return needMoreParams("INVITE", session) }
        invite(nick, to: channel, session)
    }

    /// Source: modern.ircdocs.horse, "INVITE message"; IRCv3 invite-notify.
    private func invite(_ nick: String, to channel: String, _ session: IRCSession) {
        guard let room = room(channel: channel, for: session) else { return noSuchChannel(channel, session) }
        guard let personID = session.person, let person = context.identities[personID],
            session.rooms.contains(room.id)
        else {
            return notInRoom(room, session)
        }
        if room.moderation.has(.inviteOnly), !mayModerate(room, session) {
            return notModerating(room, session)
        }
        guard let (id, target) = context.identities.person(nick: nick), target.isPresent else {
            return reply(.errNoSuchNick, PrintableText.word(nick), "No such nick", to: session)
        }
        guard !room.slots.contains(id) else {
            return reply(.errUserOnChannel, target.nick, room.channel, "is already in that room", to: session)
        }
        let guests = sessions(of: id)
        guard let guest = guests.first else {
            return reply(
                .errNoSuchNick, target.nick,
                "This is a user of the chat backend (\(target.host)), which takes no invitations from here",
                to: session)
        }
        guard mayEnter(room, guest) else {
            return reply(
                .errInviteOnlyChan, room.channel, "The account of \(target.nick) may not enter this room", to: session)
        }
        room.moderation.invite(id)
        reply(.rplInviting, target.nick, room.channel, to: session)
        if let away = target.away { reply(.rplAway, target.nick, away, to: session) }
        let told = line("INVITE", by: person, [target.nick, room.channel])
        for client in guests { deliver(told, to: client.id) }
        broadcast(told, in: room, except: session.id)
    }

    /// Lists the rooms with an open invitation of the client's user.
    private func listInvitations(_ session: IRCSession) {
        if let person = session.person {
            for room in rooms where room.moderation.isInvited(person) {
                session.appendLine(.rplInviteList, room.channel)
            }
        }
        session.appendLine(.rplEndOfInviteList, "End of /INVITE list")
    }

    // MARK: - TOPIC

    /// A topic from the configuration or the backend is fixed; other rooms take one from IRC, which is neither
    /// persisted nor sent upstream.
    ///
    /// Source: modern.ircdocs.horse, "TOPIC message".
    func setTopic(_ channel: String, to text: String, _ session: IRCSession) {
        guard let room = room(channel: channel, for: session) else { return noSuchChannel(channel, session) }
        guard room.settings.topic.isEmpty, room.moderation.topic?.isFromBackend != true else {
            return reply(
                .errChanOPrivsNeeded, room.channel,
                "The topic of this room comes from the bridge's configuration or the backend", to: session)
        }
        guard session.rooms.contains(room.id), let personID = session.person,
            let person = context.identities[personID]
        else {
            return notInRoom(room, session)
        }
        guard !room.moderation.has(.protectedTopic) || mayModerate(room, session) else {
            return notModerating(room, session)
        }
        let clean = Self.cleanTopic(text)
        room.moderation.setTopic(clean, by: person.source, at: context.now.wall)
        tellEvent(room, "TOPIC", [clean], by: person, session)
    }
}

extension PersonMask {
    package init(_ mask: IRCMask) { self.init(text: mask.text, key: mask.key) { mask.matches($0) } }
}

/// The effective changes of a MODE command, as they are announced.
struct RoomModeChanges {
    private var modes = ""
    private var arguments: [String] = []
    private var isSetting: Bool?

    var isEmpty: Bool { modes.isEmpty }
    var params: [String] { [modes] + arguments }

    mutating func add(_ letter: Character, _ isSet: Bool, _ argument: String?) {
        if isSetting != isSet { modes += isSet ? "+" : "-" }
        isSetting = isSet
        modes.append(letter)
        if let argument { arguments.append(argument) }
    }
}

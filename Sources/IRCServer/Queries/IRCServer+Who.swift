import BridgeTypes
import IRCProtocol
import Identities
import Rooms

// WHO: the users of a room, one user by nick, or those in the client's own rooms that match a pattern.

extension IRCServer {
    /// Source: modern.ircdocs.horse, "WHO message"; IRCv3 WHOX.
    func who(_ mask: String, _ options: String?, _ session: IRCSession) {
        let whox = options.flatMap { IRCWhoxRequest(parsing: $0) }
        let operatorsOnly = whox?.flags.contains("o") ?? (options == "o")
        if mask.hasPrefix("#") {
            if let room = room(channel: mask, for: session) {
                let (id, mask) = (room.id, room.channel)
                var cursor = 0
                return session.appendLongAnswer(
                    ReplyGenerator { [unowned self, unowned session] in
                        whoStep(id, &cursor, mask, whox, operatorsOnly: operatorsOnly, session)
                    })
            }
            return endOfWho(mask, session)
        }
        // `WHO 0` is the form of old clients for all users.
        let pattern = IRCMask(mask == "0" ? "*" : mask, casemapping: settings.casemapping)
        if pattern.isPattern, !isService(mask) {
            var search = WhoSearch(
                rooms: Array(session.rooms), mask: pattern, shown: mask, whox: whox, operatorsOnly: operatorsOnly,
                includesItself: session.rooms.isEmpty)
            return session.appendLongAnswer(
                ReplyGenerator { [unowned self, unowned session] in whoStep(&search, session) })
        }
        if let (id, person) = context.identities.person(nick: mask), person.isPresent,
            !operatorsOnly || operators.contains(id)
        {
            let room = visibleRooms(of: id, person, session).first
            session.appendLongAnswer(.line(whoLine(id, person, in: room, whox, session)))
        }
        endOfWho(mask, session)
    }

    private func endOfWho(_ mask: String, _ session: IRCSession) {
        session.appendLine(.rplEndOfWho, PrintableText.word(mask), "End of /WHO list")
    }

    // MARK: - Steps

    /// 352 or 354 … 315. The cursor walks the room's slots.
    private func whoStep(
        _ id: RoomID, _ cursor: inout Int, _ mask: String, _ whox: IRCWhoxRequest?, operatorsOnly: Bool,
        _ session: IRCSession
    ) -> ReplyGenerator.Step {
        guard let room = room(id) else { return .last(nil) }
        while let personID = room.slots.next(&cursor) {
            walk.spend()
            if let person = context.identities[personID], !operatorsOnly || operators.contains(personID) {
                return .more(whoLine(personID, person, in: room, whox, session))
            }
            guard !walk.isSpent else { return .more(nil) }
        }
        return .last(session.numeric(.rplEndOfWho, mask, "End of /WHO list"))
    }

    private func whoStep(_ search: inout WhoSearch, _ session: IRCSession) -> ReplyGenerator.Step {
        if search.includesItself {
            search.includesItself = false
            if let id = session.person, let person = context.identities[id], fits(id, person, search) {
                return .more(whoLine(id, person, in: nil, search.whox, session))
            }
        }
        while search.place < search.rooms.count {
            guard let room = room(search.rooms[search.place]), session.rooms.contains(room.id) else {
                search.place += 1
                search.cursor = 0
                continue
            }
            while let id = room.slots.next(&search.cursor) {
                walk.spend()
                if let person = context.identities[id], fits(id, person, search), !wasFound(id, search) {
                    return .more(whoLine(id, person, in: room, search.whox, session))
                }
                guard !walk.isSpent else { return .more(nil) }
            }
            search.place += 1
            search.cursor = 0
        }
        return .last(session.numeric(.rplEndOfWho, PrintableText.word(search.shown), "End of /WHO list"))
    }

    private func fits(_ id: PersonID, _ person: Person, _ search: WhoSearch) -> Bool {
        guard !search.operatorsOnly || operators.contains(id) else { return false }
        return search.mask.matches(person.nick) || search.mask.matches(person.host)
            || search.mask.matches(person.source) || search.mask.matches(person.realname)
    }

    /// A user in several rooms is listed with the first.
    private func wasFound(_ id: PersonID, _ search: WhoSearch) -> Bool {
        walk.spend(search.place)
        return search.rooms[..<search.place].contains { room($0)?.slots.contains(id) ?? false }
    }

    // MARK: - Lines

    /// `H` or `G`, `*` for an operator, `B` for a bot, and the prefixes in the room.
    private func whoFlags(_ id: PersonID, _ person: Person, in room: Room?) -> String {
        (person.away == nil ? "H" : "G") + (operators.contains(id) ? "*" : "") + (person.isBot ? "B" : "")
            + (room?.moderation.prefixes(of: id) ?? "")
    }

    func whoLine(
        _ id: PersonID, _ person: Person, in room: Room?, _ whox: IRCWhoxRequest?, _ session: IRCSession
    ) -> IRCMessage {
        let flags = whoFlags(id, person, in: room)
        let channel = room?.channel ?? "*"
        let server = person.isLocal ? settings.serverName : person.host
        guard let whox else {
            return session.numeric(
                .rplWhoReply, channel, person.ident, person.host, server, person.nick, flags,
                "\(person.isLocal ? 0 : 1) \(person.realname)")
        }
        var params = [session.displayNick]
        for field in whox.fields {
            switch field {
            case .token: params.append(whox.token ?? "0")
            case .channel: params.append(channel)
            case .user: params.append(person.ident)
            // The address is in WHOIS, for clients that may see it.
            case .ip: params.append("255.255.255.255")
            case .host: params.append(person.host)
            case .server: params.append(server)
            case .nick: params.append(person.nick)
            case .flags: params.append(flags)
            case .hopCount: params.append(person.isLocal ? "0" : "1")
            case .idle: params.append(String(idleSeconds(person)))
            case .account: params.append(person.account ?? "0")
            case .opLevel: params.append("n/a")
            case .realname: params.append(person.realname)
            }
        }
        return IRCMessage(source: settings.serverName, numeric: .rplWhoSpcRpl, params: params)
    }
}

/// A WHO with a pattern in progress.
struct WhoSearch {
    /// The client's rooms when it asked.
    var rooms: [RoomID]
    /// The index of the next one.
    var place = 0
    /// The position among that room's slots.
    var cursor = 0
    var mask: IRCMask
    /// The mask as requested.
    var shown: String
    var whox: IRCWhoxRequest?
    var operatorsOnly: Bool
    /// The client itself, where it is in no room.
    var includesItself: Bool
}

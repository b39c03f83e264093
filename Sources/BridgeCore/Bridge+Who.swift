import IRCProtocol

// WHO: of a room, of one nick, or of everybody whom a mask fits.

/// Who is asked for by a mask: the people of the rooms that the asker shares with them.
///
/// Nobody is found by a mask who is in none of the asker's rooms, as if everybody had mode +i; a nick that is known finds
/// its holder anywhere. A walk through ten thousand people is one of many steps, like every long answer.
struct WhoSearch {
    /// People looked at in one step. With ``bytesCharged(for:)`` this bounds the time until somebody else has a turn.
    static let peoplePerStep = 256

    /// The rooms still to be walked, and before them those that were: whoever is in one of these was looked at there.
    var rooms: [RoomID]
    var roomIndex = 0
    var cursor = 0
    var pattern: IRCGlob
    var mask: String
    var whox: IRCWhoxRequest?

    /// What looking at so many people counts for in a long answer's window: about the time that queueing so many bytes
    /// takes, so that a mask that fits nobody does not hold up the others.
    static func bytesCharged(for people: Int) -> Int { people * 16 }
}

extension Bridge {
    func who(_ mask: String, _ whox: IRCWhoxRequest?, _ session: IRCSession) {
        let shown = NickMaker.prefix(of: UpstreamSession.printable(mask), maxBytes: 100)
        let end = shown.isEmpty ? "*" : shown
        if mask.hasPrefix("#") {
            if let room = room(channel: mask), mayEnter(room, session) {
                session.appendLongAnswer(.who(room.id, cursor: 0, mask: end, whox: whox))
                return
            }
        } else if let (_, person) = context.identities.person(nick: mask) {
            let channel = visibleChannels(of: person).first ?? "*"
            session.appendLongAnswer(.line(whoLine(person, channel: channel, whox, session)))
        } else if mask == "0" || IRCGlob.isPattern(mask) {
            // RFC 2812 has 0 for everybody.
            let pattern = IRCGlob(mask == "0" ? "*" : mask, casemapping: settings.casemapping)
            session.appendLongAnswer(
                .whoMask(WhoSearch(rooms: Array(session.rooms), pattern: pattern, mask: end, whox: whox)))
            return
        }
        session.appendLongAnswer(.line(session.numeric(.rplEndOfWho, end, "End of /WHO list")))
    }

    /// The next person whom the mask fits, or the end.
    func whoMaskStep(_ search: WhoSearch, _ session: IRCSession) -> (IRCMessage?, LongAnswer?) {
        var search = search
        var looked = 0
        defer { session.undrainedBytes += WhoSearch.bytesCharged(for: looked) }
        while search.roomIndex < search.rooms.count {
            guard let room = room(search.rooms[search.roomIndex]), session.rooms.contains(room.id) else {
                search.roomIndex += 1
                search.cursor = 0
                continue
            }
            while let personID = room.slots.next(&search.cursor) {
                looked += 1
                if let person = context.identities[personID], isFound(person, by: search.pattern),
                    !search.rooms[..<search.roomIndex].contains(where: { self.room($0)?.slots.contains(personID) == true })
                {
                    return (whoLine(person, channel: room.channel, search.whox, session), .whoMask(search))
                }
                if looked >= WhoSearch.peoplePerStep { return (nil, .whoMask(search)) }
            }
            search.roomIndex += 1
            search.cursor = 0
        }
        return (session.numeric(.rplEndOfWho, search.mask, "End of /WHO list"), nil)
    }

    /// A mask is compared with whatever a WHO line shows of a person's names, as clients expect of it.
    private func isFound(_ person: Person, by pattern: IRCGlob) -> Bool {
        pattern.matches(person.nick) || pattern.matches(person.realname) || pattern.matches(person.source)
            || pattern.matches(person.host)
    }
}

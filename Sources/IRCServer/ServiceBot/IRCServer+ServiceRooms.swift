import BridgeTypes
import ChatModel
import HTTPProtocol
import IRCProtocol
import Identities
import Rooms
import Upstream
import WireBytes

// Service commands for rooms: the list, link states, people, and readers of the user's messages.

extension IRCServer {

    private func append(_ listing: ServiceListing, _ session: IRCSession) {
        var rest = listing
        session.appendLongAnswer(
            ReplyGenerator { [unowned self, unowned session] in
                let (line, next) = serviceStep(rest, session)
                guard let next else { return .last(line) }
                rest = next
                return .more(line)
            })
    }

    /// One line of a listing, and the rest of the listing.
    private func serviceStep(_ listing: ServiceListing, _ session: IRCSession) -> (IRCMessage?, ServiceListing?) {
        switch listing {
        case .rooms(let next, let count): roomStep(next, count, session)
        case .unopenedRooms(let next, let count): unopenedRoomStep(next, count, session)
        case .status(let next, let line): statusStep(next, line, session)
        case .people(let id, let cursor, let isUpstream, let begun):
            peopleStep(id, cursor, isUpstream: isUpstream, begun, session)
        case .line(let line): (line, nil)
        }
    }

    // MARK: - rooms

    func listRooms(_ session: IRCSession) {
        askForTemplateRooms()
        append(.rooms(next: 0, count: 0), session)
    }

    private func roomStep(_ next: Int, _ count: Int, _ session: IRCSession) -> (IRCMessage?, ServiceListing?) {
        walk.spend()
        guard let room = roomTable.first(from: next) else { return (nil, .unopenedRooms(next: 0, count: count)) }
        let rest = room.id.index + 1
        guard mayEnter(room, session) else { return (nil, .rooms(next: rest, count: count)) }
        let people = room.memberCount == 0 ? "nobody" : Self.counted(room.memberCount, "person", "people")
        let you = session.rooms.contains(room.id) ? ", you among them" : ""
        let text = "\(room.channel): \(people)\(you); \(linkInShort(room))"
        return (serviceLine(text, to: session), .rooms(next: rest, count: count + 1))
    }

    private func unopenedRoomStep(_ next: Int, _ count: Int, _ session: IRCSession) -> (IRCMessage?, ServiceListing?) {
        walk.spend()
        guard let listing = directory.listing, settings.template != nil, next < listing.entries.count else {
            let text =
                count == 0
                ? "There is no room that you may enter." : "\(Self.counted(count, "room", "rooms")). JOIN enters one."
            return (serviceLine(text, to: session), nil)
        }
        guard let entry = unopenedRoom(listing.entries[next], session) else {
            return (nil, .unopenedRooms(next: next + 1, count: count))
        }
        return (
            serviceLine("\(entry.channel): not open; whoever enters it opens it", to: session),
            .unopenedRooms(next: next + 1, count: count + 1)
        )
    }

    private func linkInShort(_ room: Room) -> String {
        if room.link.isUp { return "linked to \(room.settings.url.host)" }
        if room.link.state == .stopped { return "linked to \(room.settings.url.host) while somebody is there" }
        return "no link to \(room.settings.url.host)"
    }

    // MARK: - status

    func status(_ name: String?, _ session: IRCSession) {
        if let name {
            guard let room = serviceRoom(name, session) else { return }
            for line in statusLines(of: room, session) { say(line, to: session) }
            return
        }
        let seconds = Int(clamping: max(0, context.now.wall.milliseconds - startedAt.milliseconds) / 1000)
        say(
            "chatbridge \(settings.version) on \(settings.serverName), running for \(PrintableText.spoken(seconds: seconds)); "
                + "\(Self.counted(counts.clients, "IRC client is", "IRC clients are")) here.", to: session)
        if context.isDurable, context.ledger.condition != .sound {
            say("The store fails: messages of now may be lost at a restart.", to: session)
        }
        append(.status(next: 0, line: 0), session)
    }

    private func statusStep(_ next: Int, _ index: Int, _ session: IRCSession) -> (IRCMessage?, ServiceListing?) {
        walk.spend()
        guard let room = roomTable.first(from: next) else { return (nil, nil) }
        let nextRoom = ServiceListing.status(next: room.id.index + 1, line: 0)
        guard mayEnter(room, session) else { return (nil, nextRoom) }
        let budget = serviceBudget(for: session)
        let lines = statusLines(of: room, session).flatMap { IRCTextSplitter.split($0, budget: budget) }
        guard lines.indices.contains(index) else { return (nil, nextRoom) }
        return (serviceLine(lines[index], to: session), .status(next: room.id.index, line: index + 1))
    }

    /// The line of the room, and one for the user's own link there, if that has trouble.
    private func statusLines(of room: Room, _ session: IRCSession) -> [String] {
        let host = room.settings.url.host
        let waiting = room.waitingCount
        let messages = Self.counted(waiting, "message", "messages")
        var text: String
        if room.link.isUp {
            text = "linked to \(host)."
            if waiting > 0 { text += " \(messages) on the way." }
        } else if let outage = room.outage {
            let seconds = Int((context.now.monotonic - outage.since) / .seconds(1))
            text = "no link to \(host) for \(PrintableText.spoken(seconds: seconds)): \(outage.reason)."
            if let retryAt = room.link.retryAt, room.link.state == .waiting {
                let wait = Int(max(.zero, retryAt - context.now.monotonic) / .seconds(1))
                text += " The next try is in \(PrintableText.spoken(seconds: wait))."
            }
            if waiting > 0 { text += " \(messages) \(waiting == 1 ? "waits" : "wait")." }
        } else if room.link.state == .stopped {
            text = "not linked; the link to \(host) is there while somebody is in the room."
        } else {
            text = "being linked to \(host)." + (waiting > 0 ? " \(messages) \(waiting == 1 ? "waits" : "wait")." : "")
        }
        if isOperators(session) {
            if room.link.failures > 0 {
                text += " \(Self.counted(room.link.failures, "try", "tries")) failed in a row."
            }
            let dropped = room.droppedFrames.values.reduce(0, +)
            if dropped > 0 { text += " \(Self.counted(dropped, "frame was", "frames were")) not understood." }
        }
        let own = session.person.flatMap { room.ownStatusNotice($0, context) }
        return ["\(room.channel): \(text)"]
            + (own.map { ["\(room.channel): \($0)"] } ?? [])
    }

    // MARK: - who

    func listPeople(_ name: String?, _ session: IRCSession) {
        guard let name = name ?? (session.rooms.count == 1 ? room(session.rooms[0])?.channel : nil) else {
            return say("Of which room? Say who <#room>.", to: session)
        }
        guard let room = serviceRoom(name, session) else { return }
        append(.people(room.id, cursor: 0, isUpstream: false, begun: ""), session)
    }

    private func peopleStep(
        _ id: RoomID, _ start: Int, isUpstream: Bool, _ begun: String, _ session: IRCSession
    ) -> (IRCMessage?, ServiceListing?) {
        guard let room = room(id) else { return (nil, nil) }
        let head = "On \(isUpstream ? room.settings.url.host : "IRC"): "
        let headCount = head.utf8.count
        var text = begun.isEmpty ? head : begun
        let budget = serviceBudget(for: session)
        var cursor = start
        func rest(from cursor: Int, _ begun: String = "") -> ServiceListing {
            .people(id, cursor: cursor, isUpstream: isUpstream, begun: begun)
        }
        while true {
            let before = cursor
            guard let personID = room.slots.next(&cursor) else {
                return (
                    text.utf8.count > headCount ? serviceLine(text, to: session) : nil,
                    isUpstream
                        ? endOfPeople(room, session)
                        : .people(id, cursor: 0, isUpstream: true, begun: "")
                )
            }
            walk.spend()
            if let person = context.identities[personID], person.isLocal == !isUpstream {
                let name = described(personID, person, in: room, session)
                guard text.utf8.count == headCount || text.utf8.count + 2 + name.utf8.count <= budget else {
                    return (serviceLine(text, to: session), rest(from: before))
                }
                text += (text.utf8.count == headCount ? "" : ", ") + name
            }
            guard !walk.isSpent else { return (nil, rest(from: cursor, text)) }
        }
    }

    private func endOfPeople(_ room: Room, _ session: IRCSession) -> ServiceListing? {
        let people = room.memberCount == 0 ? "Nobody" : Self.counted(room.memberCount, "person", "people")
        return serviceLine("\(people) in \(room.channel).", to: session).map { .line($0) }
    }

    /// A person's description: `Remy (Remy R., away, typing)`.
    private func described(_ id: PersonID, _ person: Person, in room: Room, _ session: IRCSession) -> String {
        var facts: [String] = []
        // The realname of an IRC user rarely adds to the nick.
        if !person.isLocal, !person.realname.isEmpty, person.realname != person.nick { facts.append(person.realname) }
        if person.away != nil { facts.append("away") }
        if room.isTyping(id, person) { facts.append("typing") }
        if isMuted(person, for: session) { facts.append("muted") }
        let nick = room.moderation.prefixes(of: id) + person.nick
        return facts.isEmpty ? nick : "\(nick) (\(facts.joined(separator: ", ")))"
    }

    // MARK: - seen

    /// Readers named in one answer.
    private static let maxReadersNamed = 100

    func seen(_ name: String, _ session: IRCSession) {
        guard let room = serviceRoom(name, session) else { return }
        guard session.rooms.contains(room.id), let member = room.locals[session.id] else {
            return say("You are not in \(room.channel).", to: session)
        }
        let waiting = room.waitingCount(of: member.puppet)
        if waiting > 0 {
            say(
                "\(Self.counted(waiting, "message of yours waits", "messages of yours wait")) for \(room.settings.url.host).",
                to: session)
        }
        guard let newest = room.newest(by: member.puppet) else {
            return say("Of what you said in \(room.channel) nothing is known here.", to: session)
        }
        say("Your newest message in \(room.channel): \(described(newest))", to: session)
        let readers = room.readers(of: member, context)
        guard !readers.isEmpty else { return say("Nobody has told of having got or read any.", to: session) }
        for (words, place) in [("Read", \ReceiptNotices.Told.read), ("Got", \.delivered)] {
            let all = readers.filter { reader in
                let told = reader.told
                // A message that was read was delivered, too.
                return told[keyPath: place] >= 0 && (words == "Read" || told.delivered > told.read)
            }
            let upToNewest = all.filter { $0.told[keyPath: place] >= newest.sequence }
            if !upToNewest.isEmpty { sayLater("\(words) by \(Self.listed(upToNewest.map(\.name))).", to: session) }
            let earlier = all.filter { $0.told[keyPath: place] < newest.sequence }
            let groups = Dictionary(grouping: earlier) { $0.told[keyPath: place] }
            for (sequence, group) in groups.sorted(by: { $0.key > $1.key }).prefix(Self.maxPlacesNamed) {
                let upTo = room.entry(sequence: sequence).map { ", \(described($0))" } ?? ""
                sayLater("\(words) by \(Self.listed(group.map(\.name))) up to an earlier one\(upTo)", to: session)
            }
        }
    }

    /// Older messages with readers up to them, in one answer.
    private static let maxPlacesNamed = 10

    private func described(_ entry: RecentLog.Entry) -> String {
        let words = entry.isTakenBack ? "(taken back)" : "\"\(entry.excerpt)\""
        return "\(words), at \(ServiceReading.time(entry.at, now: context.now.wall)) UTC."
    }

    private static func listed(_ names: [String]) -> String {
        let shown = names.prefix(maxReadersNamed).joined(separator: ", ")
        let more = names.count - maxReadersNamed
        return more > 0 ? "\(shown) and \(more) more" : shown
    }

    // MARK: - reconnect

    func reconnect(_ name: String, _ session: IRCSession) {
        guard let room = serviceRoom(name, session) else { return }
        // A login waiting for its next attempt delays the room's link.
        serverWishes.append(.retryLogin(at: room.settings.backend))
        let outcome = room.reconnect("an administrator asked for a new link", context)
        say(outcome.sentence(room.channel) + ".", to: session)
        guard outcome != .underWay, outcome != .disabled else { return }
        note(
            .info, "link-renewed", "an administrator asked for a new link", of: session,
            ["room": room.settings.name, "nick": session.displayNick])
    }
}

/// A listing of the service that is being sent to a client.
enum ServiceListing {
    /// Rooms from this one on, and the number listed so far.
    case rooms(next: Int, count: Int)
    /// Rooms of the template's backend that are not open.
    case unopenedRooms(next: Int, count: Int)
    /// The states of the rooms from this one on; of the first, from this line on.
    case status(next: Int, line: Int)
    /// The people of a room on one side, from a slot on, and the beginning of their line.
    case people(RoomID, cursor: Int, isUpstream: Bool, begun: String)
    /// The total, as a finished line.
    case line(IRCMessage)
}

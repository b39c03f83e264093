import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms

// NAMES, LIST, TOPIC and MODE: a room's state. Its moderation is in IRCServer+Moderation.

extension IRCServer {
    // MARK: - NAMES and LIST

    func list(_ filter: ListFilter, _ session: IRCSession) {
        reply(.rplListStart, "Channel", "Users  Name", to: session)
        askForTemplateRooms()
        let listing = RoomListing(filter: filter)
        session.appendLongAnswer(
            ReplyGenerator(of: listing) { [unowned self, unowned session] in
                switch listing.place {
                case .open(let next): openRoomStep(listing, next, session)
                case .unopened(let next): unopenedRoomStep(listing, next, session)
                }
            })
    }

    private func openRoomStep(_ listing: RoomListing, _ next: Int, _ session: IRCSession) -> ReplyGenerator.Step {
        walk.spend()
        guard let room = roomTable.first(from: next) else {
            listing.listedOpenRooms()
            return .more(nil)
        }
        listing.listed(openRoom: room.id.index)
        let now = context.now.wall.milliseconds
        let facts = ListFilter.Facts(
            channel: room.channel, people: room.memberCount, age: max(0, now - room.createdAt.milliseconds),
            topicAge: room.moderation.topic.map { max(0, now - $0.setAt.milliseconds) })
        guard listing.filter.passes(facts), mayEnter(room, session) else { return .more(nil) }
        return .more(session.numeric(.rplList, room.channel, String(room.memberCount), topic(of: room)))
    }

    func names(_ channels: [String], _ session: IRCSession) {
        guard !channels.isEmpty else {
            return reply(.rplEndOfNames, "*", "End of /NAMES list", to: session)
        }
        for channel in channels {
            if let room = room(channel: channel, for: session) {
                appendNames(of: room, session)
            } else {
                let shown = PrintableText.of(channel, maxBytes: 100)
                session.appendLine(.rplEndOfNames, shown, "End of /NAMES list")
            }
        }
    }

    // MARK: - TOPIC and MODE

    func topicReceived(_ channel: String, _ text: String?, _ session: IRCSession) {
        if let text { setTopic(channel, to: text, session) } else { readTopic(channel, session) }
    }

    private func readTopic(_ channel: String, _ session: IRCSession) {
        guard let room = room(channel: channel, for: session) else { return noSuchChannel(channel, session) }
        guard !topic(of: room).isEmpty else {
            return reply(.rplNoTopic, room.channel, "No topic is set", to: session)
        }
        sendTopic(room, session)
    }

    func mode(_ target: String, _ params: [String], _ session: IRCSession) {
        if target.hasPrefix("#") { return roomMode(target, params, session) }
        guard settings.casemapping.fold(target) == settings.casemapping.fold(session.displayNick) else {
            if context.identities.person(nick: target) == nil {
                let shown = PrintableText.of(target, maxBytes: 64)
                return reply(.errNoSuchNick, shown, "No such nick", to: session)
            }
            return reply(.errUsersDontMatch, "Modes of others are their own", to: session)
        }
        ownMode(params, session)
    }
}

import BridgeTypes
import ChatModel
import IRCServer
import Identities
import Rooms
import Upstream

// What an administrator asks of a running bridge. Each verb routes to the owner; rooms go by their configured names or
// channels.

extension Bridge {
    private func room(named name: String) -> Room? {
        let named = rooms.filter { $0.settings.name == name }
        // One that closes may have the name too.
        return named.first { !roomTable.isRetired($0) } ?? named.first ?? irc.openRoom(channel: name)
    }

    /// The configured name of an open room, from that or its channel; nil: there is no such room.
    package func roomName(_ name: String) -> String? { room(named: name)?.settings.name }

    /// The names of the open rooms.
    package var roomNames: [String] { rooms.map(\.settings.name) }

    /// The configured name of a room or of an own link's room.
    package func roomName(of link: RoomID) -> String? {
        room(link)?.settings.name ?? roomTable.ownLink(link)?.room.settings.name
    }

    /// Nil: there is no such room.
    package func reconnect(_ name: String, now: Now) -> UpstreamSession.Reopening? {
        context.now = now
        guard let room = room(named: name) else { return nil }
        retryLogin(room.settings.backend, now: now)
        return room.reconnect("an administrator asked for a new link", context)
    }

    /// Closes a room's link until ``enable(_:now:)``. Nil: there is no such room; false: it is disabled already.
    package func disable(_ name: String, now: Now) -> Bool? {
        context.now = now
        return room(named: name).map { $0.disable(context) }
    }

    package func enable(_ name: String, now: Now) -> Bool? {
        context.now = now
        return room(named: name).map { $0.enable(context) }
    }

    /// Submits a message of the bridge itself. Nil: there is no such room.
    package func say(_ text: String, in name: String, now: Now) -> RoomReply? {
        context.now = now
        guard let room = room(named: name), let speaker = irc.serviceSpeaker else { return nil }
        return room.say(text, as: speaker, context)
    }

    /// Whether a room's link carries messages now.
    package func isLive(_ name: String) -> Bool { room(named: name)?.isLive == true }

    /// Closes a client's connection. False: there is none of that number.
    package func disconnect(_ client: ClientID, reason: String, now: Now) -> Bool {
        context.now = now
        return irc.disconnect(client, reason: reason)
    }

    // MARK: - Erasure

    /// The people whom a name may mean: of an account, `id@backend`, or a nick.
    package func people(called name: String, isAccount: Bool) -> [ErasablePerson] {
        irc.people(called: name, isAccount: isAccount)
    }

    /// As the store knows a person.
    package func stored(_ person: ErasablePerson) -> StoredPerson { irc.stored(person) }

    package func erase(_ person: ErasablePerson, now: Now) -> (erased: StoredErasure, waiting: Int) {
        context.now = now
        return irc.erase(person)
    }

    /// The backends at which an account logs in by itself.
    package func ownBackends(of account: String) -> [String] {
        (context.settings.ownLogins[account] ?? [:]).values.compactMap(\.backend).sorted()
    }

    // MARK: - Watching

    /// Passes on what goes in and out of all rooms, and the frames of all links; nil ends it.
    package func watch(
        passages: ((RoomPassage) -> Void)?, frames: ((TappedFrame) -> Void)?
    ) {
        context.watch(passages)
        context.upstream.watch(frames)
    }

    // MARK: - Messages

    /// The key of a room in the store; nil: there is no such room.
    package func storedKey(of name: String) -> StoredRoomKey? { room(named: name)?.storedKey }

    /// The messages of a room where there is no store; nil: there is no such room.
    package func messagesInMemory(of name: String) -> MemoryLog? { room(named: name)?.archive }
}

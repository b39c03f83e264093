import Accounts
import BridgeTypes
import IRCProtocol
import Identities
import Rooms
import Upstream
import WireBytes

// The configuration was read again: rooms and accounts come, go and change.

extension IRCServer {
    /// Puts other settings in force. What they may not change, the caller has kept.
    ///
    /// - Parameter reconnecting: names of rooms whose links are opened anew.
    package func reload(_ new: BridgeSettings, reconnecting: Set<String>) {
        // Each client's next deadline is set anew by the first.
        if new.limits.pingInterval != settings.limits.pingInterval {
            for session in sessions.values where session.person != nil && !session.hasEnded {
                context.set(.clientLiveness(session.id), at: context.now.monotonic)
            }
        }
        take(new)
        reloadAccounts()
        let wanted = Dictionary(new.rooms.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var known: Set<String> = []
        for room in rooms where !roomTable.isOfTemplate(room) {
            if let settings = wanted[room.settings.name], !roomTable.isRetired(room) || room.isOne(of: settings) {
                known.insert(settings.name)
                reload(room, settings, reconnects: reconnecting.contains(settings.name))
            } else {
                close(room)
            }
        }
        for settings in new.rooms where !known.contains(settings.name) { open(settings) }
    }

    // MARK: - Rooms

    private func open(_ settings: RoomSettings) {
        let fold = self.settings.casemapping.fold
        for room in Array(roomTable.ofTemplate)
        where room.storedKey == settings.storedKey || fold(room.channel) == fold(settings.channel) {
            close(room)
        }
        let room = makeRoom(roomTable.takeID(), settings)
        if let person = backends[settings.backend]?.person { room.accountIdentified(person, context) }
        roomTable.add(room)
        context.note(.info, "room-opened", "a room was opened", ["room": settings.name])
        if settings.connect == .always { room.beginOpening(context) }
        if context.isDurable || roomTable.isHeld(room) { load(room) } else { room.startForWaiting(context) }
    }

    private func reload(_ room: Room, _ settings: RoomSettings, reconnects: Bool) {
        let isBack = roomTable.isRetired(room)
        if isBack { roomTable.revive(room) }
        let topic = topic(of: room)
        room.reload(settings, reconnects: reconnects || isBack, context)
        guard self.topic(of: room) != topic else { return }
        let server = self.settings.serverName
        let msgid = context.messageID(
            backend: room.settings.backend, room: room.settings.upstreamRoom, sender: nil, id: nil)
        room.enterEvent(
            ["TOPIC", self.topic(of: room)], msgid: msgid, by: RoomSpeaker(nick: server, source: server),
            at: context.now.wall, context)
        broadcast(serverLine("TOPIC", [room.channel, self.topic(of: room)]), in: room)
    }

    /// Parts all clients from a room that is no longer configured. What they sent before still goes up; a room that takes
    /// its place is read from the store behind that.
    private func close(_ room: Room) {
        guard !roomTable.isRetired(room) else { return }
        room.opened(context)
        let members = sessions.values.filter { $0.rooms.contains(room.id) }.sorted { $0.id.rawValue < $1.id.rawValue }
        for session in members where session.rooms.contains(room.id) {
            part(room, reason: "This room is no longer here", session)
        }
        roomTable.retire(room)
        room.retire(context)
    }

    // MARK: - Accounts

    private func reloadAccounts() {
        let names = Set(settings.accounts.map(\.name))
        for known in accounts.configuredNames where !names.contains(known) {
            context.identities.release(account: known)
        }
        for name in names.subtracting(accounts.configuredNames) { context.identities.reserve(account: name) }
        accounts.take(settings.accounts)
        for session in sessions.values.sorted(by: { $0.id.rawValue < $1.id.rawValue }) {
            guard let before = session.account else { continue }
            guard let account = accounts[before.name] else {
                close(session, reason: "Your account is no longer here")
                continue
            }
            // What a client may do is settled when it logs in.
            if before.isAdmin, !account.isAdmin {
                close(session, reason: "Your account's rights have changed, reconnect", isPassing: true)
                continue
            }
            session.account = account
            for id in session.rooms {
                if let room = room(id), !mayEnter(room, session) {
                    part(room, reason: "Your account may not be here any more", session)
                }
            }
        }
    }
}

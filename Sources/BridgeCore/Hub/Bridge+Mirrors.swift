import BridgeTypes
import ChatModel
import IRCServer
import Identities
import Media
import Rooms
import Upstream

// What mirrors read of rooms and say in them. A mirror is a client of the room's order with a delivery cursor of its own,
// under an account that no user can have.

/// A room as a mirror follows it.
package struct MirroredRoom: Equatable {
    package var id: RoomID
    package var name: String
    package var channel: String
    package var key: StoredRoomKey
    /// Everything up to here is done with.
    package var cursor: Int64
    /// The newest row.
    package var end: Int64
}

extension Bridge {
    /// No account contains an `@`.
    private static let mirrorAccount = "@mirrors"

    private func openRoom(_ name: String) -> Room? { rooms.first { $0.settings.name == name } }

    private func client(_ mirror: String) -> ClientKey { ClientKey(account: Self.mirrorAccount, client: mirror) }

    /// Begins to follow a room behind the mirror's cursor; one without begins at the end. Nil: the room is not open, or its
    /// stored messages are being read.
    ///
    /// - Parameter mirrors: the names of all; the cursors of others may go when there are too many.
    package func follow(_ name: String, by mirror: String, among mirrors: Set<String>, now: Now) -> MirroredRoom? {
        context.now = now
        guard let room = openRoom(name), !room.isLoading else { return nil }
        let (key, end) = (room.storedKey, Int64(room.lastSequence))
        var followed = MirroredRoom(
            id: room.id, name: name, channel: room.channel, key: key, cursor: end, end: end)
        if let cursor = irc.cursors.place(of: client(mirror), in: key) {
            followed.cursor = min(cursor, end)
        } else {
            for gone in irc.cursors.enter(client(mirror), in: key, at: end, present: mirrors) {
                context.keep(.dropCursor(account: gone.client.account, client: gone.client.client, gone.room))
            }
            keepCursor(of: mirror, in: key, at: end)
        }
        return followed
    }

    private func keepCursor(of mirror: String, in room: StoredRoomKey, at sequence: Int64) {
        let client = client(mirror)
        context.keep(
            .cursor(StoredCursor(account: client.account, client: client.client, room: room, sequence: sequence)))
    }

    /// The mirror is done with a room up to a place in its order.
    package func moveCursor(of mirror: String, in room: StoredRoomKey, to sequence: Int64, now: Now) {
        context.now = now
        guard irc.cursors.move(client(mirror), in: room, to: sequence) else { return }
        keepCursor(of: mirror, in: room, at: sequence)
    }

    package func keepToolID(_ known: StoredMirrored, now: Now) {
        context.now = now
        context.keep(.mirrored(known))
    }

    package func keepBookmark(_ known: StoredBookmark, now: Now) {
        context.now = now
        context.keep(.bookmark(known))
    }

    /// Whether the room takes what mirrors bring: it is open, and its stored messages were read.
    package func isReady(_ name: String) -> Bool { openRoom(name)?.isLoading == false }

    /// The newest row of an open room.
    package func end(of room: RoomID) -> (name: String, end: Int64)? {
        self.room(room).map { ($0.settings.name, Int64($0.lastSequence)) }
    }

    /// Who wrote a message lately, and how it begins; nil: it is not remembered.
    package func quotation(of msgid: String, in name: String) -> (nick: String, excerpt: String)? {
        openRoom(name)?.entry(msgid: msgid).map { ($0.nick, $0.isTakenBack ? "" : $0.excerpt) }
    }

    /// The form of links to the files of a room; nil: only their own addresses can be shown.
    package func fileLinks(of name: String, now: Now) -> RoomFileLinks? {
        context.now = now
        return openRoom(name)?.fileLinks(context)
    }

    /// Says what a mirror brought. Nil: it cannot be taken now, since the room is not open, the store fails, or the bridge
    /// stops.
    package func relay(_ message: RelayedMessage, in name: String, by mirror: String, now: Now) -> RoomReply? {
        context.now = now
        guard let room = openRoom(name), !room.isLoading, lifecycle.isServing, isStoreSound else { return nil }
        return room.relay(message, by: mirror, context)
    }

    /// Redacts what a mirror brought before. Nil: as above.
    package func takeBack(_ msgid: String, in name: String, now: Now) -> RoomReply? {
        context.now = now
        guard let room = openRoom(name), !room.isLoading, lifecycle.isServing else { return nil }
        return room.takeBackRelayed(msgid, context)
    }

    /// Shows a reaction that a mirror brought. Nil: as above.
    package func react(
        _ emoji: String, _ operation: ChatReaction.Operation, on msgid: String, as name: String, tags: [StoredTag],
        in room: String, now: Now
    ) -> RoomReply? {
        context.now = now
        guard let room = openRoom(room), !room.isLoading, lifecycle.isServing else { return nil }
        room.reactRelayed(emoji, operation, on: msgid, as: name, tags: tags, context)
        return .done
    }

    /// Shows that a user elsewhere begins to write, or ceases to.
    package func typed(_ name: String, _ isTyping: Bool, in room: String, now: Now) {
        context.now = now
        guard let room = openRoom(room), !room.isLoading, lifecycle.isServing else { return }
        room.typedRelayed(name, isTyping, context)
    }

    private var isStoreSound: Bool { context.ledger.condition == .sound }

    /// A nick for a name of a tool, in front of a network's name.
    ///
    /// - Parameter template: `{user}` stands for the name.
    package func relayedName(_ user: String, _ template: String) -> String {
        let nicks = context.settings.nicks
        let rest = template.replacing("{user}", with: "")
        var short = nicks
        short.suffix = ""
        short.maxBytes = max(1, nicks.maxBytes - rest.utf8.count)
        return template.replacing("{user}", with: NickGenerator(settings: short).nick(name: user, id: user))
    }
}

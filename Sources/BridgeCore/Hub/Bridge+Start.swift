import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import IRCServer
import Identities
import Rooms
import WireBytes

// Restoring the state of an earlier process.

extension Bridge {
    func restore(_ stored: StoredState, now: Now) {
        // Accounts first: their names are no longer available to stored upstream users.
        irc.restoreAccounts(stored.accounts)
        for chosen in irc.choices.restore(stored.choices, fold: settings.casemapping.fold) {
            context.keep(.choices(chosen))
        }
        // The configuration may spell the name differently now.
        for membership in stored.memberships {
            irc.memberships.restore(membership, of: irc.accounts.spelling(of: membership.account))
        }
        irc.restoreConversations(stored)
        context.identities.restore(stored.identities, now: now)
        for room in rooms {
            if stored.rooms[room.storedKey] != nil { room.beginLoading() }
        }
        irc.privateMessages.restore(stored.rooms[PrivateMarkers.storedKey]?.markers ?? [])
        noteMessagesWithoutRoom(stored)
        context.set(.identities, at: now.monotonic + Self.identitiesInterval)
    }
}

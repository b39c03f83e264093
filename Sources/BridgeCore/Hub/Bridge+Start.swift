import Accounts
import BridgeTypes
import ChatModel
import IRCServer
import Identities
import Rooms
import WireBytes

// A bridge with all that clients may send, as an earlier process left it.

extension Bridge {
    func restore(_ stored: StoredState, now: Now) {
        // Before the people upstream of earlier: a nick that is somebody's account now is not theirs any more.
        irc.restoreAccounts(stored.accounts)
        for chosen in irc.choices.restore(stored.choices) { context.keep(.choices(chosen)) }
        // The configuration may write the name otherwise today.
        for kept in stored.memberships {
            irc.memberships.restore(kept, of: irc.accounts[kept.account]?.name ?? kept.account)
        }
        irc.restoreConversations(stored)
        context.identities.restore(stored.identities, now: now)
        for room in rooms {
            if let left = stored.rooms[room.storedKey] { room.restore(left, context) }
        }
        irc.privateMessages.restore(stored.rooms[PrivateMarkers.storedKey]?.markers ?? [])
        noteMessagesWithoutRoom(stored)
        context.timers.set(.identities, at: now.monotonic + Self.identitiesInterval)
    }
}

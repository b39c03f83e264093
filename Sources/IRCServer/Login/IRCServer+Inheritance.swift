import Accounts
import BridgeTypes
import ChatModel
import Identities
import Rooms
import Upstream

// Whoever makes an account of a name that another had before gets nothing of what that one left.
//
// | what was left                                | what becomes of it                                               |
// |----------------------------------------------|--------------------------------------------------------------------|
// | choices, private conversations, rooms to come back to | gone                                                       |
// | cursors, and with them the right to read a room's history without entering it | gone, in all rooms, open or not    |
// | read markers of rooms and of conversations     | gone                                                               |
// | what was told of readers                      | gone                                                               |
// | messages that were accepted and have not arrived | go all the same, and nobody hears what becomes of them          |
// | failures that nobody was told of              | nobody is told of them                                             |
// | messages of earlier                            | stay what they are; the new one cannot take them back             |
//
// An IRC user's id upstream follows from the account's name as it is written, so messages and markers are found by that; all
// else is kept under the name in the form in which accounts are compared.

extension IRCServer {
    /// Somebody makes an account of this name. All of it goes to the store in one order with the account, so that there is
    /// never an account with the past of another.
    func forgetEarlier(_ account: String) {
        if let chosen = choices.forget(ofEarlier: AccountName.fold(account)) { context.keep(.choices(chosen)) }
        forgetConversations(ofEarlier: account)
        for change in memberships.forget(ofEarlier: account) { context.keep(change) }
        forgetCursors(ofEarlier: account)
        forgetAuthors(ofEarlier: account)
    }

    private func forgetCursors(ofEarlier account: String) {
        for (client, room) in cursors.drop(account: account) {
            context.keep(.dropCursor(account: client.account, client: client.client, room))
        }
    }

    private func forgetAuthors(ofEarlier account: String) {
        let nobody = context.freshChatID()
        // Private read markers are those of a backend without a name.
        for backend in keptBackends.union([""]).sorted() {
            let author = context.identities.puppetID(account: account, backend: backend)
            context.keep(.forgetAuthor(author, as: nobody))
            privateMessages.forgetMarkers(of: author)
            for room in rooms where room.settings.backend == backend {
                room.forget(author: author, as: nobody, context)
            }
        }
    }
}

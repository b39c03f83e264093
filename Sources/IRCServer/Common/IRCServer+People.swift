import Accounts
import BridgeTypes
import ChatModel
import Identities
import Rooms
import Upstream
import WireBytes

// Lookup of IRC users and their clients.

extension IRCServer {
    /// The sessions of one person, in the order of connecting.
    package func sessions(of person: PersonID?) -> [IRCSession] {
        guard let person, let known = context.identities[person] else { return [] }
        return known.clients.compactMap { sessions[$0] }
    }

    /// The present person of an account.
    package func person(of account: AccountSettings) -> PersonID? {
        context.identities.person(account: AccountName.fold(account.name))
    }

    func account(named name: String) -> AccountSettings? { accounts[name] }

    /// Whether the client has operator status.
    func isOperators(_ session: IRCSession) -> Bool { session.person.map { operators.contains($0) } ?? false }

    /// The rooms of a person that are visible to the client.
    func visibleRooms(of id: PersonID, _ person: Person, _ session: IRCSession) -> [Room] {
        switch person.kind {
        case .local:
            let ids = person.clients.first.flatMap { sessions[$0] }?.rooms ?? []
            return ids.compactMap { room($0) }.filter { mayEnter($0, session) }
        case .remote(let key):
            return rooms.filter {
                $0.settings.backend == key.backend && $0.isHere(upstream: id) && mayEnter($0, session)
            }
        }
    }

    func idleSeconds(_ person: Person) -> Int64 {
        guard let spoke = person.clients.compactMap({ sessions[$0]?.lastSpokeAt.milliseconds }).max() else { return 0 }
        return max(0, (context.now.wall.milliseconds - spoke) / 1000)
    }
}

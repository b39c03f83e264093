import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// The mapping between accounts and lanes, in both directions.

extension Room {
    /// The own link of an IRC user, if their account has one here.
    package func ownLink(of person: Person) -> OwnLink? {
        guard !own.isEmpty, let account = person.account else { return nil }
        return own[account]
    }

    package func ownLink(of member: LocalMember, _ context: RoomsContext) -> OwnLink? {
        guard !own.isEmpty else { return nil }
        return context.identities[member.person].flatMap { ownLink(of: $0) }
    }

    /// The present IRC user behind an upstream person.
    func ownPerson(_ sender: ChatPerson) -> PersonID? {
        guard let own = own.speaking(sender), own.emptySince == nil, slots.contains(own.person) else { return nil }
        return own.person
    }

    /// The lane for an IRC user's messages.
    package func lane(of person: Person) -> SendLane { ownLink(of: person) ?? lane }

    /// Notifies the clients of the account only.
    func tell(_ own: OwnLink, _ text: String, _ context: RoomsContext) {
        guard own.emptySince == nil else { return }
        for client in clients(of: own.person, context) {
            frontEnd.tell(.notice(text), in: self, to: client, label: nil)
        }
    }
}

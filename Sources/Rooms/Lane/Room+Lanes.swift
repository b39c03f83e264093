import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// Over which link an account speaks, and which account the backend names.

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

    /// The IRC user who is this person upstream, while they are here.
    func ownPerson(_ sender: ChatPerson) -> PersonID? {
        guard let own = own.speaking(sender), own.emptySince == nil, slots.contains(own.person) else { return nil }
        return own.person
    }

    /// Over which what an IRC user says goes up.
    package func lane(of person: Person) -> SendLane { ownLink(of: person) ?? lane }

    /// Tells the clients of the account, and nobody else.
    func tell(_ own: OwnLink, _ text: String, _ context: RoomsContext) {
        guard own.emptySince == nil else { return }
        for client in clients(of: own.person, context) {
            frontEnd.tell(.notice(text), in: self, to: client, label: nil)
        }
    }
}

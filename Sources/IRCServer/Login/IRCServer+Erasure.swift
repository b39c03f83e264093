import Accounts
import BridgeTypes
import ChatModel
import Identities
import Rooms

// The erasure of a person, at an administrator's request. What they said loses its words and its author, and stands as
// redacted; all else that is stored of them goes. The store has its own part (`StoreEraser`).

/// A person who can be erased.
package struct ErasablePerson: Equatable {
    package enum Name: Hashable {
        /// As it is written.
        case account(String)
        /// The id on the backend, or the name where the wire has no ids.
        case upstream(String, backend: String)
    }

    package let name: Name
    /// The present nick; nil: unknown.
    package let nick: String?
    /// Nothing tells that there is, or was, such a person: perhaps old messages do.
    package let isKnown: Bool

    /// The name by which only this one is found.
    package var unique: String {
        switch name {
        case .account(let account): account
        case .upstream(let id, let backend): "\(id)@\(backend)"
        }
    }
}

extension IRCServer {
    /// The people whom a name may mean: of an account, `id@backend`, or a nick.
    ///
    /// - Parameter isAccount: the name is an account's, known or not.
    package func people(called name: String, isAccount: Bool) -> [ErasablePerson] {
        if !isAccount, let at = name.lastIndex(of: "@") {
            let (id, backend) = (String(name[..<at]), String(name[name.index(after: at)...]))
            guard keptBackends.contains(backend), !id.isEmpty else { return [] }
            let present = known(id, on: backend)
            return [
                ErasablePerson(
                    name: .upstream(id, backend: backend), nick: present.flatMap { context.identities[$0]?.nick },
                    isKnown: present != nil)
            ]
        }
        var found: [ErasablePerson] = []
        if isAccount || hasData(ofAccount: name) { found.append(account(name)) }
        if !isAccount, let (_, person) = context.identities.person(nick: name) {
            let holder: ErasablePerson? =
                switch person.kind {
                case .remote(let key):
                    ErasablePerson(
                        name: .upstream(key.id?.rawValue ?? key.name ?? "", backend: key.backend), nick: person.nick,
                        isKnown: true)
                case .local: person.account.map(account)
                }
            if let holder, !found.contains(where: { $0.name == holder.name }) { found.append(holder) }
        }
        return found
    }

    private func account(_ name: String) -> ErasablePerson {
        let spelled = accounts[name]?.name ?? name
        let holder = context.identities.person(account: AccountName.fold(spelled))
        return ErasablePerson(
            name: .account(spelled), nick: holder.flatMap { context.identities[$0]?.nick },
            isKnown: hasData(ofAccount: name))
    }

    private func hasData(ofAccount name: String) -> Bool {
        let folded = AccountName.fold(name)
        return accounts[name] != nil || !memberships.rooms(of: folded).isEmpty || cursors.clientCount(of: name) > 0
            || privateMessages.conversations.name(of: folded) != nil
    }

    private func known(_ id: String, on backend: String) -> PersonID? {
        [ChatPerson(id: ChatID(id)), ChatPerson(name: id)].lazy.compactMap { [self] person in
            context.identities.known(IdentityMap.remoteKey(person, backend: backend))
        }.first
    }

    /// As the store knows a person.
    package func stored(_ person: ErasablePerson) -> StoredPerson {
        switch person.name {
        case .account(let name):
            // Private read markers belong to a backend without a name.
            let ids = keptBackends.union([""]).map { context.identities.puppetID(account: name, backend: $0) }
            return .account(AccountName.fold(name), ids: Set(ids))
        case .upstream(let id, let backend): return .upstream(backend: backend, ChatPerson(id: ChatID(id), name: id))
        }
    }

    /// Erases a person from memory, and orders the same of the store but for messages.
    ///
    /// - Returns: how much there was, and how many of their messages wait for the backend.
    package func erase(_ person: ErasablePerson) -> (erased: StoredErasure, waiting: Int) {
        let stored = stored(person)
        var erased = StoredErasure()
        var waiting = 0
        if case .account(_, let ids) = stored {
            waiting = rooms.reduce(0) { sum, room in ids.reduce(sum) { $0 + room.waitingCount(of: $1) } }
        }
        // Clients leave first: that stores where they were.
        if case .account(let name) = person.name { closeClients(ofAccount: name) }
        for room in rooms { erased += room.erase(stored, context) }
        switch person.name {
        case .account(let name): erased += eraseRecords(ofAccount: name)
        case .upstream(let id, let backend): erased += eraseRecords(of: id, on: backend)
        }
        return (erased, waiting)
    }

    private func closeClients(ofAccount name: String) {
        let folded = AccountName.fold(name)
        for session in sessions.values.sorted(by: { $0.id.rawValue < $1.id.rawValue })
        where session.account.map({ AccountName.fold($0.name) == folded }) ?? false {
            close(session, reason: "Your account was erased")
        }
    }

    private func eraseRecords(ofAccount name: String) -> StoredErasure {
        let folded = AccountName.fold(name)
        var erased = purge(name, as: .erased)
        for chosen in choices.forget(.account(folded)) { context.keep(.choices(chosen)) }
        whowas.forget { $0.account.map { AccountName.fold($0) == folded } ?? false }
        if accounts.removeRegistered(name) {
            context.identities.release(account: name)
            context.keep(.removeAccount(name: name))
            erased.records += 1
            if accounts.isEmpty { offersChanged() }
        }
        return erased
    }

    private func eraseRecords(of id: String, on backend: String) -> StoredErasure {
        var erased = StoredErasure()
        for person in [ChatPerson(id: ChatID(id)), ChatPerson(name: id)] {
            let key = IdentityMap.remoteKey(person, backend: backend)
            for chosen in choices.forget(.remote(key)) { context.keep(.choices(chosen)) }
            whowas.forget { $0.kind == .remote(key) }
            guard let known = context.identities.known(key) else { continue }
            erased.records += 1
            // Who is there stays there, and is stored again when they next change.
            if context.identities[known]?.isPresent == true {
                context.keep(.removeIdentity(backend: backend, person))
            } else {
                context.identities.remove(known)
            }
        }
        return erased
    }
}

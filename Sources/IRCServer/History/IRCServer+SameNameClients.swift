import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms
import WireBytes

// Client names: distinguishes an account's clients of one name; ``NumberedClientName`` has the rules.

extension IRCServer {
    // MARK: - Assigning a name

    /// Assigns the name of a client that registers with an account. False: those of the same name answer first.
    func isNamed(_ session: IRCSession) -> Bool {
        guard let family = family(of: session) else { return true }
        askTwins(family.others, session)
        if family.names.count > 1, let newcomer = newcomers[session.id],
            family.others.contains(where: { !newcomer.answered.contains($0.id) })
        {
            let deadline = newcomer.deadline ?? context.now.monotonic + Newcomer.patience
            if context.now.monotonic < deadline {
                newcomers.wait(session.id, until: deadline)
                return false
            }
        }
        takeName(session, family)
        return true
    }

    /// Assigns the name of a registered client that logs in.
    func nameLateComer(_ session: IRCSession) {
        guard let family = family(of: session) else { return }
        takeName(session, family)
        askTwins(family.others, session)
        newcomers.remove(session.id)
    }

    /// Continues the registration: the client has its name, or its wait is over.
    package func goOnNaming(_ session: IRCSession) {
        goOnRegistering(session)
        goOn(session)
    }

    private struct Family {
        var base: String
        /// The names of cursors, and of connected clients; by number.
        var names: [NumberedClientName]
        /// Its connected clients, except the newcomer.
        var others: [IRCSession]
    }

    /// Nil: the client has no name, or one that was never shared.
    private func family(of session: IRCSession) -> Family? {
        guard let account = session.account, let said = session.clientName else { return nil }
        let base = NumberedClientName(said).base
        let others = sessions(of: person(of: account)).filter {
            $0 !== session && $0.clientName.map { NumberedClientName($0).base } == base
        }
        var names = Set(cursors.clients(of: account.name).map(NumberedClientName.init).filter { $0.base == base })
        for other in others { if let name = other.clientName { names.insert(NumberedClientName(name)) } }
        if others.isEmpty, names.isEmpty || names == [NumberedClientName(base)], said == base { return nil }
        return Family(base: base, names: names.sorted { ($0.number, $0.text) < ($1.number, $1.text) }, others: others)
    }

    private func askTwins(_ others: [IRCSession], _ session: IRCSession) {
        for other in others where newcomers.ask(other.id, for: session.id) {
            whenReceived(by: other) { [weak self, weak other, weak session] in
                guard let self, let other, let session else { return }
                twinAnswered(other, session)
            }
        }
    }

    private func twinAnswered(_ older: IRCSession, _ newer: IRCSession) {
        guard older.state != .closed, newer.state != .closed else { return }
        if newer.person == nil {
            if newcomers.answered(older.id, to: newer.id) { goOnNaming(newer) }
        } else if newer.person == older.person {
            distinguish(older, newer)
        }
    }

    // MARK: - Choosing a name

    private func takeName(_ session: IRCSession, _ family: Family) {
        let answered = newcomers[session.id]?.answered ?? []
        let isTaken: (NumberedClientName) -> Bool = { name in
            family.others.contains { answered.contains($0.id) && NumberedClientName.isSame($0.clientName, name.text) }
        }
        let possible = family.names.filter { !isTaken($0) }
        let mark = session.caps.fingerprint
        var alike = possible.filter { $0.mark == nil || $0.mark == mark }
        if alike.count > 1 {
            let current = alike.filter { !isLeftBehind($0, session) }
            if !current.isEmpty { alike = current }
        }
        if family.names.isEmpty {
            session.setClientName(family.base)
        } else if alike.count > 1 {
            takeAny(of: alike, session, family)
        } else if let name = alike.first {
            take(name, session, family)
        } else {
            let name = NumberedClientName(base: family.base, number: nextNumber(family.names), mark: mark)
            session.setClientName(name.text)
            enterLeast(of: possible, as: name, session)
        }
    }

    /// The name's client has missed more of a room than a returning client is given. Similar clients no longer wait for
    /// it: it may never return, and until then a part is replayed to them each time.
    private func isLeftBehind(_ name: NumberedClientName, _ session: IRCSession) -> Bool {
        guard let account = session.account?.name, settings.limits.backlog > 0 else { return false }
        let places = cursors.places(of: ClientKey(account: account, client: name.text))
        return places.contains { key, place in
            guard let room = rooms.first(where: { $0.storedKey == key }) else { return false }
            return Int64(room.newest(settings.limits.backlog, after: Int(clamping: place)).start) > place
        }
    }

    private func take(_ name: NumberedClientName, _ session: IRCSession, _ family: Family) {
        session.setClientName(name.text)
        guard family.names.count > 1, name.mark == nil, holders(of: name, family).isEmpty else { return }
        let marked = NumberedClientName(base: name.base, number: name.number, mark: session.caps.fingerprint)
        moveCursors(of: session, from: name, to: marked)
        session.setClientName(marked.text)
    }

    private func holders(of name: NumberedClientName, _ family: Family) -> [IRCSession] {
        family.others.filter { NumberedClientName.isSame($0.clientName, name.text) }
    }

    /// The lowest cursors of these names, for a client that may be any of them.
    private func leastPlaces(of names: [NumberedClientName], _ account: String) -> [(room: StoredRoomKey, place: Int64)]
    {
        var least: [StoredRoomKey: Int64] = [:]
        for name in names {
            for (room, place) in cursors.places(of: ClientKey(account: account, client: name.text)) {
                least[room] = min(least[room] ?? place, place)
            }
        }
        return least.sorted { ($0.key.backend, $0.key.room) < ($1.key.backend, $1.key.room) }
            .map { ($0.key, $0.value) }
    }

    private func enterLeast(of names: [NumberedClientName], as name: NumberedClientName, _ session: IRCSession) {
        guard let account = session.account?.name else { return }
        let key = ClientKey(account: account, client: name.text)
        for (room, place) in leastPlaces(of: names, account) { enterCursor(key, room, at: place, for: session) }
    }

    /// Moves all of them back to the lowest cursor, since their owners are not known, under numbers that no message has
    /// yet, so that no client takes another's messages for its own.
    private func takeAny(of possible: [NumberedClientName], _ session: IRCSession, _ family: Family) {
        guard let account = session.account?.name else { return }
        let least = leastPlaces(of: possible, account)
        let own = possible.firstIndex { holders(of: $0, family).isEmpty } ?? 0
        var number = nextNumber(family.names)
        for (index, old) in possible.enumerated() {
            let sharers = holders(of: old, family)
            let new = NumberedClientName(
                base: family.base, number: number,
                mark: index == own && sharers.isEmpty ? session.caps.fingerprint : old.mark)
            number += 1
            moveCursors(of: session, from: old, to: new) { room, place in
                least.first { $0.room == room }?.place ?? place
            }
            for sharer in sharers { rename(sharer, to: new) }
            guard index == own else { continue }
            session.setClientName(new.text)
            let key = ClientKey(account: account, client: new.text)
            for (room, place) in least where cursors.place(of: key, in: room) == nil {
                enterCursor(key, room, at: place, for: session)
            }
        }
    }

    private func nextNumber(_ names: [NumberedClientName]) -> Int { (names.map(\.number).max() ?? 0) + 1 }

    // MARK: - Two clients at once

    /// Distinguishes two clients that are connected at once.
    private func distinguish(_ older: IRCSession, _ newer: IRCSession) {
        guard let one = older.clientName.map(NumberedClientName.init),
            let other = newer.clientName.map(NumberedClientName.init),
            one.base == other.base, let family = family(of: newer)
        else { return }
        if one.isSame(other) {
            if one.mark == nil {
                var marked = one
                marked.mark = older.caps.fingerprint
                moveCursors(of: older, from: one, to: marked)
                for sharer in family.others where NumberedClientName.isSame(sharer.clientName, one.text) {
                    rename(sharer, to: marked)
                }
            }
            let names = family.names + [one]
            let name = NumberedClientName(base: one.base, number: nextNumber(names), mark: newer.caps.fingerprint)
            giveOwnPlaces(newer, name, besides: older)
            note(
                .info, "client-twins", "two clients of an account go by one name; they are told apart by a number",
                of: newer, ["account": older.account?.name ?? "", "client-name": one.base])
        }
        placeAsReceived(older)
    }

    /// Separates a client from cursors that it shared, at the positions that it has acknowledged.
    private func giveOwnPlaces(_ session: IRCSession, _ name: NumberedClientName, besides older: IRCSession) {
        rename(session, to: name)
        guard let following = session.following, let client = following.client else { return }
        for room in session.rooms.compactMap({ room($0) }) where !room.isLoading {
            let place =
                following.rooms[room.id]?.received
                ?? older.following?.client.flatMap { cursors.place(of: $0, in: room.storedKey) }
            if let place { enterCursor(client, room.storedKey, at: place, for: session) }
        }
    }

    /// Resets a client's cursors to its own acknowledgements, without those of others that shared them.
    private func placeAsReceived(_ session: IRCSession) {
        guard let following = session.following, let client = following.client else { return }
        for (id, followed) in following.rooms.sorted(by: { $0.key.index < $1.key.index }) {
            guard let room = room(id), let place = cursors.place(of: client, in: room.storedKey),
                place != followed.received
            else { continue }
            cursors.put(client, in: room.storedKey, at: followed.received)
            keep(client, room.storedKey, at: followed.received, for: nil)
        }
    }

    /// Renames a connected client, without other effects.
    private func rename(_ session: IRCSession, to name: NumberedClientName) {
        let isAnother = !NumberedClientName.isSame(session.clientName, name.text)
        session.setClientName(name.text)
        if let account = session.account?.name {
            session.following?.assign(ClientKey(account: account, client: name.text))
        }
        for id in session.rooms {
            room(id)?.clientRenamed(session.id, to: name.text, isAnother: isAnother)
        }
    }

    /// Moves the cursors of a name to another.
    ///
    /// - Parameter place: the new position of a cursor, by its old one.
    private func moveCursors(
        of session: IRCSession, from old: NumberedClientName, to new: NumberedClientName,
        _ place: (StoredRoomKey, Int64) -> Int64 = { $1 }
    ) {
        guard let account = session.account?.name else { return }
        let (from, to) = (ClientKey(account: account, client: old.text), ClientKey(account: account, client: new.text))
        for (room, before) in cursors.places(of: from) {
            cursors.drop(from, in: room)
            context.keep(.dropCursor(account: from.account, client: from.client, room))
            enterCursor(to, room, at: place(room, before), for: session)
        }
    }
}

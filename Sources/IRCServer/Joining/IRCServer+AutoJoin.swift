import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms
import WireBytes

// Membership belongs to the account, whether or not one of its clients is connected: a client that logs in is in the
// account's rooms again, without a JOIN. A JOIN of any of its clients adds a room, a PART or a KICK removes it; the end
// of a connection, by QUIT or otherwise, changes nothing, nor does a restart where there is persistent storage.
//
// A client returns to one room after the other, as its queue accepts the replies, and enters each as by a JOIN: its
// backlog follows the names, from its own cursor. Rooms that cannot be entered are skipped without a reply, since there
// was no request. The memberships of rooms that no longer exist, or are no longer permitted to the account, are
// deleted; those of rooms that are closed for now, or whose backend has not listed its rooms yet, stay.

extension IRCServer {
    /// Estimated bytes of the fixed replies on entering a room: JOIN, topic, read marker. NAMES and other long answers
    /// are counted separately.
    static let returnByteCount = 1024
    /// Links opened for a client at the same time; it waits for them together.
    private static let openingAtOnce = 16
    /// Extra flood budget of an arriving client, in multiples of the usual burst.
    private static let arrivalBursts: Double = 2
    /// Longest wait for an arriving client's PONG; then it enters its rooms.
    private static let arrivalPatience: Duration = .seconds(3)

    // MARK: - Returning

    /// Enters a newly connected client into the rooms of the account's other clients and those of its memberships.
    ///
    /// Clients with chathistory ask right after the welcome which rooms have new messages, then for those after the
    /// newest line they have of each. The first line of a room must not precede that answer, so these clients enter
    /// their rooms after the PONG to a PING sent behind the welcome.
    func comeBack(_ session: IRCSession) {
        guard let account = session.account?.name, session.caps.contains(.chatHistory), session.person != nil,
            sessions(of: session.person).contains(where: { !$0.rooms.isEmpty })
                || rejoins(account) && !memberships.rooms(of: account).isEmpty
        else { return comeIn(session) }
        session.beginArriving()
        // The requests come at once, and messages delivered before their answers are shown twice.
        session.budget.give(session.budget.burst * Self.arrivalBursts)
        let isAsked = whenReceived(by: session) { [weak self, weak session] in
            guard let self, let session, session.isArriving else { return }
            arrive(session)
        }
        context.set(.autoJoin(session.id), at: context.now.monotonic + (isAsked ? Self.arrivalPatience : .zero))
    }

    /// The client has requested its history, or had the time to.
    package func arrive(_ session: IRCSession) {
        guard session.finishArriving() else { return }
        context.cancel(.autoJoin(session.id))
        comeIn(session)
        goOn(session)
    }

    private func comeIn(_ session: IRCSession) {
        let other = sessions(of: session.person).first { $0 !== session && !$0.isArriving }
        for id in other?.rooms ?? [] { if let room = room(id) { enter(room, session) } }
        bringBack(session)
    }

    /// Enters the client into those rooms of its account in which it is not.
    func bringBack(_ session: IRCSession) {
        guard let account = session.account?.name, rejoins(account), session.person != nil else { return }
        let present = Set(session.rooms.compactMap { room($0)?.storedKey })
        guard let first = memberships.rooms(of: account).first(where: { !present.contains($0.room) }) else { return }
        appendRejoin(account, from: first.position, session)
    }

    private func appendRejoin(_ account: String, from position: Int64, _ session: IRCSession) {
        let step = { [unowned self, unowned session] in rejoinStep(account, from: position, session) }
        session.appendLongAnswer(
            ReplyGenerator(unread: step) {
                step()
                return .last(nil)
            })
    }

    /// Enters the client into the next room, and continues behind the replies of that one.
    private func rejoinStep(_ account: String, from position: Int64, _ session: IRCSession) {
        // The client may have changed its account or its choice meanwhile.
        guard session.account?.name == account, rejoins(account), lifecycle.isServing else { return }
        var position = position
        var opening = 0
        while opening < Self.openingAtOnce {
            guard let next = memberships.first(of: account, from: position) else { return }
            position = next.position + 1
            walk.spend()
            guard let room = room(of: next, session), !session.rooms.contains(room.id) else { break }
            if joinWaits(room, session) {
                awaitJoin(to: room, isAsked: false, session)
                opening += 1
                continue
            }
            session.undrainedBytes += Self.returnByteCount
            // Their answers are not pulled from here: those may be returning clients too, and would pull this one.
            for other in enterWithOthers(room, session) where other.hasLongAnswers {
                emit(.notifyWhenDrained(other.id))
            }
            break
        }
        appendRejoin(account, from: position, session)
    }

    /// The room of a membership, if the client may enter it now.
    private func room(of membership: StoredMembership, _ session: IRCSession) -> Room? {
        guard let known = openRoom(membership) else { return templateRoom(of: membership, session) }
        guard let person = session.person.flatMap({ context.identities[$0] }) else { return nil }
        guard mayEnter(known, session) else {
            forgetMembership(of: membership.account, in: membership.room, for: nil)
            return nil
        }
        guard entryRefusal(known, as: known.channel, isRequest: false, session) != nil else { return known }
        if known.moderation.isBanned(person) {
            forgetMembership(of: membership.account, in: membership.room, for: nil)
        }
        return nil
    }

    private func openRoom(_ membership: StoredMembership) -> Room? {
        if let called = room(channel: membership.channel), called.storedKey == membership.room { return called }
        // The configured name may have changed.
        return rooms.first { $0.storedKey == membership.room && !roomTable.isRetired($0) }
    }

    private func templateRoom(of membership: StoredMembership, _ session: IRCSession) -> Room? {
        guard let template = settings.template, template.backend == membership.room.backend else {
            forgetMembership(of: membership.account, in: membership.room, for: nil)
            return nil
        }
        // The channel name may have passed to another room.
        guard room(channel: membership.channel) == nil else { return nil }
        let renamed = directory.listing?.channel(of: membership.room.room, casemapping: settings.casemapping)
        return templateRoom(renamed ?? membership.channel, session, isComingBack: true)
    }
}

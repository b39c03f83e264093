import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms
import WireBytes

// An account is in its rooms whether or not one of its clients is here: whoever logs in is there again, without a JOIN. What
// puts an account into a room is a JOIN of any of its clients, what takes it out a PART or a KICK; a connection that ends, by
// QUIT or otherwise, changes nothing, nor does the end of the process where something is kept.
//
// A client comes back to one room after the other, as its queue takes what it is told, and each is entered as by a JOIN: so
// what it missed comes behind the names, from its own cursor. Rooms that cannot be entered are passed over in silence, as nobody
// asked: those that are gone for good, or are not the account's any more, are forgotten; those that are only shut, or whose
// backend does not say yet which rooms it has, are not.

extension IRCServer {
    /// About what a client is told of a room that it enters, in bytes: JOIN, topic, read marker. Names and whatever else is
    /// long count by themselves.
    static let returnByteCount = 1024
    /// Links that are opened for a client at the same time; it waits for them together.
    private static let openingAtOnce = 16
    /// So many times the usual burst is what it may ask for beside, when it comes.
    private static let arrivalBursts: Double = 2
    /// A client that does not answer is in its rooms after this.
    private static let arrivalPatience: Duration = .seconds(3)

    // MARK: - Coming back

    /// Has a client that has just come enter the rooms in which the account's other clients are, and those in which it was.
    ///
    /// Clients that fetch what they missed ask which rooms have something new as soon as they are welcome, and for each of these
    /// for what came after the newest line that they have then. So the first line of a room must not come before that
    /// answer: they come in when they have answered a PING that went out behind the welcome.
    func comeBack(_ session: IRCSession) {
        guard let account = session.account?.name, session.caps.contains(.chatHistory), session.person != nil,
            sessions(of: session.person).contains(where: { !$0.rooms.isEmpty })
                || rejoins(account) && !memberships.rooms(of: account).isEmpty
        else { return comeIn(session) }
        session.beginArriving()
        // They ask at once, and what is said until they have their answers they show twice.
        session.budget.give(session.budget.burst * Self.arrivalBursts)
        let isAsked = whenReceived(by: session) { [weak self, weak session] in
            guard let self, let session, session.isArriving else { return }
            arrive(session)
        }
        context.timers.set(.autoJoin(session.id), at: context.now.monotonic + (isAsked ? Self.arrivalPatience : .zero))
    }

    /// The client asked for what it missed, or has had the time to.
    package func arrive(_ session: IRCSession) {
        guard session.finishArriving() else { return }
        context.timers.cancel(.autoJoin(session.id))
        comeIn(session)
        goOn(session)
    }

    private func comeIn(_ session: IRCSession) {
        let other = sessions(of: session.person).first { $0 !== session && !$0.isArriving }
        for id in other?.rooms ?? [] { if let room = room(id) { enter(room, session) } }
        bringBack(session)
    }

    /// Has the client enter the rooms of its account in which it is not.
    func bringBack(_ session: IRCSession) {
        guard let account = session.account?.name, rejoins(account), session.person != nil else { return }
        let present = Set(session.rooms.compactMap { room($0)?.storedKey })
        guard let first = memberships.rooms(of: account).first(where: { !present.contains($0.room) }) else { return }
        appendRejoin(account, from: first.position, session)
    }

    private func appendRejoin(_ account: String, from position: Int64, _ session: IRCSession) {
        let step = { [unowned self, unowned session] in rejoinStep(account, from: position, session) }
        session.appendLongAnswer(
            LongAnswer(unread: step) {
                step()
                return .last(nil)
            })
    }

    /// Has the client enter one of the rooms, and goes on behind what it is told of that.
    private func rejoinStep(_ account: String, from position: Int64, _ session: IRCSession) {
        // It may be somebody else since, or have chosen otherwise.
        guard session.account?.name == account, rejoins(account), lifecycle.phase == .running else { return }
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
            // Not pulled from here: those may be on their way back too, and would pull this one.
            for other in enterWithOthers(room, session) where other.hasLongAnswers {
                emit(.notifyWhenDrained(other.id))
            }
            break
        }
        appendRejoin(account, from: position, session)
    }

    /// The room, where the client may enter it now.
    private func room(of membership: StoredMembership, _ session: IRCSession) -> Room? {
        guard let known = openRoom(membership) else { return templateRoom(of: membership, session) }
        guard let person = session.person.flatMap({ context.identities[$0] }) else { return nil }
        guard mayEnter(known, session) else {
            forgetMembership(of: membership.account, in: membership.room, for: nil)
            return nil
        }
        guard barrier(to: known, session) != nil else { return known }
        if known.moderation.isBanned(person) {
            forgetMembership(of: membership.account, in: membership.room, for: nil)
        }
        return nil
    }

    private func openRoom(_ membership: StoredMembership) -> Room? {
        if let called = room(channel: membership.channel), called.storedKey == membership.room { return called }
        // The configuration may call it otherwise today.
        return rooms.first { $0.storedKey == membership.room }
    }

    private func templateRoom(of membership: StoredMembership, _ session: IRCSession) -> Room? {
        guard let template = settings.template, template.backend == membership.room.backend else {
            forgetMembership(of: membership.account, in: membership.room, for: nil)
            return nil
        }
        // The name may lead elsewhere today.
        guard room(channel: membership.channel) == nil else { return nil }
        let renamed = directory.listing?.channel(of: membership.room.room, casemapping: settings.casemapping)
        return templateRoom(renamed ?? membership.channel, session, isComingBack: true)
    }
}

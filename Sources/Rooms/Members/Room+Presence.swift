import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

// Presence, in both directions.
//
// Up: the state last reported to the backend is stored for each IRC user; users whose state differs are queued. So a
// user that joins and leaves while the budget is spent costs nothing, and after an outage all are reported anew.

extension Room {
    // MARK: - Up

    /// Queues an IRC user whose presence changed: joined, left, away or back.
    package func reportPresence(of puppet: ChatID, _ context: RoomsContext) {
        guard settings.identity == .puppet, link.isUp, !presenceWords.isEmpty else { return }
        presenceReport.note(puppet)
        pump(lane, context)
    }

    package func awayChanged(of person: PersonID, _ context: RoomsContext) {
        guard let client = clients(of: person, context).first, let member = locals[client] else { return }
        reportPresence(of: member.puppet, context)
    }

    /// Reports presence changes of IRC users as far as the budget admits.
    func sayPresence(_ context: RoomsContext) {
        guard settings.identity == .puppet, isLive, !presenceWords.isEmpty else { return }
        if !presenceReport.hasBegun {
            presenceReport.begin(
                locals.speakers.sorted { $0.person.rawValue < $1.person.rawValue }.map(\.puppet))
        }
        while link.isUp, presenceReport.isPending, lane.nextGrant(context) <= context.now.monotonic {
            guard let command = nextPresence(context) else { continue }
            _ = lane.takeBudget(context)
            lane.send(command, context)
        }
    }

    /// The time of the next report; nil when there is none. Without a link all reported state is dropped.
    func nextPresenceGrant(_ context: RoomsContext) -> MonotonicInstant? {
        guard link.isUp else {
            if presenceReport.hasBegun { presenceReport.reset() }
            return nil
        }
        return isLive && presenceReport.isPending ? lane.nextGrant(context) : nil
    }

    /// The next difference between present and reported state; nil when the entry looked at has none.
    private func nextPresence(_ context: RoomsContext) -> ChatCommand? {
        guard let puppet = presenceReport.next() else { return nil }
        let told = presenceReport[puppet]
        guard let personID = locals[puppet: puppet]?.person, let person = context.identities[personID] else {
            guard let gone = told else { return nil }
            presenceReport.tells(puppet, nil)
            if presenceWords.leave { return .leave(membership(gone.person, context)) }
            return presenceWords.presence ? presence(gone.person, .offline) : nil
        }
        let user = ChatPerson(id: puppet, name: person.nick)
        let isAway = person.away != nil
        // The backend sees their own link come and go.
        if told == nil, ownLink(of: person) != nil { return nil }
        guard let told else {
            // Queued again, for the other half.
            let isHalf = presenceWords.join && isAway && presenceWords.presence
            presenceReport.tells(puppet, PresenceReport.Told(person: user, isAway: isAway && !isHalf))
            guard presenceWords.join else {
                return presenceWords.presence ? presence(user, isAway ? .away : .online) : nil
            }
            if isHalf { presenceReport.note(puppet) }
            return .join(membership(user, context))
        }
        guard told.isAway != isAway, presenceWords.presence else { return nil }
        presenceReport.tells(puppet, PresenceReport.Told(person: told.person, isAway: isAway))
        return presence(user, isAway ? .away : .online)
    }

    private func membership(_ user: ChatPerson, _ context: RoomsContext) -> ChatMembership {
        ChatMembership(user: user, room: settings.upstreamRoom, at: context.now.wall)
    }

    private func presence(_ user: ChatPerson, _ state: ChatPresence.State) -> ChatCommand {
        .presence(ChatPresence(user: user, state: state, room: settings.upstreamRoom))
    }

    // MARK: - Down

    /// Away is a property of the person, so every room they are in shows it; the frame for another room is then a
    /// duplicate.
    func presenceReceived(_ presence: ChatPresence, _ context: RoomsContext) {
        // IRC users are shown by their own events.
        guard !lane.dialectContext.isSelf(presence.user), own.speaking(presence.user) == nil,
            let personID = present(presence.user, mayWait: true, context),
            let person = context.identities[personID]
        else { return }
        let away = presence.state == .online ? nil : presence.state.rawValue
        guard person.away != away else { return }
        context.identities.setAway(personID, away)
        frontEnd.changed(personID, .away(RoomSpeaker(person), away))
    }
}

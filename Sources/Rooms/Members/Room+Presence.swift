import BridgeTypes
import ChatModel
import Dialects
import Identities
import Upstream
import WireBytes

// Who is here, told both ways.
//
// Up: what the backend was told of each IRC user is remembered, and whoever's coming, going or being away differs from it
// waits in a queue. So somebody who comes and goes while the budget is spent costs nothing, and after an outage everybody
// is told anew.

/// What the backend knows of our people, and whom it must hear about.
final class PresenceReport {
    /// What a wire can say.
    struct Words {
        var join = false
        var leave = false
        var presence = false

        var isEmpty: Bool { !join && !leave && !presence }

        init(_ dialect: any Dialect, context: DialectContext) {
            let user = ChatPerson(id: ChatID("1"), name: "n")
            let at = ChatTimestamp(milliseconds: 1)
            func canSay(_ command: ChatCommand) -> Bool {
                if case .unsupported = dialect.encode(command, context: context) { return false }
                return true
            }
            join = canSay(.join(ChatMembership(user: user, room: context.room, at: at)))
            leave = canSay(.leave(ChatMembership(user: user, room: context.room, at: at)))
            presence = canSay(.presence(ChatPresence(user: user, state: .away, room: context.room)))
        }
    }

    struct Told {
        var person: ChatPerson
        var isAway: Bool
    }

    /// Everybody who was here when the link came up was entered.
    var hasBegun = false
    var told: [ChatID: Told] = [:]
    private var queue: [ChatID] = []
    private var head = 0
    private var queued: Set<ChatID> = []

    var isPending: Bool { head < queue.count }

    /// Without a link the backend knows nobody.
    func reset() {
        hasBegun = false
        told = [:]
        queue = []
        head = 0
        queued = []
    }

    func note(_ puppet: ChatID) {
        if queued.insert(puppet).inserted { queue.append(puppet) }
    }

    func next() -> ChatID? {
        guard isPending else { return nil }
        let puppet = queue[head]
        head += 1
        if head == queue.count {
            queue = []
            head = 0
        }
        queued.remove(puppet)
        return puppet
    }
}

extension Room {
    // MARK: - Up

    /// Something about an IRC user changed: they came, went, or are away or back.
    package func reportPresence(of puppet: ChatID, _ context: RoomsContext) {
        guard settings.identity == .puppet, link.isUp, !presenceWords.isEmpty else { return }
        presenceReport.note(puppet)
        pump(lane, context)
    }

    package func awayChanged(of person: PersonID, _ context: RoomsContext) {
        guard let client = clients(of: person, context).first, let member = locals[client] else { return }
        reportPresence(of: member.puppet, context)
    }

    /// Says of our people's coming and going what the budget allows.
    func sayPresence(_ context: RoomsContext) {
        guard settings.identity == .puppet, isLive, !presenceWords.isEmpty else { return }
        if !presenceReport.hasBegun {
            // The link is new: the backend knows nobody.
            presenceReport.hasBegun = true
            for member in locals.speakers.sorted(by: { $0.person.rawValue < $1.person.rawValue }) {
                presenceReport.note(member.puppet)
            }
        }
        while link.isUp, presenceReport.isPending, lane.nextGrant(context) <= context.now.monotonic {
            guard let command = nextPresence(context) else { continue }
            _ = lane.takeBudget(context)
            lane.send(command, context)
        }
    }

    /// When the next word of it may be said; nil when there is none. Without a link all that was said is forgotten.
    func nextPresenceGrant(_ context: RoomsContext) -> MonotonicInstant? {
        guard link.isUp else {
            if presenceReport.hasBegun { presenceReport.reset() }
            return nil
        }
        return isLive && presenceReport.isPending ? lane.nextGrant(context) : nil
    }

    /// The next difference between who is here and what the backend was told; nil when the one looked at was none.
    private func nextPresence(_ context: RoomsContext) -> ChatCommand? {
        guard let puppet = presenceReport.next() else { return nil }
        let told = presenceReport.told[puppet]
        guard let personID = locals[puppet: puppet]?.person, let person = context.identities[personID] else {
            guard let gone = presenceReport.told.removeValue(forKey: puppet) else { return nil }
            if presenceWords.leave { return .leave(membership(gone.person, context)) }
            return presenceWords.presence ? presence(gone.person, .offline) : nil
        }
        let user = ChatPerson(id: puppet, name: person.nick)
        let isAway = person.away != nil
        // The backend sees them come and go by their own link.
        if told == nil, ownLink(of: person) != nil { return nil }
        guard let told else {
            presenceReport.told[puppet] = PresenceReport.Told(person: user, isAway: isAway)
            guard presenceWords.join else {
                return presenceWords.presence ? presence(user, isAway ? .away : .online) : nil
            }
            if isAway, presenceWords.presence {
                // Once more, for the other half.
                presenceReport.told[puppet]?.isAway = false
                presenceReport.note(puppet)
            }
            return .join(membership(user, context))
        }
        guard told.isAway != isAway, presenceWords.presence else { return nil }
        presenceReport.told[puppet]?.isAway = isAway
        return presence(user, isAway ? .away : .online)
    }

    private func membership(_ user: ChatPerson, _ context: RoomsContext) -> ChatMembership {
        ChatMembership(user: user, room: settings.upstreamRoom, at: context.now.wall)
    }

    private func presence(_ user: ChatPerson, _ state: ChatPresence.State) -> ChatCommand {
        .presence(ChatPresence(user: user, state: state, room: settings.upstreamRoom))
    }

    // MARK: - Down

    /// Being away belongs to the person, so every room hears of it in which they are; the frame for another room is then
    /// no news.
    func presenceReceived(_ presence: ChatPresence, _ context: RoomsContext) {
        // Ours are told about by themselves.
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

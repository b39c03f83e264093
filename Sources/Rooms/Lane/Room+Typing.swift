import BridgeTypes
import ChatModel
import Dialects
import Identities
import Media
import Upstream
import WireBytes

// IRC users' typing, reported to the backend.

extension Room {
    /// The client's typing notification.
    ///
    /// - Parameter isRelayed: in a room elsewhere; mirrors do not pass it on, so that it goes round in no circle.
    package func typed(_ client: ClientID, isTyping: Bool, isRelayed: Bool, _ context: RoomsContext) {
        guard let member = locals[client] else { return }
        if settings.isMirrored, !isRelayed, let nick = context.identities[member.person]?.nick {
            context.emit(.typing(id, nick: nick, isTyping))
        }
        guard isTyping else { return stopTyping(client, context) }
        let now = context.now.monotonic
        if var typing = member.typing {
            typing.refreshedAt = now
            return member.types(typing)
        }
        if let last = member.typingSentAt, now - last < OutgoingTyping.minInterval {
            // Too soon after the last: reported after the interval, if it still holds then.
            member.types(OutgoingTyping(refreshedAt: now))
            context.set(.typingOut(client, id), at: last + OutgoingTyping.minInterval)
            return
        }
        sayTyping(OutgoingTyping(refreshedAt: now), client, member, context)
    }

    func sayTyping(
        _ typing: OutgoingTyping, _ client: ClientID, _ member: LocalMember, _ context: RoomsContext
    ) {
        var typing = typing
        if let told = accountTypingTold(within: typingRepeat, by: member, context) {
            // The one account is typing for another user already; this one joins in and continues.
            typing.toldAt = told
        } else {
            guard sendTyping(.start, member, context) else { return stopTyping(client, context) }
            typing.toldAt = context.now.monotonic
            if ownLink(of: member, context) == nil { account.typingTold(at: typing.toldAt) }
        }
        member.types(typing, sentAt: context.now.monotonic)
        context.set(.typingOut(client, id), at: typing.nextStep(repeating: typingRepeat))
    }

    package func typingTimerFired(_ client: ClientID, _ context: RoomsContext) {
        guard let member = locals[client], let typing = member.typing else { return }
        let now = context.now.monotonic
        guard now - typing.refreshedAt < OutgoingTyping.expiry else { return stopTyping(client, context) }
        if let told = typing.toldAt, now - told < typingRepeat {
            // The timer was set for the end, which a refresh has deferred since.
            return context.set(.typingOut(client, id), at: typing.nextStep(repeating: typingRepeat))
        }
        sayTyping(typing, client, member, context)
    }

    func stopTyping(_ client: ClientID, _ context: RoomsContext) {
        guard let member = locals[client], member.typing != nil else { return }
        member.stopsTyping()
        context.cancel(.typingOut(client, id))
        // One account for all, or one person with several clients: typing while any of them is.
        let isOwn = ownLink(of: member, context) != nil
        let sharers =
            settings.identity == .single && !isOwn
            ? Array(locals.keys) : clients(of: member.person, context)
        func shares(_ other: LocalMember) -> Bool {
            other.typing != nil && (isOwn || ownLink(of: other, context) == nil)
        }
        if sharers.contains(where: { locals[$0].map(shares) ?? false }) { return }
        if !isOwn { account.typingTold(at: nil) }
        sendTyping(.stop, member, context)
    }

    @discardableResult
    func sendTyping(_ state: ChatTyping.State, _ member: LocalMember, _ context: RoomsContext) -> Bool {
        let wanted = traits.typingOut
        guard wanted != .none, state == .start || wanted == .startStop,
            let person = context.identities[member.person]
        else { return false }
        let lane = lane(of: person)
        guard lane.canSpeak, lane.takeTypingBudget(context) else { return false }
        let command = ChatCommand.typing(
            ChatTyping(
                state: state, sender: upstreamPerson(person, member.puppet), room: settings.upstreamRoom,
                id: context.freshChatID(), at: context.now.wall))
        return lane.send(command, context)
    }
}

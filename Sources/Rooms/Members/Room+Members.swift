import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// IRC users come and go.

extension Room {
    /// An IRC user enters. The caller answers their JOIN; the others are told here.
    ///
    /// - Parameter isHeld: the client is given what was said before it came; what happens now waits for that.
    func join(
        _ client: ClientID, person personID: PersonID, clientName: String? = nil,
        hasReadMarker: Bool, receipts: ReceiptPolicy? = nil, isHeld: Bool = false, _ context: RoomsContext
    ) {
        guard let person = context.identities[personID] else { return }
        // One more client of somebody who is here is no news.
        if !slots.contains(personID) {
            show(.entered(RoomArrival(person)))
        }
        let puppet = context.identities.puppetID(of: person, backend: settings.backend)
        let member = LocalMember(
            client: client, person: personID, clientName: clientName, puppet: puppet,
            joinedAfter: recent.newest?.sequence ?? -1, hasReadMarker: hasReadMarker,
            receipts: receipts ?? settings.receipts)
        if let old = locals[client] { frontEnd.leave(old, in: self) }
        locals.insert(member)
        lane.isAlso(puppet)
        frontEnd.enter(member, isHeld: isHeld, in: self)
        slots.insert(personID)
        awaitLink(context)
        occupied(context)
        ownArrived(client, context)
        reportPresence(of: puppet, context)
    }

    /// Somebody spoke from here before this process began; their messages may come back.
    package func remember(author puppet: ChatID) {
        guard locals[puppet: puppet] == nil, lane.isAlso(puppet) else { return }
        noLongerOurs(locals.retire(puppet))
    }

    private func noLongerOurs(_ expired: ChatID?) { if let expired { lane.isNoLonger(expired) } }

    /// - Parameter isAnother: it is no longer whom others of its name are taken for; what it said is its own.
    package func clientRenamed(_ client: ClientID, to name: String, isAnother: Bool) {
        guard let member = locals[client] else { return }
        locals.nameClient(member, name)
        guard isAnother else { return }
        for lane in lanes { lane.renameClient(client, to: name) }
    }

    /// An IRC user leaves; the caller has told or will tell whoever must know.
    func leave(_ client: ClientID, _ context: RoomsContext) {
        guard let member = locals[client] else { return }
        stopTyping(client, context)
        frontEnd.leave(member, in: self)
        locals.remove(client)
        receiptNotices.forget(author: client)
        let wasTelling = lanes.contains { $0.failureNotices.isTelling(client) }
        for lane in lanes { lane.failureNotices.forget(client) }
        context.timers.cancel(.typingOut(client, id))
        vacated(context)
        // It may have been an old connection that hung, and what was told to it was told to nobody.
        if wasTelling { frontEnd.tellUntold(in: self, to: clients(of: member.person, context)) }
        if let other = clients(of: member.person, context).first.flatMap({ locals[$0] }) {
            // Whoever stays speaks for the person.
            return locals.handOver(from: member, to: other)
        }
        slots.remove(member.person)
        if locals.isEmpty { moderation.emptied() } else { moderation.left(member.person) }
        noLongerOurs(locals.abandon(member))
        if let person = context.identities[member.person] { ownLeft(person, context) }
        receiptNotices.forget(reader: member.person)
        reportPresence(of: member.puppet, context)
    }

    /// The client logged in: upstream they are the account from now on.
    func identityChanged(
        _ client: ClientID, clientName: String?, receipts: ReceiptPolicy?, _ context: RoomsContext
    ) {
        guard let member = locals[client] else { return }
        locals.nameClient(member, clientName)
        renamed(client, context)
        ownArrived(client, context)
        if let receipts { member.chose(receipts) }
    }

    /// The client's nick changed: upstream they are another person from now on, unless an account says who they are.
    func renamed(_ client: ClientID, _ context: RoomsContext) {
        guard let member = locals[client], let person = context.identities[member.person] else { return }
        let puppet = context.identities.puppetID(of: person, backend: settings.backend)
        guard puppet != member.puppet else { return }
        stopTyping(client, context)
        let old = member.puppet
        noLongerOurs(locals.rename(member, to: puppet))
        lane.isAlso(puppet)
        reportPresence(of: old, context)
        reportPresence(of: puppet, context)
    }

    package static func unkeptSentence(_ reason: String) -> String {
        "Messages cannot be stored at the moment (\(reason)): what you write is not taken, and what others write may be "
            + "missing later."
    }

    /// What a client that enters while something is out of order must know.
    package func statusNotices(_ context: RoomsContext) -> [String] {
        var sentences: [String] = []
        if case .failing(let reason) = context.ledger.condition { sentences.append(Self.unkeptSentence(reason)) }
        if let outage = report.outage {
            sentences.append(
                "This room has no link to \(settings.url.host) at the moment: \(outage.reason). "
                    + "What you write is queued and sent when it is there.")
        }
        if historySource != .none, catchUp.mayFillLate { sentences.append(Self.delaySentence) }
        return sentences
    }
}

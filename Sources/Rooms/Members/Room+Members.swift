import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// Joins and parts of IRC users.

extension Room {
    /// Adds an IRC user. The caller answers their JOIN; this notifies the others.
    ///
    /// - Parameter isHeld: the client is being sent the backlog; live events wait for that.
    package func join(
        _ client: ClientID, person personID: PersonID, clientName: String? = nil,
        hasReadMarker: Bool, receipts: ReceiptPolicy? = nil, isHeld: Bool = false, _ context: RoomsContext
    ) {
        guard let person = context.identities[personID] else { return }
        // A further client of a present user is no new member.
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

    /// Registers an author from before the start; their messages may still be echoed.
    package func remember(author puppet: ChatID) {
        guard locals[puppet: puppet] == nil, lane.isAlso(puppet) else { return }
        noLongerOurs(locals.retire(puppet))
    }

    private func noLongerOurs(_ expired: ChatID?) { if let expired { lane.isNoLonger(expired) } }

    /// - Parameter isAnother: it no longer shares the messages of other clients with its name.
    package func clientRenamed(_ client: ClientID, to name: String, isAnother: Bool) {
        guard let member = locals[client] else { return }
        locals.nameClient(member, name)
        guard isAnother else { return }
        for lane in lanes { lane.renameClient(client, to: name) }
    }

    /// Removes an IRC user; the caller notifies the others.
    package func leave(_ client: ClientID, _ context: RoomsContext) {
        guard let member = locals[client] else { return }
        stopTyping(client, context)
        frontEnd.leave(member, in: self)
        locals.remove(client)
        receiptNotices.forget(author: client)
        let wasTelling = lanes.contains { $0.failureNotices.isTelling(client) }
        for lane in lanes { lane.failureNotices.forget(client) }
        context.cancel(.typingOut(client, id))
        vacated(context)
        // It may have been a stale connection that never received its notices.
        if wasTelling { frontEnd.tellUntold(in: self, to: clients(of: member.person, context)) }
        if let other = clients(of: member.person, context).first.flatMap({ locals[$0] }) {
            // A remaining client speaks for the person.
            return locals.handOver(from: member, to: other)
        }
        slots.remove(member.person)
        if locals.isEmpty { moderation.emptied() } else { moderation.left(member.person) }
        noLongerOurs(locals.abandon(member))
        if let person = context.identities[member.person] { ownLeft(person, context) }
        receiptNotices.forget(reader: member.person)
        reportPresence(of: member.puppet, context)
    }

    /// The client logged in: its upstream identity is the account's from now on.
    package func identityChanged(
        _ client: ClientID, clientName: String?, receipts: ReceiptPolicy?, _ context: RoomsContext
    ) {
        guard let member = locals[client] else { return }
        locals.nameClient(member, clientName)
        renamed(client, context)
        ownArrived(client, context)
        if let receipts { member.chose(receipts) }
    }

    /// The client's nick changed: its upstream identity changes too, unless it has an account.
    package func renamed(_ client: ClientID, _ context: RoomsContext) {
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

    /// Notices about present outages for a joining client.
    package func statusNotices(_ context: RoomsContext) -> [String] {
        var sentences: [String] = []
        if case .failing(let reason) = context.ledger.condition { sentences.append(Self.unkeptSentence(reason)) }
        if let outage = report.outage, outage.isTold {
            sentences.append(
                "This room has no link to \(settings.url.host) at the moment: \(outage.reason). "
                    + "What you write is queued and sent when it is there.")
        }
        if understandsNothing { sentences.append(nothingUnderstoodSentence) }
        if historySource != .none, catchUp.mayFillLate { sentences.append(Self.delaySentence) }
        return sentences
    }
}

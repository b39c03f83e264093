import ChatModel
import IRCProtocol
import WireBytes

// Messages that were given up, and their authors.
//
// With a store an author is told for certain: the line, then a PING, and only when its PONG came the message counts as told.
// Who is not here is told when they come, also by another process. Without a store it is told once, to whoever is here.

/// What was told to whom, and not yet acknowledged.
final class FailureNotices {
    /// By client, the numbers of ``FailedMessages``.
    fileprivate var shown: [ClientID: Set<UInt64>] = [:]
    fileprivate var asked: [ClientID: Set<UInt64>] = [:]

    func forget(_ client: ClientID) {
        shown[client] = nil
        asked[client] = nil
    }

    /// What the client was told it has not acknowledged.
    func isTelling(_ client: ClientID) -> Bool { shown[client] != nil || asked[client] != nil }

    fileprivate func isShown(_ number: UInt64, to client: ClientID) -> Bool {
        shown[client]?.contains(number) == true || asked[client]?.contains(number) == true
    }
}

extension Room {
    /// The client through which an IRC user said something, or the same one after it came again.
    func authorClient(_ origin: OutboxEntry.Origin, _ context: BridgeContext) -> ClientID? {
        if let client = origin.client, !context.isDurable || door.isHere(client) { return client }
        guard let author = puppets[origin.puppet]?.person else { return nil }
        return clients(of: author, context).first {
            TwinName.isSame(locals[$0]?.clientName, origin.clientName)
        }
    }

    /// Other connections of the client through which a message came: an old one that hangs, or the one that took its place.
    /// To them the message is their own, until they are known for clients of their own; see ``TwinName``.
    func twins(
        of client: ClientID?, _ origin: OutboxEntry.Origin, _ context: BridgeContext
    ) -> [ClientID] {
        guard let name = origin.clientName, let author = puppets[origin.puppet]?.person else { return [] }
        return clients(of: author, context).filter {
            $0 != client && TwinName.isSame(locals[$0]?.clientName, name)
        }
    }

    /// Whoever should hear what became of a message.
    private func authorClients(_ origin: OutboxEntry.Origin, _ context: BridgeContext) -> [ClientID] {
        if let client = origin.client, door.isHere(client) { return [client] }
        return (puppets[origin.puppet]?.person).map { clients(of: $0, context) } ?? []
    }

    func failure(_ code: String, _ text: String, _ context: BridgeContext) -> IRCMessage {
        IRCMessage(source: context.settings.serverName, command: "FAIL", params: ["PRIVMSG", code, channel, text])
    }

    private func notDelivered(_ entry: OutboxEntry, _ why: String, _ context: BridgeContext) -> IRCMessage {
        failure("CANNOT_DELIVER", "Not delivered, \(why): " + MessageRendering.excerpt(entry.origin.text), context)
    }

    // MARK: - Giving up

    func failed(_ entry: OutboxEntry, why: String, _ context: BridgeContext) { failed(entry, why: why, nil, context) }

    func failed(_ entry: OutboxEntry, why: String, _ own: OwnLink?, _ context: BridgeContext) {
        let number = recordFailure(entry, why: why, own, context)
        let clients = context.isDurable ? authorClients(entry.origin, context) : entry.origin.client.map { [$0] } ?? []
        for client in clients {
            door.deliver(
                notDelivered(entry, why, context), to: client,
                label: client == entry.origin.client ? entry.origin.label : nil)
            if let number {
                notices(own).shown[client, default: []].insert(number)
                askWhetherTold(client, own, context)
            }
        }
    }

    /// The message is given up, and the author is to be told. Returns the number under which it is remembered.
    @discardableResult
    func recordFailure(_ entry: OutboxEntry, why: String, _ own: OwnLink?, _ context: BridgeContext) -> UInt64? {
        context.note(
            .warn, "message-failed", "a message from IRC was not delivered: \(why)", ["room": settings.name])
        let arrived = own?.outbox.arrivedPieces(of: entry) ?? outbox.arrivedPieces(of: entry)
        if let own { own.outbox.dropPieces(of: entry) } else { outbox.dropPieces(of: entry) }
        guard context.isDurable, let id = entry.storedID else { return nil }
        context.keep(.outboxState(id, .failed, confirmedPieces: arrived, reason: why), about: id)
        let forgotten =
            own?.outbox.failures.remember(entry, reason: why, isTold: false)
            ?? outbox.failures.remember(entry, reason: why, isTold: false)
        forget(forgotten, context)
        return own.map { $0.outbox.failures.newest } ?? outbox.failures.newest
    }

    private func forget(_ items: [FailedMessages.Item], _ context: BridgeContext) {
        for item in items {
            guard let id = item.entry.storedID else { continue }
            context.keep(.leaveOutbox(id), about: id)
            if !item.isTold {
                context.note(
                    .error, "failure-untold",
                    "an author who does not come back was not told that a message failed; it is forgotten",
                    ["room": settings.name, "nick": item.entry.origin.nick])
            }
        }
    }

    // MARK: - Certainly told

    private func notices(_ own: OwnLink?) -> FailureNotices { own?.failureNotices ?? failureNotices }

    /// Asks a client whether it got the lines about failures, unless that question is open.
    func askWhetherTold(_ client: ClientID, _ own: OwnLink?, _ context: BridgeContext) {
        let notices = notices(own)
        guard notices.asked[client] == nil, let numbers = notices.shown.removeValue(forKey: client) else { return }
        notices.asked[client] = numbers
        door.whenReceived(by: client) { [weak self] in
            guard let self, notices.asked.removeValue(forKey: client) != nil else { return }
            markTold(numbers, own, context)
            askWhetherTold(client, own, context)
        }
    }

    private func markTold(_ numbers: Set<UInt64>, _ own: OwnLink?, _ context: BridgeContext) {
        let (told, forgotten) = own?.outbox.failures.told(numbers) ?? outbox.failures.told(numbers)
        for item in told {
            guard let id = item.entry.storedID else { continue }
            context.keep(
                .outboxState(id, .told, confirmedPieces: item.entry.confirmedPieces, reason: item.reason), about: id)
        }
        forget(forgotten, context)
    }

    // MARK: - Authors who come later

    /// The outboxes of this room that have something to tell a client: nil is the room's own.
    func untoldPlaces(_ client: ClientID, _ context: BridgeContext) -> [RoomID] {
        guard context.isDurable, let member = locals[client] else { return [] }
        let own = ownLink(of: member, context)
        var places: [RoomID] = []
        if outbox.failures.untold(of: member.puppet, after: 0) != nil { places.append(id) }
        if let own, own.outbox.failures.untold(of: member.puppet, after: 0) != nil { places.append(own.id) }
        return places
    }

    /// The next line about a failure after `number`; nil when there is none left, and then the client is asked whether it
    /// got those before.
    func tellUntold(
        _ client: ClientID, _ own: OwnLink?, after number: UInt64, _ context: BridgeContext
    ) -> (line: IRCMessage, number: UInt64)? {
        guard let member = locals[client] else { return nil }
        let notices = notices(own)
        var last = number
        while let item = own.map({ $0.outbox.failures.untold(of: member.puppet, after: last) })
            ?? outbox.failures.untold(of: member.puppet, after: last)
        {
            last = item.number
            guard !notices.isShown(item.number, to: client) else { continue }
            notices.shown[client, default: []].insert(item.number)
            return (notDelivered(item.entry, item.reason, context), item.number)
        }
        askWhetherTold(client, own, context)
        return nil
    }
}

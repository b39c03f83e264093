import BridgeTypes
import IRCProtocol
import Identities
import Rooms

// METADATA, read only: the one key is `display-name`, of people upstream. IRC users and rooms have no keys, and none
// can be set.

extension IRCServer {

    /// The target of a METADATA command.
    private enum MetadataTarget {
        case person(PersonID, Person)
        case room(Room)

        var person: Person? { if case .person(_, let person) = self { person } else { nil } }
    }

    /// METADATA with its target and subcommand in front.
    ///
    /// Source: IRCv3 metadata.
    func metadata(_ params: [String], _ session: IRCSession) {
        guard session.caps.contains(.metadata) else {
            // Every answer is a batch or a line that requires the capability.
            return reply(.errUnknownCommand, "METADATA", "Request the capability draft/metadata-2 first", to: session)
        }
        let keys = Array(params.dropFirst(2))
        switch IRCCasemapping.ascii.fold(params[1]) {
        case "sub": return subscribe(keys, session)
        case "unsub": return unsubscribe(keys, session)
        case "subs":
            let lines = packed(metadata.list(of: session.id), session).map {
                IRCMessage(source: settings.serverName, numeric: .rplMetadataSubs, params: [session.displayNick] + $0)
            }
            return replyBatch("metadata-subs", [], lines, session)
        case "get", "list", "sync", "set", "clear": break
        default:
            return fail(
                "METADATA", "SUBCOMMAND_INVALID", [PrintableText.word(params[1], maxBytes: 64)], "No such subcommand",
                session)
        }
        guard let (name, target) = metadataTarget(params[0], session) else {
            return fail(
                "METADATA", "INVALID_TARGET", [PrintableText.word(params[0], maxBytes: 64)],
                "There is nobody and nothing of that name", session)
        }
        switch IRCCasemapping.ascii.fold(params[1]) {
        case "get":
            guard !keys.isEmpty else {
                return needMoreParams("METADATA", session)
            }
            replyBatch("metadata", [name], keys.map { value(of: $0, name, target, session) }, session)
        case "list":
            let known = target.person.flatMap { MetadataSubscriptions.name(of: $0) }
            let lines = known == nil ? [] : [value(of: MetadataSubscriptions.displayName, name, target, session)]
            replyBatch("metadata", [name], lines, session)
        case "sync":
            switch target {
            case .room(let room): syncMetadata(of: room, session, isAsked: true)
            case .person(_, let person):
                let lines =
                    metadata.wantsNames(session.id)
                    ? [MetadataSubscriptions.line(of: person, from: settings.serverName)].compactMap { $0 } : []
                replyBatch("metadata", [name], lines, session)
            }
        case "set":
            guard let key = keys.first else {
                return needMoreParams("METADATA", session)
            }
            guard MetadataSubscriptions.isKey(key) else {
                return fail(
                    "METADATA", "KEY_INVALID", [PrintableText.word(key, maxBytes: 64)], "That is no key", session)
            }
            fail(
                "METADATA", "KEY_NO_PERMISSION", [name, key], "Metadata comes from the backends; nobody sets it here",
                session)
        default:
            fail(
                "METADATA", "KEY_NO_PERMISSION", [name, "*"], "Metadata comes from the backends; nobody sets it here",
                session)
        }
    }

    /// The target under its own name; nil: it does not exist, or is not visible to the client.
    private func metadataTarget(_ name: String, _ session: IRCSession) -> (String, MetadataTarget)? {
        if name == "*", let id = session.person, let person = context.identities[id] {
            return (person.nick, .person(id, person))
        }
        if name.hasPrefix("#") {
            guard let room = room(channel: name, for: session) else { return nil }
            return (room.channel, .room(room))
        }
        guard let (id, person) = context.identities.person(nick: name), person.isPresent else { return nil }
        return (person.nick, .person(id, person))
    }

    private func value(of key: String, _ name: String, _ target: MetadataTarget, _ session: IRCSession) -> IRCMessage {
        guard MetadataSubscriptions.isKey(key) else {
            return .fail(
                "METADATA", "KEY_INVALID", PrintableText.word(key, maxBytes: 64), text: "That is no key",
                source: settings.serverName)
        }
        guard key == MetadataSubscriptions.displayName,
            let value = target.person.flatMap({ MetadataSubscriptions.name(of: $0) })
        else { return session.numeric(.rplKeyNotSet, name, key, "The key is not set") }
        return session.numeric(.rplKeyValue, name, key, "*", value)
    }

    // MARK: - Subscriptions

    private func subscribe(_ keys: [String], _ session: IRCSession) {
        var taken: [String] = []
        var isNew = false
        for key in keys {
            guard MetadataSubscriptions.isKey(key) else {
                fail("METADATA", "KEY_INVALID", [PrintableText.word(key, maxBytes: 64)], "That is no key", session)
                continue
            }
            let wantedNames = metadata.wantsNames(session.id)
            guard metadata.add(key, for: session.id) else {
                fail("METADATA", "TOO_MANY_SUBS", [key], "Too many subscriptions", session)
                break
            }
            isNew = isNew || !wantedNames && metadata.wantsNames(session.id)
            if !taken.contains(key) { taken.append(key) }
        }
        tell(.rplMetadataSubOK, taken, session)
        // A late subscription delivers the values that earlier ones got on entering.
        guard isNew else { return }
        for id in session.rooms { if let room = room(id) { syncMetadata(of: room, session, isAsked: false) } }
        for target in monitors.list(of: session.id) { tellMetadata(of: target.nick, session) }
    }

    private func unsubscribe(_ keys: [String], _ session: IRCSession) {
        var taken: [String] = []
        for key in keys {
            guard MetadataSubscriptions.isKey(key) else {
                fail("METADATA", "KEY_INVALID", [PrintableText.word(key, maxBytes: 64)], "That is no key", session)
                continue
            }
            metadata.remove(key, for: session.id)
            if !taken.contains(key) { taken.append(key) }
        }
        tell(.rplMetadataUnsubOK, taken, session)
    }

    private func tell(_ numeric: IRCNumeric, _ keys: [String], _ session: IRCSession) {
        for line in packed(keys, session) {
            reply(
                IRCMessage(source: settings.serverName, numeric: numeric, params: [session.displayNick] + line), session
            )
        }
    }

    /// Keys packed into lines, within a message's limits of parameters and bytes.
    private func packed(_ keys: [String], _ session: IRCSession) -> [[String]] {
        // The nick takes one of 15 parameters; the bytes are those of a line less server, numeric and nick.
        let budget = 400 - session.displayNick.utf8.count
        var lines: [[String]] = []
        var bytes = 0
        for key in keys {
            if !lines.isEmpty, lines[lines.count - 1].count < 13, bytes + key.utf8.count + 1 <= budget {
                lines[lines.count - 1].append(key)
                bytes += key.utf8.count + 1
            } else {
                lines.append([key])
                bytes = key.utf8.count
            }
        }
        return lines
    }

    // MARK: - Notification

    /// Sends the display names of all people in a room, in a batch.
    ///
    /// - Parameter isAsked: the client requested an answer, even an empty one.
    func syncMetadata(of room: Room, _ session: IRCSession, isAsked: Bool = false) {
        guard session.caps.contains(.metadata), isAsked || metadata.wantsNames(session.id) else { return }
        let reference = nextBatchReference()
        session.appendLongAnswer(.line(serverLine("BATCH", ["+" + reference, "metadata", room.channel])))
        let id = room.id
        var cursor = 0
        session.appendLongAnswer(
            ReplyGenerator { [unowned self, unowned session] in metadataStep(id, &cursor, reference, session) })
    }

    private func metadataStep(
        _ id: RoomID, _ cursor: inout Int, _ batch: String, _ session: IRCSession
    ) -> ReplyGenerator.Step {
        let end = serverLine("BATCH", ["-" + batch])
        guard let room = room(id), metadata.wantsNames(session.id) else { return .last(end) }
        while let person = room.slots.next(&cursor) {
            walk.spend()
            if var line = context.identities[person].flatMap({
                MetadataSubscriptions.line(of: $0, from: settings.serverName)
            }) {
                line.setTag("batch", batch)
                return .more(line)
            }
            guard !walk.isSpent else { return .more(nil) }
        }
        return .last(end)
    }

    /// Sends the client's own metadata at registration: none.
    func tellOwnMetadata(_ session: IRCSession) {
        guard session.caps.contains(.metadata) else { return }
        replyBatch("metadata", [session.displayNick], [], session)
    }

    /// Sends the metadata of a monitored person.
    func tellMetadata(of nick: String, _ session: IRCSession) {
        guard metadata.wantsNames(session.id), let (_, person) = context.identities.person(nick: nick),
            person.isPresent, let line = MetadataSubscriptions.line(of: person, from: settings.serverName)
        else { return }
        session.appendLongAnswer(.line(line))
    }

    func tellMetadata(of person: Person, _ session: IRCSession) {
        guard metadata.wantsNames(session.id),
            let line = MetadataSubscriptions.line(of: person, from: settings.serverName)
        else { return }
        deliver(line, to: session.id)
    }

    /// Notifies clients of a new display name upstream.
    func displayNameChanged(of personID: PersonID) {
        guard !metadata.isEmpty, let person = context.identities[personID],
            let line = MetadataSubscriptions.line(of: person, from: settings.serverName)
        else {
            return
        }
        let places = rooms.filter { $0.isHere(upstream: personID) && $0.slots.contains(personID) }
        var told: Set<ClientID> = []
        for room in places {
            for client in room.locals.keys where metadata.wantsNames(client) { told.insert(client) }
        }
        for client in monitors.watchers(of: settings.casemapping.fold(person.nick)) where metadata.wantsNames(client) {
            told.insert(client)
        }
        for client in told.sorted(by: { $0.rawValue < $1.rawValue }) {
            deliver(line, to: client, amid: places.map(\.id))
        }
    }
}

import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms
import WireBytes

// REDACT of private messages.
//
// | author       | may be redacted by                                                                |
// |--------------|-----------------------------------------------------------------------------------|
// | an account   | any of its clients, while the message is stored, or recent and in memory          |
// | a visitor    | that person, while connected and the message recent; not a later user of the nick |
// | another user | none, operators included                                                          |
//
// The id selects the message. The nick only has to lead to the other party: its present nick, its nick at the time, or
// any other that denotes its account (IRCServer+PrivateHistory). Clients that share no room with a user see no NICK,
// and name the window by the old one. The new user of an old nick is not notified.
//
// Recipients are those of the message that are connected: the other party's clients, and the author's other ones. Its
// text is removed, its position in the conversation stays, as in rooms; its reactions are removed with it.

extension ActionRefusal {
    fileprivate static func forbidden(_ text: String) -> ActionRefusal {
        ActionRefusal(code: "REDACT_FORBIDDEN", text: text)
    }

    fileprivate static let notOwn = forbidden("Only your own messages can be taken back")
}

extension IRCServer {
    // MARK: - Recent messages

    /// Retains a private message for REDACT.
    ///
    /// - Parameter pair: the conversation in which it is stored; nil: it is not stored.
    func rememberPrivate(
        msgid: String, from author: PersonID, _ person: Person, to reader: PersonID, _ target: Person,
        in pair: PrivateConversations.Pair?
    ) {
        func party(_ id: PersonID, _ person: Person) -> PrivateMessage.Party {
            PrivateMessage.Party(person: id, account: person.account.map(AccountName.fold))
        }
        privateMessages.remember(
            PrivateMessage(
                msgid: msgid, author: party(author, person), reader: party(reader, target), readerNick: target.nick,
                at: context.now.wall, pair: pair))
    }

    /// The redacted message to which tags are a reaction; nil: they are none.
    func reactsToTakenBack(_ clientTags: [IRCTag]) -> String? {
        guard clientTags.contains(where: { $0.name == "+draft/react" || $0.name == "+draft/unreact" }),
            let msgid = clientTags.first(where: { $0.name == "+reply" || $0.name == "+draft/reply" })?.value,
            privateMessages.recent[msgid]?.isTakenBack == true
        else { return nil }
        return msgid
    }

    // MARK: - REDACT

    /// Source: IRCv3 message-redaction.
    func redactPrivate(_ nick: String, _ msgid: String, reason: String?, _ session: IRCSession) {
        func refuse(_ refusal: ActionRefusal) {
            reply(refusal.line("REDACT", PrintableText.word(nick), msgid, from: settings.serverName), session)
        }
        if let message = privateMessages.recent[msgid] {
            if isParty(message.author, session) {
                if !message.isTakenBack, leads(nick, to: message) {
                    return takeBack(message, as: nick, reason: reason, label: nil, session)
                }
            } else if isParty(message.reader, session) {
                return refuse(.notOwn)
            }
        }
        if let (id, person) = context.identities.person(nick: nick), id == service || !person.isLocal {
            return refuse(
                .forbidden(
                    id == service
                        ? "What \(person.nick) was told is done already"
                        : "This is a user of the chat backend (\(person.host)), which takes no private messages from here"
                ))
        }
        guard let partner = account(behind: nick) else {
            return fail(
                "REDACT", "INVALID_TARGET", [PrintableText.word(nick)],
                "There is nobody of that name whom you told anything", session)
        }
        guard let own = session.account.map({ AccountName.fold($0.name) }) else { return refuse(.unknownMessage) }
        let pair = PrivateConversations.Pair(own, partner)
        guard privateMessages.conversations.contains(pair) else { return refuse(.unknownMessage) }
        let redaction = PrivateRedaction(
            nick, msgid, reason: reason, pair, own: own, label: context.isDurable ? session.response?.label : nil)
        guard context.isDurable else {
            let found = privateMessages.conversations.archive(pair)?.message(msgid)
            if let refusal = settle(redaction, found, session) { refuse(refusal) }
            return
        }
        session.deferResponse()
        session.appendLongAnswer(
            ReplyGenerator(of: redaction) { [unowned self, unowned session] in redactionStep(redaction, session) })
    }

    private func isParty(_ party: PrivateMessage.Party, _ session: IRCSession) -> Bool {
        if let person = party.person, person == session.person { return true }
        guard let account = party.account, let own = session.account?.name else { return false }
        return account == AccountName.fold(own)
    }

    /// Whether a nick leads to the message's reader.
    private func leads(_ nick: String, to message: PrivateMessage) -> Bool {
        if settings.casemapping.fold(nick) == settings.casemapping.fold(message.readerNick) { return true }
        if let id = context.identities.person(nick: nick)?.id, id == message.reader.person { return true }
        guard let account = message.reader.account else { return false }
        return self.account(behind: nick).map(AccountName.fold) == account
    }

    /// Redacts the message that was looked up, or returns the refusal.
    ///
    /// - Parameter found: nil: there is no such message.
    private func settle(_ redaction: PrivateRedaction, _ found: StoredMessage?, _ session: IRCSession) -> ActionRefusal?
    {
        guard let found, found.msgid == redaction.msgid, found.kind == .message || found.kind == .notice,
            // Another client of the account may have redacted it first, and this one may have changed its account.
            !found.isTakenBack, privateMessages.recent[redaction.msgid]?.isTakenBack != true,
            session.account.map({ AccountName.fold($0.name) }) == redaction.own
        else { return .unknownMessage }
        guard found.account.map(AccountName.fold) == redaction.own else { return .notOwn }
        let partner = redaction.pair.partner(of: redaction.own)
        // It is unknown whether the visitor with that nick is still the reader.
        let account = PrivateConversations.nick(ofVisitor: partner) == nil ? partner : nil
        let message = PrivateMessage(
            msgid: found.msgid, author: PrivateMessage.Party(person: session.person, account: redaction.own),
            reader: PrivateMessage.Party(person: nil, account: account), readerNick: redaction.nick, at: found.at,
            pair: redaction.pair)
        takeBack(message, as: redaction.nick, reason: redaction.reason, label: redaction.label, session)
        return nil
    }

    // MARK: - Carrying it out

    /// Redacts a message.
    ///
    /// - Parameters:
    ///   - nick: the client's name for the other party.
    ///   - label: of a line with a late answer; nil: it is the line being answered, or has no label.
    private func takeBack(
        _ message: PrivateMessage, as nick: String, reason: String?, label: String?, _ session: IRCSession
    ) {
        guard let person = session.person.flatMap({ context.identities[$0] }) else { return }
        privateMessages.takeBack(message)
        forgetWords(of: message, session)
        let readers = clients(of: message.reader)
        // The present nick, if the reader is connected.
        let partner = readers.first?.displayNick ?? message.readerNick
        let isCalledSo = settings.casemapping.fold(nick) == settings.casemapping.fold(partner)
        let own = context.messageID(backend: settings.instanceID, room: "", sender: nil, id: nil)
        let tags = RoomSpeaker(person).tags(at: context.now.wall, msgid: own)
        func line(to target: String, reason: String?) -> IRCMessage {
            IRCMessage(
                tags: tags, source: person.source, command: "REDACT",
                params: [target, message.msgid] + (reason.map { [$0] } ?? []))
        }
        let age = max(0, context.now.wall.milliseconds &- message.at.milliseconds) / 1000
        let ago = "from \(PrintableText.spoken(seconds: Int(age))) ago" + (reason.map { ": " + $0 } ?? ".")
        let echo = line(to: isCalledSo ? partner : nick, reason: reason)
        let isEchoed = session.caps.contains(.echoMessage)
        outbound.outsideResponse(session) {
            let deaf = clientsMuting(person)
            for reader in readers where reader !== session || !isEchoed {
                // A reason is text, and text of a muted user is not shown.
                let isDeaf = deaf.contains(reader.id)
                tell(
                    reader, line(to: reader.displayNick, reason: isDeaf ? nil : reason),
                    isDeaf ? nil : "\(person.nick) took back a message \(ago)")
            }
            for other in clients(of: message.author)
            where other !== session && !readers.contains(where: { $0 === other }) {
                // A client that gets no messages of its own user has nothing to redact.
                let hasSeen = other.caps.contains(.echoMessage) || other.caps.contains(.selfMessage)
                tell(
                    other, line(to: partner, reason: reason),
                    hasSeen ? "\(person.nick) took back a message to \(partner) \(ago)" : nil)
            }
        }
        outbound.echo([echo], to: session.id, label: label)
        // A late answer has to end the label even if there is no line.
        if let label, !isEchoed || echo.reduced(for: session.caps, nick: session.displayNick) == nil {
            write(serverLine("ACK"), to: session, label: label)
        }
    }

    private func forgetWords(of message: PrivateMessage, _ session: IRCSession) {
        guard let pair = message.pair, privateMessages.conversations.contains(pair) else { return }
        guard context.isDurable else { return privateMessages.takeBack(message.msgid, in: pair) }
        context.keep(.takeBack(pair.storedKey, msgid: message.msgid))
        session.kept(under: context.ledger.next)
    }

    /// The connected clients of a party: of the same person, and of the account.
    private func clients(of party: PrivateMessage.Party) -> [IRCSession] {
        let holder = party.account.flatMap { context.identities.person(account: name(of: $0)) }
        let people = [party.person, holder == party.person ? nil : holder].compactMap(\.self)
        return people.flatMap { sessions(of: $0) }
    }

    /// Notifies a client of a redaction: with REDACT, or in words without that capability. The two are not forms of one
    /// line, so the capability decides here.
    ///
    /// - Parameter words: nil: without words.
    private func tell(_ client: IRCSession, _ line: IRCMessage, _ words: String?) {
        if client.caps.contains(.messageRedaction) { return deliver(line, to: client.id) }
        guard let words, privateMessages.takeWord(for: client.id, now: context.now.monotonic) else { return }
        deliver(
            IRCMessage(
                tags: [.time(context.now.wall)],
                source: settings.serverName, command: "NOTICE", params: [client.displayNick, "*** " + words]),
            to: client.id)
    }

    // MARK: - Lookup

    /// Takes a step of the lookup.
    private func redactionStep(_ redaction: PrivateRedaction, _ session: IRCSession) -> ReplyGenerator.Step {
        let refusal: ActionRefusal?
        switch redaction.phase {
        case .placing, .reading: return .waits
        case .begun:
            ask(redaction, session) { read in
                .findPlaces(
                    read, redaction.pair.storedKey,
                    StoredPageQuery(.around(.message(redaction.msgid)), limit: 1, withTakenBack: true))
            }
            return .waits
        case .found(let message): refusal = settle(redaction, message, session)
        case .failed:
            refusal = ActionRefusal(
                code: "CANNOT_DELIVER", text: "Not taken back, what was said cannot be read at the moment; try again")
        }
        if let refusal {
            let line = refusal.line(
                "REDACT", PrintableText.word(redaction.nick), redaction.msgid, from: settings.serverName)
            write(line, to: session, label: redaction.label)
        }
        return .last(nil)
    }

    private func ask(
        _ redaction: PrivateRedaction, _ session: IRCSession, _ question: (StoreReadID) -> BridgeAction
    ) {
        redaction.ask(ask(as: .redaction(session.id, redaction), question))
        context.set(.history(session.id), at: context.now.monotonic + HistoryAnswer.patience)
    }

    /// Handles the message's position.
    package func redactionPlaced(
        _ id: StoreReadID, _ outcome: Result<StoredPlaces, StoreFailure>, _ redaction: PrivateRedaction,
        for client: ClientID
    ) {
        guard redaction.isAsking(id), let session = sessions[client] else { return }
        guard case .success(let places) = outcome else { return found(redaction, outcome.map { _ in nil }, session) }
        guard let place = places.sequences.first else { return found(redaction, .success(nil), session) }
        ask(redaction, session) { read in
            .readMessages(read, redaction.pair.storedKey, after: place &- 1, through: place, limit: 1)
        }
    }

    package func redactionRead(
        _ id: StoreReadID, _ outcome: Result<[StoredMessage], StoreFailure>, _ redaction: PrivateRedaction,
        for client: ClientID
    ) {
        guard redaction.isAsking(id), let session = sessions[client] else { return }
        found(redaction, outcome.map(\.first), session)
    }

    /// Handles a time-out of the store.
    func redactionTimedOut(_ redaction: PrivateRedaction, _ session: IRCSession) {
        switch redaction.phase {
        case .begun, .found, .failed: return
        case .placing, .reading: found(redaction, .failure(StoreFailure("the disk does not answer")), session)
        }
    }

    private func found(
        _ redaction: PrivateRedaction, _ outcome: Result<StoredMessage?, StoreFailure>, _ session: IRCSession
    ) {
        switch outcome {
        case .success(let message): redaction.found(message)
        case .failure(let failure):
            note(
                .error, "history-unreadable", "what was said before cannot be read: \(failure.sentence)", of: session,
                ["reason": failure.sentence])
            redaction.fail()
        }
        context.cancel(.history(session.id))
        goOn(session)
    }
}

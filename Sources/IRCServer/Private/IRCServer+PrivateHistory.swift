import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms

// Private conversations of IRC users, and their history.
//
// A conversation belongs to two accounts, its parties, which may be the same. Its messages have one order, common to
// both, as those of a room do: each has the msgid and the time of its lines as delivered. A user without an account is
// a visitor: an account's conversation with one is with any user of that nick without an account, as its client's
// window shows it. Conversations between visitors are not stored, since their owners could not be identified later.
//
// A client refers to a conversation by a nick. The nick denotes one account, visitors, or none, for any client:
//
// | nick                                                          | denotes                                         |
// |---------------------------------------------------------------|-------------------------------------------------|
// | used by an IRC user with an account                           | that account                                    |
// | used by an IRC user without an account                        | that nick's visitors: no account with it before |
// | used by an upstream user                                      | none                                            |
// | unused; the name of a registered account                      | that account, for which the name is reserved    |
// | unused; last used by an account or visitor with conversations | that account, or the visitors of that nick      |
// | unused; an unregistered account with conversations            | that account: it uses a token, or was removed   |
// | any other                                                     | none                                            |
//
// A client sees the conversation of its own account with that one, and no other:
//
// | client                              | sees                                                                        |
// |-------------------------------------|-----------------------------------------------------------------------------|
// | without an account                  | nothing, not even its own messages: its nick had others before              |
// | of the one party                    | all of it, messages sent and received, under each nick of the other         |
// | of the other party                  | the same, under each nick of the one                                        |
// | of an account that writes to itself | its messages, once, under its own nick                                      |
// | that logs in later                  | the account's view from then on; its earlier messages are the other's alone |
// | with the nick of a party            | its own conversations: a nick grants no access                              |
// | of a new account with an old name   | nothing of the earlier account of that name                                 |
// | with the other party muted          | nothing until it is unmuted: then all of it                                 |
//
// Where a nick denotes none, or there is no such conversation, a page is empty, which is no failure: clients send
// requests on their own whenever a user opens a window. TARGETS and SEARCH give the other party's present nick, its
// last nick or its account name: the first of these that a request for it would resolve.
//
// Lines are replayed as delivered, except for names by which clients sort: a sent message has the user's present
// source, and the other party's nick as its target; a received message has the source of then, and the user's present
// nick as its target.

extension IRCServer {
    // MARK: - Parties

    /// The account, or the visitors, that a nick denotes; nil: none that can have a conversation.
    func account(behind nick: String) -> String? {
        if let (_, person) = context.identities.person(nick: nick) { return person.isLocal ? party(person) : nil }
        if let known = accounts[nick]?.name ?? privateMessages.conversations.holder(of: settings.casemapping.fold(nick))
        {
            return known
        }
        // An account that logs in with a token is not registered.
        return PrivateConversations.nick(ofVisitor: nick) == nil
            ? privateMessages.conversations.name(of: AccountName.fold(nick)) : nil
    }

    func party(_ person: Person) -> String {
        person.account ?? PrivateConversations.visitor(settings.casemapping.fold(person.nick))
    }

    func name(of account: String) -> String {
        accounts[account]?.name ?? privateMessages.conversations.name(of: account) ?? account
    }

    /// A nick that denotes the account in requests.
    func nick(of account: String) -> String? {
        let name = name(of: account)
        let present = context.identities.person(account: account).flatMap { context.identities[$0]?.nick }
        return [present, privateMessages.conversations.lastNick(of: account), name].compactMap(\.self).first { nick in
            self.account(behind: nick).map(AccountName.fold) == account
        }
    }

    private func view(_ session: IRCSession, _ partner: String, nick: String) -> PrivateView? {
        guard let own = session.account?.name else { return nil }
        let pair = PrivateConversations.Pair(own, partner)
        let target =
            PrivateConversations.nick(ofVisitor: partner).map(AccountPreferences.Target.nick)
            ?? .account(AccountName.fold(partner))
        guard privateMessages.conversations.isShown(pair, to: AccountName.fold(own)),
            !choices.isMuted(target, by: choicesOwner(session))
        else {
            return nil
        }
        return PrivateView(pair: pair, own: AccountName.fold(own), partner: nick)
    }

    /// The session's view of the conversation with the user that a nick denotes; nil: it sees nothing.
    func view(_ session: IRCSession, nick: String) -> PrivateView? {
        guard session.account != nil, let partner = account(behind: nick) else { return nil }
        return view(session, partner, nick: context.identities.person(nick: nick)?.person.nick ?? nick)
    }

    // MARK: - Messages

    /// Stores a private message or action, if it belongs to an account.
    ///
    /// - Returns: the conversation; nil: it is not stored.
    func keepPrivate(
        _ verb: MessageVerb, _ words: SpokenText?, _ clientTags: [IRCTag], msgid: String, from person: Person,
        to target: Person, _ session: IRCSession
    ) -> PrivateConversations.Pair? {
        guard person.account != nil || target.account != nil, let kind = Self.kind(of: verb, words, clientTags) else {
            return nil
        }
        let (author, reader) = (party(person), party(target))
        let pair = PrivateConversations.Pair(author, reader)
        privateMessages.open(pair, names: [author, reader], inMemory: !context.isDurable)
        for party in [person, target] { noteNick(of: party) }
        let now = context.now.wall
        let message = StoredMessage(
            kind: kind, sequence: privateMessages.takePlace(in: pair, by: author, at: kind == .event ? nil : now),
            msgid: msgid,
            at: now, nick: person.nick, source: person.source, account: person.account,
            text: words?.text ?? verb.rawValue,
            clientTags: clientTags.annotations,
            author: context.identities.puppetID(of: person, backend: ""), client: session.clientName)
        if context.isDurable {
            context.keep(.message(pair.storedKey, message))
            session.kept(under: context.ledger.next)
        } else {
            privateMessages.append(message, to: pair)
        }
        keepConversationChanges()
        return pair
    }

    /// The kind of a stored message; nil: it is not stored. Of actions, reactions are stored, and those that ask for
    /// it, as in rooms; CTCP queries are not.
    private static func kind(
        of verb: MessageVerb, _ words: SpokenText?, _ clientTags: [IRCTag]
    ) -> StoredMessage.Kind? {
        if verb == .tagmsg {
            if clientTags.contains(where: { $0.name == IRCClientTags.persist }) { return .event }
            let reacts = clientTags.contains { $0.name == "+draft/react" || $0.name == "+draft/unreact" }
            return reacts && clientTags.contains { $0.name == "+reply" || $0.name == "+draft/reply" } ? .event : nil
        }
        guard let text = words?.text, !text.isEmpty, !MessageRendering.isForeignCTCP(text) else { return nil }
        return verb == .notice ? .notice : .message
    }

    private func noteNick(of person: Person) {
        privateMessages.note(person.nick, folded: settings.casemapping.fold(person.nick), of: party(person))
    }

    /// Notes that a nick was released.
    package func nickReleased(by person: Person) {
        // Not a visitor's: one without conversations takes no nick from a party that had it.
        guard privateMessages.conversations.count > 0, person.isLocal, person.account != nil else { return }
        noteNick(of: person)
        keepConversationChanges()
    }

    private func keepConversationChanges() {
        for change in privateMessages.takeChanges() { context.keep(change) }
    }

    /// Restores the conversations, after the accounts.
    package func restoreConversations(_ stored: StoredState) {
        privateMessages.restore(stored.conversations, stored.nicks, spell: accounts.spelling)
        keepConversationChanges()
    }

    /// Purges the conversations of an earlier account of this name.
    /// - Returns: how many there were.
    func forgetConversations(of account: String) -> Int {
        let before = privateMessages.conversations.count
        privateMessages.forget(account: account)
        keepConversationChanges()
        return before - privateMessages.conversations.count
    }

    // MARK: - Queries

    /// The conversations of the session's account: the nicks of the other parties and the times of the last messages.
    func privateTargets(_ session: IRCSession) -> [(at: ChatTimestamp, name: String)] {
        guard let own = session.account?.name else { return [] }
        return privateMessages.conversations.newest(of: own).compactMap { partner, at in
            nick(of: partner).flatMap { view(session, partner, nick: $0) }.map { (at, $0.partner) }
        }
    }

    /// The conversations that a search includes.
    ///
    /// - Parameter nick: the other party; nil: all of them.
    func searchedConversations(with nick: String?, _ session: IRCSession) -> [PrivateView] {
        if let nick { return view(session, nick: nick).map { [$0] } ?? [] }
        guard let own = session.account?.name else { return [] }
        return privateMessages.conversations.newest(of: own).sorted { $0.partner < $1.partner }.compactMap {
            partner, _ in
            self.nick(of: partner).flatMap { view(session, partner, nick: $0) }
        }
    }

    // MARK: - Pages

    /// The messages of a conversation; nil: they are in the store. Empty for one that was evicted meanwhile.
    func privateArchive(of view: PrivateView) -> MemoryLog? {
        privateMessages.conversations.archive(view.pair) ?? (context.isDurable ? nil : MemoryLog())
    }

    /// Takes the positions of the page.
    ///
    /// - Returns: false: they have to be requested by other references.
    func privatePlaced(_ answer: HistoryAnswer, _ places: StoredPlaces) -> Bool {
        guard case .conversation(let view, let subcommand, let target, let query) = answer.question else { return true }
        for (reference, span) in zip(query.references, places.spans) where span == nil {
            guard case .message(let msgid) = reference else { continue }
            // It was delivered, but not stored.
            if let said = privateMessages.recent[msgid], said.pair == view.pair {
                let byTime = query.mapReferences { $0 == reference ? .messageOrTime(msgid, said.at) : $0 }
                answer.ask(instead: .conversation(view, subcommand: subcommand, target: target, byTime))
                return false
            }
            answer.fail(.unknown(msgid, subcommand, target))
            return true
        }
        answer.placed([], places: places.sequences)
        return true
    }

    func lines(of message: StoredMessage, in view: PrivateView, for session: IRCSession) -> [IRCMessage] {
        var message = message
        let isOwn = message.account.map(AccountName.fold) == view.own
        let isToPartner = isOwn && view.pair.one != view.pair.other
        // A client that has logged in to another account meanwhile is not its author.
        if isOwn, let person = session.person.flatMap({ context.identities[$0] }),
            person.account.map(AccountName.fold) == view.own
        {
            message.source = person.source
        }
        let target = isToPartner ? view.partner : session.displayNick
        if message.isTakenBack {
            // Only the author can have redacted it, and its source decides the client's window.
            let time = IRCTag.time(message.at)
            return [
                IRCMessage(tags: [time], source: message.source, command: "REDACT", params: [target, message.msgid])
            ]
        }
        if message.kind == .event { return [message.eventLine(in: target)] }
        return privateRenderer(target: target, for: session).lines(of: message)
    }

    private func privateRenderer(target: String, for session: IRCSession) -> BacklogRenderer {
        BacklogRenderer(
            channel: target, serverName: settings.serverName, limits: settings.limits, files: nil,
            showsTime: !session.caps.contains(.serverTime), now: context.now.wall, caps: session.caps,
            address: { _ in nil }, reference: nextBatchReference)
    }
}

import Accounts
import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms

// What IRC users said to each other in private, for those who ask for it.
//
// Words: a conversation belongs to two accounts, its parties; they may be the same. Its messages lie in one order, the same for
// both, as those of a room do: each has the msgid and the time that its lines bore when they went out. Who has no account is a
// visitor: for the account that talks to one there is a conversation with whoever has that nick without an account, as its
// client's window shows it. What visitors say to each other is not kept, since afterwards nobody could tell to whom it belongs.
//
// A client names a conversation by a nick. The nick stands for one account, for visitors, or for nobody, whoever asks:
//
// | the nick                                                       | stands for                                            |
// |----------------------------------------------------------------|--------------------------------------------------------|
// | is had by an IRC user who is logged in                         | that account                                           |
// | is had by an IRC user who is not                               | the visitors of that nick: no account that had it before |
// | is had by somebody upstream                                    | nobody                                                 |
// | is had by nobody, and is the name of an account                | that account, for which the name is kept               |
// | is had by nobody; an account or visitor with conversations had it last | that account, or the visitors of that nick      |
// | is had by nobody, and an account with conversations is called so that is in no book, since it logs in with a token or is gone | that account |
// | is anything else                                               | nobody                                                 |
//
// Who asks sees the conversation of their own account with that one, and no other:
//
// | who asks                              | sees                                                                          |
// |---------------------------------------|--------------------------------------------------------------------------------|
// | a client without an account           | nothing, not even what it said itself: others had its nick before              |
// | any client of the one party           | all of it, what it said itself and what it was told, under each nick of the other |
// | any client of the other party         | the same, under each nick of the one                                           |
// | any client of who talks to themselves | what they said, once, under their own nick                                     |
// | a client that logs in later           | from then on what the account sees; what it said before is the other's alone   |
// | whoever has the nick of a party now   | their own conversations: a nick opens none                                     |
// | who makes an account of an old name   | nothing of what the account of that name had before                           |
// | who has muted the other               | nothing, until they hear them again: then all of it                            |
//
// Where a nick stands for nobody, or there is no such conversation, a page is empty, which is no failure: clients ask by
// themselves whenever somebody opens a window. TARGETS and SEARCH call the other by the nick that they have now, or had last, or
// by their account's name: by the first of these that would be understood if it was asked for.
//
// The lines are as they were, but for names that clients sort by: what somebody said comes from who they are now, to the nick of
// the other; what they were told comes from whom it came from then, to their own nick of now.

extension IRCServer {
    // MARK: - Who is who

    /// The account, or the visitors, that a nick stands for; nil: nobody that anybody has a conversation with.
    func account(behind nick: String) -> String? {
        if let (_, person) = context.identities.person(nick: nick) { return person.isLocal ? party(person) : nil }
        if let known = accounts[nick]?.name ?? privateMessages.conversations.holder(of: settings.casemapping.fold(nick))
        {
            return known
        }
        // Who logs in with a token has an account that is in no book.
        return PrivateConversations.nick(ofVisitor: nick) == nil
            ? privateMessages.conversations.name(of: AccountName.fold(nick)) : nil
    }

    func party(_ person: Person) -> String {
        person.account ?? PrivateConversations.visitor(settings.casemapping.fold(person.nick))
    }

    func name(of account: String) -> String {
        accounts[account]?.name ?? privateMessages.conversations.name(of: account) ?? account
    }

    /// The nick by which an account can be asked about.
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

    /// What the session sees of whoever the nick stands for; nil: nothing.
    func view(_ session: IRCSession, nick: String) -> PrivateView? {
        guard session.account != nil, let partner = account(behind: nick) else { return nil }
        return view(session, partner, nick: context.identities.person(nick: nick)?.person.nick ?? nick)
    }

    // MARK: - What is said

    /// Keeps what one IRC user said to another, or did, if it belongs to an account.
    ///
    /// - Returns: where it is kept; nil: nowhere.
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

    /// Nil: that is nothing to keep. Of what is done reactions are, and what is to be, as in rooms; questions of programs to each other
    /// are nobody's words.
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

    /// Somebody has a nick no longer.
    package func nickReleased(by person: Person) {
        // A visitor who talked to nobody takes no nick away from whom others talked to.
        guard privateMessages.conversations.count > 0, person.isLocal, person.account != nil else { return }
        noteNick(of: person)
        keepConversationChanges()
    }

    private func keepConversationChanges() {
        for change in privateMessages.takeChanges() { context.keep(change) }
    }

    /// Takes up what an earlier process kept. After the accounts.
    package func restoreConversations(_ stored: StoredState) {
        privateMessages.restore(stored.conversations, stored.nicks) { accounts[$0]?.name ?? $0 }
        keepConversationChanges()
    }

    /// Somebody made an account of this name: what is kept of one that had it before is not theirs.
    func forgetConversations(ofEarlier account: String) {
        privateMessages.forget(account: account)
        keepConversationChanges()
    }

    // MARK: - What is asked

    /// The conversations of the session's account, by the nicks of the others, with the times when something was said last.
    func privateTargets(_ session: IRCSession) -> [(at: ChatTimestamp, name: String)] {
        guard let own = session.account?.name else { return [] }
        return privateMessages.conversations.newest(of: own).compactMap { partner, at in
            nick(of: partner).flatMap { view(session, partner, nick: $0) }.map { (at, $0.partner) }
        }
    }

    /// The conversations that a search looks into.
    ///
    /// - Parameter nick: with whom; nil: all of them.
    func searchedConversations(with nick: String?, _ session: IRCSession) -> [PrivateView] {
        if let nick { return view(session, nick: nick).map { [$0] } ?? [] }
        guard let own = session.account?.name else { return [] }
        return privateMessages.conversations.newest(of: own).sorted { $0.partner < $1.partner }.compactMap {
            partner, _ in
            self.nick(of: partner).flatMap { view(session, partner, nick: $0) }
        }
    }

    // MARK: - Pages

    /// The messages of a conversation; nil: the store has them. One that had to go meanwhile is empty.
    func privateArchive(of view: PrivateView) -> MemoryLog? {
        privateMessages.conversations.archive(view.pair) ?? (context.isDurable ? nil : MemoryLog())
    }

    /// The page's places are known.
    ///
    /// - Returns: false: one has to ask for them otherwise.
    func privatePlaced(_ answer: HistoryAnswer, _ places: StoredPlaces) -> Bool {
        guard case .conversation(let view, let subcommand, let target, let query) = answer.question else { return true }
        for (reference, span) in zip(query.references, places.spans) where span == nil {
            guard case .message(let msgid) = reference else { continue }
            // It was delivered, and could not be stored.
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
        // Who logged in as somebody else while this was on its way did not say it.
        if isOwn, let person = session.person.flatMap({ context.identities[$0] }),
            person.account.map(AccountName.fold) == view.own
        {
            message.source = person.source
        }
        let target = isToPartner ? view.partner : session.displayNick
        if message.isTakenBack {
            // Only who said it can have taken it back; and from whom it comes says in which window it was.
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

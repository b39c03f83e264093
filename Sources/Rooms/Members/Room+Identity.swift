import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// Who an IRC user is upstream.
//
// | identity | who speaks         | how IRC users are told apart                                              |
// |----------|--------------------|---------------------------------------------------------------------------|
// | puppet   | each for themselves | an id and a name of their own                                            |
// | single   | the one account    | a place for the name where the wire has one, else a prefix of the text    |

extension Room {
    /// The room's account on the backend is known: what comes under its id or name is its own.
    package func accountIdentified(_ person: ChatPerson, _ context: RoomsContext) {
        guard settings.identity == .single else { return }
        account.identified(as: person)
        spreadAccount(person, context)
    }

    private func spreadAccount(_ person: ChatPerson, _ context: RoomsContext) {
        lane.isAlso(person)
        for own in own.values { barIfShared(own, context) }
    }

    /// Whether a message of `sender` can be the account's: it is, or nobody has told us under which id or name the account
    /// speaks. Where it can, a message of ours is known by what else is known of it.
    func mayBeAccount(_ sender: ChatPerson) -> Bool {
        guard settings.identity == .single else { return false }
        if lane.dialectContext.isSelf(sender) { return true }
        return account.mayBe(sender)
    }

    /// The account may have become known since the frame was read.
    func markedAsOurs(_ message: ChatMessage) -> ChatMessage {
        guard settings.identity == .single, !message.isSelf, lane.dialectContext.isSelf(message.sender) else {
            return message
        }
        var message = message
        message.isSelf = true
        return message
    }

    /// A message of ours came back: whoever it came from is the account.
    func learnAccount(from message: ChatMessage, _ context: RoomsContext) {
        let sender = message.sender
        guard settings.identity == .single, !lane.dialectContext.isSelf(sender), mayBeAccount(sender) else { return }
        // Where the wire has a place for the name, that is the IRC user's.
        let person = ChatPerson(id: sender.id, name: sendsSenderName ? nil : sender.name)
        guard person.id != nil || person.name != nil else { return }
        if traits.messageIDOrigin == .server, message.ref == nil {
            account.guessed(person)
        } else {
            account.identified(as: person)
        }
        spreadAccount(person, context)
        context.note(
            .info, "account-learned", "the backend sent a message of ours back; its sender is our account",
            ["room": settings.name])
    }

    /// A message does not come back. Where the account was learned from a text alone, somebody may have repeated that
    /// text before the backend did; then it is learned anew.
    func doubtAccount(_ context: RoomsContext) {
        guard let guess = account.takeGuess() else { return }
        lane.isNoLonger(guess)
        context.note(
            .info, "account-doubted", "no message of ours comes back from what was taken for our account",
            ["room": settings.name])
    }

    /// Who an IRC user is upstream: themselves where the wire lets us name any sender, else the one account.
    package func upstreamPerson(_ person: Person, _ puppet: ChatID) -> ChatPerson {
        if let own = ownLink(of: person) { return own.speaker(nick: person.nick) }
        guard settings.identity == .single else { return ChatPerson(id: puppet, name: person.nick) }
        return sendsSenderName ? ChatPerson(id: accountPerson.id, name: person.nick) : accountPerson
    }

    var sendsSenderName: Bool { traits.sendsSenderName }

    /// What stands in front of an IRC user's words where the one account says them.
    private func prefix(of person: Person) -> String {
        settings.identity == .single && !sendsSenderName && ownLink(of: person) == nil
            ? settings.singlePrefix.replacing("{nick}", with: person.nick) : ""
    }

    /// What goes up of an IRC user's text. `quoting`: the message that it answers, where the wire cannot say which.
    func upstreamText(
        _ text: String, quoting answered: RecentMessages.Entry?, _ person: Person, _ context: RoomsContext
    ) -> String {
        // No wire has actions.
        let words = MessageText.action(text)
        let plain = withNames(MessageText.withoutFormatting(words ?? text), context)
        var whole = words == nil ? plain : "* \(person.nick) \(plain)"
        if let answered { whole = "<\(answered.nick)> \(answered.excerpt)\n" + whole }
        // An action names its author already, unless the quotation stands in front of it.
        return words != nil && answered == nil ? whole : prefix(of: person) + whole
    }

    // MARK: - The account's own words

    /// The IRC user and the words in a message of the account that has our prefix: it was said through this bridge before
    /// it was started anew, or through another one. Nil for every other message.
    func ownWordsQuoted(_ message: ChatMessage) -> (nick: String, text: String)? {
        guard settings.identity == .single, message.isSelf, !sendsSenderName,
            let mark = settings.singlePrefix.firstRange(of: "{nick}")
        else { return nil }
        let front = settings.singlePrefix[..<mark.lowerBound]
        let back = settings.singlePrefix[mark.upperBound...]
        guard !back.isEmpty, message.text.hasPrefix(front) else { return nil }
        let head = message.text.dropFirst(front.count).prefix(Self.maxQuotedNick)
        guard let end = head.firstRange(of: back), end.lowerBound > head.startIndex else { return nil }
        let nick = String(head[..<end.lowerBound])
        guard !nick.contains(" ") else { return nil }
        return (nick, String(message.text[end.upperBound...]))
    }

    /// Who is shown as the speaker. Where the wire has a place for the name, the account under another name is whoever
    /// that is, and not the account renamed.
    func personBehind(_ sender: ChatPerson) -> ChatPerson {
        guard settings.identity == .single, sendsSenderName, let name = sender.name, name != accountPerson.name,
            lane.dialectContext.isSelf(sender)
        else { return sender }
        return ChatPerson(name: name)
    }

    /// No nick is longer than this, in characters; a message may be.
    private static let maxQuotedNick = 120

    // MARK: - Typing and reading as one

    /// How often typing is said again while it goes on.
    var typingRepeat: Duration { traits.typingRefresh }

    /// When it was last said that the one account types, if that still holds; nil where everybody types for themselves.
    func accountTypingTold(
        within interval: Duration, by member: LocalMember, _ context: RoomsContext
    ) -> MonotonicInstant? {
        guard ownLink(of: member, context) == nil, settings.identity == .single, let told = account.typingToldAt,
            context.now.monotonic - told < interval
        else { return nil }
        return told
    }

    // MARK: - Accounts with links of their own

    /// Enters under which ids and names the backend shows the account. Whoever was shown under these is the IRC user now.
    func claim(_ own: OwnLink, _ context: RoomsContext) {
        guard !barIfShared(own, context) else { return }
        self.own.claim(own)
        guard own.emptySince == nil else { return }
        let people =
            own.dialectContext.selfIDs.map { ChatPerson(id: $0) }
            + own.dialectContext.selfNames.map { ChatPerson(name: $0) }
        for person in people {
            let key = IdentityMap.remoteKey(person, backend: settings.backend)
            if let stranger = context.identities.known(key) { remoteLeft(stranger, reason: nil, context) }
        }
    }

    /// Whether the backend sees the account as the one of the room's own link; nothing of it goes out then.
    @discardableResult
    func barIfShared(_ own: OwnLink, _ context: RoomsContext) -> Bool {
        guard settings.identity == .single, !own.isBarred else { return own.isBarred }
        let isRoomsIDKnown =
            accountPerson.id != context.identities.puppetID(nick: "chatbridge", backend: settings.backend)
        // Two people may have one name where there are ids.
        let isSameName = !own.dialectContext.selfNames.isDisjoint(with: lane.dialectContext.selfNames)
        let isShared =
            !own.dialectContext.selfIDs.isDisjoint(with: lane.dialectContext.selfIDs)
            || isSameName && !(own.isIDKnown && isRoomsIDKnown)
        guard isShared else { return false }
        own.bar()
        self.own.disclaim(own)
        context.note(
            .error, "own-login-barred", "an account's own login is the account that the room itself uses",
            ["room": settings.name, "account": own.account])
        tell(
            own,
            "Your own login at \(settings.url.host) is the one that the bridge itself uses in this room, so it "
                + "cannot be yours. What you write here is not sent; have the operator give you another.", context)
        return true
    }
}

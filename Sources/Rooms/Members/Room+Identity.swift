import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// The upstream identity of an IRC user.
//
// | identity | upstream sender     | distinguishing IRC users                                                  |
// |----------|---------------------|---------------------------------------------------------------------------|
// | puppet   | each IRC user       | an id and a name for each                                                 |
// | single   | the one account     | the wire's name field, else a prefix of the text                          |

extension Room {
    /// Records the room's account on the backend: messages under its id or name are the relay's.
    package func accountIdentified(_ person: ChatPerson, _ context: RoomsContext) {
        guard settings.identity == .single else { return }
        account.identified(as: person)
        spreadAccount(person, context)
    }

    /// The account by what the backend has said of it; nil: nothing.
    package var announcedAccount: ChatPerson? { account.announced }

    private func spreadAccount(_ person: ChatPerson, _ context: RoomsContext) {
        lane.isAlso(person)
        for own in own.values { barIfShared(own, context) }
    }

    /// Whether `sender` can be the account: it is, or the account's id and name are unknown. In that case a relayed
    /// message is recognised by its other properties.
    func mayBeAccount(_ sender: ChatPerson) -> Bool {
        guard settings.identity == .single else { return false }
        if lane.dialectContext.isSelf(sender) { return true }
        return account.mayBe(sender)
    }

    /// Marks a message of the account, which may have become known since the frame was read.
    func markedAsOurs(_ message: ChatMessage) -> ChatMessage {
        guard settings.identity == .single, !message.isSelf, lane.dialectContext.isSelf(message.sender) else {
            return message
        }
        var message = message
        message.isSelf = true
        return message
    }

    /// Learns the account's name from a message that another program sent as it: who speaks under another name where the
    /// wire has a field for it is another person.
    func learnAccountName(from message: ChatMessage) {
        guard message.isUnderOwnName, let name = message.sender.name, name != accountPerson.name,
            settings.identity == .single, lane.dialectContext.isSelf(message.sender)
        else { return }
        account.isCalled(name)
    }

    /// Learns the account from the sender of an echo.
    func learnAccount(from message: ChatMessage, _ context: RoomsContext) {
        let sender = message.sender
        guard settings.identity == .single, !lane.dialectContext.isSelf(sender), mayBeAccount(sender) else { return }
        // Where the wire has a name field, it holds the IRC user's.
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

    /// Reconsiders the account when a message is not echoed: if it was inferred from a text alone, that text may have
    /// been another person's.
    func doubtAccount(_ context: RoomsContext) {
        guard let guess = account.takeGuess() else { return }
        lane.isNoLonger(guess)
        context.note(
            .info, "account-doubted", "no message of ours comes back from what was taken for our account",
            ["room": settings.name])
    }

    /// The upstream sender for an IRC user: themselves where the wire admits any sender, else the account.
    package func upstreamPerson(_ person: Person, _ puppet: ChatID) -> ChatPerson {
        if let own = ownLink(of: person) { return own.speaker(nick: person.nick) }
        guard settings.identity == .single else { return ChatPerson(id: puppet, name: person.nick) }
        return sendsSenderName ? ChatPerson(id: accountPerson.id, name: person.nick) : accountPerson
    }

    var sendsSenderName: Bool { traits.sendsSenderName }

    /// The prefix of an IRC user's text where the account speaks for them.
    private func prefix(of person: Person) -> String {
        settings.identity == .single && !sendsSenderName && ownLink(of: person) == nil
            ? settings.singlePrefix.replacing("{nick}", with: person.nick) : ""
    }

    /// The upstream form of an IRC user's text. `quoting`: the answered message, where the wire has no reply field.
    func upstreamText(
        _ text: String, quoting answered: RecentLog.Entry?, _ person: Person, _ context: RoomsContext
    ) -> String {
        // No wire has actions.
        let words = MessageText.action(text)
        let plain = withNames(MessageText.withoutFormatting(words ?? text), context)
        var whole = words == nil ? plain : "* \(person.nick) \(plain)"
        if let answered { whole = "<\(answered.nick)> \(answered.excerpt)\n" + whole }
        // An action names its author already, unless a quotation stands in front of it.
        return words != nil && answered == nil ? whole : prefix(of: person) + whole
    }

    // MARK: - The account's own messages

    /// The IRC user and the text in a message of the account with the relay's prefix: relayed before a restart, or by
    /// another relay. Nil for every other message.
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

    /// The person shown as the speaker. Where the wire has a name field, the account under another name is that person,
    /// not the account renamed.
    func personBehind(_ sender: ChatPerson) -> ChatPerson {
        guard settings.identity == .single, sendsSenderName, let name = sender.name, name != accountPerson.name,
            lane.dialectContext.isSelf(sender)
        else { return sender }
        return ChatPerson(name: name)
    }

    /// No nick is longer than this, in characters; a message may be.
    private static let maxQuotedNick = 120

    // MARK: - Typing and reading by the account

    /// Interval at which ongoing typing is repeated.
    var typingRepeat: Duration { traits.typingRefresh }

    /// The time of the last typing notification for the account, while it holds; nil where each user types for
    /// themselves.
    func accountTypingTold(
        within interval: Duration, by member: LocalMember, _ context: RoomsContext
    ) -> MonotonicInstant? {
        guard ownLink(of: member, context) == nil, settings.identity == .single, let told = account.typingToldAt,
            context.now.monotonic - told < interval
        else { return nil }
        return told
    }

    // MARK: - Accounts with links of their own

    /// Registers the ids and names under which the backend shows the account. A person shown under these before is the
    /// IRC user now.
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

    /// Whether the backend sees the account as the room's own; its messages are blocked then.
    @discardableResult
    func barIfShared(_ own: OwnLink, _ context: RoomsContext) -> Bool {
        guard settings.identity == .single, !own.isBarred else { return own.isBarred }
        let isRoomsIDKnown =
            accountPerson.id != context.identities.puppetID(nick: "chatbridge", backend: settings.backend)
        // Where there are ids, two people may share a name.
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

import BridgeTypes
import ChatModel
import Dialects
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

    /// Tells the backend that a message has reached somebody here, where the wire wants to know that.
    func reportDelivery(of message: ChatMessage, _ context: RoomsContext) {
        guard settings.dialect.traits.reportsDelivery, link.isUp, !message.isSelf, let id = message.id,
            // Over the room's link nobody speaks who has one of their own.
            let member = locals.values.filter({ ownLink(of: $0, context) == nil })
                .min(by: { $0.client.rawValue < $1.client.rawValue }),
            let person = context.identities[member.person]
        else { return }
        lane.addReceipts([(upstreamPerson(person, member.puppet), id, .delivered)])
        pump(lane, context)
    }

    /// Tells the backend what an IRC user has read, oldest first, in the way that the wire knows.
    func reportReading(
        _ entries: [RecentMessages.Entry], reader: ChatPerson, over lane: SendLane, _ context: RoomsContext
    ) {
        guard lane.canSpeak || traits.readReport == .call else { return }
        var unread = entries
        if lane !== self.lane || settings.identity == .single {
            // The account has read what any of its users has; its own messages need no reading.
            unread = unread.filter { entry in
                entry.sequence > lane.readSequence && !(entry.puppet.map { isSpeaker($0, over: lane) } ?? false)
            }
            lane.read(upTo: entries.last?.sequence ?? -1)
        }
        switch traits.readReport {
        case .none: break
        case .eachMessage:
            lane.addReceipts(unread.compactMap { entry in entry.upstreamID.map { (reader, $0, .read) } })
        case .upTo:
            guard let newest = unread.last(where: { $0.upstreamID != nil })?.upstreamID else { return }
            lane.setReceipt(reader, upTo: newest)
        case .call:
            if !unread.isEmpty { lane.callMarkRead(context) }
        }
    }

    private func isSpeaker(_ puppet: ChatID, over lane: SendLane) -> Bool {
        (own.values.first { $0.puppet == puppet } ?? self.lane) === lane
    }
}

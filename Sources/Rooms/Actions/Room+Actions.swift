import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// What is done to messages that are there already: edits, taking back, reactions.
//
// What an IRC user does here is sent once and at once: it is not kept while there is no link, since nobody wants yesterday's
// reaction to arrive today. It is shown to the other IRC users when the socket took it, or where the backend answers, when it
// has; what is refused is undone (OpenActions.swift). Should the backend send it round to its author too, that is recognised.

extension Room {
    /// Bytes of an emoji; the longest family in Unicode takes 28.
    static let maxReactionBytes = 64

    // MARK: - Taking back

    /// An IRC user takes a message back.
    ///
    /// - Parameters:
    ///   - label: for an answer that comes later; nil when there is nothing to answer.
    func redact(
        _ msgid: String, reason: String?, from client: ClientID, right: RedactionRight, label: String?,
        _ context: RoomsContext
    ) -> RoomReply {
        guard let entry = recent.entry(msgid: msgid), !entry.isTakenBack else { return .refused(.unknownMessage) }
        if let why = barrier(to: entry, from: client, right, context) {
            return .refused(ActionRefusal(code: "REDACT_FORBIDDEN", text: why))
        }
        let probe = ChatDelete(ids: [Self.anyID], room: settings.upstreamRoom, sender: accountPerson)
        guard canSay(.delete(probe)) else {
            return .refused(
                ActionRefusal(
                    code: "REDACT_FORBIDDEN", text: "\(settings.url.host) knows no way to take a message back"))
        }
        if openActions.isAwaited(msgid: msgid) {
            return .refused(
                ActionRefusal(
                    code: "CANNOT_DELIVER",
                    text: "\(settings.url.host) was asked already to take it back, and has not answered yet"))
        }
        return onceKnown(entry, .takeBack, client, label, context) { id, laterLabel in
            self.redact(
                entry, id, reason: reason, from: client, label: laterLabel,
                answerLabel: self.traits.answersDeletes ? label : nil, context)
        }
    }

    /// Why an IRC user may not take a message back, as a sentence; nil: they may.
    private func barrier(
        to entry: RecentMessages.Entry, from client: ClientID, _ right: RedactionRight, _ context: RoomsContext
    ) -> String? {
        guard entry.puppet != locals[client]?.puppet else { return nil }
        switch right {
        case .everybodys: return nil
        case .own: return "Only your own messages can be taken back"
        case .ofIRCUsers:
            guard let author = entry.puppet else {
                return "\(entry.nick) is on \(settings.url.host), where IRC operators have no say"
            }
            guard !isOwnPuppet(author, context) else {
                return "\(entry.nick) speaks on \(settings.url.host) as themselves, and alone can take that back"
            }
            return nil
        }
    }

    /// Whether this is an IRC user whom the backend knows by a login of their own, here now or not.
    private func isOwnPuppet(_ puppet: ChatID, _ context: RoomsContext) -> Bool {
        context.settings.ownLogins.contains { account, logins in
            logins[settings.name] != nil
                && context.identities.puppetID(account: account, backend: settings.backend) == puppet
        }
    }

    /// - Parameters:
    ///   - label: for what is shown at once; nil: the caller answers.
    ///   - answerLabel: for what is shown when the backend has answered.
    private func redact(
        _ entry: RecentMessages.Entry, _ id: ChatID, reason: String?, from client: ClientID, label: String?,
        answerLabel: String?, _ context: RoomsContext
    ) -> RoomReply {
        guard let member = locals[client], let person = context.identities[member.person],
            let known = recent.entry(msgid: entry.msgid), !known.isTakenBack, !openActions.isAwaited(msgid: entry.msgid)
        else { return .refused(.unknownMessage) }
        // What another IRC user said, the backend has from us: their name takes it back.
        let other =
            entry.formerPuppet
            ?? entry.puppet.flatMap { $0 == member.puppet || isOwnPuppet($0, context) ? nil : $0 }
        let sender =
            other.map { settings.identity == .single ? accountPerson : ChatPerson(id: $0, name: entry.nick) }
            ?? upstreamPerson(person, member.puppet)
        let command = ChatCommand.delete(ChatDelete(ids: [id], room: settings.upstreamRoom, sender: sender))
        let speaker = other == nil ? person : nil
        if let why = act(command, by: speaker, context) {
            return .refused(ActionRefusal(code: "CANNOT_DELIVER", text: "Not taken back, \(why)"))
        }
        var action = OpenActions.Action(
            link: (speaker.map { lane(of: $0) } ?? lane).id, target: id,
            deed: .takeBack(known, before: [], reason: reason), client: client, person: person,
            personID: member.person, puppet: member.puppet, label: answerLabel, writtenAt: context.now.monotonic,
            isShown: !traits.answersDeletes)
        if action.isShown {
            let before = showTakenBack(known, by: person, reason: reason, from: client, label: label, context)
            action.deed = .takeBack(known, before: before, reason: reason)
        }
        opened(action, context)
        return action.isShown ? .done : .later
    }

    // MARK: - Reactions

    /// An IRC user puts an emoji on a message or takes it off. One that the backend cannot carry stays among the IRC users.
    ///
    /// - Parameters:
    ///   - annotations: what the other IRC users get of it.
    ///   - label: for an answer that comes later; nil when there is nothing to answer.
    func react(
        _ emoji: String, _ operation: ChatReaction.Operation, on msgid: String, annotations: [StoredTag],
        from client: ClientID, label: String?, _ context: RoomsContext
    ) -> RoomReply {
        guard let entry = recent.entry(msgid: msgid), !entry.isTakenBack else { return .refused(.unknownMessage) }
        guard !emoji.isEmpty, emoji.utf8.count <= Self.maxReactionBytes else {
            return .refused(ActionRefusal(code: "REACTION_NOT_ALLOWED", text: "That is no emoji"))
        }
        let choices = traits.reactionChoices
        let probe = ChatReaction(
            target: Self.anyID, emoji: choices.first ?? "+", operation: operation, sender: accountPerson,
            room: settings.upstreamRoom, at: context.now.wall)
        guard canSay(.reaction(probe)) else {
            return react(emoji, operation, to: entry, annotations, from: client, since: "no reactions", context)
        }
        let choice =
            choices.isEmpty ? emoji : choices.first { OwnReactions.plain($0) == OwnReactions.plain(emoji) }
        guard let choice else {
            let known = "only \(choices.joined(separator: " "))"
            return react(emoji, operation, to: entry, annotations, from: client, since: known, context)
        }
        return onceKnown(entry, .reaction, client, label, context) { id, label in
            let reaction = ChatReaction(target: id, emoji: choice, operation: operation)
            return self.react(reaction, to: entry, annotations, from: client, label: label, context)
        }
    }

    /// Shows a reaction to the IRC users alone. Its author hears so once.
    ///
    /// - Parameter limit: what the backend knows instead.
    private func react(
        _ emoji: String, _ operation: ChatReaction.Operation, to entry: RecentMessages.Entry,
        _ annotations: [StoredTag],
        from client: ClientID, since limit: String, _ context: RoomsContext
    ) -> RoomReply {
        guard let member = locals[client], let person = context.identities[member.person] else {
            return .refused(.unknownMessage)
        }
        // Without the label: what the author hears belongs to the same answer.
        show(
            emoji, operation, on: entry, by: person, annotations, from: client, author: member.puppet,
            at: context.now.wall, context)
        if member.learnsThatReactionsStay() {
            frontEnd.tell(.reactionStays(why: limit), in: self, to: client, label: nil)
        }
        return .done
    }

    private func react(
        _ reaction: ChatReaction, to entry: RecentMessages.Entry, _ annotations: [StoredTag], from client: ClientID,
        label: String?, _ context: RoomsContext
    ) -> RoomReply {
        guard let member = locals[client], let person = context.identities[member.person] else {
            return .refused(.unknownMessage)
        }
        let lane = lane(of: person)
        if lane === self.lane, settings.identity == .single, reaction.operation == .remove,
            let owner = lane.reactions.owner(of: reaction.target, reaction.emoji), owner != member.puppet
        {
            return .refused(ActionRefusal(code: "REACTION_NOT_ALLOWED", text: "That reaction is somebody else's"))
        }
        var reaction = reaction
        reaction.sender = upstreamPerson(person, member.puppet)
        reaction.room = settings.upstreamRoom
        reaction.at = context.now.wall
        if let why = act(.reaction(reaction), by: person, context) {
            return .refused(ActionRefusal(code: "CANNOT_DELIVER", text: "Not sent, \(why)"))
        }
        lane.reactions.append(reaction, of: member.puppet, at: context.now.monotonic)
        show(
            reaction.emoji, reaction.operation, on: entry, by: person, annotations, from: client, label: label,
            author: member.puppet, at: context.now.wall, context)
        opened(
            OpenActions.Action(
                link: lane.id, target: reaction.target, deed: .reaction(reaction, to: entry), client: client,
                person: person, personID: member.person, puppet: member.puppet, label: nil,
                writtenAt: context.now.monotonic, isShown: true), context)
        return .done
    }

    // MARK: - Edits

    // MARK: - Common to all

    /// Carries out an action on a message when the backend's id of it is known, which may be now or after asking for it.
    private func onceKnown(
        _ entry: RecentMessages.Entry, _ action: RefusedAction, _ client: ClientID, _ label: String?,
        _ context: RoomsContext,
        _ body: @escaping (_ id: ChatID, _ label: String?) -> RoomReply
    ) -> RoomReply {
        guard locals[client] != nil else { return .refused(.unknownMessage) }
        var result: RoomReply?
        var isLater = false
        findUpstreamID(of: entry.msgid, context) { id in
            let outcome =
                id.map { body($0, isLater ? label : nil) }
                ?? .refused(
                    ActionRefusal(
                        code: "CANNOT_DELIVER",
                        text: "\(self.settings.url.host) has not said under which id it keeps this message"))
            guard isLater else {
                result = outcome
                return
            }
            guard case .refused(let refusal) = outcome, self.locals[client] != nil else { return }
            self.frontEnd.tell(
                .actionRefused(refusal, action, msgid: entry.msgid), in: self, to: client, label: label)
        }
        isLater = true
        return result ?? .later
    }

    /// Stands for the id of a message where only the shape of a command counts; a number, as most backends have them.
    private static let anyID = ChatID("1")

    private func canSay(_ command: ChatCommand) -> Bool {
        if case .unsupported = settings.dialect.encode(command, context: lane.dialectContext) { return false }
        return true
    }

    /// Sends an action; nil when the socket took it, else why not, as a clause.
    ///
    /// None is kept for later: it would come to messages that nobody looks at any more.
    ///
    /// - Parameter person: nil: nobody who might have a link of their own.
    private func act(_ command: ChatCommand, by person: Person?, _ context: RoomsContext) -> String? {
        let lane = person.map { self.lane(of: $0) } ?? self.lane
        guard lane.canSpeak else {
            return lane === self.lane
                ? "this room has no link to \(settings.url.host) at the moment"
                : "your own link to \(settings.url.host) is not there at the moment"
        }
        guard canSay(command) else { return "the backend's format cannot carry it" }
        guard lane.takeBudget(context) else { return "too much is going on; try again" }
        return lane.send(command, context) ? nil : "the link is busy; try again"
    }
}

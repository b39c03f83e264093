import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Upstream
import WireBytes

// Actions on existing messages: edits, redactions, reactions.
//
// An action of an IRC user is sent at once and never queued: a reaction of yesterday has no use today. The other IRC
// users see it when the socket took it or, where the backend answers, after the answer; a refused action is undone
// (PendingActions.swift). An echo from the backend is deduplicated.

extension Room {
    /// Bytes of an emoji; the longest family in Unicode takes 28.
    static let maxReactionBytes = 64

    // MARK: - Redaction

    /// Redacts a message for an IRC user.
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
        if pendingActions.isAwaited(msgid: msgid) {
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

    /// The reason why an IRC user may not redact a message, as a sentence; nil: permitted.
    private func barrier(
        to entry: RecentLog.Entry, from client: ClientID, _ right: RedactionRight, _ context: RoomsContext
    ) -> String? {
        guard entry.puppet != locals[client]?.puppet else { return nil }
        switch right {
        case .ofEveryone: return nil
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

    /// Whether the id belongs to an IRC user with a backend login of their own, present or not.
    private func isOwnPuppet(_ puppet: ChatID, _ context: RoomsContext) -> Bool {
        context.settings.ownLogins.contains { account, logins in
            logins[settings.name] != nil
                && context.identities.puppetID(account: account, backend: settings.backend) == puppet
        }
    }

    /// - Parameters:
    ///   - label: for an event shown at once; nil: the caller answers.
    ///   - answerLabel: for an event shown after the backend's answer.
    private func redact(
        _ entry: RecentLog.Entry, _ id: ChatID, reason: String?, from client: ClientID, label: String?,
        answerLabel: String?, _ context: RoomsContext
    ) -> RoomReply {
        guard let member = locals[client], let person = context.identities[member.person],
            let known = recent.entry(msgid: entry.msgid), !known.isTakenBack,
            !pendingActions.isAwaited(msgid: entry.msgid)
        else { return .refused(.unknownMessage) }
        // Messages of other IRC users were sent upstream by the relay: their author's name redacts them.
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
        var action = PendingActions.Action(
            link: (speaker.map { lane(of: $0) } ?? lane).id, target: id,
            operation: .takeBack(known, before: [], reason: reason), client: client, person: person,
            personID: member.person, puppet: member.puppet, label: answerLabel, writtenAt: context.now.monotonic,
            isShown: !traits.answersDeletes)
        if action.isShown {
            let before = showTakenBack(known, by: person, reason: reason, from: client, label: label, context)
            action.operation = .takeBack(known, before: before, reason: reason)
        }
        opened(action, context)
        return action.isShown ? .done : .later
    }

    // MARK: - Reactions

    /// Adds or removes an IRC user's emoji on a message. One that the backend cannot carry is shown to IRC users only.
    ///
    /// - Parameters:
    ///   - annotations: tags for the other IRC clients.
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

    /// Shows a reaction to the IRC users only. Its author is notified of that once.
    ///
    /// - Parameter limit: the subset that the backend supports.
    private func react(
        _ emoji: String, _ operation: ChatReaction.Operation, to entry: RecentLog.Entry,
        _ annotations: [StoredTag],
        from client: ClientID, since limit: String, _ context: RoomsContext
    ) -> RoomReply {
        guard let member = locals[client], let person = context.identities[member.person] else {
            return .refused(.unknownMessage)
        }
        // Without the label: the author's notice belongs to the same answer.
        show(
            emoji, operation, on: entry, by: person, annotations, from: client, author: member.puppet,
            at: context.now.wall, context)
        if member.learnsThatReactionsStay() {
            frontEnd.tell(.reactionStays(why: limit), in: self, to: client, label: nil)
        }
        return .done
    }

    private func react(
        _ reaction: ChatReaction, to entry: RecentLog.Entry, _ annotations: [StoredTag], from client: ClientID,
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
            PendingActions.Action(
                link: lane.id, target: reaction.target, operation: .reaction(reaction, to: entry), client: client,
                person: person, personID: member.person, puppet: member.puppet, label: nil,
                writtenAt: context.now.monotonic, isShown: true), context)
        return .done
    }

    // MARK: - Shared

    /// Performs an action on a message once the backend's id of it is known: at once, or after a lookup.
    private func onceKnown(
        _ entry: RecentLog.Entry, _ action: RefusedAction, _ client: ClientID, _ label: String?,
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

    /// Placeholder for a message id where only the shape of a command counts; a number, as on most backends.
    private static let anyID = ChatID("1")

    private func canSay(_ command: ChatCommand) -> Bool {
        if case .unsupported = settings.dialect.encode(command, context: lane.dialectContext) { return false }
        return true
    }

    /// Sends an action; nil when the socket took it, else the reason, as a clause.
    ///
    /// Actions are never queued: later, the message would no longer be in view.
    ///
    /// - Parameter person: nil: no user with a possible own link.
    func act(_ command: ChatCommand, by person: Person?, _ context: RoomsContext) -> String? {
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

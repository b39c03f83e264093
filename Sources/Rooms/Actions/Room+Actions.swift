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

/// Reactions of IRC users, so that each is shown once.
final class OwnReactions {
    /// A backend that sends reactions to their author too does it at once.
    static let echoWait: Duration = .seconds(30)
    /// More than a room may send in that time.
    static let capacity = 200

    private struct Entry {
        var target: ChatID
        var emoji: String
        var operation: ChatReaction.Operation
        var puppet: ChatID
        var at: MonotonicInstant
        var cameBack = false
    }

    private var entries: [Entry] = []

    func append(_ reaction: ChatReaction, of puppet: ChatID, at now: MonotonicInstant) {
        if entries.count >= Self.capacity { entries.removeFirst() }
        entries.append(
            Entry(
                target: reaction.target, emoji: Self.plain(reaction.emoji), operation: reaction.operation,
                puppet: puppet, at: now))
    }

    /// Whether a reaction of ours that came back was one of these, which all have seen. Each comes back once.
    func takeEcho(of reaction: ChatReaction, now: MonotonicInstant) -> Bool {
        let emoji = Self.plain(reaction.emoji)
        guard
            let index = entries.firstIndex(where: {
                !$0.cameBack && now - $0.at < Self.echoWait && $0.target == reaction.target && $0.emoji == emoji
                    && $0.operation == reaction.operation
            })
        else { return false }
        entries[index].cameBack = true
        return true
    }

    /// The backend would not have it.
    func remove(_ reaction: ChatReaction) {
        let emoji = Self.plain(reaction.emoji)
        let index = entries.lastIndex {
            $0.target == reaction.target && $0.emoji == emoji && $0.operation == reaction.operation
        }
        if let index { entries.remove(at: index) }
    }

    /// Whose reaction this emoji on this message is, as far as it is remembered.
    func owner(of target: ChatID, _ emoji: String) -> ChatID? {
        let emoji = Self.plain(emoji)
        guard let last = entries.last(where: { $0.target == target && $0.emoji == emoji }), last.operation == .add
        else { return nil }
        return last.puppet
    }

    /// Without the variation selector, which some keyboards leave out and some backends insist on.
    static func plain(_ emoji: String) -> String {
        String(String.UnicodeScalarView(emoji.unicodeScalars.filter { $0.value != 0xFE0F }))
    }
}

/// Why an action was not carried out, in the words of the answer.
package struct ActionRefusal: Equatable {
    package var code: String
    /// A sentence without a full stop.
    package var text: String

    package init(code: String, text: String) {
        self.code = code
        self.text = text
    }
}

extension ActionRefusal {
    package static let unknownMessage = ActionRefusal(code: "UNKNOWN_MSGID", text: "No such message, or it is too old")
}

/// Whose messages somebody may take back.
package enum RedactionRight {
    case own
    /// Also those of other IRC users, as a channel operator: the backend has them from us.
    case ofIRCUsers
    /// Also those of people upstream, as an administrator, as far as the backend lets the room's account.
    case everybodys
}

/// What became of an action.
package enum ActionResult: Equatable {
    case done
    case refused(ActionRefusal)
    /// The backend must be asked first; the answer comes when it has answered, with the label that was given.
    case later
}

extension Room {
    /// Bytes of an emoji; the longest family in Unicode takes 28.
    static let maxReactionBytes = 64

    // MARK: - Taking back

    /// An IRC user takes a message back.
    ///
    /// - Parameters:
    ///   - label: for an answer that comes later; nil when there is nothing to answer.
    package func redact(
        _ msgid: String, reason: String?, from client: ClientID, right: RedactionRight, label: String?,
        _ context: RoomsContext
    ) -> ActionResult {
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
    ) -> ActionResult {
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

    /// - Returns: what the memory had of it, where nothing else keeps that.
    @discardableResult
    func showTakenBack(
        _ entry: RecentMessages.Entry, by person: Person, reason: String?, from client: ClientID, label: String?,
        _ context: RoomsContext
    ) -> [StoredMessage] {
        let own = context.messageID(backend: settings.backend, room: settings.upstreamRoom, sender: nil, id: nil)
        let before = takeBack(entry, context)
        show(
            .takenBack([entry], by: RoomSpeaker(person), msgid: own, reason: reason),
            to: RoomAudience(author: client, label: label))
        return before
    }

    @discardableResult
    private func takeBack(_ entry: RecentMessages.Entry, _ context: RoomsContext) -> [StoredMessage] {
        recent.takeBack(msgid: entry.msgid)
        context.keep(.takeBack(storedKey, msgid: entry.msgid))
        return archive.takeBack(msgid: entry.msgid)
    }

    func deleteReceived(_ delete: ChatDelete, _ context: RoomsContext) {
        // Some wires tell of every room's deletions, and ours come back on some: neither is news.
        var known: [RecentMessages.Entry] = []
        for id in delete.ids {
            older.current?.takeBack(id)
            if answered(target: id, context) { continue }
            guard let entry = recent.entry(upstreamID: id), !entry.isTakenBack else { continue }
            takeBack(entry, context)
            known.append(entry)
        }
        guard !known.isEmpty else { return }
        let deleter = actor(delete.sender, of: known, context).flatMap { context.identities[$0] }
        show(.takenBack(known, by: deleter.map { RoomSpeaker($0) }, msgid: nil, reason: nil))
    }

    // MARK: - Reactions

    /// An IRC user puts an emoji on a message or takes it off. One that the backend cannot carry stays among the IRC users.
    ///
    /// - Parameters:
    ///   - annotations: what the other IRC users get of it.
    ///   - label: for an answer that comes later; nil when there is nothing to answer.
    package func react(
        _ emoji: String, _ operation: ChatReaction.Operation, on msgid: String, annotations: [StoredTag],
        from client: ClientID, label: String?, _ context: RoomsContext
    ) -> ActionResult {
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
    ) -> ActionResult {
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
    ) -> ActionResult {
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

    func reactionReceived(_ reaction: ChatReaction, _ context: RoomsContext, isLookedUp: Bool = false) {
        if !isLookedUp, recent.entry(upstreamID: reaction.target) == nil {
            let isAwaited = awaitIDs(context) { [weak self] in
                self?.reactionReceived(reaction, context, isLookedUp: true)
            }
            if isAwaited { return }
        }
        guard let original = recent.entry(upstreamID: reaction.target), !original.isTakenBack,
            !reaction.emoji.isEmpty, reaction.emoji.utf8.count <= Self.maxReactionBytes
        else { return }
        var reactor: Person?
        if let own = own.speaking(reaction.sender) {
            if own.reactions.takeEcho(of: reaction, now: context.now.monotonic) { return }
        } else if reaction.isSelf {
            if lane.reactions.takeEcho(of: reaction, now: context.now.monotonic) { return }
            // The account at another device; but where a new reaction of one user replaced another's, theirs is gone.
            guard settings.identity == .single else { return }
            if reaction.operation == .remove, let owner = lane.reactions.owner(of: reaction.target, reaction.emoji) {
                reactor = locals[puppet: owner].flatMap { context.identities[$0.person] }
                lane.reactions.append(reaction, of: owner, at: context.now.monotonic)
                _ = lane.reactions.takeEcho(of: reaction, now: context.now.monotonic)
            }
        }
        guard let person = reactor ?? present(reaction.sender, context).flatMap({ context.identities[$0] }) else {
            return
        }
        let at = shownTime(reaction.at, context)
        if case .remote(let key) = person.kind {
            show(
                reaction.emoji, reaction.operation, on: original, by: person, sender: key.person, at: at, context)
        } else {
            show(
                reaction.emoji, reaction.operation, on: original, by: person,
                author: context.identities.puppetID(of: person, backend: settings.backend), at: at, context)
        }
    }

    /// Shows that somebody put an emoji on a message or took it off, and keeps that.
    ///
    /// - Parameters:
    ///   - annotations: the same as a client gave it for other clients; nil: none did.
    ///   - client: whose client did it, and `author` the upstream id of its user; else `sender` did, upstream.
    package func show(
        _ emoji: String, _ operation: ChatReaction.Operation, on original: RecentMessages.Entry, by person: Person,
        _ annotations: [StoredTag]? = nil, from client: ClientID? = nil, label: String? = nil,
        sender: ChatPerson = ChatPerson(), author: ChatID? = nil, at: ChatTimestamp, _ context: RoomsContext
    ) {
        let annotations =
            annotations ?? replyTags(original)
            + [StoredTag(name: operation == .add ? "+draft/react" : "+draft/unreact", value: emoji)]
        let who = RoomSpeaker(person)
        let msgid = context.messageID(backend: settings.backend, room: settings.upstreamRoom, sender: nil, id: nil)
        enterEvent(["TAGMSG"], msgid: msgid, by: who, annotations, sender: sender, author: author, at: at, context)
        show(
            .reacted(
                RoomReaction(
                    msgid: msgid, at: at, emoji: emoji, operation: operation, original: original,
                    isOnOwn: isAuthor(person, of: original, context), annotations: annotations), by: who),
            to: RoomAudience(author: client, label: label, by: person))
    }

    // MARK: - Edits

    /// Whose words a message has is compared with who edits it: a frame may name anybody, and on some wires people upstream
    /// write what it names.
    ///
    /// | the frame names                                      | shown                          | the message          |
    /// |------------------------------------------------------|--------------------------------|----------------------|
    /// | its author upstream; nobody, where authors alone edit | as its author's                | has the new words    |
    /// | somebody else upstream                               | a notice that they changed it  | stays as it was said |
    /// | an IRC user, the account, or nobody                  | a notice that the backend did  | stays as it was said |
    ///
    /// The notice has a place of its own in the room's order, for those who come later.
    ///
    /// IRC users edit nothing here, so nothing is an edit of theirs, whoever it names.
    func editReceived(_ edit: ChatEdit, _ context: RoomsContext, isLookedUp: Bool = false) {
        if !isLookedUp, recent.entry(upstreamID: edit.id) == nil {
            let isAwaited = awaitIDs(context) { [weak self] in self?.editReceived(edit, context, isLookedUp: true) }
            if isAwaited { return }
        }
        guard let original = recent.entry(upstreamID: edit.id), !original.isTakenBack else { return }
        var edit = edit
        edit.text = secretFinder(context).scrubbed(edit.text)
        edit.attachments = withoutSecrets(edit.attachments, context)
        // Nobody who could be shown as the author, where the room is full: the backend's word, then.
        let author = author(of: original, editing: edit.sender).flatMap { present(personBehind($0), context) }
        // Backends say that a message changed, not what changed about it.
        let before = recent.text(of: original.msgid)
        let isNews = recent.edit(msgid: original.msgid, text: edit.text, byAuthor: author != nil)
        guard isNews || !edit.attachments.isEmpty else { return }
        guard let author, let person = context.identities[author] else { return tellChanged(original, edit, context) }
        if isNews {
            context.keep(.edit(storedKey, msgid: original.msgid, text: edit.text))
            archive.edit(msgid: original.msgid, text: edit.text)
        }
        let change = before.flatMap { Self.substitution(from: $0, to: edit.text) }
        show(
            .said(
                RoomMessage(
                    at: shownTime(edit.at, context), speaker: RoomSpeaker(person),
                    words: words(change ?? "* " + withNicks(edit.text, context), of: edit, context),
                    whole: original.msgid, replyTo: original.msgid)), to: RoomAudience(by: person))
    }

    private func replyTags(_ original: RecentMessages.Entry) -> [StoredTag] {
        [
            StoredTag(name: StoredMessage.replyTag, value: original.msgid),
            StoredTag(name: "+draft/reply", value: original.msgid),
        ]
    }

    private func words(_ text: String, of edit: ChatEdit, _ context: RoomsContext) -> RoomMessage.Words {
        .upstream(
            text, attachments: edit.attachments, files: edit.attachments.isEmpty ? nil : fileLinks(context))
    }

    /// A message was changed by somebody else than its author, or nobody knows by whom.
    private func tellChanged(_ original: RecentMessages.Entry, _ edit: ChatEdit, _ context: RoomsContext) {
        // The account edits what it said for others, and rows name it as the author of what others changed.
        let editor = lane.dialectContext.isSelf(edit.sender) ? nil : actor(edit.sender, of: [original], context)
        let seconds = Int(max(0, context.now.wall.milliseconds - original.at.milliseconds) / 1000)
        let sentence =
            "*** A message of \(original.nick)'s from \(PrintableText.spoken(seconds: seconds)) ago was changed by "
            + "\(editor.flatMap { context.identities[$0]?.nick } ?? "the backend"): "
        var edit = edit
        edit.attachments = keepingFiles(edit.attachments, context)
        let text = sentence + withNicks(edit.text, context)
        let (server, at) = (context.settings.serverName, lineTime(nil, context))
        let msgid = context.messageID(
            backend: settings.backend, room: settings.upstreamRoom, sender: ChatID("change"),
            id: ChatID("\(recent.nextSequence) \(original.msgid)"))
        let sequence = recent.appendNotice(msgid: msgid, at: at)
        recent.heard(at, wall: context.now.wall)
        keep(
            StoredMessage(
                kind: .change, sequence: Int64(sequence), msgid: msgid,
                sender: editor == nil ? ChatPerson() : edit.sender, at: at, nick: server, source: server, text: text,
                sentAs: edit.text, attachments: edit.attachments,
                clientTags: replyTags(original)), context)
        show(
            .said(
                RoomMessage(
                    msgid: msgid, at: at, isNotice: true, words: words(text, of: edit, context), whole: msgid,
                    replyTo: original.msgid)),
            to: RoomAudience(by: editor.flatMap { context.identities[$0] }))
    }

    /// The author of a message, where an edit is their own, as far as the wire tells; nil: it is not.
    private func author(of original: RecentMessages.Entry, editing editor: ChatPerson) -> ChatPerson? {
        guard original.puppet == nil, !namesIRCUser(original.sender) else { return nil }
        guard editor.id != nil || editor.name != nil else {
            guard traits.authorsAloneEdit else { return nil }
            // They may be called otherwise since.
            return original.sender.id.map { ChatPerson(id: $0) } ?? original.sender
        }
        func key(_ person: ChatPerson) -> Person.RemoteKey {
            IdentityMap.remoteKey(personBehind(named(person)), backend: settings.backend)
        }
        return key(editor) == key(original.sender) ? editor : nil
    }

    // MARK: - Common to all

    /// Carries out an action on a message when the backend's id of it is known, which may be now or after asking for it.
    private func onceKnown(
        _ entry: RecentMessages.Entry, _ action: RefusedAction, _ client: ClientID, _ label: String?,
        _ context: RoomsContext,
        _ body: @escaping (_ id: ChatID, _ label: String?) -> ActionResult
    ) -> ActionResult {
        guard locals[client] != nil else { return .refused(.unknownMessage) }
        var result: ActionResult?
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

    /// Whether a frame names an IRC user as who did something. What they do, they do here, so of anything else that is the
    /// backend's word alone: it may be a forgery, and it may be their own account at another device.
    private func namesIRCUser(_ sender: ChatPerson) -> Bool {
        own.speaking(sender) != nil || sender.id.map { locals[puppet: $0] != nil } ?? false
            || settings.identity == .puppet && lane.dialectContext.isSelf(sender)
    }

    /// Who did something to a message, upstream; nil when the frame names nobody, or an IRC user.
    private func actor(
        _ sender: ChatPerson, of messages: [RecentMessages.Entry], _ context: RoomsContext
    ) -> PersonID? {
        guard sender.id != nil || sender.name != nil, !namesIRCUser(sender) else { return nil }
        // A name without an id, on a wire where each IRC user has a name: theirs, who may have left since.
        if sender.id == nil, settings.identity == .puppet, let name = sender.name,
            messages.contains(where: { $0.puppet != nil && $0.nick == name })
                || locals.values.contains(where: { context.identities[$0.person]?.nick == name })
        {
            return nil
        }
        return present(personBehind(sender), context)
    }
}

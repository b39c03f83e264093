import BridgeTypes
import ChatModel
import Dialects
import HTTPProtocol
import Identities
import Media
import Upstream
import WireBytes

// Edits, deletions and reactions from the backend.

extension Room {
    func deleteReceived(_ delete: ChatDelete, _ context: RoomsContext) {
        // Some wires report the deletions of every room, and some echo the relay's own: both are duplicates.
        var known: [RecentLog.Entry] = []
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
            // The account on another device; but a replaced reaction also removes that IRC user's previous one.
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

    /// Compares editor and author: a frame may name anyone, and on some wires upstream people control that field.
    ///
    /// | the frame names                                      | shown                          | the message          |
    /// |------------------------------------------------------|--------------------------------|----------------------|
    /// | its author upstream; none, where only authors edit    | as its author's                | has the new text     |
    /// | another upstream person                               | a notice naming that person    | unchanged            |
    /// | an IRC user, the account, or none                     | a notice naming the backend    | unchanged            |
    ///
    /// The notice has a sequence number of its own in the log, for history queries.
    ///
    /// IRC users have no edit command here, so an edit is never attributed to one.
    func editReceived(_ edit: ChatEdit, _ context: RoomsContext, isLookedUp: Bool = false) {
        if !isLookedUp, recent.entry(upstreamID: edit.id) == nil {
            let isAwaited = awaitIDs(context) { [weak self] in self?.editReceived(edit, context, isLookedUp: true) }
            if isAwaited { return }
        }
        guard let original = recent.entry(upstreamID: edit.id), !original.isTakenBack else { return }
        var edit = edit
        edit.text = secretFinder(context).scrubbed(edit.text)
        edit.attachments = withoutSecrets(edit.attachments, context)
        // No author can be shown where the room is full: attributed to the backend.
        let editor = author(of: original, editing: edit.sender)
        let relayed = settings.relayNick == nil ? nil : editor.map { sharedPrefix($0) }
        let author = relayed == nil ? editor.flatMap { present(personBehind($0), context) } : sharedPerson(context)
        // Backends report that a message changed, not the difference.
        let before = recent.text(of: original.msgid)
        let isNews = recent.edit(msgid: original.msgid, text: edit.text, byAuthor: author != nil)
        guard isNews || !edit.attachments.isEmpty else { return }
        guard let author, let person = context.identities[author] else { return tellChanged(original, edit, context) }
        if isNews {
            context.keep(.edit(storedKey, msgid: original.msgid, text: (relayed ?? "") + edit.text))
            archive.edit(msgid: original.msgid, text: (relayed ?? "") + edit.text)
            amend(
                .edit(msgid: original.msgid, text: (relayed ?? "") + withNicks(edit.text, context)),
                by: RoomSpeaker(person), at: shownTime(edit.at, context), context)
        }
        let change = before.flatMap { Self.substitution(from: $0, to: edit.text) }
        show(
            .said(
                RoomMessage(
                    at: shownTime(edit.at, context), speaker: RoomSpeaker(person),
                    words: .upstream(
                        ChatMessage(
                            text: (relayed ?? "") + (change ?? "* " + withNicks(edit.text, context)),
                            attachments: edit.attachments)),
                    files: files(of: edit, context), whole: original.msgid, replyTo: original.msgid)),
            to: RoomAudience(by: .present(author)))
    }

    private func files(of edit: ChatEdit, _ context: RoomsContext) -> RoomFileLinks? {
        edit.attachments.isEmpty ? nil : fileLinks(context)
    }

    /// Shows that a message was edited by a person other than its author, or by an unknown one.
    func tellChanged(_ original: RecentLog.Entry, _ edit: ChatEdit, _ context: RoomsContext) {
        // The account edits relayed messages, and rows name it as the author of others' changes.
        let editor = lane.dialectContext.isSelf(edit.sender) ? nil : actor(edit.sender, of: [original], context)
        let seconds = Int(max(0, context.now.wall.milliseconds - original.at.milliseconds) / 1000)
        let sentence =
            "*** A message of \(original.nick)'s from \(PrintableText.spoken(seconds: seconds)) ago was changed by "
            + "\(editor.flatMap { context.identities[$0]?.nick } ?? "the backend"): "
        var edit = edit
        edit.attachments = keepingFiles(edit.attachments, context)
        let text = sentence + withNicks(edit.text, context)
        let (server, at) = (context.settings.serverName, beginLine(nil, context))
        let msgid = context.messageID(
            backend: settings.backend, room: settings.upstreamRoom, sender: ChatID("change"),
            id: ChatID("\(recent.nextSequence) \(original.msgid)"))
        let row = StoredMessage(
            kind: .change, sequence: Int64(recent.nextSequence), msgid: msgid,
            sender: editor == nil ? ChatPerson() : edit.sender, at: at, nick: server, source: server, text: text,
            sentAs: edit.text, attachments: edit.attachments, clientTags: replyTags(original))
        recent.append(notice: row)
        recent.heard(at, wall: context.now.wall)
        keep(row, context)
        show(
            .said(
                RoomMessage(
                    msgid: msgid, at: at, isNotice: true,
                    words: .upstream(ChatMessage(text: text, attachments: edit.attachments)),
                    files: files(of: edit, context), whole: msgid, replyTo: original.msgid)),
            to: RoomAudience(by: editor.map { .present($0) }))
    }

    /// The author of a message, where the wire shows the edit as the author's own; nil: not theirs.
    func author(of original: RecentLog.Entry, editing editor: ChatPerson) -> ChatPerson? {
        guard original.puppet == nil, !namesIRCUser(original.sender) else { return nil }
        guard editor.id != nil || editor.name != nil else {
            guard traits.authorsAloneEdit else { return nil }
            // The name may have changed since.
            return original.sender.id.map { ChatPerson(id: $0) } ?? original.sender
        }
        func key(_ person: ChatPerson) -> Person.RemoteKey {
            IdentityMap.remoteKey(personBehind(named(person)), backend: settings.backend)
        }
        return key(editor) == key(original.sender) ? editor : nil
    }

    /// Whether a frame names an IRC user as the actor. IRC users act through the relay, so for anything else that is an
    /// unverified claim of the backend: possibly forged, possibly their own account on another device.
    func namesIRCUser(_ sender: ChatPerson) -> Bool {
        own.speaking(sender) != nil || sender.id.map { locals[puppet: $0] != nil } ?? false
            || settings.identity == .puppet && lane.dialectContext.isSelf(sender)
    }

    /// The upstream person that acted on a message; nil when the frame names none, or an IRC user.
    func actor(
        _ sender: ChatPerson, of messages: [RecentLog.Entry], _ context: RoomsContext
    ) -> PersonID? {
        guard sender.id != nil || sender.name != nil, !namesIRCUser(sender) else { return nil }
        // A name without an id, on a wire where each IRC user has a name: an IRC user's, possibly a former one.
        if sender.id == nil, settings.identity == .puppet, let name = sender.name,
            messages.contains(where: { $0.puppet != nil && $0.nick == name })
                || locals.values.contains(where: { context.identities[$0.person]?.nick == name })
        {
            return nil
        }
        return present(personBehind(sender), context)
    }
}

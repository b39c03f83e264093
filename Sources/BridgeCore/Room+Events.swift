import ChatModel
import IRCProtocol

// What is done in a room and not said, in the room's order: for those who ask for the past with all that belongs to it.

extension Room {
    /// Enters a line about something that was done, as everybody was shown it. It must bear a msgid and a source, and its first
    /// parameter is the channel; nobody waits for it to be kept.
    ///
    /// - Parameters:
    ///   - sender: who upstream did it, and `author` the upstream id of the IRC user who did; neither where also those are
    ///     shown it who do not want to hear them.
    func enterEvent(
        _ line: IRCMessage, by sender: ChatPerson = ChatPerson(), author: ChatID? = nil, at: ChatTimestamp,
        _ context: BridgeContext
    ) {
        guard let msgid = line.tag("msgid")?.value, let source = line.source else { return }
        let event = StoredMessage(
            kind: .event, sequence: Int64(recent.takePlace()), msgid: msgid, sender: sender, at: at,
            nick: String(source.prefix { $0 != "!" }), source: source, account: line.tag("account")?.value,
            text: ([line.command] + line.params.dropFirst()).joined(separator: "\n"),
            clientTags: line.tags.filter(\.isClientOnly).map { StoredTag(name: $0.name, value: $0.value) },
            author: author)
        keep(event, context)
    }

    /// Keeps a line that is nobody's message, where what was said is kept.
    func keep(_ row: StoredMessage, _ context: BridgeContext) {
        if context.isDurable { context.keep(.message(storedKey, row)) } else { archive.append(row) }
    }
}

extension StoredMessage {
    /// The line of an event, as it was shown.
    func eventLine(in channel: String) -> IRCMessage {
        var tags = [IRCTag("time", IRCServerTime.format(milliseconds: at.milliseconds)), IRCTag("msgid", msgid)]
        if let account { tags.append(IRCTag("account", account)) }
        let parts = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        return IRCMessage(
            tags: tags + clientTags.map { IRCTag($0.name, $0.value) }, source: source, command: parts[0],
            params: [channel] + parts.dropFirst())
    }
}

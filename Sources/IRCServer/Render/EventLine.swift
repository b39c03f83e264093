import ChatModel
import IRCProtocol

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

extension [IRCTag] {
    /// What clients gave, as rooms pass it on.
    var annotations: [StoredTag] { map { StoredTag(name: $0.name, value: $0.value) } }
}

extension IRCTag {
    /// What a line stands for that tells of missing messages: from when to when they were said.
    static func gap(_ from: ChatTimestamp, _ to: ChatTimestamp) -> IRCTag {
        IRCTag(
            "chatbridge/gap",
            [from, to].map { IRCServerTime.format(milliseconds: $0.milliseconds) }.joined(separator: ","))
    }
}

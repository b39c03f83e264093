import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms

extension StoredMessage {
    /// The line of an event, as it was shown.
    func eventLine(in channel: String) -> IRCMessage {
        var tags = [IRCTag.time(self.at), IRCTag("msgid", self.msgid)]
        if let account = self.account { tags.append(IRCTag("account", account)) }
        let parts = self.text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        return IRCMessage(
            tags: tags + self.clientTags.tags, source: self.source, command: parts[0],
            params: [channel] + parts.dropFirst())
    }
}

extension [IRCTag] {
    /// The tags of clients, as rooms relay them.
    var annotations: [StoredTag] { map { StoredTag(name: $0.name, value: $0.value) } }
}

extension [StoredTag] {
    var tags: [IRCTag] { map { IRCTag($0.name, $0.value) } }
}

extension RoomSpeaker {
    /// Tags common to all lines of a sender.
    func tags(at: ChatTimestamp, msgid: String? = nil) -> [IRCTag] {
        var tags = [IRCTag.time(at)]
        if let msgid { tags.append(IRCTag("msgid", msgid)) }
        if let account { tags.append(IRCTag("account", account)) }
        if isBot { tags.append(IRCTag("bot")) }
        return tags
    }
}

extension IRCTag {
    static func time(_ at: ChatTimestamp) -> IRCTag {
        IRCTag("time", IRCServerTime.format(milliseconds: at.milliseconds))
    }

    /// The tag of a line that reports missing messages: the time span of the gap.
    static func gap(_ from: ChatTimestamp, _ to: ChatTimestamp) -> IRCTag {
        IRCTag(
            "chatbridge/gap",
            [from, to].map { IRCServerTime.format(milliseconds: $0.milliseconds) }.joined(separator: ","))
    }
}

extension TokenBucket {
    /// Rate limit of notices about redacted messages, for clients without REDACT: a few a minute.
    static let takenBackWords = TokenBucket(rate: 0.2, burst: 5)
}

extension ActionRefusal {
    /// The FAIL to `verb`, about a message in a room.
    func line(_ verb: String, _ channel: String, _ msgid: String, from server: String) -> IRCMessage {
        .fail(verb, code, channel, PrintableText.word(msgid), text: text, source: server)
    }
}

extension PrintableText {
    /// Input of a client, fit to be one parameter of a reply.
    static func word(_ text: String, maxBytes: Int = 100) -> String {
        let shown = of(text, maxBytes: maxBytes)
        return shown.isEmpty || shown.utf8.contains(0x20) || shown.hasPrefix(":") ? "*" : shown
    }
}

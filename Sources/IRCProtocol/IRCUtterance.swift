/// One message text, in one line or several.
///
/// Clients with `draft/multiline` get several lines as one batch, the others a PRIVMSG for each line that is not blank.
///
/// Source: IRCv3 multiline.
public struct IRCUtterance: Hashable, Sendable {
    /// One line of it, short enough for every receiver.
    public struct Line: Hashable, Sendable {
        public var text: String
        /// It goes on where the line before ended, without a line end between them.
        public var isContinuation: Bool

        public init(_ text: String, isContinuation: Bool = false) {
            self.text = text
            self.isContinuation = isContinuation
        }
    }

    /// Source, command and target, and the tags of the whole: time, msgid, account, client-only tags.
    public var head: IRCMessage
    /// At least one.
    public var lines: [Line]
    /// The lines are the words of a CTCP ACTION, without its marks.
    public var isAction: Bool
    /// A prefix naming the answered message, for clients that get no reply tag.
    public var address: String?

    public init(head: IRCMessage, lines: [Line], isAction: Bool = false, address: String? = nil) {
        self.head = head
        self.lines = lines
        self.isAction = isAction
        self.address = address
    }

    /// The one line that every client gets, but for its tags; nil: clients get different lines.
    public var single: IRCMessage? {
        guard lines.count == 1, address == nil else { return nil }
        var message = head
        message.params.append(isAction ? Self.actionMark + lines[0].text + "\u{1}" : lines[0].text)
        return message
    }

    /// The lines for a client with `caps`, to be reduced as every other line.
    ///
    /// - Parameter reference: names a batch; called at most once, and only where one is needed.
    public func messages(for caps: IRCCapabilitySet, reference: () -> String) -> [IRCMessage] {
        if lines.count > 1, head.command == "PRIVMSG", caps.contains(.multiline), caps.contains(.batch) {
            return batch(reference())
        }
        return separate(address: caps.contains(.messageTags) ? nil : address)
    }

    /// Source: IRCv3 multiline, "Message ids" and "Labeled response": what belongs to the whole stands on the BATCH alone.
    private func batch(_ reference: String) -> [IRCMessage] {
        var messages: [IRCMessage] = []
        messages.reserveCapacity(lines.count + 2)
        let target = head.params.first ?? "*"
        messages.append(
            IRCMessage(
                tags: head.tags, source: head.source, command: "BATCH",
                params: ["+" + reference, "draft/multiline", target]))
        for (index, line) in lines.enumerated() {
            var tags = [IRCTag("batch", reference)]
            if line.isContinuation { tags.append(IRCTag("draft/multiline-concat")) }
            var text = line.text
            if isAction {
                if index == 0 { text = Self.actionMark + text }
                if index == lines.count - 1 { text += "\u{1}" }
            }
            messages.append(IRCMessage(tags: tags, source: head.source, command: head.command, params: [target, text]))
        }
        messages.append(IRCMessage(source: head.source, command: "BATCH", params: ["-" + reference]))
        return messages
    }

    /// A message has a hundred lines at most, and tags of 4094 bytes on each would exceed a client's queue.
    private static let maxRepeatedTagBytes = 128

    /// Tags of the lines behind the first: not the msgid, nor the reply, which would show with each line.
    private var repeatedTags: [IRCTag] {
        let tags = head.tags.filter { !["msgid", "+reply", "+draft/reply"].contains($0.name) }
        let isShort = IRCEncoder.tagByteCount(tags.filter(\.isClientOnly)) <= Self.maxRepeatedTagBytes
        return isShort ? tags : tags.filter { !$0.isClientOnly }
    }

    /// No blank lines, and the msgid on the first line alone.
    ///
    /// Source: IRCv3 multiline, "Fallback".
    private func separate(address: String?) -> [IRCMessage] {
        var messages: [IRCMessage] = []
        let repeated = lines.count > 1 ? repeatedTags : []
        for line in lines where lines.count == 1 || !line.text.isEmpty {
            var message = head
            if !messages.isEmpty { message.tags = repeated }
            let text = messages.isEmpty && !isAction ? (address ?? "") + line.text : line.text
            message.params.append(isAction ? Self.actionMark + text + "\u{1}" : text)
            messages.append(message)
        }
        return messages
    }

    private static let actionMark = "\u{1}ACTION "
    /// Bytes of the marks around the words of an ACTION.
    public static let actionByteCount = actionMark.utf8.count + 1
}

import ChatModel
import JSONText

extension PlainJSONDialect {
    /// A message becomes one frame, or one for each attachment, the text with the first; the second and later ones get
    /// the id with `.1`, `.2` and so on behind it. The command must carry the sender's id and, for a message, its own id
    /// and time.
    public func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand {
        switch command {
        case .message(let message): return write(message, context)
        case .typing(let typing):
            guard let user = typing.sender.id else { return .unsupported(.missingField) }
            var writer = JSONWriter()
            writer.beginObject()
            writer.member("type", word: typing.state == .start ? "typing" : "stopTyping")
            writer.member("userId", user.rawValue)
            writer.member("conversationId", typing.room ?? context.room)
            writer.endObject()
            return .text(writer.finish())
        case .receipt(let receipt) where acksState == receipt.state:
            guard !receipt.ids.isEmpty else { return .unsupported(.missingField) }
            return .frames(
                receipt.ids.map { id in
                    var writer = JSONWriter()
                    writer.beginObject()
                    writer.member("type", word: "ack")
                    writer.member("messageId", id.rawValue)
                    writer.endObject()
                    return EncodedFrame(bytes: writer.finish(), isBinary: false)
                })
        case .fetch(_, _, _, _, let since) where sendsLastOnline:
            // Without a time the answer would be the whole conversation in one frame.
            guard let since else { return .unsupported(.missingField) }
            var writer = JSONWriter()
            writer.beginObject()
            writer.member("type", word: "lastOnline")
            writer.key("timestamp")
            write(Self.secondBefore(since), &writer)
            writer.endObject()
            return .text(writer.finish())
        case .receipt, .edit, .delete, .join, .leave, .presence, .reaction, .auth, .subscribe, .fetch, .ping, .pong:
            return .unsupported(.unsupported)
        }
    }

    private var acksState: ChatReceipt.State? {
        switch acks {
        case .read: .read
        case .delivered: .delivered
        case .never: nil
        }
    }

    private func write(_ message: ChatMessage, _ context: DialectContext) -> EncodedCommand {
        guard let id = message.id, let sender = message.sender.id, let at = message.at else {
            return .unsupported(.missingField)
        }
        let name = message.sender.name ?? sender.rawValue
        let room = message.room ?? context.room
        func frame(_ index: Int, _ attachment: ChatAttachment?) -> EncodedFrame {
            let text = index == 0 ? message.text : ""
            var writer = JSONWriter(capacity: text.utf8.count + 320)
            writer.beginObject()
            if index == 0 {
                writer.member("id", id: id)
            } else {
                writer.member("id", "\(id.rawValue).\(index)")
            }
            writer.member("senderId", id: sender)
            writer.member("senderName", name)
            let isMedia = attachment?.kind == .image || attachment?.kind == .video
            writer.key("text")
            if let attachment, !isMedia {
                writer.string(FrameAttachment.textWithLinks(text, [attachment]))
            } else {
                writer.string(text)
            }
            writer.key("timestamp")
            write(at, &writer)
            // The sample app drops a frame of any other type.
            switch attachment?.kind {
            case .image: writer.member("type", word: "image")
            case .video: writer.member("type", word: "video")
            default: writer.member("type", word: "text")
            }
            writer.member("conversationId", room)
            if let attachment { Self.metadata(attachment, &writer) }
            writer.endObject()
            return EncodedFrame(bytes: writer.finish(), isBinary: false)
        }
        guard !message.attachments.isEmpty else {
            let only = frame(0, nil)
            return only.bytes.count <= DialectTraits.usualMaxFrameBytes ? .frame(only) : .unsupported(.tooLong)
        }
        let frames = message.attachments.enumerated().map { frame($0.offset, $0.element) }
        guard frames.allSatisfy({ $0.bytes.count <= DialectTraits.usualMaxFrameBytes }) else {
            return .unsupported(.tooLong)
        }
        return .frames(frames)
    }

    /// All values are strings: the article's model has no other.
    private static func metadata(_ attachment: ChatAttachment, _ writer: inout JSONWriter) {
        writer.key("metadata")
        writer.beginObject()
        if let url = attachment.url {
            writer.member("url", url)
        }
        if let name = attachment.name {
            writer.member("filename", name)
        }
        if let mime = attachment.mime {
            writer.member("mimeType", mime)
        }
        if let size = attachment.size {
            writer.member("size", String(size))
        }
        writer.endObject()
    }

    // MARK: - Times

    private func write(_ time: ChatTimestamp, _ writer: inout JSONWriter) {
        switch timeStyle {
        case .iso8601:
            _ = writer.string(byteCount: ISOTime.byteCount) { out in
                ISOTime.write(time, to: UnsafeMutableBufferPointer(start: out, count: ISOTime.byteCount))
                return true
            }
        case .reference: writer.seconds(milliseconds: Self.sinceReference(time))
        }
    }

    /// `time` as the backend spells it, for an address.
    func spelled(_ time: ChatTimestamp) -> String {
        switch timeStyle {
        case .iso8601: return ISOTime.text(time)
        case .reference:
            var writer = JSONWriter()
            writer.seconds(milliseconds: Self.sinceReference(time))
            return String(decoding: writer.finish(), as: UTF8.self)
        }
    }

    private static func sinceReference(_ time: ChatTimestamp) -> Int64 {
        min(max(time.milliseconds, 0), FrameTime.latestMilliseconds) - Int64(FrameTime.referenceDateSeconds) * 1000
    }

    /// Times on the wire are whole seconds, so other messages in the second of the last known one would be missing
    /// otherwise; duplicates are recognised by id.
    static func secondBefore(_ time: ChatTimestamp) -> ChatTimestamp {
        ChatTimestamp(milliseconds: max(time.milliseconds, 1000) - 1000)
    }
}

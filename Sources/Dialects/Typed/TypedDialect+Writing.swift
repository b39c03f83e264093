import ChatModel
import JSONText
import WireBytes

extension TypedDialect {
    /// A command becomes one binary frame. It must carry the actor's id, a receipt excepted; a message also its own id
    /// and time, an edit the time. Frames beyond the traits' limit are `.tooLong`.
    ///
    /// With `fallback_text` a message is its text, and other commands have no frame: readers of bare strings would show
    /// it as chat.
    public func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand {
        if isPlainText {
            guard case .message(let message) = command else { return .unsupported(.unsupported) }
            return Self.plainText(message)
        }
        let home = context.room
        switch command {
        case .message(let message):
            return self.message(message, message.id, message.sender, message.at, home)
        case .edit(let edit):
            guard let at = edit.at, let sender = Actor(edit.sender) else { return .unsupported(.missingField) }
            return frame(.edit) { writer in
                writer.member("id", id: edit.id)
                Self.write(edit.room, home, to: &writer)
                Self.write(sender, to: &writer)
                writer.member("text", edit.text)
                writer.key("editedAt")
                Self.write(at, to: &writer)
            }
        case .delete(let delete):
            guard !delete.ids.isEmpty, let sender = Actor(delete.sender) else { return .unsupported(.missingField) }
            return frame(.delete) { writer in
                Self.write(delete.ids, to: &writer)
                Self.write(delete.room, home, to: &writer)
                Self.write(sender, to: &writer)
            }
        case .typing(let typing):
            guard let sender = Actor(typing.sender) else { return .unsupported(.missingField) }
            return frame(.typing) { writer in
                Self.write(typing.room, home, to: &writer)
                Self.write(sender, to: &writer)
                writer.member("active", flag: typing.state == .start)
            }
        case .receipt(let receipt) where receipt.state != .sent:
            guard !receipt.ids.isEmpty else { return .unsupported(.missingField) }
            return frame(.receipt) { writer in
                Self.write(receipt.room, home, to: &writer)
                Self.write(receipt.ids, to: &writer)
                writer.member("state", receipt.state.rawValue)
                if let reader = Actor(receipt.by) { Self.write(reader, to: &writer) }
            }
        case .join(let membership): return presence(membership.user, "joined", membership.room, home)
        case .leave(let membership): return presence(membership.user, "left", membership.room, home)
        case .presence(let presence):
            return self.presence(presence.user, presence.state.rawValue, presence.room, home)
        case .reaction(let reaction):
            guard let sender = Actor(reaction.sender) else { return .unsupported(.missingField) }
            return frame(.reaction) { writer in
                Self.write(reaction.room, home, to: &writer)
                Self.write(sender, to: &writer)
                writer.member("messageId", id: reaction.target)
                writer.member("emoji", reaction.emoji)
                writer.member("active", flag: reaction.operation == .add)
            }
        case .receipt, .auth, .subscribe, .fetch, .ping, .pong:
            return .unsupported(.unsupported)
        }
    }

    private static func plainText(_ message: ChatMessage) -> EncodedCommand {
        let text = FrameAttachment.textWithLinks(message.text, message.attachments)
        guard !text.isEmpty else { return .unsupported(.missingField) }
        return .text(Array(text.utf8))
    }

    @inline(never)  // inlined, it would take copies of the ids
    private func message(
        _ message: ChatMessage, _ id: ChatID?, _ sender: ChatPerson, _ at: ChatTimestamp?, _ home: String
    ) -> EncodedCommand {
        guard let id, let at, let senderID = sender.id else { return .unsupported(.missingField) }
        return frame(.message) { writer in
            writer.member("id", id: id)
            Self.write(message.room, home, to: &writer)
            writer.member("senderId", id: senderID)
            writer.key("senderName")
            if let name = sender.name { writer.string(name) } else { writer.id(senderID) }
            writer.member("text", message.text)
            writer.key("sentAt")
            Self.write(at, to: &writer)
            if let replyTo = message.replyTo {
                writer.member("replyTo", id: replyTo)
            }
            if !message.attachments.isEmpty { Self.write(message.attachments, to: &writer) }
        }
    }

    private func presence(_ user: ChatPerson, _ state: String, _ room: String?, _ home: String) -> EncodedCommand {
        guard let user = Actor(user) else { return .unsupported(.missingField) }
        return frame(.presence) { writer in
            Self.write(room, home, to: &writer)
            writer.member("userId", id: user.id)
            writer.member("userName", user.name)
            writer.member("state", state)
        }
    }

    // MARK: - Parts

    /// The actor, with both parts: the reference decoders take no frame without them.
    private struct Actor {
        let id: ChatID
        let name: String

        /// Nil for a person without an id.
        init?(_ person: ChatPerson) {
            guard let id = person.id else { return nil }
            self.id = id
            name = person.name ?? id.rawValue
        }
    }

    private static func write(_ sender: Actor, to writer: inout JSONWriter) {
        writer.member("senderId", id: sender.id)
        writer.member("senderName", sender.name)
    }

    private static func write(_ room: String?, _ home: String, to writer: inout JSONWriter) {
        writer.key("room")
        if let room, !room.isEmpty { writer.string(room) } else { writer.string(home) }
    }

    private static func write(_ ids: [ChatID], to writer: inout JSONWriter) {
        writer.key("ids")
        writer.beginArray()
        for id in ids { writer.id(id) }
        writer.endArray()
    }

    /// Seconds since 2001.
    private static func write(_ time: ChatTimestamp, to writer: inout JSONWriter) {
        writer.seconds(milliseconds: time.milliseconds &- Int64(FrameTime.referenceDateSeconds) * 1000)
    }

    private static func write(_ files: [ChatAttachment], to writer: inout JSONWriter) {
        writer.key("attachments")
        writer.beginArray()
        for file in files {
            writer.beginObject()
            if let url = file.url {
                writer.member("url", url)
            }
            if let name = file.name {
                writer.member("name", name)
            }
            if let mime = file.mime {
                writer.member("mimeType", mime)
            }
            if let size = file.size {
                writer.member("size", number: size)
            }
            writer.member("kind", file.kind.rawValue)
            writer.endObject()
        }
        writer.endArray()
    }

    /// The frame around the payload that `body` writes.
    private func frame(_ type: PayloadType, _ body: (inout JSONWriter) -> Void) -> EncodedCommand {
        JSONWriter.onStack { payload in
            payload.beginObject()
            body(&payload)
            payload.endObject()
            let head = heads[type.rawValue]
            let tail: StaticString = #""}"#
            let digits = Base64.encodedCount(payload.count)
            guard head.count + digits + tail.utf8CodeUnitCount <= DialectTraits.usualMaxFrameBytes else {
                return .unsupported(.tooLong)
            }
            let bytes = payload.withBytes { payload in
                JSONWriter.document { frame in
                    frame.verbatim(head)
                    _ = frame.appendToString(byteCount: digits) { out in
                        Base64.encode(payload, into: UnsafeMutableRawBufferPointer(start: out, count: digits)) != nil
                    }
                    frame.verbatim(tail)
                }
            }
            return .frame(EncodedFrame(bytes: bytes, isBinary: true))
        }
    }
}

import ChatModel
import JSONText

extension JWTRoomsDialect {
    /// A message becomes one frame, or one for each attachment that has an address, the text with the first. The backend
    /// takes the sender from the token and the room from the socket, but both are part of the app's frame.
    public func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand {
        switch command {
        case .message(let message): return write(message, context)
        case .typing(let typing): return write(typing, context)
        case .reaction(let reaction):
            // A message without a number has an unknown id on the backend.
            guard Self.reactionChoices.contains(where: { $0.utf8.elementsEqual(reaction.emoji.utf8) }),
                Self.isNumber(reaction.target.rawValue)
            else { return .unsupported(.unsupported) }
            var writer = JSONWriter()
            writer.beginObject()
            writer.member("type", word: "reaction")
            writer.key("message_id")
            writer.raw(reaction.target.rawValue)
            writer.member("reaction_type", reaction.emoji)
            writer.member("action", word: reaction.operation == .add ? "add" : "remove")
            writer.endObject()
            return .text(writer.finish())
        case .pong:
            return .text(Array(#"{"type":"pong"}"#.utf8))
        case .edit, .delete, .receipt, .join, .leave, .presence, .auth, .subscribe, .fetch, .ping:
            return .unsupported(.unsupported)
        }
    }

    private func write(_ message: ChatMessage, _ context: DialectContext) -> EncodedCommand {
        guard let room = roomNumber(context) else { return .unsupported(.missingField) }
        let sender = account(message.sender, context)
        let attachments = message.attachments
        guard attachments.contains(where: { $0.url?.isEmpty == false }) else {
            let bytes = plainFrame(message.text, room, sender) ?? frame(message.text, nil, room, sender)
            return .text(bytes)
        }
        var isFirst = true
        return Self.collect(
            attachments.filter { $0.url?.isEmpty == false }.map { attachment in
                defer { isFirst = false }
                return frame(isFirst ? message.text : "", attachment, room, sender)
            })
    }

    private static func collect(_ frames: some Collection<[UInt8]>) -> EncodedCommand {
        guard frames.allSatisfy({ $0.count <= DialectTraits.usualMaxFrameBytes }) else { return .unsupported(.tooLong) }
        return .frames(frames.map { EncodedFrame(bytes: $0, isBinary: false) })
    }

    private func frame(_ text: String, _ attachment: ChatAttachment?, _ room: String, _ sender: String) -> [UInt8] {
        var writer = JSONWriter(capacity: text.utf8.count + 256)
        begin("message", room, &writer)
        writer.member("content", text)
        writer.member("sender", sender)
        guard let attachment else {
            // No `"attachment": null`: the backend answers that with an error.
            writer.member("message_type", word: "text")
            writer.endObject()
            return writer.finish()
        }
        let kind = attachment.kind == .file ? ChatAttachment.Kind.document : attachment.kind
        writer.member("message_type", text.isEmpty ? kind.rawValue : "text_with_" + kind.rawValue)
        writer.key("attachment")
        writer.beginObject()
        writer.member("type", attachment.kind.rawValue)
        writer.member("filename", attachment.name ?? "")
        writer.member("url", attachment.url ?? "")
        writer.member("size", number: attachment.size ?? 0)
        writer.member("mime_type", attachment.mime ?? "")
        writer.endObject()
        writer.endObject()
        return writer.finish()
    }

    /// The frame of a text without attachment and without escapes, byte for byte as by ``frame(_:_:_:_:)``; nil for
    /// other texts.
    private func plainFrame(_ text: String, _ room: String, _ sender: String) -> [UInt8]? {
        let head: StaticString = #"{"type":"message","room_id":"#
        let beforeText: StaticString = #","content":""#
        let beforeSender: StaticString = #"","sender":""#
        let tail: StaticString = #"","message_type":"text"}"#
        let words =
            head.utf8CodeUnitCount + beforeText.utf8CodeUnitCount + beforeSender.utf8CodeUnitCount
            + tail.utf8CodeUnitCount
        return PlainFrame.make(byteCount: words + room.utf8.count + 2 + text.utf8.count + sender.utf8.count) { frame in
            frame.put(json: head)
            let isNumber = Self.isNumber(room)
            if !isNumber { frame.put(json: "\"") }
            frame.put(text: room)
            if !isNumber { frame.put(json: "\"") }
            frame.put(json: beforeText)
            frame.put(text: text)
            frame.put(json: beforeSender)
            frame.put(text: sender)
            frame.put(json: tail)
        }
    }

    private func write(_ event: ChatTyping, _ context: DialectContext) -> EncodedCommand {
        guard let room = roomNumber(context) else { return .unsupported(.missingField) }
        let sender = account(event.sender, context)
        var frames: [[UInt8]] = []
        func put(_ type: StaticString) {
            var writer = JSONWriter()
            begin(type, room, &writer)
            writer.member("sender", sender)
            writer.endObject()
            frames.append(writer.finish())
        }
        if typing != .typing { put(event.state == .start ? "typing_start" : "typing_stop") }
        if typing != .startStop, event.state == .start { put("typing") }
        guard !frames.isEmpty else { return .unsupported(.unsupported) }
        return Self.collect(frames)
    }

    private func begin(_ type: StaticString, _ room: String, _ writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("type", word: type)
        writer.key("room_id")
        if Self.isNumber(room) { writer.raw(room) } else { writer.string(room) }
    }

    // MARK: - Account and room

    /// The account's name: every frame is the account's.
    private func account(_ sender: ChatPerson, _ context: DialectContext) -> String {
        let names = context.selfNames
        // Mostly there is one account, and comparing costs less than a hash.
        if names.count == 1, let only = names.first {
            if let name = sender.name, name == only { return name }
            return only
        }
        if let name = sender.name, names.contains(name) { return name }
        return names.min() ?? sender.name ?? ""
    }

    /// The room's id as the backend announced it, or as the configuration says it; nil while only a name is known.
    func roomNumber(_ context: DialectContext) -> String? {
        if let announced = context.announcedRoom ?? roomID { return announced }
        return Self.isNumber(context.room) ? context.room : nil
    }

    /// Whether `id` is a number as JSON spells them: digits, and none of them a zero too many.
    static func isNumber(_ id: String) -> Bool {
        guard let first = id.utf8.first, id.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }) else { return false }
        return first != UInt8(ascii: "0") || id.utf8.count == 1
    }
}

import ChatModel
import JSONText

// The wire of a SwiftUI chat with rooms: one socket for each room, the access token in its address, and everything that is
// not live over HTTP. Frames from the server have `type` and, as far as they apply:
//
//     room_id, message_id       integers; some builds write strings
//     sender                    the account's name; there is no id of a person anywhere
//     content, message          the text, the former in newer builds
//     message_type              text, image, video, audio, document or text_with_ one of these
//     file_url, file_name, file_size, mime_type, or an object `attachment`
//     timestamp                 without zone; UTC in messages, the server's own time elsewhere
//
// The sender gets neither an echo nor an answer to a message, so its id is known from the history only.

/// The rooms of a SwiftUI and FastAPI chat.
///
/// Source: observed, jwt-rooms fixtures/in.jsonl, out.jsonl.
public struct JWTRoomsDialect: Dialect {
    /// The frames for typing; the app has two, the published backend one of another name.
    public enum TypingStyle: String, Sendable, CaseIterable {
        /// `typing_start` and `typing_stop`.
        case startStop = "start_stop"
        /// `typing`, which has no end.
        case typing
        case both
    }

    /// How long typing lasts after one frame, in milliseconds; `typing` has no stop.
    public static let typingMilliseconds: Int64 = 3000
    /// The only reactions that the backend takes.
    public static let reactionChoices = ["👍", "❤️", "😂", "😮", "😢", "😡"]
    /// Largest file that the backend takes, in bytes.
    public static let maxUploadBytes = 10 * 1024 * 1024
    /// Furthest that a zone lies from UTC, in seconds.
    static let maxZoneSeconds: Int64 = 18 * 3600

    public let traits: DialectTraits
    let typing: TypingStyle
    /// The room's id on the backend, if the configuration knows it.
    let roomID: String?
    let base: FrameBase?
    let time: FrameTime

    /// Options: `room_id` (number or string), `base` (address of the HTTP side), `naive_offset` (seconds that times
    /// without zone are ahead of UTC), `typing` (``TypingStyle``).
    ///
    /// - Throws: for an unknown option and for a value that cannot be.
    public init(_ options: consuming DialectOptions = DialectOptions()) throws(DialectOptionError) {
        switch options.value("room_id") {
        case nil: roomID = nil
        case .integer(let number) where number >= 0: roomID = String(number)
        case .string(let text) where CallTarget.segment(text) != nil: roomID = text
        default: throw options.error("room_id", "must be a whole number or a string")
        }
        base = try FrameBase.option(&options)
        let offset = try options.integer("naive_offset", in: -Self.maxZoneSeconds...Self.maxZoneSeconds)
        time = FrameTime(naiveOffsetSeconds: offset ?? 0)
        typing = try options.choice("typing", of: TypingStyle.self) ?? .startStop
        try options.finish()
        var traits = DialectTraits(
            name: "jwt-rooms", identity: .single, messageIDOrigin: .server, echoesOwnMessages: false,
            confirmation: .none, typingOut: typing == .typing ? .startOnly : .startStop,
            backoff: BackoffTraits(
                first: .seconds(2), factor: 2, cap: .seconds(60), jitter: 0.25, degradedAfter: 5))
        traits.readReport = .call
        traits.authenticatesSenders = true
        traits.namesAreIDs = true
        traits.waitsForReady = true
        traits.history = .call
        traits.older = .call
        traits.connectsInTurn = true
        traits.reactionChoices = Self.reactionChoices
        traits.namesSenders = false
        self.traits = traits
    }

    public var calls: (any DialectCalls)? { JWTRoomsCalls(dialect: self) }

    // MARK: - Reading

    /// The members of a frame and of a message in the history.
    struct Fields: FrameMembers {
        var type: JSONField?
        var roomID: JSONField?
        var messageID: JSONField?
        var sender: JSONField?
        var message: JSONField?
        var content: JSONField?
        var messageType: JSONField?
        var fileURL: JSONField?
        var fileName: JSONField?
        var fileSize: JSONField?
        var mimeType: JSONField?
        var timestamp: JSONField?
        var attachment: JSONField?
        var isEncrypted: JSONField?
        var roomName: JSONField?
        var reactionType: JSONField?
        var reactionSummary: JSONField?

        @inline(__always)
        mutating func set(_ key: JSONField, _ value: JSONField) {
            // Names are distinguished by their length first; with escapes one is longer than it says.
            switch key.isPlainString ? key.byteCount : 0 {
            case 4: if key.equals("type") { type = value }
            case 6: if key.equals("sender") { sender = value }
            case 7:
                switch key {
                case "room_id": roomID = value
                case "message": message = value
                case "content": content = value
                default: break
                }
            case 8: if key.equals("file_url") { fileURL = value }
            case 9:
                switch key {
                case "file_name": fileName = value
                case "file_size": fileSize = value
                case "mime_type": mimeType = value
                case "timestamp": timestamp = value
                case "room_name": roomName = value
                default: break
                }
            case 10:
                switch key {
                case "message_id": messageID = value
                case "attachment": attachment = value
                default: break
                }
            case 12:
                switch key {
                case "message_type": messageType = value
                case "is_encrypted": isEncrypted = value
                default: break
                }
            case 0, 13, 16: setSeldom(key, value)
            default: break
            }
        }

        /// Long names, and all others in case they were written with escapes.
        private mutating func setSeldom(_ key: JSONField, _ value: JSONField) {
            switch key {
            case "type": type = value
            case "room_id": roomID = value
            case "message_id": messageID = value
            case "sender": sender = value
            case "message": message = value
            case "content": content = value
            case "message_type": messageType = value
            case "file_url": fileURL = value
            case "file_name": fileName = value
            case "file_size": fileSize = value
            case "mime_type": mimeType = value
            case "timestamp": timestamp = value
            case "attachment": attachment = value
            case "is_encrypted": isEncrypted = value
            case "room_name": roomName = value
            case "reaction_type": reactionType = value
            case "reaction_summary": reactionSummary = value
            default: break
            }
        }
    }

    public func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame {
        var fields = Fields()
        if let flaw = fields.read(frame) { return .dropped(flaw, typeKey: nil) }
        guard let type = fields.type, !type.isNull else { return .dropped(.missingField, typeKey: nil) }
        guard type.kind == .string else { return .dropped(.wrongType, typeKey: FrameText.typeKey(type)) }
        return event(type, fields, context)
    }

    private func event(_ type: JSONField, _ fields: Fields, _ context: DialectContext) -> DecodedFrame {
        func drop(_ reason: DropReason) -> DecodedFrame { .dropped(reason, typeKey: FrameText.typeKey(type)) }
        switch type {
        case "message":
            switch message(fields, context) {
            case .message(let message): return .event(.message(message))
            case .dropped(let reason): return drop(reason)
            }
        case "typing", "typing_start": return typingEvent(.start, fields, context) ?? drop(.missingField)
        case "typing_stop": return typingEvent(.stop, fields, context) ?? drop(.missingField)
        case "user_joined", "user_left":
            let user = person(fields)
            guard user.name != nil else { return drop(.missingField) }
            let membership = ChatMembership(
                user: user, room: room(fields), at: time.read(fields.timestamp), isSelf: context.isSelf(user))
            return .event(type.equals("user_joined") ? .join(membership) : .leave(membership))
        case "connected":
            return .event(.ready(ChatReady(room: room(fields), name: FrameText.nonEmpty(fields.roomName))))
        case "error":
            let text = fields.message?.string ?? ""
            // All other errors concern one frame, and do not say which.
            return .event(.error(ChatError(code: "upstream", text: text, isFatal: text == "Room not found")))
        case "reaction_added": return reaction(.add, fields, context) ?? drop(.missingField)
        case "reaction_removed": return reaction(.remove, fields, context) ?? drop(.missingField)
        case "ping": return .event(.ping(ref: nil))
        case "pong": return .event(.pong(ref: nil))
        default: return drop(.unknownType)
        }
    }

    private func person(_ fields: Fields) -> ChatPerson { ChatPerson(name: FrameText.nonEmpty(fields.sender)) }

    private func room(_ fields: Fields) -> String? { FrameText.name(fields.roomID) }

    private func typingEvent(_ state: ChatTyping.State, _ fields: Fields, _ context: DialectContext) -> DecodedFrame? {
        let sender = person(fields)
        guard sender.name != nil else { return nil }
        return .event(
            .typing(
                ChatTyping(
                    state: state, sender: sender, room: room(fields),
                    ttlMilliseconds: state == .start ? Self.typingMilliseconds : nil,
                    isSelf: context.isSelf(sender))))
    }

    private func reaction(
        _ operation: ChatReaction.Operation, _ fields: Fields, _ context: DialectContext
    ) -> DecodedFrame? {
        guard let target = FrameText.id(fields.messageID), let emoji = FrameText.nonEmpty(fields.reactionType) else {
            return nil
        }
        let sender = person(fields)
        let counts: [ChatReaction.Count]? = fields.reactionSummary?.elements.compactMap { element in
            var emoji: String?
            var count: Int64?
            var users: [String] = []
            for (key, value) in element.members {
                switch key {
                case "reaction_type": emoji = FrameText.nonEmpty(value)
                case "count": count = FrameNumber.whole(value)
                case "users": users = value.elements.compactMap(\.string)
                default: break
                }
            }
            return emoji.map { ChatReaction.Count(emoji: $0, count: count ?? Int64(users.count), users: users) }
        }
        return .event(
            .reaction(
                ChatReaction(
                    target: target, emoji: emoji, operation: operation, sender: sender, room: room(fields),
                    at: time.read(fields.timestamp), counts: counts ?? [], isSelf: context.isSelf(sender))))
    }

    // MARK: - Messages

    enum MessageReading {
        case message(ChatMessage)
        case dropped(DropReason)
    }

    /// A message, live or out of the history.
    func message(_ fields: Fields, _ context: DialectContext) -> MessageReading {
        guard Self.isTextOrAbsent(fields.content), Self.isTextOrAbsent(fields.message) else {
            return .dropped(.wrongType)
        }
        let text = FrameText.nonEmpty(fields.content) ?? fields.message?.string ?? ""
        let attachment = attachment(fields)
        let isEncrypted = fields.isEncrypted?.bool == true
        // The backend stores and sends messages that say nothing.
        guard !text.isEmpty || attachment != nil || isEncrypted else { return .dropped(.missingField) }
        let sender = person(fields)
        let isSelf = context.isSelfName(sender.name)
        return .message(
            ChatMessage(
                id: FrameText.id(fields.messageID), room: room(fields), sender: sender, text: text,
                at: time.read(fields.timestamp), attachments: attachment.map { [$0] } ?? [],
                isSelf: isSelf, isEncrypted: isEncrypted))
    }

    private static func isTextOrAbsent(_ field: JSONField?) -> Bool {
        guard let field else { return true }
        return field.kind == .string || field.isNull
    }

    /// The file kind in `message_type`; nil for text and for unknown words.
    private static func mediaKind(_ messageType: JSONField?) -> ChatAttachment.Kind? {
        guard let messageType else { return nil }
        switch messageType {
        case "text": return nil
        case "image", "text_with_image": return .image
        case "video", "text_with_video": return .video
        case "audio", "text_with_audio": return .audio
        case "document", "text_with_document": return .document
        default: return nil
        }
    }

    /// The nested object before the direct fields, and these before a file of which only the kind is known.
    private func attachment(_ fields: Fields) -> ChatAttachment? {
        let hint = Self.mediaKind(fields.messageType)
        if let object = fields.attachment, object.kind == .object, let attachment = nested(object, hint) {
            return attachment
        }
        if let url = FrameText.nonEmpty(fields.fileURL) {
            let mime = FrameText.nonEmpty(fields.mimeType)
            return ChatAttachment(
                kind: FrameAttachment.kind(mime: mime, hint: mime == nil ? hint : nil),
                url: FrameBase.resolve(url, against: base), name: FrameText.nonEmpty(fields.fileName),
                size: FrameNumber.count(fields.fileSize), mime: mime)
        }
        return hint.map { ChatAttachment(kind: $0) }
    }

    private func nested(_ object: JSONField, _ hint: ChatAttachment.Kind?) -> ChatAttachment? {
        var kind: ChatAttachment.Kind?
        var camelMime: String?
        var attachment = ChatAttachment(kind: .file)
        for (key, value) in object.members {
            switch key {
            case "type": kind = value.string.flatMap { ChatAttachment.Kind(rawValue: $0) }
            case "url": attachment.url = FrameBase.resolve(value.string, against: base)
            case "filename": attachment.name = FrameText.nonEmpty(value)
            case "size": attachment.size = FrameNumber.count(value)
            case "mime_type": attachment.mime = FrameText.nonEmpty(value)
            case "mimeType": camelMime = FrameText.nonEmpty(value)
            case "thumbnailUrl": attachment.thumbnail = FrameBase.resolve(value.string, against: base)
            case "duration": attachment.duration = value.double
            case "width": attachment.width = FrameNumber.whole(value)
            case "height": attachment.height = FrameNumber.whole(value)
            default: break
            }
        }
        guard attachment.url != nil || attachment.name != nil else { return nil }
        attachment.mime = attachment.mime ?? camelMime
        attachment.kind = kind ?? FrameAttachment.kind(mime: attachment.mime, hint: hint)
        return attachment
    }
}

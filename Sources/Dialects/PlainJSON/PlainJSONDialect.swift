import ChatModel
import JSONText

// The wire of an article about an iOS chat: one socket for each conversation and three kinds of object.
//
//     {id, senderId, senderName, text, timestamp, type, metadata, conversationId}    a message
//     {type: "typing" | "stopTyping", userId, conversationId}
//     {type: "ack", messageId, userId, status}
//
// `type` is both: `typing`, `stopTyping` and `ack` are kinds of frame, all others kinds of content. An array holds
// earlier messages. The article has no server, so its open questions are options here.

/// The plain objects of an article; `article` in older configurations.
///
/// Source: observed, plainjson fixtures/in.jsonl, out.jsonl.
public struct PlainJSONDialect: Dialect {
    /// How times are written; both are read.
    public enum TimeStyle: String, Sendable, CaseIterable {
        /// ISO 8601 in whole seconds, as the article's prose says.
        case iso8601
        /// Seconds since 2001, as its code would write them.
        case reference
    }

    /// When an `ack` is sent.
    public enum AckStyle: String, Sendable, CaseIterable {
        case read, delivered, never
    }

    /// How long typing lasts after one frame, in milliseconds.
    public static let typingMilliseconds: Int64 = 3000
    public let traits: DialectTraits
    let timeStyle: TimeStyle
    let acks: AckStyle
    let sendsLastOnline: Bool
    let history: CallTemplate?
    let base: FrameBase?
    let time = FrameTime(epoch: .reference)

    /// Options: `timestamp` (``TimeStyle``), `ack_on` (``AckStyle``), `history_url` (a path or address with `{room}`,
    /// `{since}`, `{limit}`), `send_last_online` (true or false), `base` (address of the HTTP side).
    ///
    /// - Throws: for an unknown option and for a value that cannot be.
    public init(_ options: consuming DialectOptions = DialectOptions()) throws(DialectOptionError) {
        timeStyle = try options.choice("timestamp", of: TimeStyle.self) ?? .iso8601
        acks = try options.choice("ack_on", of: AckStyle.self) ?? .read
        sendsLastOnline = try options.flag("send_last_online") ?? false
        base = try FrameBase.option(&options)
        if let text = try options.text("history_url") {
            do throws(CallTemplate.Failure) {
                history = try CallTemplate(text)
            } catch {
                throw options.error("history_url", error.sentence)
            }
        } else {
            history = nil
        }
        if history != nil, sendsLastOnline {
            throw options.error("send_last_online", "cannot be on together with \"history_url\"")
        }
        try options.finish()
        var traits = DialectTraits(
            name: "plainjson", identity: .puppet, messageIDOrigin: .client, echoesOwnMessages: false,
            confirmation: .receipt, typingOut: .startStop,
            backoff: BackoffTraits(first: .seconds(2), factor: 2, cap: .seconds(30), jitter: 0.5))
        traits.readReport = acks == .read ? .eachMessage : .none
        traits.history = history != nil ? .call : sendsLastOnline ? .socket : .none
        traits.older = history != nil ? .call : .none
        traits.acknowledgedByPeople = true
        traits.reportsDelivery = acks == .delivered
        self.traits = traits
    }

    public var calls: (any DialectCalls)? { history.map { PlainJSONCalls(dialect: self, template: $0) } }

    // MARK: - Reading

    /// The members of all three kinds.
    private struct Fields: FrameMembers {
        var type: JSONField?
        var id: JSONField?
        var senderID: JSONField?
        var senderName: JSONField?
        var text: JSONField?
        var timestamp: JSONField?
        var metadata: JSONField?
        var conversationID: JSONField?
        var userID: JSONField?
        var messageID: JSONField?
        var status: JSONField?

        @inline(__always)
        mutating func set(_ key: JSONField, _ value: JSONField) {
            switch key {
            case "type": type = value
            case "id": id = value
            case "senderId": senderID = value
            case "senderName": senderName = value
            case "text": text = value
            case "timestamp": timestamp = value
            case "metadata": metadata = value
            case "conversationId": conversationID = value
            case "userId": userID = value
            case "messageId": messageID = value
            case "status": status = value
            default: break
            }
        }

        var room: String? { FrameText.name(conversationID) }
        var user: ChatPerson { ChatPerson(id: FrameText.id(userID)) }
    }

    private enum Reading {
        case event(ChatEvent)
        case dropped(DropReason)
    }

    public func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame {
        var fields = Fields()
        do throws(JSONError) {
            var reader = try JSONReader(frame)
            if try reader.enterObject() {
                while let (key, value) = try reader.nextMember() { fields.set(key, value) }
                try reader.finish()
            } else {
                let value = try reader.readValue()
                try reader.finish()
                guard value.kind == .array else { return .dropped(.notObject, typeKey: nil) }
                let messages = value.elements.compactMap { message(inHistory: $0, context) }
                return .events([.history(ChatHistory(messages: messages))])
            }
        } catch {
            return .dropped(.malformed, typeKey: nil)
        }
        switch read(fields, context) {
        case .event(let event): return .event(event)
        case .dropped(let reason):
            let type = fields.type.flatMap { $0.isNull ? nil : FrameText.typeKey($0) }
            return .dropped(reason, typeKey: type)
        }
    }

    /// An element of an array, where only messages belong; nil for everything else.
    func message(inHistory element: JSONField, _ context: DialectContext) -> ChatMessage? {
        guard element.kind == .object, case .event(.message(let message)) = read(Fields(element), context) else {
            return nil
        }
        return message
    }

    private func read(_ fields: Fields, _ context: DialectContext) -> Reading {
        guard let type = fields.type, !type.isNull else { return content(nil, fields, context) }
        guard type.kind == .string else { return .dropped(.wrongType) }
        switch type {
        case "typing": return typing(.start, fields, context)
        case "stopTyping": return typing(.stop, fields, context)
        case "ack":
            guard let id = FrameText.id(fields.messageID) else { return .dropped(.missingField) }
            let user = fields.user
            return .event(
                .receipt(
                    ChatReceipt(
                        state: Self.receiptState(fields.status), ids: [id], by: user, room: fields.room,
                        isSelf: context.isSelf(user))))
        default: return content(type, fields, context)
        }
    }

    /// The article wants a message acknowledged when it is shown, so an `ack` that says nothing else means read.
    private static func receiptState(_ status: JSONField?) -> ChatReceipt.State {
        switch status {
        case .some("sent"): .sent
        case .some("delivered"): .delivered
        default: .read
        }
    }

    private func typing(_ state: ChatTyping.State, _ fields: Fields, _ context: DialectContext) -> Reading {
        let user = fields.user
        guard user.id != nil else { return .dropped(.missingField) }
        return .event(
            .typing(
                ChatTyping(
                    state: state, sender: user, room: fields.room,
                    ttlMilliseconds: state == .start ? Self.typingMilliseconds : nil,
                    isSelf: context.isSelf(user))))
    }

    // MARK: - Messages

    private enum Content { case text, system, media(ChatAttachment.Kind), unknown }

    private static func content(_ type: JSONField?) -> Content {
        switch type {
        case nil, .some("text"): .text
        case .some("system"): .system
        case .some("image"): .media(.image)
        case .some("video"): .media(.video)
        case .some("audio"): .media(.audio)
        default: .unknown
        }
    }

    private func content(_ type: JSONField?, _ fields: Fields, _ context: DialectContext) -> Reading {
        let content = Self.content(type)
        if let text = fields.text, !text.isNull, text.kind != .string { return .dropped(.wrongType) }
        let text = fields.text?.string
        var metadata = fields.metadata.flatMap { $0.kind == .object ? Metadata($0) : nil } ?? Metadata()
        guard text != nil || metadata.url != nil else {
            switch content {
            case .text, .system, .media(.image), .media(.video): return .dropped(.missingField)
            case .media, .unknown: return .dropped(.unknownType)
            }
        }
        let id = FrameText.id(fields.id)
        let at = time.read(fields.timestamp)
        if case .system = content {
            return .event(.system(ChatSystemNotice(text: text ?? "", id: id, room: fields.room, at: at)))
        }
        metadata.url = FrameBase.resolve(metadata.url, against: base)
        var attachments: [ChatAttachment] = []
        switch content {
        case .media(let kind) where kind != .audio || metadata.url != nil:
            attachments = [metadata.attachment(kind)]
        default:
            if metadata.url != nil { attachments = [metadata.attachment(nil)] }
        }
        // This wire has ids, so a name alone is never us.
        let sender = ChatPerson(id: FrameText.id(fields.senderID), name: FrameText.nonEmpty(fields.senderName))
        return .event(
            .message(
                ChatMessage(
                    id: id, room: fields.room, sender: sender, text: text ?? "", at: at, attachments: attachments,
                    isSelf: sender.id != nil && context.isSelf(sender))))
    }

    /// The file in a message's metadata. Its values are strings in the article, and numbers are taken as well.
    private struct Metadata {
        /// The spellings of the address, the first that is there before the others.
        private var urls: InlineArray<7, String?> = .init(repeating: nil)
        private var names: InlineArray<3, String?> = .init(repeating: nil)
        private var mime: String?
        private var snakeMime: String?
        private var size: Int64?
        private var thumbnail: String?

        /// The address that counts.
        var url: String?

        init() {}

        init(_ object: JSONField) {
            for (key, value) in object.members {
                switch key {
                case "url": urls[0] = Self.text(value)
                case "fileUrl": urls[1] = Self.text(value)
                case "fileURL": urls[2] = Self.text(value)
                case "file_url": urls[3] = Self.text(value)
                case "imageUrl": urls[4] = Self.text(value)
                case "videoUrl": urls[5] = Self.text(value)
                case "audioUrl": urls[6] = Self.text(value)
                case "filename": names[0] = Self.text(value)
                case "fileName": names[1] = Self.text(value)
                case "name": names[2] = Self.text(value)
                case "mimeType": mime = Self.text(value)
                case "mime_type": snakeMime = Self.text(value)
                case "size": size = FrameNumber.count(value)
                case "thumbnailUrl": thumbnail = Self.text(value)
                default: break
                }
            }
            for index in urls.indices where url == nil { url = urls[index] }
        }

        private static func text(_ field: JSONField) -> String? {
            switch field.kind {
            case .string: FrameText.nonEmpty(field)
            case .integer, .decimal: field.rawText
            default: nil
            }
        }

        func attachment(_ kind: ChatAttachment.Kind?) -> ChatAttachment {
            let mime = mime ?? snakeMime
            return ChatAttachment(
                kind: kind ?? FrameAttachment.kind(mime: mime), url: url, name: names[0] ?? names[1] ?? names[2],
                size: size, mime: mime, thumbnail: thumbnail)
        }
    }
}

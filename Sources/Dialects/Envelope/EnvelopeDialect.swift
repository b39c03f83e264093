import ChatModel
import JSONText

// The wire of a tutorial's SwiftUI chat: one JSON object per frame with six keys, sent through a relay that forwards
// every frame to all clients, the sender included, without storing or checking it.
//
//     event         "message", "typing" or "readReceipt"
//     message_id    the sender's UUID for it; in a receipt the id of the message that was read
//     sender_id     a UUID, new whenever the app starts
//     sender_name
//     body          "" for typing and receipts
//     sent_at       Unix seconds with a fraction
//
// Keys also come in camelCase. The apps drop a frame when one key is missing, so we write all six and read any that
// are there.

/// The snake_case envelope; `pixar` in older configurations.
///
/// Source: observed, envelope fixtures/in.jsonl, out.jsonl.
public struct EnvelopeDialect: Dialect {
    /// How long the app shows typing after one frame, in milliseconds. There is no stop frame.
    public static let typingMilliseconds: Int64 = 3000

    public init() {}

    public let traits: DialectTraits = {
        var traits = DialectTraits(
            name: "envelope", identity: .puppet, messageIDOrigin: .client, echoesOwnMessages: true,
            confirmation: .echoByID, typingOut: .startOnly,
            backoff: BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0.25))
        traits.readReport = .eachMessage
        // There are relays of this wire that leave the sender out.
        traits.confirmationIsGuess = true
        return traits
    }()

    // MARK: - Reading

    /// The six members, the preferred spelling over the other.
    private struct Fields: FrameMembers {
        var event: JSONField?
        var body: JSONField?
        var messageID: JSONField?
        var senderID: JSONField?
        var senderName: JSONField?
        var sentAt: JSONField?
        var camelMessageID: JSONField?
        var camelSenderID: JSONField?
        var camelSenderName: JSONField?
        var camelSentAt: JSONField?

        @inline(__always)
        mutating func set(_ key: JSONField, _ value: JSONField) {
            switch key {
            case "message_id": messageID = value
            case "body": body = value
            case "event": event = value
            case "sent_at": sentAt = value
            case "sender_id": senderID = value
            case "sender_name": senderName = value
            default: setCamel(key, value)
            }
        }

        private mutating func setCamel(_ key: JSONField, _ value: JSONField) {
            switch key {
            case "messageId": camelMessageID = value
            case "senderId": camelSenderID = value
            case "senderName": camelSenderName = value
            case "sentAt": camelSentAt = value
            default: break
            }
        }

        static func prefer(_ snake: JSONField?, _ camel: JSONField?) -> JSONField? {
            if let snake, !snake.isNull { return snake }
            return camel
        }
    }

    @inline(__always)  // each call between here and the caller would copy the event
    public func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame {
        var fields = Fields()
        if let flaw = fields.read(frame) { return .dropped(flaw, typeKey: nil) }
        return Self.translate(&fields, context)
    }

    /// - Parameter fields: not changed; passed in any other way, they would be copied.
    private static func translate(_ fields: inout Fields, _ context: DialectContext) -> DecodedFrame {
        guard let event = fields.event, !event.isNull else { return .dropped(.missingField, typeKey: nil) }
        let id = FrameText.id(Fields.prefer(fields.messageID, fields.camelMessageID))
        let sender = ChatPerson(
            id: FrameText.id(Fields.prefer(fields.senderID, fields.camelSenderID)),
            name: FrameText.nonEmpty(Fields.prefer(fields.senderName, fields.camelSenderName)))
        // This wire has ids, so a name alone is never us.
        let isSelf = sender.id.map { context.isSelf($0) } ?? false
        let sentAt = Fields.prefer(fields.sentAt, fields.camelSentAt)
        switch event {
        case "message":
            guard let body = fields.body, !body.isNull else {
                return .dropped(.missingField, typeKey: FrameText.typeKey(event))
            }
            guard let text = body.string else { return .dropped(.wrongType, typeKey: FrameText.typeKey(event)) }
            if FrameAttachment.mayBeInline(body), let attachment = FrameAttachment.inline(text) {
                return .event(
                    .message(
                        ChatMessage(
                            id: id, sender: sender, text: "", at: FrameTime().read(sentAt), attachments: [attachment],
                            isSelf: isSelf)))
            }
            return .event(
                .message(
                    ChatMessage(id: id, sender: sender, text: text, at: FrameTime().read(sentAt), isSelf: isSelf)))
        case "typing":
            return .event(
                .typing(
                    ChatTyping(
                        state: .start, sender: sender, ttlMilliseconds: Self.typingMilliseconds, isSelf: isSelf)))
        case "readReceipt":
            guard let id else { return .dropped(.missingField, typeKey: FrameText.typeKey(event)) }
            return .event(
                .receipt(ChatReceipt(state: .read, ids: [id], by: sender, at: FrameTime().read(sentAt), isSelf: isSelf))
            )
        default:
            return .dropped(.unknownType, typeKey: FrameText.typeKey(event))
        }
    }

    // MARK: - Writing

    /// A message becomes one frame, a `read` receipt one for each id. The command must carry the sender's id, the time
    /// and, except for a receipt, the id of the frame: the codec has neither clock nor randomness, and the apps take no
    /// frame without them. A message whose frame would be longer than the traits allow is `.tooLong`; splitting it is
    /// the session's business.
    public func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand {
        switch command {
        case .message(let message):
            guard message.attachments.isEmpty else { return Self.withLinks(message) }
            return Self.frame("message", message.id, message.sender.id, message.sender.name, message.text, message.at)
        case .typing(let typing) where typing.state == .start:
            return Self.frame("typing", typing.id, typing.sender.id, typing.sender.name, "", typing.at)
        case .receipt(let receipt) where receipt.state == .read:
            guard !receipt.ids.isEmpty else { return .unsupported(.missingField) }
            var frames: [EncodedFrame] = []
            for id in receipt.ids {
                switch Self.frame("readReceipt", id, receipt.by.id, receipt.by.name, "", receipt.at) {
                case .frame(let frame): frames.append(frame)
                case .several(let more): frames += more
                case .unsupported(let reason): return .unsupported(reason)
                }
            }
            return .frames(frames)
        case .typing, .receipt, .edit, .delete, .join, .leave, .presence, .reaction, .auth, .subscribe, .fetch, .ping,
            .pong:
            return .unsupported(.unsupported)
        }
    }

    private static func withLinks(_ message: ChatMessage) -> EncodedCommand {
        let text = FrameAttachment.textWithLinks(message.text, message.attachments)
        return frame("message", message.id, message.sender.id, message.sender.name, text, message.at)
    }

    /// The constant parts are written as a whole: five names between six values.
    @inline(never)  // inlined, it would take copies of the ids
    private static func frame(
        _ event: StaticString, _ id: ChatID?, _ senderID: ChatID?, _ senderName: String?, _ body: String,
        _ at: ChatTimestamp?
    ) -> EncodedCommand {
        guard let id, let senderID, let at else { return .unsupported(.missingField) }
        let bytes = JSONWriter.document { writer in
            writer.beginObject()
            writer.member("event", word: event)
            writer.verbatim(#","message_id":""#)
            writer.appendToString(id)
            writer.verbatim(#"","sender_id":""#)
            writer.appendToString(senderID)
            writer.verbatim(#"","sender_name":""#)
            if let senderName { writer.appendToString(senderName) } else { writer.appendToString(senderID) }
            writer.verbatim(#"","body":""#)
            writer.appendToString(body)
            writer.verbatim(#"","sent_at":"#)
            writer.seconds(milliseconds: at.milliseconds)
            writer.endObject()
        }
        return .text(bytes)
    }
}

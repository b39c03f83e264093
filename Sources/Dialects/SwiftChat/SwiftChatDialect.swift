import ChatModel
import JSONText

// The wire of a tutorial's chat on Vapor. To the server go exactly three keys, from the server come five:
//
//     {"message", "user", "userID"}
//     {"date", "id", "message", "user", "userID"}
//
// The server stamps date and id and sends each message to all clients, the author included. It decodes text frames only
// and drops undecodable ones silently: so no key may be missing and `userID` must be a UUID. The server of the
// tutorial's first half has neither `user` nor `userID`.

/// The Vapor tutorial's chat: one room, no login, no history.
///
/// Source: observed, swiftchat fixtures/in.jsonl, out.jsonl.
public struct SwiftChatDialect: Dialect {
    /// Largest frame that the server takes, in bytes of payload: the default of the WebSocket library under Vapor, which
    /// closes the connection over a longer one.
    static let maxFrameBytes = 16384

    /// There are no options.
    public init(_ options: consuming DialectOptions = DialectOptions()) throws(DialectOptionError) {
        try options.finish()
    }

    public let traits: DialectTraits = {
        var traits = DialectTraits(
            name: "swiftchat", identity: .puppet, messageIDOrigin: .server, echoesOwnMessages: true,
            confirmation: .echoByText, typingOut: .none,
            backoff: BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0.25))
        traits.maxFrameBytes = Self.maxFrameBytes
        return traits
    }()

    // MARK: - Reading

    private struct Fields: FrameMembers {
        var date: JSONField?
        var id: JSONField?
        var message: JSONField?
        var user: JSONField?
        var userID: JSONField?

        @inline(__always)
        mutating func set(_ key: JSONField, _ value: JSONField) {
            switch key {
            case "date": date = value
            case "id": id = value
            case "message": message = value
            case "user": user = value
            case "userID": userID = value
            default: break
            }
        }
    }

    /// No frame has a type, so no drop names one.
    public func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame {
        guard !isBinary else { return .dropped(.wrongType, typeKey: nil) }
        var fields = Fields()
        if let flaw = fields.read(frame) { return .dropped(flaw, typeKey: nil) }
        guard let message = fields.message, !message.isNull else { return .dropped(.missingField, typeKey: nil) }
        guard let text = message.string else { return .dropped(.wrongType, typeKey: nil) }
        let sender = ChatPerson(id: FrameText.id(fields.userID), name: FrameText.nonEmpty(fields.user))
        return .event(
            .message(
                ChatMessage(
                    id: FrameText.id(fields.id), sender: sender, text: text,
                    at: FrameTime(epoch: .reference).read(fields.date),
                    // This wire has ids, so a name alone is never us.
                    isSelf: sender.id.map { context.isSelf($0) } ?? false)))
    }

    // MARK: - Writing

    /// Only a message has a frame. The sender's id must be a UUID, in either case; `.wrongType` else.
    public func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand {
        guard case .message(let message) = command else { return .unsupported(.unsupported) }
        guard let id = message.sender.id, id.isUUIDShaped else { return .unsupported(.wrongType) }
        let text = FrameAttachment.textWithLinks(message.text, message.attachments)
        let bytes = JSONWriter.document { writer in
            writer.verbatim(#"{"message":""#)
            writer.appendToString(text)
            writer.verbatim(#"","user":""#)
            if let name = message.sender.name { writer.appendToString(name) } else { writer.appendToString(id) }
            writer.verbatim(#"","userID":""#)
            writer.appendToString(id)
            writer.verbatim(#""}"#)
        }
        return .text(bytes, maxBytes: Self.maxFrameBytes)
    }
}

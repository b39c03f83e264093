import ChatModel
import Dialects
import JSONText
import WireBytes

/// `jwt-rooms`: the frames of its WebSocket.
///
/// Source: observed, the published backend; docs/backends/jwt-rooms.md.
enum JWTRoomsWire {
    static let reactionChoices = JWTRoomsDialect.reactionChoices

    // MARK: - From clients

    /// - Parameter user: the account of the token: what a frame says about its sender does not count.
    static func command(_ frame: UnsafeRawBufferPointer, user: String) -> StudioCommand? {
        guard let value = try? JSONValue(parsing: frame) else { return .refused(error("Invalid JSON format")) }
        guard value.object != nil else {
            return .refused(error("Error processing message: the frame is not an object"))
        }
        let person = ChatPerson(name: user)
        switch value["type"]?.string {
        case "message": return message(value, person)
        case "typing", "typing_start": return .typing(person, isActive: true)
        case "typing_stop": return .typing(person, isActive: false)
        case "reaction":
            guard let number = value["message_id"]?.integer, let emoji = value["reaction_type"]?.string else {
                return .refused(error("Missing message_id or reaction_type"))
            }
            guard reactionChoices.contains(emoji) else {
                return .refused(error("Failed to process reaction: Message not found"))
            }
            return .reaction(
                ChatID(String(number)), emoji: emoji, isOn: value["action"]?.string != "remove", by: person)
        default: return nil
        }
    }

    private static func message(_ value: JSONValue, _ sender: ChatPerson) -> StudioCommand {
        let attachment = value["attachment"]
        if let attachment, attachment.object == nil {
            return .refused(error("Error processing message: the attachment is not an object"))
        }
        guard value["content"] != nil || value["file_url"] != nil || attachment != nil else {
            return .refused(error("Missing 'content', 'file_url', or 'attachment' field."))
        }
        if let content = value["content"], !content.isNull, content.string == nil {
            return .refused(error("Error processing message: 1 validation error for MessageCreate"))
        }
        let url = value["file_url"]?.string ?? attachment?["url"]?.string
        var files: [ChatAttachment] = []
        if let url {
            let mime = value["mime_type"]?.string ?? attachment?["mime_type"]?.string
            files.append(
                ChatAttachment(
                    kind: kind(mime), url: url,
                    name: value["file_name"]?.string ?? attachment?["filename"]?.string,
                    size: value["file_size"]?.integer ?? attachment?["size"]?.integer, mime: mime))
        }
        return .message(ChatMessage(sender: sender, text: value["content"]?.string ?? "", attachments: files))
    }

    static func kind(_ mime: String?) -> ChatAttachment.Kind {
        switch mime?.prefix(while: { $0 != "/" }) {
        case "image": .image
        case "video": .video
        case "audio": .audio
        default: .document
        }
    }

    // MARK: - To clients

    static func frame(_ event: StudioEvent, in room: StudioRoom, at: ChatTimestamp) -> [UInt8]? {
        switch event {
        case .message(let message):
            JSONValue.object(
                [.init("type", .string("message"))] + members(message, in: room, viewer: nil)
            ).bytes
        case .typing(let person, let isActive):
            notice(isActive ? "typing_start" : "typing_stop", by: person, in: room, at: at)
        case .join(let person):
            notice("user_joined", by: person, in: room, at: at, text: "\(name(person)) joined the chat")
        case .reaction(let emoji, let isOn, let person, let message):
            JSONValue.object([
                .init("type", .string(isOn ? "reaction_added" : "reaction_removed")),
                .init("room_id", .integer(room.number)), .init("message_id", .integer(message.number)),
                .init("sender", .string(name(person))), .init("reaction_type", .string(emoji)),
                .init("reaction_summary", summary(message)), .init("timestamp", .string(time(at))),
            ]).bytes
        // The published backend never tells of those who leave.
        case .leave, .edit, .delete, .receipt: nil
        }
    }

    static func connected(_ room: StudioRoom, at: ChatTimestamp) -> [UInt8] {
        JSONValue.object([
            .init("type", .string("connected")), .init("room_id", .integer(room.number)),
            .init("room_name", .string(room.name)), .init("message", .string("Connected to \(room.name)")),
            .init("timestamp", .string(time(at))),
        ]).bytes
    }

    static func error(_ text: String) -> [UInt8] {
        JSONValue.object([.init("type", .string("error")), .init("message", .string(text))]).bytes
    }

    private static func notice(
        _ type: String, by person: ChatPerson, in room: StudioRoom, at: ChatTimestamp, text: String? = nil
    ) -> [UInt8] {
        JSONValue.object(
            [
                .init("type", .string(type)), .init("room_id", .integer(room.number)),
                .init("sender", .string(name(person))),
            ] + (text.map { [.init("message", .string($0))] } ?? []) + [.init("timestamp", .string(time(at)))]
        ).bytes
    }

    // MARK: - Parts, also of the answers over HTTP

    /// - Parameter viewer: whose own reaction is named.
    static func members(_ message: StudioMessage, in room: StudioRoom, viewer: String?) -> [JSONValue.Member] {
        let file = message.attachments.first
        let own = message.reactions.first { viewer != nil && $0.sender.name == viewer }
        return [
            .init("message_id", .integer(message.number)), .init("room_id", .integer(room.number)),
            .init("sender", .string(message.senderName)),
            .init("message", message.text.isEmpty && file != nil ? .null : .string(message.text)),
            .init("message_type", .string(type(message))), .init("file_url", string(file?.url.map(relative))),
            .init("file_name", string(file?.name)), .init("file_size", file?.size.map { .integer($0) } ?? .null),
            .init("mime_type", string(file?.mime)), .init("timestamp", .string(seconds(message.at))),
            .init("reactions", summary(message)), .init("user_reaction", string(own?.emoji)),
        ]
    }

    static func type(_ message: StudioMessage) -> String {
        guard let file = message.attachments.first else { return "text" }
        let kind = file.kind == .file ? "document" : file.kind.rawValue
        return message.text.isEmpty ? kind : "text_with_\(kind)"
    }

    static func summary(_ message: StudioMessage) -> JSONValue {
        var emoji: [String] = []
        for reaction in message.reactions where !emoji.contains(reaction.emoji) { emoji.append(reaction.emoji) }
        return .array(
            emoji.map { each in
                let people = message.reactions.filter { $0.emoji == each }.map { name($0.sender) }
                return .object([
                    .init("reaction_type", .string(each)), .init("count", .integer(Int64(people.count))),
                    .init("users", .array(people.map { .string($0) })),
                ])
            })
    }

    /// Files of the studio are named by their path, as the published backend does.
    private static func relative(_ url: String) -> String {
        guard let range = url.firstRange(of: StudioFiles.path) else { return url }
        return String(url[range.lowerBound...])
    }

    private static func string(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }

    private static func name(_ person: ChatPerson) -> String { person.name ?? person.id?.rawValue ?? "unknown" }

    /// Without a zone: times of messages are UTC in whole seconds.
    static func seconds(_ time: ChatTimestamp) -> String {
        CivilTime.text(milliseconds: time.milliseconds).split(separator: " ").joined(separator: "T")
    }

    /// Other times have a fraction.
    private static func time(_ time: ChatTimestamp) -> String {
        let fraction = String((time.milliseconds % 1000 + 1000) % 1000)
        return seconds(time) + "." + String(repeating: "0", count: 3 - fraction.utf8.count) + fraction + "000"
    }
}

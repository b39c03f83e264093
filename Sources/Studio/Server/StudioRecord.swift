import ChatModel
import JSONText

/// A change of a room's contents, as a store keeps it: the rooms are the sum of their changes, oldest first.
enum StudioRecord: Equatable {
    case room(name: String, at: ChatTimestamp, topic: String)
    case message(room: String, StudioMessage)
    case edit(room: String, id: ChatID, text: String)
    case delete(room: String, id: ChatID)
    case reaction(room: String, id: ChatID, emoji: String, isOn: Bool, by: ChatPerson)
    case receipt(room: String, id: ChatID, state: ChatReceipt.State, by: ChatPerson)
}

// MARK: - As text

extension StudioRecord {
    /// One JSON object.
    var text: String {
        let members: [JSONValue.Member?] =
            switch self {
            case .room(let name, let at, let topic):
                [
                    .init("kind", .string("room")), .init("room", .string(name)),
                    .init("at", .integer(at.milliseconds)), .init("topic", .string(topic)),
                ]
            case .message(let room, let message):
                [
                    .init("kind", .string("message")), .init("room", .string(room)),
                    .init("number", .integer(message.number)), .init("id", .string(message.id.rawValue)),
                    .init("sender", Self.value(message.sender)), .init("at", .integer(message.at.milliseconds)),
                    .init("text", .string(message.text)),
                    message.replyTo.map { .init("replyTo", .string($0.rawValue)) },
                    message.attachments.isEmpty
                        ? nil : .init("files", .array(message.attachments.map(StudioJSON.attachment))),
                ]
            case .edit(let room, let id, let text):
                [
                    .init("kind", .string("edit")), .init("room", .string(room)), .init("id", .string(id.rawValue)),
                    .init("text", .string(text)),
                ]
            case .delete(let room, let id):
                [.init("kind", .string("delete")), .init("room", .string(room)), .init("id", .string(id.rawValue))]
            case .reaction(let room, let id, let emoji, let isOn, let person):
                [
                    .init("kind", .string("reaction")), .init("room", .string(room)),
                    .init("id", .string(id.rawValue)), .init("emoji", .string(emoji)), .init("isOn", .bool(isOn)),
                    .init("sender", Self.value(person)),
                ]
            case .receipt(let room, let id, let state, let reader):
                [
                    .init("kind", .string("receipt")), .init("room", .string(room)), .init("id", .string(id.rawValue)),
                    .init("state", .string(state.rawValue)), .init("sender", Self.value(reader)),
                ]
            }
        return JSONValue.object(members.compactMap(\.self)).text
    }

    private static func value(_ person: ChatPerson) -> JSONValue {
        .object([
            .init("id", person.id.map { .string($0.rawValue) } ?? .null),
            .init("name", person.name.map { .string($0) } ?? .null),
        ])
    }

    /// Nil for a text of another version or hand.
    init?(text: String) {
        guard let value = try? JSONValue(parsing: text), let room = value["room"]?.string else { return nil }
        let id = value["id"]?.string.map { ChatID($0) }
        let sender = ChatPerson(
            id: value["sender"]?["id"]?.string.map { ChatID($0) }, name: value["sender"]?["name"]?.string)
        switch (value["kind"]?.string, id) {
        case ("room", _):
            self = .room(
                name: room, at: ChatTimestamp(milliseconds: value["at"]?.integer ?? 0),
                topic: value["topic"]?.string ?? "")
        case ("message", let id?):
            guard let number = value["number"]?.integer, let at = value["at"]?.integer, let text = value["text"]?.string
            else { return nil }
            self = .message(
                room: room,
                StudioMessage(
                    number: number, id: id, sender: sender, at: ChatTimestamp(milliseconds: at), text: text,
                    attachments: (value["files"]?.array ?? []).compactMap(StudioJSON.attachment),
                    replyTo: value["replyTo"]?.string.map { ChatID($0) }))
        case ("edit", let id?):
            guard let text = value["text"]?.string else { return nil }
            self = .edit(room: room, id: id, text: text)
        case ("delete", let id?): self = .delete(room: room, id: id)
        case ("reaction", let id?):
            guard let emoji = value["emoji"]?.string, let isOn = value["isOn"]?.bool else { return nil }
            self = .reaction(room: room, id: id, emoji: emoji, isOn: isOn, by: sender)
        case ("receipt", let id?):
            guard let state = value["state"]?.string.flatMap(ChatReceipt.State.init(rawValue:)) else { return nil }
            self = .receipt(room: room, id: id, state: state, by: sender)
        default: return nil
        }
    }
}

/// Parts that several forms share.
enum StudioJSON {
    static func attachment(_ file: ChatAttachment) -> JSONValue {
        let members: [JSONValue.Member?] = [
            file.url.map { .init("url", .string($0)) }, file.name.map { .init("name", .string($0)) },
            file.mime.map { .init("mimeType", .string($0)) }, file.size.map { .init("size", .integer($0)) },
            .init("kind", .string(file.kind.rawValue)),
        ]
        return .object(members.compactMap(\.self))
    }

    static func attachment(_ value: JSONValue) -> ChatAttachment? {
        guard value.object != nil else { return nil }
        return ChatAttachment(
            kind: value["kind"]?.string.flatMap(ChatAttachment.Kind.init(rawValue:)) ?? .file,
            url: value["url"]?.string, name: value["name"]?.string, size: value["size"]?.integer,
            mime: value["mimeType"]?.string)
    }
}

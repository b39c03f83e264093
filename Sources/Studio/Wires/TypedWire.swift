import ChatModel
import Dialects
import JSONText

// `typed`, with the payload as a plain object, which the bridge reads as well as base64, and people much better.
// Beyond the types that docs/backends/typed.md has, for the page:
//
//     chat.history      to the server: `before` (a message's id) and `limit`; the answer has `before` and `hasMore`
//     in its messages   `isEdited`, `isDeleted`, `state`, `reactions` [`emoji`, `senderId`, `senderName`]
//     chat.presence     `isPresent` for those who were there before

/// The richest wire of the studio.
enum TypedWire {
    /// Messages in the history after joining, and in one answer.
    static let firstPage = 100
    static let maxPage = 500
    /// Text in one history frame, in bytes, beyond which older messages wait for the next request.
    static let maxPageBytes = 512 * 1024
    /// What `sentAt` counts from, in milliseconds: 2001-01-01T00:00:00Z.
    private static let epoch: Int64 = 978_307_200_000

    private static let dialect = try? TypedDialect()

    // MARK: - From clients

    static func command(_ frame: UnsafeRawBufferPointer, room: String) -> StudioCommand? {
        guard let event = dialect?.decode(frame, isBinary: false, context: DialectContext(room: room)).events?.first
        else { return nil }
        if case .history = event { return request(frame) }
        return StudioCommand(event)
    }

    private static func request(_ frame: UnsafeRawBufferPointer) -> StudioCommand? {
        guard let payload = (try? JSONValue(parsing: frame))?["payload"] else { return nil }
        return .history(
            before: payload["before"]?.string.map { ChatID($0) },
            limit: Int(min(max(payload["limit"]?.integer ?? Int64(firstPage), 1), Int64(maxPage))))
    }

    // MARK: - To clients

    static func frame(_ event: StudioEvent, in room: StudioRoom) -> [UInt8]? {
        switch event {
        case .message(let message): frame("chat.message", payload(message, in: room.name))
        case .edit(let message):
            frame(
                "chat.edit",
                [.init("id", .string(message.id.rawValue)), .init("room", .string(room.name))]
                    + sender(message.sender)
                    + [.init("text", .string(message.text)), .init("editedAt", seconds(message.at))])
        case .delete(let ids, let person):
            frame("chat.delete", [.init("room", .string(room.name)), list(ids)] + sender(person))
        case .typing(let person, let isActive):
            frame(
                "chat.typing", [.init("room", .string(room.name))] + sender(person) + [.init("active", .bool(isActive))]
            )
        case .receipt(let state, let ids, let reader): receipt(state, ids, by: reader, in: room.name)
        case .reaction(let emoji, let isOn, let person, let message):
            frame(
                "chat.reaction",
                [.init("room", .string(room.name))] + sender(person) + [
                    .init("messageId", .string(message.id.rawValue)), .init("emoji", .string(emoji)),
                    .init("active", .bool(isOn)),
                ])
        case .join(let person): presence(person, "joined", in: room.name)
        case .leave(let person): presence(person, "left", in: room.name)
        }
    }

    static func receipt(
        _ state: ChatReceipt.State, _ ids: [ChatID], by reader: ChatPerson? = nil, in room: String
    ) -> [UInt8] {
        frame(
            "chat.receipt",
            [.init("room", .string(room)), list(ids), .init("state", .string(state.rawValue))]
                + (reader.map(sender) ?? []))
    }

    /// - Parameter isPresent: they were there before; not news.
    static func presence(_ person: ChatPerson, _ state: String, in room: String, isPresent: Bool = false) -> [UInt8] {
        let person = StudioID.withID(person)
        return frame(
            "chat.presence",
            [
                .init("room", .string(room)), .init("userId", .string(person.id?.rawValue ?? "")),
                .init("userName", .string(person.name ?? person.id?.rawValue ?? "")), .init("state", .string(state)),
            ] + (isPresent ? [.init("isPresent", .bool(true))] : []))
    }

    static func history(in room: StudioRoom, before: ChatID?, limit: Int) -> [UInt8] {
        let page = room.page(before: before, limit: limit)
        var byteCount = 0
        let kept = page.messages.reversed().prefix { message in
            byteCount += message.text.utf8.count + 300
            return byteCount <= maxPageBytes
        }
        let messages = kept.reversed().map { JSONValue.object(payload($0, in: room.name) + state($0)) }
        return frame(
            "chat.history",
            [
                .init("room", .string(room.name)), .init("messages", .array(messages)),
                .init("hasMore", .bool(page.hasMore || messages.count < page.messages.count)),
            ] + (before.map { [.init("before", .string($0.rawValue))] } ?? []))
    }

    // MARK: - Parts

    private static func frame(_ type: String, _ payload: [JSONValue.Member]) -> [UInt8] {
        JSONValue.object([.init("type", .string(type)), .init("payload", .object(payload))]).bytes
    }

    private static func payload(_ message: StudioMessage, in room: String) -> [JSONValue.Member] {
        var members: [JSONValue.Member] =
            [.init("id", .string(message.id.rawValue)), .init("room", .string(room))] + sender(message.sender)
            + [.init("text", .string(message.text)), .init("sentAt", seconds(message.at))]
        if let replyTo = message.replyTo { members.append(.init("replyTo", .string(replyTo.rawValue))) }
        if !message.attachments.isEmpty {
            members.append(.init("attachments", .array(message.attachments.map(StudioJSON.attachment))))
        }
        return members
    }

    /// What a live message cannot have yet.
    private static func state(_ message: StudioMessage) -> [JSONValue.Member] {
        var members: [JSONValue.Member] = [.init("state", .string(message.state.rawValue))]
        if message.isEdited { members.append(.init("isEdited", .bool(true))) }
        if message.isDeleted { members.append(.init("isDeleted", .bool(true))) }
        if !message.reactions.isEmpty {
            let reactions = message.reactions.map {
                JSONValue.object([.init("emoji", .string($0.emoji))] + sender($0.sender))
            }
            members.append(.init("reactions", .array(reactions)))
        }
        return members
    }

    private static func sender(_ person: ChatPerson) -> [JSONValue.Member] {
        let person = StudioID.withID(person)
        let id = person.id?.rawValue ?? ""
        return [.init("senderId", .string(id)), .init("senderName", .string(person.name ?? id))]
    }

    private static func list(_ ids: [ChatID]) -> JSONValue.Member {
        .init("ids", .array(ids.map { .string($0.rawValue) }))
    }

    private static func seconds(_ time: ChatTimestamp) -> JSONValue {
        .number(Double(time.milliseconds - epoch) / 1000)
    }
}

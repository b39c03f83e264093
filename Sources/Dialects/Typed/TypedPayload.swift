import ChatModel
import JSONText

/// Why a payload gave nothing.
struct TypedDrop: Error {
    static let missingField = TypedDrop(reason: .missingField)
    static let wrongType = TypedDrop(reason: .wrongType)
    static let unknownType = TypedDrop(reason: .unknownType)

    let reason: DropReason
}

/// The members of a payload of any type. Valid for as long as its bytes are.
struct TypedPayload: FrameMembers {
    private var id: JSONField?
    private var room: JSONField?
    private var senderID: JSONField?
    private var senderName: JSONField?
    private var text: JSONField?
    private var sentAt: JSONField?
    private var replyTo: JSONField?
    private var attachments: JSONField?
    private var active: JSONField?
    private var ids: JSONField?
    private var state: JSONField?
    private var userID: JSONField?
    private var userName: JSONField?
    private var messageID: JSONField?
    private var emoji: JSONField?
    private var editedAt: JSONField?
    private var messages: JSONField?
    private var code: JSONField?
    private var complaint: JSONField?
    private var ref: JSONField?

    @inline(__always)
    mutating func set(_ key: JSONField, _ value: JSONField) {
        switch key {
        case "id": id = value
        case "room": room = value
        case "senderId": senderID = value
        case "senderName": senderName = value
        case "text": text = value
        case "sentAt": sentAt = value
        case "replyTo": replyTo = value
        case "attachments": attachments = value
        case "active": active = value
        case "ids": ids = value
        case "state": state = value
        case "userId": userID = value
        case "userName": userName = value
        case "messageId": messageID = value
        case "emoji": emoji = value
        case "editedAt": editedAt = value
        case "messages": messages = value
        case "code": code = value
        case "message": complaint = value
        case "ref": ref = value
        default: break
        }
    }

    // MARK: - Events

    /// The one event that the payload is; a drop names no type.
    func decoded(_ type: TypedDialect.PayloadType, _ context: DialectContext) -> DecodedFrame {
        do throws(TypedDrop) {
            return .event(try event(type, context))
        } catch {
            return .dropped(error.reason, typeKey: nil)
        }
    }

    private func event(_ type: TypedDialect.PayloadType, _ context: DialectContext) throws(TypedDrop) -> ChatEvent {
        switch type {
        case .message: return .message(try message(context))
        case .edit:
            guard let target = FrameText.id(id), let text = text?.string else { throw .missingField }
            let sender = sender
            return .edit(
                ChatEdit(
                    id: target, text: text, room: roomName, sender: sender, at: time(editedAt),
                    isSelf: Self.isSelf(sender, context)))
        case .delete:
            return .delete(ChatDelete(ids: try idList(), room: roomName, sender: sender))
        case .typing:
            guard let active, !active.isNull else { throw .missingField }
            guard let isActive = active.bool else { throw .wrongType }
            let sender = sender
            return .typing(
                ChatTyping(
                    state: isActive ? .start : .stop, sender: sender, room: roomName,
                    ttlMilliseconds: isActive ? TypedDialect.typingMilliseconds : nil,
                    isSelf: Self.isSelf(sender, context)))
        case .receipt:
            let ids = try idList()
            guard let state = state?.string.flatMap(ChatReceipt.State.init(rawValue:)) else { throw .unknownType }
            let reader = sender
            return .receipt(
                ChatReceipt(
                    state: state, ids: ids, by: reader, room: roomName, isSelf: Self.isSelf(reader, context)))
        case .presence: return try presence(context)
        case .reaction:
            guard let target = FrameText.id(messageID), let emoji = FrameText.nonEmpty(emoji) else {
                throw .missingField
            }
            let sender = sender
            return .reaction(
                ChatReaction(
                    target: target, emoji: emoji, operation: active?.bool == false ? .remove : .add, sender: sender,
                    room: roomName, isSelf: Self.isSelf(sender, context)))
        case .system:
            return .system(ChatSystemNotice(text: text?.string ?? "", room: roomName, at: time(sentAt)))
        case .history:
            var found: [ChatMessage] = []
            if let messages {
                for element in messages.elements where element.kind == .object {
                    if let message = try? TypedPayload(element).message(context) { found.append(message) }
                }
            }
            return .history(ChatHistory(messages: found, room: roomName))
        case .error:
            return .error(
                ChatError(
                    code: FrameText.name(code) ?? "upstream", text: complaint?.string ?? "", isFatal: false,
                    ref: FrameText.name(ref)))
        }
    }

    private func message(_ context: DialectContext) throws(TypedDrop) -> ChatMessage {
        let files = files
        if text.map(\.isNull) ?? true {
            guard !files.isEmpty else { throw .missingField }
        } else if text?.kind != .string {
            throw .wrongType
        }
        let sender = sender
        return ChatMessage(
            id: FrameText.id(id), room: roomName, sender: sender, text: text?.string ?? "", at: time(sentAt),
            attachments: files, replyTo: FrameText.id(replyTo), isSelf: Self.isSelf(sender, context))
    }

    private func presence(_ context: DialectContext) throws(TypedDrop) -> ChatEvent {
        let user = ChatPerson(id: FrameText.id(userID), name: FrameText.nonEmpty(userName))
        guard let state else { throw .unknownType }
        let membership = ChatMembership(user: user, room: roomName, isSelf: Self.isSelf(user, context))
        switch state {
        case "joined": return .join(membership)
        case "left": return .leave(membership)
        default:
            guard let state = state.string.flatMap(ChatPresence.State.init(rawValue:)) else { throw .unknownType }
            return .presence(ChatPresence(user: user, state: state, room: roomName))
        }
    }

    // MARK: - Parts

    private var roomName: String? { FrameText.name(room) }

    private var sender: ChatPerson {
        ChatPerson(id: FrameText.id(senderID), name: FrameText.nonEmpty(senderName))
    }

    /// This wire has ids, so a name alone is never us.
    private static func isSelf(_ person: ChatPerson, _ context: DialectContext) -> Bool {
        person.id.map { context.isSelf($0) } ?? false
    }

    private func time(_ field: JSONField?) -> ChatTimestamp? { FrameTime(epoch: .reference).read(field) }

    private func idList() throws(TypedDrop) -> [ChatID] {
        let found = ids?.elements.compactMap(FrameText.id) ?? []
        guard !found.isEmpty else { throw .missingField }
        return found
    }

    private var files: [ChatAttachment] {
        guard let attachments, attachments.kind == .array else { return [] }
        return attachments.elements.compactMap { $0.kind == .object ? Self.file($0) : nil }
    }

    private static func file(_ object: JSONField) -> ChatAttachment {
        var file = ChatAttachment(kind: .file)
        var kind: ChatAttachment.Kind?
        for (key, value) in object.members {
            switch key {
            case "url": file.url = FrameText.nonEmpty(value)
            case "name": file.name = FrameText.nonEmpty(value)
            case "mimeType": file.mime = FrameText.nonEmpty(value)
            case "size": file.size = FrameNumber.count(value)
            case "kind": kind = value.string.flatMap(ChatAttachment.Kind.init(rawValue:))
            default: break
            }
        }
        file.kind = kind ?? FrameAttachment.kind(mime: file.mime)
        return file
    }
}

import ChatModel
import Dialects
import JSONText
import WireBytes

// Frames that a custom dialect sends: JSON with places for the values of an event.

/// A value to send, with places to fill in.
indirect enum CustomTemplate: Sendable {
    struct Member: Sendable {
        var key: String
        /// Left out when its value is empty.
        var isOptional: Bool
        var value: CustomTemplate
    }

    enum Piece: Sendable {
        case text(String)
        case place(CustomPlace)
    }

    /// JSON as it is sent.
    case literal(String)
    /// With the value's type.
    case place(CustomPlace)
    case text([Piece])
    case array([CustomTemplate])
    case object([Member])
    case each(CustomPath, CustomTemplate)
    /// A whole frame: characters before JSON, or alone.
    case prefixed([Piece], CustomTemplate?)
    /// JSON inside a string.
    case wrapped(CustomUnwrap, CustomTemplate)

    /// Whether a value of that name has a place in it.
    func names(_ name: CustomPath.Name) -> Bool {
        switch self {
        case .literal: false
        case .place(let place): place.path.name == name
        case .text(let pieces): Self.names(name, pieces)
        case .array(let elements): elements.contains { $0.names(name) }
        case .object(let members): members.contains { $0.value.names(name) }
        case .each(let path, let element): path.name == name || element.names(name)
        case .prefixed(let pieces, let template): Self.names(name, pieces) || template?.names(name) ?? false
        case .wrapped(_, let template): template.names(name)
        }
    }

    private static func names(_ name: CustomPath.Name, _ pieces: [Piece]) -> Bool {
        pieces.contains { if case .place(let place) = $0 { place.path.name == name } else { false } }
    }
}

/// The frames of one command.
enum CustomFrameTemplate: Sendable {
    case one(CustomTemplate)
    case per(CustomPath, CustomTemplate)
    /// One frame for the last of a list, which says it of all before.
    case newest(CustomPath, CustomTemplate)
    case several([CustomTemplate])

    func names(_ name: CustomPath.Name) -> Bool {
        switch self {
        case .one(let template): template.names(name)
        case .per(let path, let template), .newest(let path, let template): path.name == name || template.names(name)
        case .several(let templates): templates.contains { $0.names(name) }
        }
    }
}

/// `{{path|filter|…}}`.
struct CustomPlace: Sendable {
    var path: CustomPath
    var filters: [CustomFilter]
}

enum CustomFilter: Sendable {
    case unix, unixMilliseconds, reference, iso8601, iso8601Milliseconds
    case int, string, json, upper, lower
    case fallback(JSONValue)
    case map([(key: String, value: JSONValue)])

    static let names = [
        "unix", "unix_ms", "reference", "iso8601", "iso8601_ms", "int", "string", "json", "upper", "lower", "default",
        "map",
    ]
    static let timeNames: Set<String> = ["unix", "unix_ms", "reference", "iso8601", "iso8601_ms"]
}

/// Where a value of an event is.
struct CustomPath: Hashable, Sendable {
    enum Name: String, CaseIterable, Sendable {
        case id, room, ref, text, at, replyTo, state, ids, target, emoji, op, ttl, limit, before, since, encrypted
        case attachments, sender, user, by, email, password, item
        case senderID = "sender.id"
        case senderName = "sender.name"
        case userID = "user.id"
        case userName = "user.name"
        case byID = "by.id"
        case byName = "by.name"
        case selfID = "self.id"
        case selfName = "self.name"
        case accessToken = "access_token"
        case refreshToken = "refresh_token"
        case accountName = "account.name"
        case accountPassword = "account.password"
        case accountRefresh = "account.refresh"

        var isTime: Bool { self == .at || self == .before || self == .since }
    }

    enum Part: String, CaseIterable, Sendable {
        case type, url, name, size, mime, thumb, width, height, duration, inline, fileId
    }

    var name: Name
    /// Into `ids` and `attachments`.
    var index: Int?
    /// Of an attachment.
    var part: Part?
}

/// The values for a template.
struct CustomTemplateScope {
    enum Item {
        case none
        case text(String)
        case attachment(ChatAttachment)
    }

    struct Account {
        var name: String?
        var password: String?
        var refresh: String?
    }

    var command: ChatCommand?
    var context: DialectContext
    var item = Item.none
    var account = Account()
}

/// A value on its way into a frame.
enum CustomValue {
    case none
    case text(String)
    case integer(Int64)
    case flag(Bool)
    /// Milliseconds since 1970.
    case time(Int64)
    /// Milliseconds that are written as seconds.
    case seconds(Int64)
    case json(JSONValue)

    init(_ text: String?) { self = text.map { .text($0) } ?? .none }
    init(_ id: ChatID?) { self = id.map { .text($0.rawValue) } ?? .none }
    init(_ number: Int64?) { self = number.map { .integer($0) } ?? .none }
    init(_ time: ChatTimestamp?) { self = time.map { .time($0.milliseconds) } ?? .none }

    init(json: JSONValue) {
        switch json {
        case .null: self = .none
        case .string(let text): self = .text(text)
        case .integer(let number): self = .integer(number)
        case .bool(let flag): self = .flag(flag)
        default: self = .json(json)
        }
    }

    /// Nothing, or nothing in it.
    var isEmpty: Bool {
        switch self {
        case .none, .text(""), .json(.array([])), .json(.object([])): true
        default: false
        }
    }

    var asJSON: JSONValue {
        switch self {
        case .none: .null
        case .text(let text): .string(text)
        case .integer(let number), .time(let number): .integer(number)
        case .flag(let flag): .bool(flag)
        case .seconds(let milliseconds): .number(Double(milliseconds) / 1000)
        case .json(let value): value
        }
    }

    /// As it stands inside other text: strings as they are, the rest as JSON, nothing as nothing.
    var asText: String {
        switch self {
        case .none: ""
        case .text(let text): text
        case .integer(let number), .time(let number): "\(number)"
        case .flag(let flag): flag ? "true" : "false"
        case .seconds, .json: asJSON.text
        }
    }

    /// A time as ISO 8601; any other value as it is.
    func isoText(fraction: Bool) -> CustomValue {
        guard case .time(let milliseconds) = self else { return self }
        return .text(ISOTime.text(ChatTimestamp(milliseconds: milliseconds), fraction: fraction))
    }

    func write(to writer: inout JSONWriter) {
        switch self {
        case .none: writer.null()
        case .text(let text): writer.string(text)
        case .integer(let number), .time(let number): writer.integer(number)
        case .flag(let flag): writer.bool(flag)
        case .seconds(let milliseconds): writer.seconds(milliseconds: milliseconds)
        case .json(let value): writer.value(value)
        }
    }
}

/// A value cannot be written as the template wants it.
struct CustomTemplateFailure: Error { var reason: DropReason }

// MARK: - Filling in

extension CustomPath {
    func value(_ scope: CustomTemplateScope) -> CustomValue {
        switch name {
        case .selfID: return CustomValue(scope.context.selfIDs.min { $0.rawValue < $1.rawValue })
        case .selfName: return CustomValue(scope.context.selfNames.min())
        case .accountName: return CustomValue(scope.account.name)
        case .accountPassword: return CustomValue(scope.account.password)
        case .accountRefresh: return CustomValue(scope.account.refresh)
        case .room:
            let room = scope.command?.room
            if let announced = scope.context.announcedRoom, room == nil || room == scope.context.room {
                return .text(announced)
            }
            return .text(room ?? scope.context.room)
        case .item:
            switch scope.item {
            case .none: return .none
            case .text(let text): return .text(text)
            case .attachment(let attachment): return Self.value(attachment, part)
            }
        case .ids, .attachments:
            let items = items(scope)
            guard let index else { return .json(.array(items.map { Self.json($0) })) }
            guard items.indices.contains(index) else { return .none }
            switch items[index] {
            case .attachment(let attachment): return Self.value(attachment, part)
            case .text(let text): return .text(text)
            case .none: return .none
            }
        default: return scope.command?.value(name) ?? .none
        }
    }

    /// The elements of `$each` and `$per`.
    func items(_ scope: CustomTemplateScope) -> [CustomTemplateScope.Item] {
        switch (name, scope.command) {
        case (.ids, .delete(let delete)): delete.ids.map { .text($0.rawValue) }
        case (.ids, .receipt(let receipt)): receipt.ids.map { .text($0.rawValue) }
        case (.attachments, .message(let message)): message.attachments.map { .attachment($0) }
        case (.attachments, .edit(let edit)): edit.attachments.map { .attachment($0) }
        default: []
        }
    }

    private static func json(_ item: CustomTemplateScope.Item) -> JSONValue {
        switch item {
        case .none: .null
        case .text(let text): .string(text)
        case .attachment(let attachment): attachment.canonicalJSON
        }
    }

    private static func value(_ attachment: ChatAttachment, _ part: Part?) -> CustomValue {
        switch part {
        case nil: .json(attachment.canonicalJSON)
        case .type: .text(attachment.kind.rawValue)
        case .url: CustomValue(attachment.url)
        case .name: CustomValue(attachment.name)
        case .size: CustomValue(attachment.size)
        case .mime: CustomValue(attachment.mime)
        case .thumb: CustomValue(attachment.thumbnail)
        case .width: CustomValue(attachment.width)
        case .height: CustomValue(attachment.height)
        case .duration: attachment.duration.map { .json(.number($0)) } ?? .none
        case .inline: CustomValue(attachment.inline)
        case .fileId: CustomValue(attachment.fileID)
        }
    }
}

extension ChatCommand {
    fileprivate var room: String? {
        switch self {
        case .message(let message): message.room
        case .edit(let edit): edit.room
        case .delete(let delete): delete.room
        case .typing(let typing): typing.room
        case .receipt(let receipt): receipt.room
        case .join(let membership), .leave(let membership): membership.room
        case .presence(let presence): presence.room
        case .reaction(let reaction): reaction.room
        case .subscribe(let room, _): room
        case .fetch(let room, _, _, _, _): room
        case .auth, .ping, .pong: nil
        }
    }

    /// The sender, reader or member that the command names.
    private var person: ChatPerson? {
        switch self {
        case .message(let message): message.sender
        case .edit(let edit): edit.sender
        case .delete(let delete): delete.sender
        case .typing(let typing): typing.sender
        case .receipt(let receipt): receipt.by
        case .join(let membership), .leave(let membership): membership.user
        case .presence(let presence): presence.user
        case .reaction(let reaction): reaction.sender
        case .auth, .subscribe, .fetch, .ping, .pong: nil
        }
    }

    /// The value of a name that ``CustomCommandKind/names`` allows for this command.
    fileprivate func value(_ name: CustomPath.Name) -> CustomValue {
        switch (self, name) {
        case (_, .senderID), (_, .userID), (_, .byID): CustomValue(person?.id)
        case (_, .senderName), (_, .userName), (_, .byName): CustomValue(person?.name)
        case (_, .sender), (_, .user), (_, .by):
            person.map { .json(.canonical(["id": $0.id, "name": $0.name])) } ?? .none
        case (.message(let message), .id): CustomValue(message.id)
        case (.message(let message), .text): .text(message.text)
        case (.message(let message), .at): CustomValue(message.at)
        case (.message(let message), .replyTo): CustomValue(message.replyTo)
        case (.message(let message), .ref): CustomValue(message.ref)
        case (.message(let message), .encrypted): .flag(message.isEncrypted)
        case (.edit(let edit), .id): CustomValue(edit.id)
        case (.edit(let edit), .text): .text(edit.text)
        case (.edit(let edit), .at): CustomValue(edit.at)
        case (.typing(let typing), .state): .text(typing.state.rawValue)
        case (.typing(let typing), .id): CustomValue(typing.id)
        case (.typing(let typing), .at): CustomValue(typing.at)
        case (.typing(let typing), .ttl): CustomValue(typing.ttlMilliseconds)
        case (.receipt(let receipt), .state): .text(receipt.state.rawValue)
        case (.receipt(let receipt), .ref): CustomValue(receipt.ref)
        case (.receipt(let receipt), .at): CustomValue(receipt.at)
        case (.join(let membership), .at), (.leave(let membership), .at): CustomValue(membership.at)
        case (.presence(let presence), .state): .text(presence.state.rawValue)
        case (.reaction(let reaction), .target): CustomValue(reaction.target)
        case (.reaction(let reaction), .emoji): .text(reaction.emoji)
        case (.reaction(let reaction), .op): .text(reaction.operation.rawValue)
        case (.reaction(let reaction), .at): CustomValue(reaction.at)
        case (.auth(.accessToken(let token), _), .accessToken): .text(token)
        case (.auth(.refreshToken(let token), _), .refreshToken): .text(token)
        case (.auth(.password(let email, _), _), .email): .text(email)
        case (.auth(.password(_, let password), _), .password): .text(password)
        case (.auth(_, let ref), .ref): CustomValue(ref)
        case (.subscribe(_, let limit), .limit), (.fetch(_, _, let limit, _, _), .limit):
            CustomValue(limit.map { Int64($0) })
        case (.fetch(_, let ref, _, _, _), .ref): CustomValue(ref)
        case (.fetch(_, _, _, let before, _), .before): CustomValue(before)
        case (.fetch(_, _, _, _, let since), .since): CustomValue(since)
        case (.ping(let ref), .ref), (.pong(let ref), .ref): CustomValue(ref)
        default: .none
        }
    }
}

extension CustomPlace {
    func value(_ scope: CustomTemplateScope) throws(CustomTemplateFailure) -> CustomValue {
        var value = path.value(scope)
        for filter in filters { value = try filter.apply(value) }
        return value
    }
}

extension CustomFilter {
    func apply(_ value: CustomValue) throws(CustomTemplateFailure) -> CustomValue {
        if case .none = value {
            if case .fallback(let fallback) = self { return CustomValue(json: fallback) }
            return .none
        }
        switch self {
        case .fallback, .unixMilliseconds: return value
        case .unix:
            if case .time(let milliseconds) = value { return .seconds(milliseconds) }
            return value
        case .reference:
            guard case .time(let milliseconds) = value else { return value }
            return .seconds(milliseconds &- Int64(FrameTime.referenceDateSeconds) * 1000)
        case .iso8601:
            return value.isoText(fraction: false)
        case .iso8601Milliseconds:
            return value.isoText(fraction: true)
        case .int:
            switch value {
            case .integer, .time: return value
            case .text(let text):
                guard let number = Int64(text) else { throw CustomTemplateFailure(reason: .wrongType) }
                return .integer(number)
            case .seconds(let milliseconds): return .integer(milliseconds / 1000)
            case .json(.double(let number)) where number.magnitude < 0x1p63: return .integer(Int64(number))
            default: throw CustomTemplateFailure(reason: .wrongType)
            }
        case .string: return .text(value.asText)
        case .json: return .text(value.asJSON.text)
        case .upper: return .text(value.asText.uppercased())
        case .lower: return .text(value.asText.lowercased())
        case .map(let map):
            let text = value.asText
            guard let found = map.first(where: { $0.key.utf8.elementsEqual(text.utf8) }) else { return value }
            return CustomValue(json: found.value)
        }
    }
}

extension CustomTemplate {
    func write(_ scope: CustomTemplateScope, to writer: inout JSONWriter) throws(CustomTemplateFailure) {
        switch self {
        case .literal(let json): writer.raw(json)
        case .place(let place): try place.value(scope).write(to: &writer)
        case .text(let pieces):
            writer.beginString()
            for piece in pieces {
                switch piece {
                case .text(let text): writer.appendToString(text)
                case .place(let place): writer.appendToString(try place.value(scope).asText)
                }
            }
            writer.endString()
        case .array(let elements):
            writer.beginArray()
            for element in elements { try element.write(scope, to: &writer) }
            writer.endArray()
        case .object(let members):
            writer.beginObject()
            for member in members {
                if member.isOptional, try member.value.isEmpty(scope) { continue }
                writer.key(text: member.key)
                try member.value.write(scope, to: &writer)
            }
            writer.endObject()
        case .each(let path, let template):
            writer.beginArray()
            var scope = scope
            for item in path.items(scope) {
                scope.item = item
                try template.write(scope, to: &writer)
            }
            writer.endArray()
        // The characters are no JSON; ``CustomFrameTemplate`` writes them.
        case .prefixed(_, let template): try template?.write(scope, to: &writer)
        case .wrapped(let how, let template):
            var inner = JSONWriter()
            try template.write(scope, to: &inner)
            let bytes = inner.finish()
            switch how {
            case .jsonString: writer.string(String(decoding: bytes, as: UTF8.self))
            case .base64JSON: writer.string(Base64.encode(bytes))
            }
        }
    }

    /// Null, an empty text, list or table.
    private func isEmpty(_ scope: CustomTemplateScope) throws(CustomTemplateFailure) -> Bool {
        switch self {
        case .literal(let json): return ["null", "\"\"", "[]", "{}"].contains(json)
        case .place(let place): return try place.value(scope).isEmpty
        case .text(let pieces):
            for piece in pieces {
                switch piece {
                case .text(let text): if !text.isEmpty { return false }
                case .place(let place): if try !place.value(scope).asText.isEmpty { return false }
                }
            }
            return true
        case .array(let elements): return elements.isEmpty
        case .object(let members):
            for member in members {
                if !member.isOptional { return false }
                if try !member.value.isEmpty(scope) { return false }
            }
            return true
        case .each(let path, _): return path.items(scope).isEmpty
        case .prefixed, .wrapped: return false
        }
    }
}

extension CustomFrameTemplate {
    /// - Throws: ``DropReason/tooLong`` for a frame over `maxBytes`; ``DropReason/missingField`` where there is nothing
    ///   to make a frame of.
    func frames(
        _ scope: CustomTemplateScope, maxBytes: Int, isBinary: Bool
    ) throws(CustomTemplateFailure) -> [EncodedFrame] {
        func frame(
            _ template: CustomTemplate, _ scope: CustomTemplateScope
        ) throws(CustomTemplateFailure) -> EncodedFrame {
            var writer = JSONWriter()
            if case .prefixed(_, nil) = template {} else { try template.write(scope, to: &writer) }
            guard writer.count <= maxBytes else { throw CustomTemplateFailure(reason: .tooLong) }
            guard case .prefixed(let pieces, let body) = template else {
                return EncodedFrame(bytes: writer.finish(), isBinary: isBinary)
            }
            let prefix = try CustomPrefix.bytes(pieces, scope)
            return EncodedFrame(bytes: prefix + (body == nil ? [] : writer.finish()), isBinary: false)
        }
        switch self {
        case .one(let template): return [try frame(template, scope)]
        case .several(let templates):
            var frames: [EncodedFrame] = []
            for template in templates { frames.append(try frame(template, scope)) }
            return frames
        case .newest(let path, let template):
            guard let item = path.items(scope).last else { throw CustomTemplateFailure(reason: .missingField) }
            var scope = scope
            scope.item = item
            return [try frame(template, scope)]
        case .per(let path, let template):
            let items = path.items(scope)
            guard !items.isEmpty else { throw CustomTemplateFailure(reason: .missingField) }
            var frames: [EncodedFrame] = []
            var scope = scope
            for item in items {
                scope.item = item
                frames.append(try frame(template, scope))
            }
            return frames
        }
    }
}

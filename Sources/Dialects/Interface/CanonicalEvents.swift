public import ChatModel
public import JSONText

// The canonical JSON form of events and commands: the fixtures' form, and that of `chatbridge check --frame`.

/// A part of an event in the canonical form; nil where it is empty.
package protocol CanonicalPart {
    var canonicalPart: JSONValue? { get }
}

extension JSONValue: CanonicalPart {
    package var canonicalPart: JSONValue? { self }

    /// An object without empty members: absent, `null`, `[]` and `{}` are the same in an event.
    package static func canonical(_ members: KeyValuePairs<String, any CanonicalPart>) -> JSONValue {
        .object(
            members.compactMap { key, part -> Member? in
                switch part.canonicalPart {
                case nil, .null, .array([]), .object([]): nil
                case .some(let value): Member(key, value)
                }
            })
    }
}

extension Optional: CanonicalPart where Wrapped: CanonicalPart {
    package var canonicalPart: JSONValue? { flatMap(\.canonicalPart) }
}

extension Array: CanonicalPart where Element: CanonicalPart {
    package var canonicalPart: JSONValue? { .array(compactMap(\.canonicalPart)) }
}

extension String: CanonicalPart { package var canonicalPart: JSONValue? { .string(self) } }
extension Int64: CanonicalPart { package var canonicalPart: JSONValue? { .integer(self) } }
extension Double: CanonicalPart { package var canonicalPart: JSONValue? { .number(self) } }
/// Only `true` is written.
extension Bool: CanonicalPart { package var canonicalPart: JSONValue? { self ? .bool(true) : nil } }
extension ChatID: CanonicalPart { package var canonicalPart: JSONValue? { .string(rawValue) } }
extension ChatTimestamp: CanonicalPart { package var canonicalPart: JSONValue? { .integer(milliseconds) } }
extension ChatPerson: CanonicalPart {
    package var canonicalPart: JSONValue? { .canonical(["id": id, "name": name]) }
}
extension ChatAttachment: CanonicalPart { package var canonicalPart: JSONValue? { canonicalJSON } }
extension ChatMessage: CanonicalPart { package var canonicalPart: JSONValue? { canonicalJSON } }
extension ChatReaction.Count: CanonicalPart {
    package var canonicalPart: JSONValue? { .canonical(["emoji": emoji, "count": count, "users": users]) }
}

extension ChatAttachment {
    /// The attachment in the canonical form; of the file itself only its presence.
    public var canonicalJSON: JSONValue {
        .canonical([
            "type": kind.rawValue, "url": url, "name": name, "size": size, "mime": mime, "thumb": thumbnail,
            "width": width, "height": height, "duration": duration, "inline": inline != nil, "fileId": fileID,
        ])
    }
}

extension ChatMessage {
    /// The message in the canonical form.
    public var canonicalJSON: JSONValue {
        .canonical([
            "kind": "message", "id": self.id, "room": self.room, "sender": self.sender, "text": self.text,
            "at": self.at,
            "attachments": self.attachments,
            "replyTo": self.replyTo, "ref": self.ref, "self": self.isSelf, "encrypted": self.isEncrypted,
            "annotations": JSONValue.object(self.annotations.map { .init($0.name, .string($0.value ?? "")) }),
        ])
    }
}

extension ChatEvent {
    /// The event in the canonical form, without empty members.
    public var canonicalJSON: JSONValue {
        switch self {
        case .message(let message): message.canonicalJSON
        case .edit(let edit):
            .canonical([
                "kind": "edit", "id": edit.id, "text": edit.text, "room": edit.room, "sender": edit.sender,
                "at": edit.at,
                "attachments": edit.attachments, "self": edit.isSelf,
            ])
        case .delete(let delete):
            .canonical(["kind": "delete", "ids": delete.ids, "room": delete.room, "sender": delete.sender])
        case .typing(let typing):
            .canonical([
                "kind": "typing", "state": typing.state.rawValue, "sender": typing.sender, "room": typing.room,
                "ttl": typing.ttlMilliseconds, "self": typing.isSelf,
            ])
        case .receipt(let receipt):
            .canonical([
                "kind": "receipt", "state": receipt.state.rawValue, "ids": receipt.ids, "by": receipt.by,
                "ref": receipt.ref,
                "at": receipt.at, "room": receipt.room, "self": receipt.isSelf,
            ])
        case .join(let membership): Self.canonical("join", membership)
        case .leave(let membership): Self.canonical("leave", membership)
        case .presence(let presence):
            .canonical([
                "kind": "presence", "user": presence.user, "state": presence.state.rawValue, "room": presence.room,
            ])
        case .reaction(let reaction):
            .canonical([
                "kind": "reaction", "target": reaction.target, "emoji": reaction.emoji,
                "op": reaction.operation.rawValue,
                "sender": reaction.sender, "room": reaction.room, "at": reaction.at, "counts": reaction.counts,
                "self": reaction.isSelf,
            ])
        case .system(let notice):
            .canonical(["kind": "system", "text": notice.text, "id": notice.id, "room": notice.room, "at": notice.at])
        case .topic(let topic): .canonical(["kind": "topic", "text": topic.text, "room": topic.room])
        case .account(let person): .canonical(["kind": "self", "user": person])
        case .history(let history):
            .canonical(["kind": "history", "messages": history.messages, "room": history.room, "ref": history.ref])
        case .ready(let ready):
            .canonical(["kind": "ready", "room": ready.room, "name": ready.name, "ref": ready.ref])
        case .auth(let auth):
            .canonical([
                "kind": "auth", "state": auth.state.rawValue, "text": auth.text, "refresh": auth.refresh,
                "ref": auth.ref,
            ])
        case .error(let error):
            .canonical([
                "kind": "error", "code": error.code, "text": error.text, "fatal": JSONValue.bool(error.isFatal),
                "ref": error.ref, "retryAfter": error.retryAfterMilliseconds, "room_state": error.roomState?.rawValue,
            ])
        case .ping(let ref):
            .canonical(["kind": "ping", "ref": ref])
        case .pong(let ref):
            .canonical(["kind": "pong", "ref": ref])
        }
    }

    private static func canonical(_ kind: String, _ membership: ChatMembership) -> JSONValue {
        .canonical([
            "kind": kind,
            "user": membership.user, "room": membership.room, "at": membership.at, "self": membership.isSelf,
        ])
    }
}

// MARK: - Commands

/// A canonical event of which no command can be made.
public struct CanonicalEventError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The missing or unexpected member.
    public let description: String
}

extension ChatPerson {
    init(canonical json: JSONValue?) {
        self.init(id: json?["id"]?.string.map { ChatID($0) }, name: json?["name"]?.string)
    }
}

extension ChatAttachment {
    init(canonical json: JSONValue) throws(CanonicalEventError) {
        guard let kind = json["type"] == nil ? .file : json["type"]?.string.flatMap(Kind.init(rawValue:)) else {
            throw CanonicalEventError(description: "attachment type in \(json.text)")
        }
        self.init(
            kind: kind, url: json["url"]?.string, name: json["name"]?.string, size: json["size"]?.integer,
            mime: json["mime"]?.string, thumbnail: json["thumb"]?.string, width: json["width"]?.integer,
            height: json["height"]?.integer, duration: json["duration"]?.double, fileID: json["fileId"]?.string)
    }
}

extension ChatCommand {
    /// Reads the canonical form.
    public init(canonical json: JSONValue) throws(CanonicalEventError) {
        func word<T: RawRepresentable>(_ key: String, _ type: T.Type) throws(CanonicalEventError) -> T
        where T.RawValue == String {
            guard let value = json[key]?.string.flatMap(T.init(rawValue:)) else {
                throw CanonicalEventError(description: "\(key) in \(json.text)")
            }
            return value
        }
        func need(_ key: String) throws(CanonicalEventError) -> String {
            guard let value = json[key]?.string else {
                throw CanonicalEventError(description: "\(key) in \(json.text)")
            }
            return value
        }
        let id = json["id"]?.string.map { ChatID($0) }
        let ids = json["ids"]?.array?.compactMap(\.string).map { ChatID($0) } ?? []
        let room = json["room"]?.string
        let ref = json["ref"]?.string
        let sender = ChatPerson(canonical: json["sender"])
        let user = ChatPerson(canonical: json["user"])
        let isSelf = json["self"]?.bool ?? false
        func time(_ key: String) -> ChatTimestamp? { json[key]?.integer.map { ChatTimestamp(milliseconds: $0) } }
        func attachments() throws(CanonicalEventError) -> [ChatAttachment] {
            var attachments: [ChatAttachment] = []
            for value in json["attachments"]?.array ?? [] { attachments.append(try ChatAttachment(canonical: value)) }
            return attachments
        }
        switch try need("kind") {
        case "message":
            self = .message(
                ChatMessage(
                    id: id, room: room, sender: sender, text: try need("text"), at: time("at"),
                    attachments: try attachments(), replyTo: json["replyTo"]?.string.map { ChatID($0) }, ref: ref,
                    isSelf: isSelf, isEncrypted: json["encrypted"]?.bool ?? false))
        case "edit":
            self = .edit(
                ChatEdit(
                    id: ChatID(try need("id")), text: try need("text"), room: room, sender: sender, at: time("at"),
                    attachments: try attachments(), isSelf: isSelf))
        case "delete": self = .delete(ChatDelete(ids: ids, room: room, sender: sender))
        case "typing":
            self = .typing(
                ChatTyping(
                    state: try word("state", ChatTyping.State.self), sender: sender, room: room,
                    ttlMilliseconds: json["ttl"]?.integer, isSelf: isSelf, id: id, at: time("at")))
        case "receipt":
            self = .receipt(
                ChatReceipt(
                    state: try word("state", ChatReceipt.State.self), ids: ids, by: ChatPerson(canonical: json["by"]),
                    ref: ref, at: time("at"), room: room, isSelf: isSelf))
        case "join": self = .join(ChatMembership(user: user, room: room, at: time("at"), isSelf: isSelf))
        case "leave": self = .leave(ChatMembership(user: user, room: room, at: time("at"), isSelf: isSelf))
        case "presence":
            self = .presence(ChatPresence(user: user, state: try word("state", ChatPresence.State.self), room: room))
        case "reaction":
            self = .reaction(
                ChatReaction(
                    target: ChatID(try need("target")), emoji: try need("emoji"),
                    operation: try word("op", ChatReaction.Operation.self), sender: sender, room: room,
                    at: time("at"), isSelf: isSelf))
        case "auth":
            if let token = json["access_token"]?.string {
                self = .auth(.accessToken(token), ref: ref)
            } else if let token = json["refresh_token"]?.string {
                self = .auth(.refreshToken(token), ref: ref)
            } else {
                self = .auth(.password(email: try need("email"), password: try need("password")), ref: ref)
            }
        case "subscribe": self = .subscribe(room: room, limit: json["limit"]?.integer.map { Int($0) })
        case "fetch":
            self = .fetch(
                room: room, ref: ref, limit: json["limit"]?.integer.map { Int($0) }, before: time("before"),
                since: time("since"))
        case "ping": self = .ping(ref: ref)
        case "pong": self = .pong(ref: ref)
        case let kind: throw CanonicalEventError(description: "kind \(kind)")
        }
    }
}

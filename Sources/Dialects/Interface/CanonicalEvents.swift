public import ChatModel
public import JSONText

// The canonical JSON form of events and commands: what the fixtures are written in and `chatbridge check --frame` prints.

/// Builds an object without the members that say nothing: absent, `null`, `[]` and `{}` are the same in an event.
package struct CanonicalObject {
    private(set) var members: [JSONValue.Member] = []

    package init(kind: String? = nil) { if let kind { text("kind", kind) } }

    package mutating func value(_ key: String, _ value: JSONValue?) {
        switch value {
        case nil, .null, .array([]), .object([]): break
        case .some(let value): members.append(.init(key, value))
        }
    }
    package mutating func text(_ key: String, _ text: String?) { value(key, text.map { .string($0) }) }
    package mutating func id(_ key: String, _ id: ChatID?) { text(key, id?.rawValue) }
    package mutating func ids(_ key: String, _ ids: [ChatID]) { value(key, .array(ids.map { .string($0.rawValue) })) }
    package mutating func integer(_ key: String, _ number: Int64?) { value(key, number.map { .integer($0) }) }
    package mutating func time(_ key: String, _ time: ChatTimestamp?) { integer(key, time?.milliseconds) }
    package mutating func truth(_ key: String, _ flag: Bool) { if flag { value(key, .bool(true)) } }
    package mutating func person(_ key: String, _ person: ChatPerson) {
        var object = CanonicalObject()
        object.id("id", person.id)
        object.text("name", person.name)
        value(key, object.json)
    }

    package var json: JSONValue { .object(members) }
}

extension ChatAttachment {
    /// The attachment in the canonical form; the file itself is only said to be there.
    public var canonicalJSON: JSONValue {
        var object = CanonicalObject()
        object.text("type", kind.rawValue)
        object.text("url", url)
        object.text("name", name)
        object.integer("size", size)
        object.text("mime", mime)
        object.text("thumb", thumbnail)
        object.integer("width", width)
        object.integer("height", height)
        object.value("duration", duration.map { JSONValue.number($0) })
        object.truth("inline", inline != nil)
        object.text("fileId", fileID)
        return object.json
    }
}

extension ChatMessage {
    /// The message in the canonical form.
    public var canonicalJSON: JSONValue {
        var object = CanonicalObject(kind: "message")
        object.id("id", id)
        object.text("room", room)
        object.person("sender", sender)
        object.text("text", text)
        object.time("at", at)
        object.value("attachments", .array(attachments.map(\.canonicalJSON)))
        object.id("replyTo", replyTo)
        object.text("ref", ref)
        object.truth("self", isSelf)
        object.truth("encrypted", isEncrypted)
        return object.json
    }
}

extension ChatEvent {
    /// The event in the canonical form. Members that say nothing are left out.
    public var canonicalJSON: JSONValue {
        switch self {
        case .message(let message): message.canonicalJSON
        case .edit(let edit): edit.canonicalJSON
        case .delete(let delete): delete.canonicalJSON
        case .typing(let typing): typing.canonicalJSON
        case .receipt(let receipt): receipt.canonicalJSON
        case .join(let membership): membership.canonicalJSON(kind: "join")
        case .leave(let membership): membership.canonicalJSON(kind: "leave")
        case .presence(let presence): presence.canonicalJSON
        case .reaction(let reaction): reaction.canonicalJSON
        case .system(let notice): notice.canonicalJSON
        case .history(let history): history.canonicalJSON
        case .ready(let ready): ready.canonicalJSON
        case .auth(let auth): auth.canonicalJSON
        case .error(let error): error.canonicalJSON
        case .ping(let ref): Self.canonicalJSON(kind: "ping", ref: ref)
        case .pong(let ref): Self.canonicalJSON(kind: "pong", ref: ref)
        }
    }

    private static func canonicalJSON(kind: String, ref: String?) -> JSONValue {
        var object = CanonicalObject(kind: kind)
        object.text("ref", ref)
        return object.json
    }
}

extension ChatMembership {
    fileprivate func canonicalJSON(kind: String) -> JSONValue {
        var object = CanonicalObject(kind: kind)
        object.person("user", user)
        object.text("room", room)
        object.time("at", at)
        object.truth("self", isSelf)
        return object.json
    }
}

extension ChatEdit {
    fileprivate var canonicalJSON: JSONValue {
        var object = CanonicalObject(kind: "edit")
        object.id("id", id)
        object.text("text", text)
        object.text("room", room)
        object.person("sender", sender)
        object.time("at", at)
        object.value("attachments", .array(attachments.map(\.canonicalJSON)))
        object.truth("self", isSelf)
        return object.json
    }
}

extension ChatDelete {
    fileprivate var canonicalJSON: JSONValue {
        var object = CanonicalObject(kind: "delete")
        object.ids("ids", ids)
        object.text("room", room)
        object.person("sender", sender)
        return object.json
    }
}

extension ChatTyping {
    fileprivate var canonicalJSON: JSONValue {
        var object = CanonicalObject(kind: "typing")
        object.text("state", state.rawValue)
        object.person("sender", sender)
        object.text("room", room)
        object.integer("ttl", ttlMilliseconds)
        object.truth("self", isSelf)
        return object.json
    }
}

extension ChatReceipt {
    fileprivate var canonicalJSON: JSONValue {
        var object = CanonicalObject(kind: "receipt")
        object.text("state", state.rawValue)
        object.ids("ids", ids)
        object.person("by", by)
        object.text("ref", ref)
        object.time("at", at)
        object.text("room", room)
        object.truth("self", isSelf)
        return object.json
    }
}

extension ChatPresence {
    fileprivate var canonicalJSON: JSONValue {
        var object = CanonicalObject(kind: "presence")
        object.person("user", user)
        object.text("state", state.rawValue)
        object.text("room", room)
        return object.json
    }
}

extension ChatReaction {
    fileprivate var canonicalJSON: JSONValue {
        var object = CanonicalObject(kind: "reaction")
        object.id("target", target)
        object.text("emoji", emoji)
        object.text("op", operation.rawValue)
        object.person("sender", sender)
        object.text("room", room)
        object.time("at", at)
        object.value(
            "counts",
            .array(
                counts.map { count in
                    var object = CanonicalObject()
                    object.text("emoji", count.emoji)
                    object.integer("count", count.count)
                    object.value("users", .array(count.users.map { .string($0) }))
                    return object.json
                }))
        object.truth("self", isSelf)
        return object.json
    }
}

extension ChatSystemNotice {
    fileprivate var canonicalJSON: JSONValue {
        var object = CanonicalObject(kind: "system")
        object.text("text", text)
        object.id("id", id)
        object.text("room", room)
        object.time("at", at)
        return object.json
    }
}

extension ChatHistory {
    fileprivate var canonicalJSON: JSONValue {
        var object = CanonicalObject(kind: "history")
        object.value("messages", .array(messages.map(\.canonicalJSON)))
        object.text("room", room)
        object.text("ref", ref)
        return object.json
    }
}

extension ChatReady {
    fileprivate var canonicalJSON: JSONValue {
        var object = CanonicalObject(kind: "ready")
        object.text("room", room)
        object.text("name", name)
        object.text("ref", ref)
        return object.json
    }
}

extension ChatAuth {
    fileprivate var canonicalJSON: JSONValue {
        var object = CanonicalObject(kind: "auth")
        object.text("state", state.rawValue)
        object.text("text", text)
        object.text("refresh", refresh)
        object.text("ref", ref)
        return object.json
    }
}

extension ChatError {
    fileprivate var canonicalJSON: JSONValue {
        var object = CanonicalObject(kind: "error")
        object.text("code", code)
        object.text("text", text)
        object.value("fatal", .bool(isFatal))
        object.text("ref", ref)
        return object.json
    }
}

// MARK: - Commands

/// A canonical event of which no command can be made.
public struct CanonicalEventError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is missing or strange in it.
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

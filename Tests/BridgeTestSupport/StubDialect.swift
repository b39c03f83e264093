public import ChatModel
public import Dialects
import JSONText

/// A wire that is the canonical JSON of events and commands itself, with traits as a test wants them.
///
/// Frames are objects: `kind`, and the fields of the event under their canonical names. What is sent has the same form, with
/// a `room` only where the command names one. A frame with a `want` is answered by rule with `{"kind":"reply","to":want}`.
public struct StubDialect: Dialect {
    public var traits: DialectTraits
    /// Kinds of commands that the wire cannot say.
    public var unsupported: Set<String>
    /// Calls beside the socket; see ``StubCalls``.
    public var calls: (any DialectCalls)?

    public init(_ traits: DialectTraits, unsupported: Set<String> = ["join", "leave", "presence"]) {
        self.traits = traits
        self.unsupported = unsupported
    }

    /// A minimal dialect; `change` adds features for a test.
    public init(
        unsupported: Set<String> = ["join", "leave", "presence"], _ change: (inout DialectTraits) -> Void = { _ in }
    ) {
        var traits = DialectTraits(
            name: "stub", identity: .puppet, messageIDOrigin: .client, echoesOwnMessages: false, confirmation: .none,
            typingOut: .startStop,
            backoff: BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0))
        change(&traits)
        self.init(traits, unsupported: unsupported)
    }

    // MARK: - Reading

    public func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame {
        guard let json = try? JSONValue(parsing: frame) else { return .dropped(.malformed, typeKey: nil) }
        guard json.object != nil else { return .dropped(.notObject, typeKey: nil) }
        guard let kind = json["kind"]?.string else { return .dropped(.missingField, typeKey: nil) }
        guard let event = StubReader(json: json, context: context).event(kind) else {
            return .dropped(.unknownType, typeKey: kind)
        }
        return .events([event])
    }

    public func automaticReplies(to frame: UnsafeRawBufferPointer, context: DialectContext) -> [EncodedFrame] {
        guard let want = (try? JSONValue(parsing: frame))?["want"] else { return [] }
        let reply = JSONValue.object([.init("kind", .string("reply")), .init("to", want)])
        return [EncodedFrame(bytes: reply.bytes, isBinary: false)]
    }

    // MARK: - Writing

    public func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand {
        let object = StubObject(command)
        guard !unsupported.contains(object.kind) else { return .unsupported(.unsupported) }
        let bytes = JSONValue.object(object.members).bytes
        guard bytes.count <= traits.maxFrameBytes else { return .unsupported(.tooLong) }
        return .frames([EncodedFrame(bytes: bytes, isBinary: false)])
    }
}

/// `GET /history?limit=…` and friends; answers are `{"messages": […], "complete": bool}`, with messages as in frames.
public struct StubCalls: DialectCalls {
    /// Whether the history can be asked for before a time.
    public var takesBefore: Bool
    /// Whether an answer may be the oldest of the messages newer than the requested point.
    public var takesAfter: Bool
    /// Whether an answer begins right behind the message that it is to begin after.
    public var beginsBehind: Bool

    public init(takesBefore: Bool = false, takesAfter: Bool = false, beginsBehind: Bool = false) {
        self.takesBefore = takesBefore
        self.takesAfter = takesAfter
        self.beginsBehind = beginsBehind
    }

    public func request(for call: BackendCall, context: DialectContext) -> BackendRequest? {
        switch call {
        case .history(let query):
            var target = "/history?room=" + query.room
            if let after = query.after { target += "&after=" + after.rawValue }
            if let since = query.since { target += "&since=\(since.milliseconds)" }
            if let before = query.before, takesBefore { target += "&before=\(before.milliseconds)" }
            if let limit = query.limit { target += "&limit=\(limit)" }
            return BackendRequest(.get, target)
        case .whoAmI: return BackendRequest(.get, "/me")
        case .markRead(let room): return BackendRequest(.post, "/read/" + room)
        case .logIn, .refresh, .rooms, .upload: return nil
        }
    }

    public func reply(to call: BackendCall, answer: BackendAnswer, context: DialectContext) -> BackendReply {
        guard let json = try? JSONValue(parsing: answer.body) else { return .unusable(.malformed) }
        switch call {
        case .history:
            guard let items = json["messages"]?.array else { return .unusable(.missingField) }
            return .messages(
                items.map { StubReader(json: $0, context: context).message },
                isComplete: json["complete"]?.bool ?? false)
        case .whoAmI:
            return .person(ChatPerson(id: json["id"]?.string.map { ChatID($0) }, name: json["name"]?.string))
        case .markRead: return .done
        case .logIn, .refresh, .rooms, .upload: return .unusable(.unsupported)
        }
    }

    public func complaint(_ answer: BackendAnswer) -> String? { nil }
}

private struct StubReader {
    var json: JSONValue
    var context: DialectContext

    private func text(_ key: String) -> String? { json[key]?.string }
    private func id(_ key: String) -> ChatID? { text(key).map { ChatID($0) } }
    private var ids: [ChatID] { json["ids"]?.array?.compactMap { $0.string.map { ChatID($0) } } ?? [] }
    private var at: ChatTimestamp? { json["at"]?.integer.map { ChatTimestamp(milliseconds: $0) } }
    private var sender: ChatPerson { person("sender") }

    private func person(_ key: String) -> ChatPerson {
        ChatPerson(id: json[key]?["id"]?.string.map { ChatID($0) }, name: json[key]?["name"]?.string)
    }

    private func state<State: RawRepresentable>(_ type: State.Type) -> State? where State.RawValue == String {
        text("state").flatMap { State(rawValue: $0) }
    }

    private func isSelf(_ person: ChatPerson) -> Bool { json["self"]?.bool ?? context.isSelf(person) }

    private var attachments: [ChatAttachment] {
        (json["attachments"]?.array ?? []).map { item in
            ChatAttachment(
                kind: item["type"]?.string.flatMap { ChatAttachment.Kind(rawValue: $0) } ?? .file,
                url: item["url"]?.string, name: item["name"]?.string, inline: item["inline"]?.string)
        }
    }

    var message: ChatMessage {
        ChatMessage(
            id: id("id"), room: text("room"), sender: sender, text: text("text") ?? "", at: at,
            attachments: attachments, replyTo: id("replyTo"), ref: text("ref"), isSelf: isSelf(sender),
            isEncrypted: json["encrypted"]?.bool ?? false,
            annotations: json["annotations"]?.object?.map { StoredTag(name: $0.key, value: $0.value.string) } ?? [])
    }

    func event(_ kind: String) -> ChatEvent? {
        switch kind {
        case "message": return .message(message)
        case "edit":
            return id("id").map { id in
                .edit(
                    ChatEdit(
                        id: id, text: text("text") ?? "", sender: sender, at: at, attachments: attachments,
                        isSelf: isSelf(sender)))
            }
        case "delete": return .delete(ChatDelete(ids: ids, sender: sender))
        case "typing":
            return state(ChatTyping.State.self).map { state in
                .typing(
                    ChatTyping(
                        state: state, sender: sender, ttlMilliseconds: json["ttl"]?.integer, isSelf: isSelf(sender)))
            }
        case "receipt":
            return state(ChatReceipt.State.self).map { state in
                let by = person("by")
                return .receipt(
                    ChatReceipt(state: state, ids: ids, by: by, ref: text("ref"), at: at, isSelf: isSelf(by)))
            }
        case "join", "leave":
            let membership = ChatMembership(user: person("user"), at: at, isSelf: isSelf(person("user")))
            return kind == "join" ? .join(membership) : .leave(membership)
        case "presence":
            return state(ChatPresence.State.self).map { .presence(ChatPresence(user: person("user"), state: $0)) }
        case "reaction":
            guard let target = id("target"), let emoji = text("emoji") else { return nil }
            return .reaction(
                ChatReaction(
                    target: target, emoji: emoji, operation: text("op") == "remove" ? .remove : .add, sender: sender,
                    at: at, isSelf: isSelf(sender)))
        case "system": return .system(ChatSystemNotice(text: text("text") ?? "", id: id("id"), at: at))
        case "history":
            let messages = (json["messages"]?.array ?? []).map { StubReader(json: $0, context: context).message }
            return .history(ChatHistory(messages: messages, room: text("room"), ref: text("ref")))
        case "ready": return .ready(ChatReady(room: text("room"), name: text("name"), ref: text("ref")))
        case "auth":
            return state(ChatAuth.State.self).map { .auth(ChatAuth(state: $0, text: text("text"), ref: text("ref"))) }
        case "error":
            return .error(
                ChatError(
                    code: text("code") ?? "", text: text("text") ?? "", isFatal: json["fatal"]?.bool ?? false,
                    ref: text("ref"), retryAfterMilliseconds: json["retryAfter"]?.integer))
        case "ping": return .ping(ref: text("ref"))
        case "pong": return .pong(ref: text("ref"))
        default: return nil
        }
    }
}

/// A command as an object without empty fields.
private struct StubObject {
    var kind = ""
    private(set) var members: [JSONValue.Member] = []

    init(_ command: ChatCommand) {
        switch command {
        case .message(let message):
            begin("message")
            text("id", message.id?.rawValue)
            person("sender", message.sender)
            text("text", message.text)
            time("at", message.at)
            text("replyTo", message.replyTo?.rawValue)
            let urls = message.attachments.compactMap(\.url)
            if !urls.isEmpty { ids("attachments", urls) }
        case .edit(let edit):
            begin("edit")
            text("id", edit.id.rawValue)
            text("text", edit.text)
        case .delete(let delete):
            begin("delete")
            ids("ids", delete.ids.map(\.rawValue))
        case .typing(let typing):
            begin("typing")
            text("state", typing.state.rawValue)
            person("sender", typing.sender)
        case .receipt(let receipt):
            begin("receipt")
            text("state", receipt.state.rawValue)
            ids("ids", receipt.ids.map(\.rawValue))
        case .join(let membership):
            begin("join")
            person("user", membership.user)
        case .leave(let membership):
            begin("leave")
            person("user", membership.user)
        case .presence(let presence):
            begin("presence")
            person("user", presence.user)
            text("state", presence.state.rawValue)
        case .reaction(let reaction):
            begin("reaction")
            text("target", reaction.target.rawValue)
            text("emoji", reaction.emoji)
            text("op", reaction.operation.rawValue)
        case .auth(let credentials, _):
            begin("auth")
            switch credentials {
            case .accessToken(let token): text("access_token", token)
            case .refreshToken(let token): text("refresh_token", token)
            case .password(let email, let password):
                text("email", email)
                text("password", password)
            }
        case .subscribe(let room, let limit):
            begin("subscribe")
            text("room", room)
            number("limit", limit)
        case .fetch(_, let ref, let limit, let before, let since):
            begin("fetch")
            text("ref", ref)
            number("limit", limit)
            time("before", before)
            time("since", since)
        case .ping(let ref):
            begin("ping")
            text("ref", ref)
        case .pong(let ref):
            begin("pong")
            text("ref", ref)
        }
    }

    private mutating func begin(_ kind: String) {
        self.kind = kind
        members = [.init("kind", .string(kind))]
    }
    private mutating func text(_ key: String, _ text: String?) {
        if let text { members.append(.init(key, .string(text))) }
    }
    private mutating func number(_ key: String, _ number: Int?) {
        if let number { members.append(.init(key, .integer(Int64(number)))) }
    }
    private mutating func time(_ key: String, _ time: ChatTimestamp?) {
        if let time { members.append(.init(key, .integer(time.milliseconds))) }
    }
    private mutating func ids(_ key: String, _ ids: [String]) {
        members.append(.init(key, .array(ids.map { .string($0) })))
    }
    private mutating func person(_ key: String, _ person: ChatPerson) {
        var parts: [JSONValue.Member] = []
        if let id = person.id { parts.append(.init("id", .string(id.rawValue))) }
        if let name = person.name { parts.append(.init("name", .string(name))) }
        members.append(.init(key, .object(parts)))
    }
}

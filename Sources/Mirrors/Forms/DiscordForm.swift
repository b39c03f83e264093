import BridgeTypes
import ChatModel
import HTTPProtocol
import JSONText
import WireBytes

/// Discord: webhooks, and the gateway's events as a bot forwards them.
///
/// A webhook cannot answer a message or react to one: answers begin with a quote. To post into a thread, the hook's
/// address has `?thread_id=…`.
///
/// Source: https://discord.com/developers/docs/resources/webhook
package struct DiscordForm: MirrorForm {
    package init() {}

    /// Source: https://discord.com/developers/docs/resources/webhook#execute-webhook-jsonform-params. Thirty messages a
    /// minute and webhook: https://github.com/discord/discord-api-docs/issues/2388
    package var traits: MirrorFormTraits {
        MirrorFormTraits(maxTextCharacters: 2000)
    }

    private var wording: PostWording {
        PostWording(
            syntax: .discord, maxCharacters: traits.maxTextCharacters, showsNames: true, quotes: true, marksEdits: false
        )
    }

    package func requests(for posts: [MirrorPost], _ wording: MirrorWording) -> [MirrorRequest] {
        requests(of: posts) { post, range in
            let message = post.target?.toolID.map { "/messages/" + HTTPURL.percentEncoded($0) }
            switch post.content {
            case .takenBack:
                guard let message else { return [] }
                return [MirrorRequest(method: "DELETE", pathSuffix: message, body: [], posts: range)]
            case .edit:
                guard let message else { return [] }
                return executions(post, wording, range, editing: message)
            default: return executions(post, wording, range, editing: nil)
            }
        }
    }

    /// - Parameter message: the path of the message that the first text becomes.
    private func executions(
        _ post: MirrorPost, _ wording: MirrorWording, _ range: Range<Int>, editing message: String?
    ) -> [MirrorRequest] {
        // No user by an id: the words have no such mention.
        let mentioned = JSONValue.members(["parse": .array(wording.defusesMentions ? [] : [.string("everyone")])])
        return self.wording.texts(of: post, wording).enumerated().map { index, text in
            if index == 0, let message {
                let body = JSONValue.members(["content": .string(text), "allowed_mentions": mentioned])
                return MirrorRequest(json: body, method: "PATCH", pathSuffix: message, posts: range)
            }
            let body = JSONValue.members([
                "content": .string(text), "username": wording.name(over: post).map { .string(Self.allowed($0)) },
                "avatar_url": wording.avatar(of: post).map(JSONValue.string), "allowed_mentions": mentioned,
            ])
            return MirrorRequest(json: body, query: "wait=true", posts: range)
        }
    }

    /// A name that is allowed: these words are cut by an invisible space.
    ///
    /// Source: https://discord.com/developers/docs/resources/user#usernames-and-nicknames
    static func allowed(_ name: String) -> String {
        var allowed = ""
        let lowercased = Array(ASCII.lowercased(name).utf8)
        var offset = 0
        for character in name {
            let rest = lowercased[offset...]
            let isWhole = offset == 0 && (rest.elementsEqual("everyone".utf8) || rest.elementsEqual("here".utf8))
            let isForbidden = ["clyde", "discord", "```"].contains { rest.starts(with: $0.utf8) } || isWhole
            allowed.append(character)
            if isForbidden { allowed.unicodeScalars.append(MarkupSyntax.guardian) }
            offset += character.utf8.count
        }
        while allowed.utf16.count > 80 { allowed.removeLast() }
        return allowed
    }

    /// Source: https://discord.com/developers/docs/topics/opcodes-and-status-codes#json and
    /// https://discord.com/developers/docs/topics/rate-limits
    package func outcome(of request: MirrorRequest, _ answer: MirrorAnswer) -> MirrorOutcome {
        let document = answer.json
        let words = document?["message"]?.string
        switch (answer.status, document?["code"]?.integer) {
        case (429, _):
            let seconds = document?["retry_after"]?.double.map { min(max($0, 0), 86_400) }
            return .later(
                reason: answer.reason(words),
                after: seconds.map { .milliseconds(Int64($0 * 1000)) } ?? answer.retryAfter)
        // An unknown message: others may be known.
        case (404, 10008?): return .refused(reason: answer.reason(words))
        // An unknown channel, thread or webhook, whatever the status.
        case (_, 10003?), (_, 10015?): return .closed(reason: answer.reason(words))
        default:
            let id = request.method == "POST" ? document?["id"]?.string : nil
            return answer.outcome(ids: request.posts.map { _ in id }, words: words)
        }
    }

    /// The body is one event of the gateway, `{"t":"MESSAGE_CREATE","d":{…}}`; the token is in `Authorization: Bearer`.
    ///
    /// Source: https://discord.com/developers/docs/events/gateway-events
    package func read(_ hook: HookRequest, secret: MirrorSecret) -> HookReading {
        HookReading { () throws(HookFailure) in
            try secret.prove(token: hook.bearerToken)
            let body = try hook.object()
            let event = try body.requiredPart("d")
            switch try body.requiredText("t") {
            case "MESSAGE_CREATE": return .arrivals(try message(event).map { [$0] } ?? [])
            case "MESSAGE_UPDATE": return .arrivals(try edit(event).map { [$0] } ?? [])
            case "MESSAGE_DELETE": return .arrivals([try redaction(event, try event.requiredText("id"))])
            case "MESSAGE_DELETE_BULK":
                var arrivals: [MirrorArrival] = []
                for id in try event.list("ids") { if let id = id.string { arrivals.append(try redaction(event, id)) } }
                return .arrivals(arrivals)
            case "MESSAGE_REACTION_ADD": return .arrivals([try reaction(event, .add)])
            case "MESSAGE_REACTION_REMOVE": return .arrivals([try reaction(event, .remove)])
            default: return .arrivals([])
            }
        }
    }

    // MARK: - Hooks

    private static let defaultType: Int64 = 0
    private static let replyType: Int64 = 19

    /// Source: https://discord.com/developers/docs/resources/message#message-object
    private func message(_ event: JSONValue) throws(HookFailure) -> MirrorArrival? {
        let type = event["type"]?.integer ?? Self.defaultType
        guard type == Self.defaultType || type == Self.replyType else { return nil }
        let (text, origin) = try words(event)
        let files = try event.files("attachments", url: ["url"], name: "filename", type: "content_type")
        guard !text.parts.isEmpty || !files.isEmpty else { return nil }
        return MirrorArrival(
            .message(text), id: try event.requiredText("id"), speaker: try speaker(event),
            replyTo: type == Self.replyType ? try event.part("message_reference")?.text("message_id") : nil,
            channel: try event.text("channel_id"), files: files, origin: origin, isBot: isBot(event))
    }

    /// An edit has a time: the preview of a link comes as an update without.
    private func edit(_ event: JSONValue) throws(HookFailure) -> MirrorArrival? {
        guard try event.text("edited_timestamp") != nil, try event.text("content") != nil,
            try event.part("author") != nil
        else { return nil }
        let (text, origin) = try words(event)
        return MirrorArrival(
            .edit(text, of: try event.requiredText("id")), speaker: try speaker(event),
            channel: try event.text("channel_id"), origin: origin, isBot: isBot(event))
    }

    private func redaction(_ event: JSONValue, _ id: String) throws(HookFailure) -> MirrorArrival {
        MirrorArrival(.takenBack(id), speaker: "unknown", channel: try event.text("channel_id"))
    }

    private func reaction(_ event: JSONValue, _ change: ChatReaction.Operation) throws(HookFailure) -> MirrorArrival {
        let emoji = try event.requiredPart("emoji")
        let name = try emoji.requiredText("name")
        let user = try event.part("member")?.part("user")
        let id = try event.requiredText("user_id")
        return MirrorArrival(
            .reaction(
                try emoji.text("id") == nil ? name : ":\(name):", change, on: try event.requiredText("message_id")),
            speaker: event["member"]?["nick"]?.string ?? user.flatMap(Self.name) ?? id,
            channel: try event.text("channel_id"), isBot: user?["bot"]?.bool ?? false)
    }

    private func isBot(_ event: JSONValue) -> Bool {
        event["author"]?["bot"]?.bool == true || event["webhook_id"]?.string != nil
    }

    private func speaker(_ event: JSONValue) throws(HookFailure) -> String {
        let author = try event.requiredPart("author")
        if let nick = event["member"]?["nick"]?.string { return nick }
        guard let name = Self.name(author) else { throw .malformed("\"author\" has no name") }
        return name
    }

    private static func name(_ user: JSONValue) -> String? { user["global_name"]?.string ?? user["username"]?.string }

    private func words(_ event: JSONValue) throws(HookFailure) -> (MarkedText, OriginChain) {
        var names: [String: String] = [:]
        for user in try event.list("mentions") {
            if let id = user["id"]?.string, let name = Self.name(user) { names[id] = name }
        }
        for channel in try event.list("mention_channels") {
            if let id = channel["id"]?.string, let name = channel["name"]?.string { names[id] = name }
        }
        let (raw, origin) = OriginChain.split(try event.text("content") ?? "")
        return (MarkedText(raw, as: .discord, names: names), origin)
    }
}

import BridgeTypes
import ChatModel
import Digests
import HTTPProtocol
import IRCProtocol
import JSONText
import WireBytes

/// The relay's own form, the same in both directions: objects with everything that a room knows of a message.
///
/// Out: `{"messages": […]}`, oldest first. In: the same, an array, or one object for itself. Members of a message, of
/// which those without a value are absent:
///
/// | member | meaning |
/// |---|---|
/// | `id` | of the message; unique in the room |
/// | `first` | the id under which it was said first, the same through any number of bridges |
/// | `kind` | `message` (the default), `action`, `edit`, `delete`, `reaction`; out also `topic`, `notice` |
/// | `room`, `channel` | the room's name and its channel on IRC |
/// | `nick`, `account`, `bot` | the speaker |
/// | `text`, `markdown` | the words, plain and in Markdown; in, `markdown` counts where both are there |
/// | `at` | RFC 3339 with milliseconds, in UTC |
/// | `reply_to` | the message that this one answers: an object with its `id`, `nick` and `excerpt`; in, also the id alone |
/// | `target` | the same of the message that is edited, deleted or reacted to |
/// | `emoji`, `operation` | of a reaction: `add` (the default) or `remove` |
/// | `files` | objects with `url`, `name`, `type`, `size` |
/// | `origin` | the places that the message has passed, as texts: an answer to it repeats them |
package struct JSONForm: MirrorForm {
    /// Messages in one request, out and in.
    static let maxMessages = 100

    package init() {}

    package var traits: MirrorFormTraits {
        var traits = MirrorFormTraits(maxTextCharacters: .max)
        traits.postsAtOnce = Self.maxMessages
        return traits
    }

    /// `Idempotency-Key` is the same for the same posts.
    package func requests(for posts: [MirrorPost], _ wording: MirrorWording) -> [MirrorRequest] {
        guard !posts.isEmpty else { return [] }
        let messages = posts.map { message($0, wording) }
        var request = MirrorRequest(json: .members(["messages": .array(messages)]), posts: posts.indices)
        let key = SHA256.hash(Array(posts.map { "\($0.room)\n\($0.msgid)" }.joined(separator: "\n").utf8))
        request.headers.append(HTTPHeaders.Field(name: "Idempotency-Key", value: Base64.encodeURLSafe(key)))
        return [request]
    }

    /// `Chatbridge-Signature` is `v1=` and the HMAC-SHA256, in hexadecimal digits, of `v1:`, the seconds in
    /// `Chatbridge-Timestamp`, `:` and the body.
    package func signed(_ request: MirrorRequest, by secret: MirrorSecret, now: ChatTimestamp) -> MirrorRequest {
        let seconds = now.milliseconds / 1000
        let signature = secret.signature(Array("v1:\(seconds):".utf8) + request.body)
        var request = request
        request.headers.append(HTTPHeaders.Field(name: Self.timestamp, value: String(seconds)))
        request.headers.append(HTTPHeaders.Field(name: Self.signature, value: "v1=" + signature))
        return request
    }

    private static let timestamp = "Chatbridge-Timestamp"
    private static let signature = "Chatbridge-Signature"

    private func message(_ post: MirrorPost, _ wording: MirrorWording) -> JSONValue {
        let content = Content(post.content)
        let markdown = content.words?.written(as: .mattermost, defusesMentions: wording.defusesMentions).first
        return .members([
            "id": .string(post.msgid), "first": .string(post.first), "kind": .string(content.kind.rawValue),
            "room": .string(post.room),
            "channel": .string(post.channel), "nick": .string(post.speaker.nick),
            "account": post.speaker.account.map(JSONValue.string), "bot": .bool(post.speaker.isBot),
            "text": content.words.map { .string($0.plain) },
            "markdown": content.words.map { _ in .string(markdown ?? "") },
            "at": .string(IRCServerTime.format(milliseconds: post.at.milliseconds)),
            "reply_to": post.replyTo.map { Self.reference($0, post.target) },
            "target": content.target.map { Self.reference($0, post.target) },
            "emoji": content.reaction.map { .string($0.emoji) },
            "operation": content.reaction.map { .string($0.change.rawValue) },
            "files": post.files.isEmpty ? nil : .array(post.files.map(Self.file)),
            "origin": .array(post.origin.places.map { .string($0.text) }),
        ])
    }

    private static func reference(_ id: String, _ target: MirrorPost.Target?) -> JSONValue {
        .members([
            "id": .string(id), "nick": target.map { .string($0.nick) }, "excerpt": target.map { .string($0.excerpt) },
        ])
    }

    private static func file(_ file: MirrorFile) -> JSONValue {
        .members([
            "url": .string(file.url), "name": file.name.map(JSONValue.string), "type": file.type.map(JSONValue.string),
            "size": file.size.map(JSONValue.integer),
        ])
    }

    private enum Kind: String { case message, action, edit, delete, reaction, topic, notice }

    /// A post's content, member by member.
    private struct Content {
        var kind: Kind
        var words: MarkedText?
        var target: String?
        var reaction: (emoji: String, change: ChatReaction.Operation)?

        init(_ content: MirrorPost.Content) {
            switch content {
            case .message(let text): (kind, words) = (.message, text)
            case .action(let text): (kind, words) = (.action, text)
            case .edit(let text, of: let id): (kind, words, target) = (.edit, text, id)
            case .takenBack(let id): (kind, target) = (.delete, id)
            case .reaction(let emoji, let change, on: let id):
                (kind, target, reaction) = (.reaction, id, (emoji, change))
            case .topic(let topic): (kind, words) = (.topic, MarkedText(topic, as: .irc))
            case .notice(let notice): (kind, words) = (.notice, MarkedText(notice, as: .irc))
            }
        }
    }

    package func outcome(of request: MirrorRequest, _ answer: MirrorAnswer) -> MirrorOutcome {
        answer.outcome(ids: request.noIDs)
    }

    // MARK: - Hooks

    /// Signed as above, or, where there is no signature, with the secret in `Authorization: Bearer`.
    package func read(_ hook: HookRequest, secret: MirrorSecret) -> HookReading {
        HookReading { () throws(HookFailure) in
            if hook.headers.first(Self.signature) != nil {
                try secret.prove(hook, version: "v1", time: Self.timestamp, signature: Self.signature)
            } else {
                try secret.prove(token: hook.bearerToken)
            }
            let body = try hook.document()
            let list = body["messages"] == nil ? [body] : try body.list("messages")
            let messages = body.array ?? list
            guard messages.count <= Self.maxMessages else {
                throw .malformed("it has more than \(Self.maxMessages) messages")
            }
            var arrivals: [MirrorArrival] = []
            for message in messages { arrivals.append(try arrival(message)) }
            return .arrivals(arrivals)
        }
    }

    private func arrival(_ message: JSONValue) throws(HookFailure) -> MirrorArrival {
        guard message.object != nil else { throw .malformed("a message is no object") }
        let files = try message.files("files", url: ["url"], name: "name", type: "type")
        let (words, marks) = try words(of: message)
        let room = try message.text("room")
        let id = try message.text("id")
        let first = try message.text("first")
        return MirrorArrival(
            try content(of: message, words, hasFiles: !files.isEmpty), id: id,
            speaker: try message.requiredText("nick"), replyTo: try reference("reply_to", in: message),
            channel: try message.text("channel") ?? room, files: files, origin: try origin(of: message, marks),
            first: first ?? id, isBot: message["bot"]?.bool ?? false)
    }

    /// - Parameter marks: those in the words.
    private func origin(of message: JSONValue, _ marks: OriginChain) throws(HookFailure) -> OriginChain {
        var origin = marks
        for place in try message.list("origin") {
            guard let text = place.string, let place = OriginChain.Place(text) else {
                throw .malformed("\"origin\" has something else than places")
            }
            if !origin.isFull { origin = origin.passing(place) }
        }
        return origin
    }

    private func content(
        of message: JSONValue, _ words: MarkedText?, hasFiles: Bool
    ) throws(HookFailure) -> MirrorArrival.Content {
        let kind = Kind(rawValue: try message.text("kind") ?? Kind.message.rawValue)
        switch kind {
        case .message, .action, .edit:
            guard let words = hasFiles ? words ?? MarkedText() : words else { throw .malformed("\"text\" is missing") }
            if kind == .edit { return .edit(words, of: try target(of: message)) }
            return kind == .action ? .action(words) : .message(words)
        case .delete: return .takenBack(try target(of: message))
        case .reaction:
            return .reaction(
                try message.requiredText("emoji"), try message.text("operation") == "remove" ? .remove : .add,
                on: try target(of: message))
        case .topic, .notice, nil: throw .malformed("\"kind\" is none that a hook takes")
        }
    }

    private func target(of message: JSONValue) throws(HookFailure) -> String {
        guard let id = try reference("target", in: message) else { throw .malformed("\"target\" is missing") }
        return id
    }

    /// A message's id, or an object with it.
    private func reference(_ key: String, in message: JSONValue) throws(HookFailure) -> String? {
        message[key]?.object == nil ? try message.text(key) : try message[key]?.requiredText("id")
    }

    private func words(of message: JSONValue) throws(HookFailure) -> (MarkedText?, OriginChain) {
        let markdown = try message.text("markdown")
        let plain = try message.text("text")
        guard let raw = markdown ?? plain else { return (nil, OriginChain()) }
        let (text, marks) = OriginChain.split(raw)
        return (MarkedText(text, as: markdown == nil ? .irc : .mattermost), marks)
    }
}

import BridgeTypes
import ChatModel
import JSONText

/// Slack: incoming webhooks, the Events API and slash commands.
///
/// An app's webhook has the app's name and picture over its messages, so the words begin with the speaker's name. It
/// gives no ids, so nothing of ours is changed there or reacted to.
///
/// Source: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
package struct SlackForm: MirrorForm {
    package init() {}

    /// Source: https://docs.slack.dev/messaging/sending-and-scheduling-messages, "Truncating": 4,000 are recommended.
    /// One message a second: https://docs.slack.dev/apis/web-api/rate-limits
    package var traits: MirrorFormTraits {
        var traits = MirrorFormTraits(maxTextCharacters: 4000)
        traits.postsAtOnce = 100
        return traits
    }

    private var wording: PostWording {
        PostWording(syntax: .slack, maxCharacters: traits.maxTextCharacters, showsNames: false, quotes: true)
    }

    package func requests(for posts: [MirrorPost], _ wording: MirrorWording) -> [MirrorRequest] {
        self.wording.texts(of: posts, wording, separator: "\n").map {
            MirrorRequest(json: .members(["text": .string($0.text)]), posts: $0.posts)
        }
    }

    /// The body is a word. Source:
    /// https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks#handling_errors
    package func outcome(of request: MirrorRequest, _ answer: MirrorAnswer) -> MirrorOutcome {
        let body = String(decoding: answer.body.prefix(Self.maxWordBytes), as: UTF8.self)
        let isWord = body.utf8.allSatisfy { $0 == UInt8(ascii: "_") || (UInt8(ascii: "a")...UInt8(ascii: "z")) ~= $0 }
        if isWord, Self.closing.contains(body) { return .closed(reason: answer.reason(body)) }
        return answer.outcome(ids: request.noIDs, words: isWord ? body : nil)
    }

    private static let maxWordBytes = 64
    /// Words for a hook that will take nothing more, whatever their status.
    private static let closing: Set = [
        "no_service", "no_service_id", "no_team", "team_disabled", "no_active_hooks", "invalid_token",
        "channel_not_found", "channel_is_archived", "action_prohibited", "posting_to_general_channel_denied",
    ]

    package func read(_ hook: HookRequest, secret: MirrorSecret) -> HookReading {
        HookReading { () throws(HookFailure) in
            try secret.prove(
                hook, version: "v0", time: "X-Slack-Request-Timestamp", signature: "X-Slack-Signature")
            return hook.isForm ? try slashCommand(try hook.form()) : try event(try hook.object())
        }
    }

    // MARK: - Hooks

    /// The answer shows the command in the channel.
    ///
    /// Source: https://docs.slack.dev/interactivity/implementing-slash-commands
    private func slashCommand(_ form: JSONValue) throws(HookFailure) -> HookReading {
        let (text, origin) = words(try form.requiredText("text"))
        guard !text.parts.isEmpty else { return .arrivals([]) }
        let arrival = MirrorArrival(
            .message(text), id: try form.text("trigger_id"), speaker: try form.requiredText("user_name"),
            channel: try form.text("channel_name"), origin: origin)
        return .arrivals([arrival], answer: #"{"response_type":"in_channel"}"#)
    }

    /// Source: https://docs.slack.dev/apis/events-api/
    private func event(_ body: JSONValue) throws(HookFailure) -> HookReading {
        switch try body.requiredText("type") {
        case "url_verification": return .answer(try body.requiredText("challenge"), type: "text/plain")
        case "event_callback":
            let event = try body.requiredPart("event")
            let arrival =
                switch try event.requiredText("type") {
                case "message", "app_mention": try message(event)
                case "reaction_added": try reaction(event, .add)
                case "reaction_removed": try reaction(event, .remove)
                default: nil as MirrorArrival?
                }
            return .arrivals(arrival.map { [$0] } ?? [])
        default: return .arrivals([])
        }
    }

    /// Source: https://docs.slack.dev/reference/events/message
    private func message(_ event: JSONValue) throws(HookFailure) -> MirrorArrival? {
        switch try event.text("subtype") {
        case nil, "bot_message", "file_share", "thread_broadcast", "me_message": return try said(event)
        case "message_deleted":
            return MirrorArrival(
                .takenBack(try event.requiredText("deleted_ts")),
                speaker: speaker(try event.part("previous_message") ?? event), channel: try event.text("channel"))
        case "message_changed": return try changed(event)
        default: return nil
        }
    }

    private func said(_ event: JSONValue) throws(HookFailure) -> MirrorArrival? {
        let (text, origin) = words(try event.text("text") ?? "")
        let files = try event.files("files", url: ["permalink", "url_private"], name: "name", type: "mimetype")
        guard !text.parts.isEmpty || !files.isEmpty else { return nil }
        let id = try event.requiredText("ts")
        let thread = try event.text("thread_ts")
        return MirrorArrival(
            event["subtype"]?.string == "me_message" ? .action(text) : .message(text), id: id,
            speaker: speaker(event), replyTo: thread == id ? nil : thread, channel: try event.text("channel"),
            files: files, origin: origin, isBot: isBot(event))
    }

    /// An edit has other words and an editor: Slack reports the preview of a link in the same way. The first message of
    /// a thread is taken back by a change to a tombstone.
    private func changed(_ event: JSONValue) throws(HookFailure) -> MirrorArrival? {
        let message = try event.requiredPart("message")
        let before = try event.part("previous_message")
        let id = try message.requiredText("ts")
        let channel = try event.text("channel")
        if try message.text("subtype") == "tombstone" {
            return MirrorArrival(.takenBack(id), speaker: speaker(before ?? message), channel: channel)
        }
        let raw = try message.text("text") ?? ""
        guard try message.part("edited") != nil, try before?.text("text") != raw else { return nil }
        let (text, origin) = words(raw)
        return MirrorArrival(
            .edit(text, of: id), speaker: speaker(message), channel: channel, origin: origin, isBot: isBot(message))
    }

    /// Source: https://docs.slack.dev/reference/events/reaction_added
    private func reaction(_ event: JSONValue, _ change: ChatReaction.Operation) throws(HookFailure) -> MirrorArrival? {
        let item = try event.requiredPart("item")
        guard try item.text("type") == "message" else { return nil }
        return MirrorArrival(
            .reaction(":\(try event.requiredText("reaction")):", change, on: try item.requiredText("ts")),
            speaker: speaker(event), channel: try item.text("channel"))
    }

    private func isBot(_ message: JSONValue) -> Bool {
        message["bot_id"]?.string != nil || message["subtype"]?.string == "bot_message"
    }

    /// The best name that an event has; most have an id only.
    private func speaker(_ message: JSONValue) -> String {
        let names = [
            message["user_profile"]?["display_name"], message["user_profile"]?["real_name"], message["username"],
            message["bot_profile"]?["name"], message["user"], message["bot_id"],
        ]
        return names.lazy.compactMap { $0?.string }.first { !$0.isEmpty } ?? "unknown"
    }

    private func words(_ raw: String) -> (MarkedText, OriginChain) {
        let (text, origin) = OriginChain.split(raw)
        return (MarkedText(text, as: .slack), origin)
    }
}

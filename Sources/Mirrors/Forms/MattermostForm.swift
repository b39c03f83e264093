import BridgeTypes
import ChatModel
import JSONText

/// Mattermost: incoming and outgoing webhooks.
///
/// Names and pictures over messages need the server's settings `EnablePostUsernameOverride` and
/// `EnablePostIconOverride`; where they are off, a username without `{nick}` puts the speaker's name into the words.
///
/// Source: https://developers.mattermost.com/integrate/webhooks/incoming/
package struct MattermostForm: MirrorForm {
    package init() {}

    /// Source: https://github.com/mattermost/mattermost/blob/master/server/public/model/post.go,
    /// `PostMessageMaxRunesV2`.
    package var traits: MirrorFormTraits { MirrorFormTraits(maxTextCharacters: 16_383) }

    private var wording: PostWording {
        PostWording(syntax: .mattermost, maxCharacters: traits.maxTextCharacters, showsNames: true, quotes: true)
    }

    package func requests(for posts: [MirrorPost], _ wording: MirrorWording) -> [MirrorRequest] {
        requests(of: posts) { post, range in
            return self.wording.texts(of: post, wording).map {
                MirrorRequest(
                    json: .members([
                        "text": .string($0), "username": wording.name(over: post).map(JSONValue.string),
                        "icon_url": wording.avatar(of: post).map(JSONValue.string),
                    ]), posts: range)
            }
        }
    }

    /// Errors have a document with an `id`, such as `web.incoming_webhook.invalid.app_error` with status 400.
    ///
    /// Source: https://github.com/mattermost/mattermost/blob/master/server/channels/app/webhook.go
    package func outcome(of request: MirrorRequest, _ answer: MirrorAnswer) -> MirrorOutcome {
        let error = answer.json?["id"]?.string
        if let error, Self.closing.contains(error) { return .closed(reason: answer.reason(error)) }
        return answer.outcome(ids: request.noIDs, words: error)
    }

    private static let closing: Set = [
        "web.incoming_webhook.invalid.app_error", "web.incoming_webhook.disabled.app_error",
        "web.incoming_webhook.channel.app_error", "web.incoming_webhook.channel_locked.app_error",
        "web.incoming_webhook.permissions.app_error", "web.incoming_webhook.user.app_error",
    ]

    /// The server sends nothing that a webhook or a bot has posted. Files have ids without addresses, and are counted.
    ///
    /// Source: https://developers.mattermost.com/integrate/webhooks/outgoing/
    package func read(_ hook: HookRequest, secret: MirrorSecret) -> HookReading {
        HookReading { () throws(HookFailure) in
            let body = try hook.isForm ? hook.form() : hook.object()
            try secret.prove(token: try body.text("token"))
            let (raw, origin) = OriginChain.split(try body.text("text") ?? "")
            var text = MarkedText(raw, as: .mattermost)
            let fileCount = (try body.text("file_ids") ?? "").split(separator: ",").count
            if fileCount > 0 {
                let note = fileCount == 1 ? "(a file)" : "(\(fileCount) files)"
                text.append(text.parts.isEmpty ? note : " " + note, .italic)
            }
            guard !text.parts.isEmpty else { return .arrivals([]) }
            return .arrivals([
                MirrorArrival(
                    .message(text), id: try body.text("post_id"), speaker: try body.requiredText("user_name"),
                    channel: try body.text("channel_name"), origin: origin)
            ])
        }
    }
}

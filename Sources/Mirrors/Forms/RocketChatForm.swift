import BridgeTypes
import ChatModel
import JSONText

/// Rocket.Chat: incoming and outgoing integrations.
///
/// Names over messages need the permission `message-impersonate` of the integration's user, which bots have.
///
/// Source: https://docs.rocket.chat/docs/integrations
package struct RocketChatForm: MirrorForm {
    package init() {}

    /// Source: https://docs.rocket.chat/docs/message, "Maximum Allowed Characters Per Message"; counted in units of
    /// UTF-16.
    package var traits: MirrorFormTraits {
        MirrorFormTraits(maxTextCharacters: 5000)
    }

    /// - Parameter asAnswers: in the thread of the message that they answer, else with a quote.
    private func wording(asAnswers: Bool) -> PostWording {
        PostWording(
            syntax: .rocketChat, maxCharacters: traits.maxTextCharacters, showsNames: true, quotes: !asAnswers)
    }

    /// `separateResponse` asks for the messages in the answer; older servers do not know it.
    ///
    /// Source:
    /// https://github.com/RocketChat/Rocket.Chat/blob/develop/apps/meteor/app/lib/server/functions/processWebhookMessage.ts
    package func requests(for posts: [MirrorPost], _ wording: MirrorWording) -> [MirrorRequest] {
        requests(of: posts) { post, range in
            let thread = post.replyTo == nil ? nil : post.target?.toolID
            return self.wording(asAnswers: thread != nil).texts(of: post, wording).map {
                MirrorRequest(
                    json: .members([
                        "text": .string($0), "alias": wording.name(over: post).map(JSONValue.string),
                        "avatar": wording.avatar(of: post).map(JSONValue.string),
                        "tmid": thread.map(JSONValue.string), "separateResponse": .bool(true),
                    ]), posts: range)
            }
        }
    }

    /// Source: https://github.com/RocketChat/Rocket.Chat/blob/develop/apps/meteor/app/integrations/server/api/api.ts
    package func outcome(of request: MirrorRequest, _ answer: MirrorAnswer) -> MirrorOutcome {
        let document = answer.json
        let response = document?["responses"]?.array?.first
        let error = document?["error"]?.string ?? response?["error"]?.string
        let id = response?["message"]?["_id"]?.string
        if let error, error.hasPrefix("error-too-many-requests") {
            return .later(reason: answer.reason(error), after: answer.retryAfter)
        }
        if let error, Self.closing.contains(error) { return .closed(reason: answer.reason(error)) }
        if document?["success"]?.bool == false, (200..<300).contains(answer.status) {
            return .refused(reason: answer.reason(error))
        }
        return answer.outcome(ids: request.posts.map { _ in id }, words: error)
    }

    private static let closing: Set = [
        "Invalid integration id or token provided.", "invalid-channel", "error-not-allowed", "unauthorized",
    ]

    /// Source:
    /// https://github.com/RocketChat/Rocket.Chat/blob/develop/apps/meteor/app/integrations/server/lib/triggerHandler.ts
    package func read(_ hook: HookRequest, secret: MirrorSecret) -> HookReading {
        HookReading { () throws(HookFailure) in
            let body = try hook.object()
            try secret.prove(token: try body.text("token"))
            let (raw, origin) = OriginChain.split(try body.text("text") ?? "")
            let text = MarkedText(raw, as: .rocketChat)
            guard !text.parts.isEmpty else { return .arrivals([]) }
            let id = try body.text("message_id")
            let content: MirrorArrival.Content =
                if let id, body["isEdited"]?.bool == true { .edit(text, of: id) } else { .message(text) }
            let bot = body["bot"]
            let name = try body.requiredText("user_name")
            return .arrivals([
                MirrorArrival(
                    content, id: body["isEdited"]?.bool == true ? nil : id,
                    speaker: try body.text("alias") ?? name, replyTo: try body.text("tmid"),
                    channel: try body.text("channel_name"),
                    origin: origin,
                    isBot: bot?.bool == true || bot?.object != nil)
            ])
        }
    }
}

import BridgeTypes
import ChatModel
import Digests
import HTTPProtocol
import JSONText
import WireBytes

/// Microsoft Teams: webhooks of the Workflows app, which take Adaptive Cards, and outgoing webhooks.
///
/// The webhooks of Office 365 connectors are being retired; those that are left take the same cards. A card has the
/// workflow's name over it, so the words begin with the speaker's.
///
/// Source: https://devblogs.microsoft.com/microsoft365dev/retirement-of-office-365-connectors-within-microsoft-teams/
/// and https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
package struct TeamsForm: MirrorForm {
    package init() {}

    /// A message has 28 KB at most with everything, of which some clients were seen to count 21: a unit of UTF-16 takes
    /// at most three bytes in JSON, since the writer leaves controls out. Four requests a second.
    ///
    /// Source:
    /// https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook
    package var traits: MirrorFormTraits {
        var traits = MirrorFormTraits(maxTextCharacters: 6000)
        traits.postsAtOnce = 100
        return traits
    }

    private var wording: PostWording {
        PostWording(syntax: .teamsCard, maxCharacters: traits.maxTextCharacters, showsNames: false, quotes: true)
    }

    package func requests(for posts: [MirrorPost], _ wording: MirrorWording) -> [MirrorRequest] {
        let texts = self.wording.texts(of: posts, wording, separator: "\n\n")
        return texts.enumerated().map { index, part in
            // Behind the last text of a post.
            let isLast = index + 1 == texts.count || texts[index + 1].posts != part.posts
            let images = isLast ? posts[part.posts].flatMap { $0.files.filter(\.isImage) } : []
            return MirrorRequest(json: Self.message(part.text, images.prefix(Self.maxImages)), posts: part.posts)
        }
    }

    /// More would exceed the size.
    private static let maxImages = 4

    private static func message(_ text: String, _ images: ArraySlice<MirrorFile>) -> JSONValue {
        let words = JSONValue.members(["type": .string("TextBlock"), "text": .string(text), "wrap": .bool(true)])
        let pictures = images.map {
            JSONValue.members(["type": .string("Image"), "url": .string($0.url), "altText": .string($0.name ?? "")])
        }
        let card = JSONValue.members([
            "$schema": .string("http://adaptivecards.io/schemas/adaptive-card.json"), "type": .string("AdaptiveCard"),
            "version": .string("1.4"), "body": .array([words] + pictures),
            "msteams": .members(["width": .string("Full")]),
        ])
        return .members([
            "type": .string("message"),
            "attachments": .array([
                .members([
                    "contentType": .string("application/vnd.microsoft.card.adaptive"), "contentUrl": .null,
                    "content": card,
                ])
            ]),
        ])
    }

    /// A workflow answers 202, a connector 200 and `1`, or 200 and a sentence with the status of an error.
    ///
    /// Source:
    /// https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using, "Rate
    /// limiting for connectors".
    package func outcome(of request: MirrorRequest, _ answer: MirrorAnswer) -> MirrorOutcome {
        let body = String(decoding: answer.body.prefix(Self.maxSentenceBytes), as: UTF8.self)
        if answer.status == 200, let mark = body.firstRange(of: "HTTP error ") {
            let digits = body[mark.upperBound...].prefix { $0.isASCII && $0.isNumber }
            return MirrorAnswer(status: Int(digits) ?? 500, headers: answer.headers).outcome(ids: request.noIDs)
        }
        return answer.outcome(ids: request.noIDs, words: answer.json?["error"]?["code"]?.string)
    }

    private static let maxSentenceBytes = 1000

    /// The secret is the token that Teams shows, in base64. Such a webhook is sent what mentions it, and the mention at
    /// the beginning is left out.
    ///
    /// Source:
    /// https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-outgoing-webhook
    package func read(_ hook: HookRequest, secret: MirrorSecret) -> HookReading {
        HookReading { () throws(HookFailure) in
            guard let key = Base64.decode(String(decoding: secret.bytes, as: UTF8.self)), !key.isEmpty else {
                throw .unproven("the secret is not the token in base64 that Teams shows")
            }
            guard let given = hook.credentials("HMAC") else { throw .unproven("it has no signature") }
            let code = Base64.encode(HMACSHA256.authenticate(hook.body, key: key))
            guard constantTimeEqual(Array(given.utf8), Array(code.utf8)) else {
                throw .unproven("its signature is another")
            }
            let activity = try hook.object()
            guard try activity.requiredText("type") == "message" else { return .arrivals([], answer: Self.answer) }
            let from = try activity.requiredPart("from")
            let (raw, origin) = OriginChain.split(try activity.text("text") ?? "")
            let text = MarkedText(html: Self.withoutMention(raw))
            guard !text.parts.isEmpty else { return .arrivals([], answer: Self.answer) }
            let id = try activity.text("id")
            let thread = try activity.part("conversation")?.text("id").flatMap(Self.thread)
            let arrival = MirrorArrival(
                .message(text), id: id, speaker: try from.requiredText("name"),
                replyTo: thread == id ? nil : thread,
                channel: try activity.part("channelData")?.part("channel")?.text("name"), origin: origin,
                isBot: try from.text("role") == "bot")
            return .arrivals([arrival], answer: Self.answer)
        }
    }

    /// Teams waits five seconds for it, and shows an error without.
    private static let answer = #"{"type":"message","text":""}"#

    private static func withoutMention(_ html: String) -> String {
        let text = html.drop(while: \.isWhitespace)
        guard text.hasPrefix("<at>"), let end = text.firstRange(of: "</at>")?.upperBound else { return String(text) }
        let rest = text[end...].drop(while: \.isWhitespace)
        return String((rest.hasPrefix("&nbsp;") ? rest.dropFirst("&nbsp;".count) : rest).drop(while: \.isWhitespace))
    }

    /// The id of a thread's first message, of `19:…@thread.tacv2;messageid=1481567603816`.
    private static func thread(_ conversation: String) -> String? {
        conversation.firstRange(of: ";messageid=").map { String(conversation[$0.upperBound...]) }
    }
}

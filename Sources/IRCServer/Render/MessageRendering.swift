import ChatModel
import IRCProtocol
import Rooms

/// Turns message bodies into what each side can show.
enum MessageRendering {
    /// The bodies of the PRIVMSG lines that show `text` and `attachments`, each within `budget` bytes.
    static func bodies(
        text: String, attachments: [ChatAttachment], isEncrypted: Bool, budget: Int, limits: LimitSettings
    ) -> [String] {
        lines(text: text, attachments: attachments, isEncrypted: isEncrypted, budget: budget, limits: limits)
            .map(\.text).filter { !$0.isEmpty }
    }

    /// Whether the text is a CTCP request other than ACTION; those never go upstream.
    static func isForeignCTCP(_ text: String) -> Bool { text.hasPrefix("\u{1}") && MessageText.action(text) == nil }
}

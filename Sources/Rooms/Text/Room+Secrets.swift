import BridgeTypes
import ChatModel
import HTTPProtocol
import Media
import Upstream

// Redaction of credentials that come back in the backend's messages: in the address of a file, or in a text. It
// precedes showing and storing. Passwords are not looked for: users choose them, and a redaction would confirm a guess.

extension Room {
    /// The finder for present and former credentials of this room's links and their accounts.
    func secretFinder(_ context: RoomsContext) -> SecretFinder {
        secrets.finder(version: context.upstream.secretsVersion) {
            own.values.reduce(into: link.tokens + context.upstream.tokens(of: settings.backend)) { known, own in
                known += own.link.tokens
                if let backend = own.login.backend { known += context.upstream.tokens(of: backend) }
            }
        }
    }

    /// `message` with `***` in place of each secret, and without links that contain one.
    func withoutSecrets(_ message: ChatMessage, _ context: RoomsContext) -> ChatMessage {
        let finder = secretFinder(context)
        guard finder.isIn(message.text) || !message.attachments.isEmpty || !message.annotations.isEmpty else {
            return message
        }
        var message = message
        message.changeTexts(finder.scrubbed)
        if !message.attachments.isEmpty { message.attachments = withoutSecrets(message.attachments, context) }
        return message
    }

    func withoutSecrets(_ attachments: [ChatAttachment], _ context: RoomsContext) -> [ChatAttachment] {
        let finder = secretFinder(context)
        return attachments.map { attachment in
            var attachment = attachment
            // The relay's internal scheme for stored files: in a message, it would yield a fresh link for ever.
            if attachment.url?.hasPrefix(RoomFileLinks.storedScheme) == true { attachment.url = nil }
            if let name = attachment.name { attachment.name = finder.scrubbed(name) }
            if let thumbnail = attachment.thumbnail, finder.isIn(link: thumbnail) { attachment.thumbnail = nil }
            if let url = attachment.url, finder.isIn(link: url) {
                // A link of the relay opens the file all the same.
                let isRelayed = context.settings.media != nil && context.guardedBases[settings.backend] != nil
                attachment.url = isRelayed ? finder.withoutParameters(url) : nil
            }
            return attachment
        }
    }
}

import BridgeTypes
import ChatModel
import HTTPProtocol
import Media
import Upstream

// What we show to the backend, and what may come back in what is said there: in the address of a file, or in somebody's
// words. It is taken out before anything is shown, kept or stored. Passwords are not looked for: people choose them, and
// what is taken out tells those who guess that they guessed right.

extension Room {
    /// Finds what this room's links, and the accounts behind them, show to the backend, and did before.
    func secretFinder(_ context: RoomsContext) -> SecretFinder {
        secrets.finder(version: context.upstream.secretsVersion) {
            own.values.reduce(into: link.tokens + context.upstream.tokens(of: settings.backend)) { known, own in
                known += own.link.tokens
                if let backend = own.login.backend { known += context.upstream.tokens(of: backend) }
            }
        }
    }

    /// `message` as it can be told, with `***` where it repeats a secret, and without links that hold one.
    func withoutSecrets(_ message: ChatMessage, _ context: RoomsContext) -> ChatMessage {
        let finder = secretFinder(context)
        let isTold = finder.isIn(message.text)
        guard isTold || !message.attachments.isEmpty else { return message }
        var message = message
        if isTold { message.text = finder.scrubbed(message.text) }
        message.attachments = withoutSecrets(message.attachments, context)
        return message
    }

    func withoutSecrets(_ attachments: [ChatAttachment], _ context: RoomsContext) -> [ChatAttachment] {
        let finder = secretFinder(context)
        return attachments.map { attachment in
            var attachment = attachment
            // The bridge's own way to name a file that it keeps: whoever could say it would get a fresh link for ever.
            if attachment.url?.hasPrefix(FileLinks.keptScheme) == true { attachment.url = nil }
            if let name = attachment.name { attachment.name = finder.scrubbed(name) }
            if let thumbnail = attachment.thumbnail, finder.isIn(link: thumbnail) { attachment.thumbnail = nil }
            if let url = attachment.url, finder.isIn(link: url) {
                // A link of the bridge's own opens the file all the same.
                let isRelayed = context.settings.media != nil && context.guardedBases[settings.backend] != nil
                attachment.url = isRelayed ? finder.withoutParameters(url) : nil
            }
            return attachment
        }
    }
}

import BridgeTypes
import ChatModel
import Dialects
import Media
import Upstream

// The files of a room as it tells of them.

extension Room {
    /// How the room's files are shown; nil where only their own addresses are.
    package func fileLinks(_ context: RoomsContext) -> FileLinks? {
        context.settings.media.map { media in
            FileLinks(
                links: media.links, room: settings.name,
                // The room's own options may say that files are public.
                guarded: traits.guardsFiles ? context.guardedBases[settings.backend] : nil, now: context.now.wall)
        }
    }

    /// `message` with its inline files kept beside it, where they can be: neither memory nor the store has to hold them.
    func keepingFiles(_ message: ChatMessage, _ context: RoomsContext) -> ChatMessage {
        var message = message
        message.attachments = keepingFiles(message.attachments, context)
        return message
    }

    func keepingFiles(_ attachments: [ChatAttachment], _ context: RoomsContext) -> [ChatAttachment] {
        guard context.settings.media != nil, attachments.contains(where: { $0.inline != nil }) else {
            return attachments
        }
        return attachments.prefix(FileLinks.maxShown).map { attachment in
            guard let inline = attachment.inline, let file = KeptFiles.file(inline: inline, mime: attachment.mime)
            else { return attachment }
            context.emit(.keepFile(file))
            var kept = attachment
            kept.inline = nil
            kept.url = FileLinks.keptScheme + file.name
            kept.size = Int64(file.bytes.count)
            return kept
        }
    }
}

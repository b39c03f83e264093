import BridgeTypes
import ChatModel
import Dialects
import Media
import Upstream

// Links to the files of a room.

extension Room {
    /// The form of links to the room's files; nil where only their own addresses are shown.
    package func fileLinks(_ context: RoomsContext) -> RoomFileLinks? {
        context.settings.media.map { media in
            RoomFileLinks(
                links: media.links, room: settings.name,
                // The room's own options may declare files public.
                guarded: traits.guardsFiles ? context.guardedBases[settings.backend] : nil, now: context.now.wall)
        }
    }

    /// `message` with its inline files moved to file storage, where possible: neither memory nor the store has to hold
    /// them.
    func keepingFiles(_ message: ChatMessage, _ context: RoomsContext) -> ChatMessage {
        var message = message
        message.attachments = keepingFiles(message.attachments, context)
        return message
    }

    func keepingFiles(_ attachments: [ChatAttachment], _ context: RoomsContext) -> [ChatAttachment] {
        guard context.settings.media != nil, attachments.contains(where: { $0.inline != nil }) else {
            return attachments
        }
        return attachments.prefix(RoomFileLinks.maxShown).map { attachment in
            guard let inline = attachment.inline, let file = StoredFiles.file(inline: inline, mime: attachment.mime)
            else { return attachment }
            context.emit(.keepFile(file))
            var kept = attachment
            kept.inline = nil
            kept.url = RoomFileLinks.storedScheme + file.name
            kept.size = Int64(file.bytes.count)
            return kept
        }
    }
}

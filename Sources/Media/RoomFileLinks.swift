import ChatModel
import HTTPProtocol

/// Links to the files of one room.
package struct RoomFileLinks {
    /// Limit of attachments shown of one message.
    package static let maxShown = 20
    /// Marks the address of an attachment as a locally stored file; the file's name follows.
    package static let storedScheme = "media:"

    var links: SignedFileLinks
    /// The room's name in the settings.
    var room: String
    /// The base URL of files that require the backend's token.
    var guarded: HTTPURL?
    var now: ChatTimestamp

    package init(links: SignedFileLinks, room: String, guarded: HTTPURL?, now: ChatTimestamp) {
        self.links = links
        self.room = room
        self.guarded = guarded
        self.now = now
    }

    /// A link through the bridge; nil: the file's own address can be shown.
    package func url(of attachment: ChatAttachment) -> String? {
        guard let address = attachment.url else { return nil }
        if address.hasPrefix(Self.storedScheme) {
            let name = String(address.dropFirst(Self.storedScheme.count))
            let file = LinkedFile(room: room, location: .stored(name), name: attachment.name ?? name)
            return links.url(of: file, now: now)
        }
        guard let guarded, let url = try? HTTPURL(parsing: Self.absolute(address, guarded)),
            url.scheme == guarded.scheme, url.host == guarded.host, url.port == guarded.port,
            !HTTPURL.climbs(url.pathAndQuery),
            // The link would contain the whole address.
            WebLink.shown(Self.absolute(address, guarded)) != nil
        else { return nil }
        let last = url.pathAndQuery.prefix { $0 != "?" }.split(separator: "/").last.map(String.init)
        let file = LinkedFile(room: room, location: .backend(url.pathAndQuery), name: attachment.name ?? last ?? "file")
        return links.url(of: file, now: now)
    }

    /// `text` of an IRC user with fresh links to the files of the message.
    ///
    /// - Parameter attachments: of the same message. Links to other files are not renewed, since that would extend access.
    package func renewed(_ text: String, _ attachments: [ChatAttachment]) -> String {
        let mark = links.base + SignedFileLinks.prefix + "f/"
        guard guarded != nil, text.contains(mark) else { return text }
        var renewed = text
        for attachment in attachments {
            guard let fresh = url(of: attachment), let file = links.file(ofURL: fresh) else { continue }
            for word in text.split(whereSeparator: { $0 == " " || $0 == "\n" }) where word.hasPrefix(mark) {
                guard let old = links.file(ofURL: String(word)), old.location == file.location, old.room == file.room
                else { continue }
                renewed = renewed.replacing(word, with: links.url(of: old, now: now))
            }
        }
        return renewed
    }

    /// `address`, resolved against a backend's HTTP base where it is a path.
    package static func absolute(_ address: String, _ base: HTTPURL) -> String {
        guard address.utf8.first == UInt8(ascii: "/") else { return address }
        var text = base.description
        while text.utf8.last == UInt8(ascii: "/") { text.removeLast() }
        return text + address
    }
}

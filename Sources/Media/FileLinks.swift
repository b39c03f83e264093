import ChatModel
import HTTPProtocol

// The files of a room as links that people can open.

/// How the files of one room are shown at this moment.
package struct FileLinks {
    /// Attachments of one message that are shown; nobody sends more by hand.
    package static let maxShown = 20
    /// Stands for a file that is kept here, in an attachment's address; the file's name follows.
    package static let keptScheme = "media:"

    var links: MediaLinks
    /// The room's name in the settings.
    var room: String
    /// Where the backend wants a token for its files.
    var guarded: HTTPURL?
    var now: ChatTimestamp

    package init(links: MediaLinks, room: String, guarded: HTTPURL?, now: ChatTimestamp) {
        self.links = links
        self.room = room
        self.guarded = guarded
        self.now = now
    }

    /// A link through the bridge; nil where the file's own address is the one to show.
    package func url(of attachment: ChatAttachment) -> String? {
        guard let address = attachment.url else { return nil }
        if address.hasPrefix(Self.keptScheme) {
            let kept = String(address.dropFirst(Self.keptScheme.count))
            let file = LinkedFile(room: room, place: .kept(kept), name: attachment.name ?? kept)
            return links.url(of: file, now: now)
        }
        guard let guarded, let url = try? HTTPURL(parsing: Self.absolute(address, guarded)),
            url.scheme == guarded.scheme, url.host == guarded.host, url.port == guarded.port,
            !HTTPURL.climbs(url.pathAndQuery),
            // A link of ours has the whole address in it.
            WebLink.shown(Self.absolute(address, guarded)) != nil
        else { return nil }
        let last = url.pathAndQuery.prefix { $0 != "?" }.split(separator: "/").last.map(String.init)
        let file = LinkedFile(room: room, place: .backend(url.pathAndQuery), name: attachment.name ?? last ?? "file")
        return links.url(of: file, now: now)
    }

    /// `text` of an IRC user, who may have said links to files of theirs: with links that open from now on.
    ///
    /// - Parameter attachments: of the same message. A link to anything else stays as it is: whoever said it must not get a
    ///   fresh one for it.
    package func renewed(_ text: String, _ attachments: [ChatAttachment]) -> String {
        let mark = links.base + MediaLinks.prefix + "f/"
        guard guarded != nil, text.contains(mark) else { return text }
        var renewed = text
        for attachment in attachments {
            guard let fresh = url(of: attachment), let file = links.file(ofURL: fresh) else { continue }
            for word in text.split(whereSeparator: { $0 == " " || $0 == "\n" }) where word.hasPrefix(mark) {
                guard let said = links.file(ofURL: String(word)), said.place == file.place, said.room == file.room
                else { continue }
                renewed = renewed.replacing(word, with: links.url(of: said, now: now))
            }
        }
        return renewed
    }

    /// `address` below a backend's HTTP base, where it is a path.
    package static func absolute(_ address: String, _ base: HTTPURL) -> String {
        guard address.utf8.first == UInt8(ascii: "/") else { return address }
        var text = base.description
        while text.utf8.last == UInt8(ascii: "/") { text.removeLast() }
        return text + address
    }
}

import ChatModel
import Dialects
import Digests
import HTTPProtocol
import WireBytes

// The files of a room as links that people can open, and files that came within a message or were uploaded here.

/// A file that is to be kept where links lead to it.
public struct KeptFile: Equatable, Sendable {
    /// Made of what is in it, so that the same file has one name: 22 characters of base64url, a dot, an extension.
    public var name: String
    public var bytes: [UInt8]
}

/// How the files of one room are shown at this moment.
struct FileLinks {
    /// Stands for a file that is kept here, in an attachment's address; the file's name follows.
    static let keptScheme = "media:"

    var links: MediaLinks
    /// The room's name in the settings.
    var room: String
    /// Where the backend wants a token for its files.
    var guarded: HTTPURL?
    var now: ChatTimestamp

    /// A link through the bridge; nil where the file's own address is the one to show.
    func url(of attachment: ChatAttachment) -> String? {
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
            MessageRendering.link(Self.absolute(address, guarded)) != nil
        else { return nil }
        let last = url.pathAndQuery.prefix { $0 != "?" }.split(separator: "/").last.map(String.init)
        let file = LinkedFile(room: room, place: .backend(url.pathAndQuery), name: attachment.name ?? last ?? "file")
        return links.url(of: file, now: now)
    }

    /// `text` of an IRC user, who may have said links to files of theirs: with links that open from now on.
    ///
    /// - Parameter attachments: of the same message. A link to anything else stays as it is: whoever said it must not get a
    ///   fresh one for it.
    func renewed(_ text: String, _ attachments: [ChatAttachment]) -> String {
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
    static func absolute(_ address: String, _ base: HTTPURL) -> String {
        guard address.utf8.first == UInt8(ascii: "/") else { return address }
        var text = base.description
        while text.utf8.last == UInt8(ascii: "/") { text.removeLast() }
        return text + address
    }
}

/// Names of kept files.
enum KeptFiles {
    /// Types that are known by an extension; the rest is `bin`.
    private static let extensions = [
        "image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp", "image/avif": "avif",
        "image/bmp": "bmp", "video/mp4": "mp4", "video/webm": "webm", "video/quicktime": "mov", "audio/mpeg": "mp3",
        "audio/mp4": "m4a", "audio/ogg": "ogg", "audio/wav": "wav", "audio/x-wav": "wav", "audio/aac": "aac",
        "application/pdf": "pdf", "text/plain": "txt", "application/zip": "zip",
    ]

    /// The file that `inline` is, or nil: no base64.
    static func file(inline: String, mime: String?) -> KeptFile? {
        guard let bytes = Base64.decode(inline), !bytes.isEmpty else { return nil }
        return file(bytes, ending: mime.flatMap(ending))
    }

    /// What was uploaded, by the type that its uploader gives, else by its name: curl says no type.
    static func file(uploaded file: UploadedFile) -> KeptFile {
        let suffix = file.name.lastIndex(of: ".").map { ASCII.lowercased(String(file.name[$0...].dropFirst())) }
        let known = suffix.flatMap { suffix in extensions.values.first { $0 == suffix } }
        return Self.file(file.bytes, ending: ending(of: file.mime) ?? (saysNothing.contains(file.mime) ? known : nil))
    }

    /// Types that are given for want of another. What bears a type of its own is not shown as what its name says.
    private static let saysNothing: Set = ["", "application/octet-stream", "application/x-www-form-urlencoded"]

    private static func ending(of mime: String) -> String? { extensions[ASCII.lowercased(mime)] }

    private static func file(_ bytes: [UInt8], ending: String?) -> KeptFile {
        let hash = Base64.encodeURLSafe(Array(SHA256.hash(bytes).prefix(16)))
        return KeptFile(name: "\(hash).\(ending ?? "bin")", bytes: bytes)
    }
}

extension Room {
    /// How the room's files are shown; nil where only their own addresses are.
    func fileLinks(_ context: BridgeContext) -> FileLinks? {
        context.settings.media.map { media in
            FileLinks(
                links: media.links, room: settings.name,
                // The room's own options may say that files are public.
                guarded: traits.guardsFiles ? context.guardedBases[settings.backend] : nil, now: context.now.wall)
        }
    }

    /// `message` with its inline files kept beside it, where they can be: neither memory nor the store has to hold them.
    func keepingFiles(_ message: ChatMessage, _ context: BridgeContext) -> ChatMessage {
        var message = message
        message.attachments = keepingFiles(message.attachments, context)
        return message
    }

    func keepingFiles(_ attachments: [ChatAttachment], _ context: BridgeContext) -> [ChatAttachment] {
        guard context.settings.media != nil, attachments.contains(where: { $0.inline != nil }) else {
            return attachments
        }
        return attachments.prefix(MessageRendering.maxAttachmentLines).map { attachment in
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

    /// What is said, with files that its author uploaded before: as attachments, and without their links where these stand
    /// at the end or the beginning.
    ///
    /// - Returns: the words that are left, which may be none.
    func withUploads(_ text: String, _ context: BridgeContext) -> (text: String, attachments: [ChatAttachment]) {
        guard !context.uploads.isEmpty else { return (text, []) }
        var attachments: [ChatAttachment] = []
        var words = text[...]
        while attachments.count < UploadBook.maxLinksInMessage {
            let blank: (Character) -> Bool = { $0 == " " || $0 == "\n" }
            let tail = words.lastIndex(where: blank).map { words[words.index(after: $0)...] } ?? words
            if let file = context.uploads.file(at: String(tail), backend: settings.backend) {
                attachments.insert(file, at: 0)
                words = words[..<tail.startIndex]
            } else {
                let head = words.prefix { !blank($0) }
                guard attachments.isEmpty, head.endIndex < words.endIndex,
                    let file = context.uploads.file(at: String(head), backend: settings.backend)
                else { break }
                attachments.append(file)
                words = words[words.index(after: head.endIndex)...]
            }
            while words.last.map(blank) ?? false { words.removeLast() }
            if words.isEmpty { break }
        }
        return (attachments.isEmpty ? text : String(words), attachments)
    }
}

/// A file that was uploaded, and the link that its uploader was given.
public struct UploadRecord: Equatable, Sendable {
    /// Files remembered, about 500 bytes each; the oldest go first. People say a link within minutes.
    public static let capacity = 1000
    /// Longest that is remembered, in bytes of all its texts: names and addresses are the backend's to choose.
    static let maxBytes = 4096

    public var link: String
    /// The room's, by its name in the settings.
    public var backend: String
    /// As the backend wants it in a message.
    public var attachment: ChatAttachment

    public init(link: String, backend: String, attachment: ChatAttachment) {
        self.link = link
        self.backend = backend
        self.attachment = attachment
    }
}

extension UploadRecord {
    var byteCount: Int {
        let texts = [attachment.url, attachment.name, attachment.mime, attachment.thumbnail, attachment.fileID]
        return link.utf8.count + texts.reduce(0) { $0 + ($1?.utf8.count ?? 0) }
    }
}

/// What was uploaded lately, by the links that uploaders were given: when such a link is said, it is the file that is said.
struct UploadBook {
    /// Files of one message.
    static let maxLinksInMessage = 10

    private var entries: [String: UploadRecord] = [:]
    private var order: [String] = []

    var isEmpty: Bool { entries.isEmpty }

    /// - Parameter kept: of an earlier process, oldest first.
    init(_ kept: [UploadRecord] = []) {
        for record in kept { add(record) }
    }

    mutating func add(_ record: UploadRecord) {
        if entries.updateValue(record, forKey: record.link) == nil { order.append(record.link) }
        if order.count > UploadRecord.capacity { entries[order.removeFirst()] = nil }
    }

    /// Another backend does not have the file.
    func file(at link: String, backend: String) -> ChatAttachment? {
        guard link.utf8.count <= MessageRendering.maxLinkBytes, let entry = entries[link], entry.backend == backend
        else { return nil }
        return entry.attachment
    }
}

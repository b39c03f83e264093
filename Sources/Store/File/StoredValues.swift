import ChatModel
import JSONText
import WireBytes

// The columns of records, both ways.

/// Bits of `messages.flags`.
enum StoredFlag {
    static let encrypted: Int64 = 1
    static let takenBack: Int64 = 2
}

extension SQLiteValues {
    /// The id in its original spelling.
    func add(_ id: ChatID) {
        if !add(count: 36, { id.writeUUID(to: $0) }) { add(id.rawValue) }
    }

    func add(_ id: ChatID?) {
        if let id { add(id) } else { addNull() }
    }

    /// The key that identifies one person: the id where there is one, else the name.
    func addKey(_ person: ChatPerson) {
        if let id = person.id { add("i" + id.canonical) } else { add("n" + (person.name ?? "")) }
    }

    func add(_ person: ChatPerson) {
        add(person.id)
        add(person.name)
    }

    func add(_ attachments: [ChatAttachment]) {
        if attachments.isEmpty { return addNull() }
        var writer = JSONWriter()
        writer.beginArray()
        for attachment in attachments { attachment.write(to: &writer) }
        writer.endArray()
        writer.withBytes { add($0) }
    }

    func add(_ tags: [StoredTag]) {
        if tags.isEmpty { return addNull() }
        var writer = JSONWriter()
        writer.beginArray()
        for tag in tags {
            writer.beginArray()
            writer.string(tag.name)
            if let value = tag.value { writer.string(value) }
            writer.endArray()
        }
        writer.endArray()
        writer.withBytes { add($0) }
    }
}

extension SQLiteStatement {
    func optionalID(_ column: Int32) -> ChatID? { withBytes(column) { ChatID(utf8: $0) } }

    func id(_ column: Int32) -> ChatID { optionalID(column) ?? ChatID("") }

    /// The id in `column` and the name in the one after it.
    func person(_ column: Int32) -> ChatPerson { ChatPerson(id: optionalID(column), name: optionalText(column + 1)) }

    func timestamp(_ column: Int32) -> ChatTimestamp { ChatTimestamp(milliseconds: integer(column)) }

    func optionalTimestamp(_ column: Int32) -> ChatTimestamp? {
        optionalInteger(column).map { ChatTimestamp(milliseconds: $0) }
    }

    /// Stored lists are read whatever their length: the limits on JSON from untrusted peers do not apply.
    func list(_ column: Int32) -> [JSONValue] {
        withBytes(column) { bytes -> [JSONValue] in
            let limits = JSONLimits(maxBytes: .max)
            return (try? JSONValue(parsing: bytes, limits: limits))?.array ?? []
        } ?? []
    }

    func attachments(_ column: Int32) -> [ChatAttachment] { list(column).map { ChatAttachment($0) } }

    func tags(_ column: Int32) -> [StoredTag] {
        list(column).compactMap { pair in
            guard let parts = pair.array, let name = parts.first?.string else { return nil }
            return StoredTag(name: name, value: parts.count > 1 ? parts[1].string : nil)
        }
    }
}

extension ChatAttachment {
    /// Members that are nil are left out.
    fileprivate func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("kind")
        writer.string(kind.rawValue)
        Self.write(url, "url", to: &writer)
        Self.write(name, "name", to: &writer)
        Self.write(size, "size", to: &writer)
        Self.write(mime, "mime", to: &writer)
        Self.write(thumbnail, "thumbnail", to: &writer)
        Self.write(width, "width", to: &writer)
        Self.write(height, "height", to: &writer)
        if let duration, duration.isFinite {
            writer.key("duration")
            writer.double(duration)
        }
        Self.write(inline, "inline", to: &writer)
        Self.write(fileID, "file", to: &writer)
        writer.endObject()
    }

    private static func write(_ text: String?, _ name: StaticString, to writer: inout JSONWriter) {
        guard let text else { return }
        writer.key(name)
        writer.string(text)
    }

    private static func write(_ number: Int64?, _ name: StaticString, to writer: inout JSONWriter) {
        guard let number else { return }
        writer.key(name)
        writer.integer(number)
    }

    fileprivate init(_ value: JSONValue) {
        self.init(
            kind: value["kind"]?.string.flatMap { Kind(rawValue: $0) } ?? .file, url: value["url"]?.string,
            name: value["name"]?.string, size: value["size"]?.integer, mime: value["mime"]?.string,
            thumbnail: value["thumbnail"]?.string, width: value["width"]?.integer, height: value["height"]?.integer,
            duration: value["duration"]?.double, inline: value["inline"]?.string, fileID: value["file"]?.string)
    }
}

// MARK: - Sizes

extension StoreOperation {
    /// The approximate bytes that the operation takes up in memory while it is pending.
    var waitingByteCount: Int {
        let fixed = 256
        switch self {
        case .accept(let entry):
            return fixed * 2 + entry.text.utf8.count + entry.sentAs.utf8.count + entry.source.utf8.count
                + Self.byteCount(entry.attachments) + Self.byteCount(entry.clientTags)
        case .message(_, let message):
            return fixed * 2 + message.text.utf8.count + (message.sentAs?.utf8.count ?? 0) + message.source.utf8.count
                + Self.byteCount(message.attachments) + Self.byteCount(message.clientTags)
        case .edit(_, _, let text): return fixed + text.utf8.count
        case .identity(let identity): return fixed + identity.realname.utf8.count
        case .choices(let chosen): return fixed + chosen.mutes.count * 256
        default: return fixed
        }
    }

    private static func byteCount(_ attachments: [ChatAttachment]) -> Int {
        attachments.reduce(0) {
            $0 + 256 + ($1.inline?.utf8.count ?? 0) + ($1.url?.utf8.count ?? 0) + ($1.thumbnail?.utf8.count ?? 0)
        }
    }

    private static func byteCount(_ tags: [StoredTag]) -> Int {
        tags.reduce(0) { $0 + 64 + $1.name.utf8.count + ($1.value?.utf8.count ?? 0) }
    }
}

extension [StoredMessage.Kind] {
    /// As a list in a statement.
    var numbers: String { map { String($0.rawValue) }.joined(separator: ", ") }
}

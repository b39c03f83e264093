import ChatModel
import JSONText

/// The collection that messages stand in: what its columns are called, and how a row is read.
struct DirectusItems {
    /// What a message is made of.
    enum Column: Int, CaseIterable {
        case id, text, room, user, date, updated, senderName, clientID, file, replyTo

        /// The name in the options' `fields`.
        var option: String {
            switch self {
            case .id: "id"
            case .text: "text"
            case .room: "room"
            case .user: "user"
            case .date: "date"
            case .updated: "updated"
            case .senderName: "sender_name"
            case .clientID: "client_id"
            case .file: "file"
            case .replyTo: "reply_to"
            }
        }

        /// The column, unless the options say another.
        var defaultName: String {
            switch self {
            case .user: "user_created"
            case .date: "date_created"
            case .updated: "date_updated"
            default: option
            }
        }

        /// Whether a collection can do without.
        var isOptional: Bool {
            switch self {
            case .id, .text, .date: false
            default: true
            }
        }
    }

    /// By raw value of the column; empty for one that the collection does not have.
    private var names: [String] = []
    /// The names one after the other, for comparing.
    private var nameBytes: [UInt8] = []
    /// Where each of them ends there.
    private var nameEnds: [Int] = []
    /// Bits of the columns, by raw value, whose names are so many bytes long; the last is for all longer ones, too.
    private var columnsByLength = [UInt16](repeating: 0, count: 32)
    /// The HTTP base, without a slash at its end.
    private let base: String

    /// - Parameters:
    ///   - fields: the options' table of column names; an empty name means that there is no such column.
    ///   - base: the HTTP base; empty when it is not known.
    init(fields: DialectOptions, base: String) throws(DialectOptionError) {
        var fields = fields
        var front = base[...]
        while front.utf8.last == UInt8(ascii: "/") { front.removeLast() }
        self.base = String(front)
        for column in Column.allCases {
            let name = try fields.text(column.option) ?? column.defaultName
            guard !name.isEmpty || column.isOptional else { throw fields.error(column.option, "must not be empty") }
            guard name.isEmpty || !names.contains(name) else {
                throw fields.error(column.option, "is the column of another field already")
            }
            names.append(name)
            nameBytes += name.utf8
            nameEnds.append(nameBytes.count)
            if !name.isEmpty { columnsByLength[min(name.utf8.count, 31)] |= 1 << UInt16(column.rawValue) }
        }
        try fields.finish()
    }

    /// What the column is called; nil when the collection does not have it.
    func name(_ column: Column) -> String? {
        let name = names[column.rawValue]
        return name.isEmpty ? nil : name
    }

    /// What the server is asked for: the row, and of the user and the file what is behind their ids.
    var requested: [String] {
        var fields = ["*"]
        if let user = name(.user) { fields += ["id", "first_name", "last_name"].map { "\(user).\($0)" } }
        if let file = name(.file) { fields.append("\(file).*") }
        return fields
    }

    // MARK: - Reading

    /// The columns of a row that we know, by raw value.
    typealias Row = InlineArray<10, JSONField?>

    static var emptyRow: Row { Row(repeating: nil) }

    /// Keeps a member of a row, if it is a column that we know. The last of members with the same name counts.
    @inline(__always)
    func set(_ key: JSONField, _ value: JSONField, in row: inout Row) {
        // Most names are told apart by their length; with escapes a name is longer than it says.
        var columns = key.isPlainString ? columnsByLength[min(key.byteCount, 31)] : ~0
        while columns != 0 {
            let index = columns.trailingZeroBitCount
            columns &= columns &- 1
            guard index < nameEnds.count else { return }
            let start = index == 0 ? 0 : nameEnds[index - 1]
            let end = nameEnds[index]
            let isThis =
                end > start
                && nameBytes.withUnsafeBufferPointer { key.equals(UnsafeBufferPointer(rebasing: $0[start..<end])) }
            if isThis {
                row[index] = value
                return
            }
        }
    }

    private func row(_ item: JSONField) -> Row {
        var row = Self.emptyRow
        for (key, value) in item.members { set(key, value, in: &row) }
        return row
    }

    /// The key of a row that may have no other columns.
    func key(of item: JSONField) -> ChatID? {
        item.kind == .object ? FrameText.id(row(item)[Column.id.rawValue]) : nil
    }

    /// A row as a message, and when it was changed last. Nil for what is no row, has no key or nothing to show.
    func message(_ item: JSONField, _ context: DialectContext) -> (message: ChatMessage, updated: ChatTimestamp?)? {
        guard item.kind == .object else { return nil }
        let row = row(item)
        guard let message = message(row, context) else { return nil }
        return (message, FrameTime().read(row[Column.updated.rawValue]))
    }

    func message(_ row: Row, _ context: DialectContext) -> ChatMessage? {
        func field(_ column: Column) -> JSONField? { row[column.rawValue] }
        guard let id = FrameText.id(field(.id)) else { return nil }
        let text = field(.text)
        let hasText = text.map { !$0.isNull } ?? false
        guard !hasText || text?.kind == .string else { return nil }
        let file = field(.file).flatMap(attachment)
        guard hasText || file != nil else { return nil }
        var sender = field(.user).map(Self.person) ?? ChatPerson()
        if let alias = FrameText.nonEmpty(field(.senderName)) { sender.name = alias }
        return ChatMessage(
            id: id, room: FrameText.name(field(.room)), sender: sender, text: text?.string ?? "",
            at: FrameTime().read(field(.date)), attachments: file.map { [$0] } ?? [],
            replyTo: FrameText.id(field(.replyTo)), ref: FrameText.name(field(.clientID)),
            // Accounts have ids, so a name alone is never us.
            isSelf: sender.id != nil && context.isSelf(sender))
    }

    /// The usable ones of an array of rows, or of one row.
    func messages(_ data: JSONField, _ context: DialectContext) -> [ChatMessage] {
        guard data.kind == .array else { return message(data, context).map { [$0.message] } ?? [] }
        return data.elements.compactMap { message($0, context)?.message }
    }

    /// The same, oldest first; what has one time in the order of its keys, if these are numbers.
    func history(_ data: JSONField, _ context: DialectContext) -> [ChatMessage] {
        messages(data, context).enumerated()
            .map { (place: $0, key: $1.id.flatMap { Int64($0.rawValue) } ?? 0, message: $1) }
            .sorted {
                ($0.message.at?.milliseconds ?? 0, $0.key, $0.place)
                    < ($1.message.at?.milliseconds ?? 0, $1.key, $1.place)
            }
            .map(\.message)
    }

    /// An account: an object where the server was asked for more than the id and lets us see it, else the id.
    static func person(_ user: JSONField) -> ChatPerson {
        guard user.kind == .object else { return ChatPerson(id: FrameText.id(user)) }
        var person = ChatPerson()
        var first: String?
        var last: String?
        for (key, value) in user.members {
            switch key {
            case "id": person.id = FrameText.id(value)
            case "first_name": first = FrameText.nonEmpty(value)
            case "last_name": last = FrameText.nonEmpty(value)
            default: break
            }
        }
        if let first, let last { person.name = "\(first) \(last)" } else { person.name = first ?? last }
        return person
    }

    /// A file: an object, else its id.
    func attachment(_ file: JSONField) -> ChatAttachment? {
        guard file.kind == .object else {
            return FrameText.id(file).map { ChatAttachment(kind: .file, url: address(of: $0)) }
        }
        var id: ChatID?
        var attachment = ChatAttachment(kind: .file)
        for (key, value) in file.members {
            switch key {
            case "id": id = FrameText.id(value)
            case "filename_download": attachment.name = FrameText.nonEmpty(value)
            case "type": attachment.mime = FrameText.nonEmpty(value)
            case "filesize": attachment.size = FrameNumber.count(value)
            case "width": attachment.width = FrameNumber.count(value)
            case "height": attachment.height = FrameNumber.count(value)
            case "duration": attachment.duration = value.double.flatMap { $0 > 0 ? $0 : nil }
            default: break
            }
        }
        guard let id else { return nil }
        attachment.kind = FrameAttachment.kind(mime: attachment.mime)
        attachment.url = address(of: id)
        return attachment
    }

    /// Where a file is had. The server gives it to whoever may read it, so mostly not without a token. Nil for an id that
    /// would lead to another path.
    private func address(of file: ChatID) -> String? {
        guard DirectusTarget.isSegment(file.rawValue) else { return nil }
        return "\(base)/assets/\(DirectusTarget.escaped(file.rawValue))"
    }
}

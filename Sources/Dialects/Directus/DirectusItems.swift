import ChatModel
import JSONText

/// The collection of messages: its column names, and the reading of rows.
///
/// A class, so that copies of a dialect share one reference.
final class DirectusItems: Sendable {
    /// The fields of a message.
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
    private let names: [String]
    /// The same for comparing.
    private let marks: InlineArray<10, NameMark>
    /// Bits of the columns, by raw value, for each length of a name in bytes. Names longer than marks are absent.
    private let columnsByLength: InlineArray<17, UInt16>
    /// The HTTP base, without a slash at its end.
    private let base: String
    /// The bridge's token opens the files: a link is for those alone that its account got with a row of the room.
    private let guardsFiles: Bool

    /// - Parameters:
    ///   - fields: the options' table of column names; an empty name means that there is no such column.
    ///   - base: the HTTP base; empty when it is not known.
    ///   - guardsFiles: files open with a token alone.
    init(fields: consuming DialectOptions, base: String, guardsFiles: Bool) throws(DialectOptionError) {
        self.guardsFiles = guardsFiles
        var front = base[...]
        while front.utf8.last == UInt8(ascii: "/") { front.removeLast() }
        self.base = String(front)
        var names: [String] = []
        var marks = InlineArray<10, NameMark>(repeating: NameMark())
        var columnsByLength = InlineArray<17, UInt16>(repeating: 0)
        for column in Column.allCases {
            let name = try fields.text(column.option) ?? column.defaultName
            guard !name.isEmpty || column.isOptional else { throw fields.error(column.option, "must not be empty") }
            guard name.isEmpty || !names.contains(name) else {
                throw fields.error(column.option, "is the column of another field already")
            }
            names.append(name)
            guard !name.isEmpty, name.utf8.count <= NameMark.maxBytes else { continue }
            marks[column.rawValue] = Array(name.utf8).withUnsafeBytes { NameMark($0) }
            columnsByLength[name.utf8.count] |= 1 << UInt16(column.rawValue)
        }
        try fields.finish()
        self.names = names
        self.marks = marks
        self.columnsByLength = columnsByLength
    }

    /// The column's name; nil when the collection lacks it.
    func name(_ column: Column) -> String? {
        let name = names[column.rawValue]
        return name.isEmpty ? nil : name
    }

    /// The requested fields: the row, and for user and file the fields behind their ids.
    var requested: [String] {
        var fields = ["*"]
        if let user = name(.user) { fields += ["id", "first_name", "last_name"].map { "\(user).\($0)" } }
        if let file = name(.file) { fields.append("\(file).*") }
        return fields
    }

    // MARK: - Reading

    /// The fields of a row: the last of members with the same name counts.
    struct Row {
        /// By raw value of the column. An expanded user may stand in ``account`` instead.
        fileprivate var columns = InlineArray<10, JSONField?>(repeating: nil)
        fileprivate var account: Account?

        fileprivate subscript(column: Column) -> JSONField? { columns[column.rawValue] }
    }

    /// The fields of an expanded user.
    fileprivate struct Account {
        private var id: JSONField?
        private var first: JSONField?
        private var last: JSONField?

        @inline(__always)
        mutating func set(_ key: JSONField, _ value: JSONField) {
            switch key {
            case "id": id = value
            case "first_name": first = value
            case "last_name": last = value
            default: break
            }
        }

        var person: ChatPerson {
            var person = ChatPerson(id: FrameText.id(id))
            if let first, let last, let name = FrameText.joinedPlain(first, last) {
                person.name = name
            } else {
                let (first, last) = (FrameText.nonEmpty(first), FrameText.nonEmpty(last))
                if let first, let last { person.name = "\(first) \(last)" } else { person.name = first ?? last }
            }
            return person
        }
    }

    /// The column of a member's name; nil when there is none.
    @inline(__always)
    private func column(_ key: JSONField) -> Int? {
        // With escapes a name is longer than it says.
        guard key.isPlainString, key.byteCount <= NameMark.maxBytes else { return unusualColumn(key) }
        var candidates = columnsByLength[key.byteCount]
        guard candidates != 0 else { return nil }
        let mark = key.withRawBytes { NameMark($0) }
        repeat {
            let index = candidates.trailingZeroBitCount
            if marks[index] == mark { return index }
            candidates &= candidates &- 1
        } while candidates != 0
        return nil
    }

    private func unusualColumn(_ key: JSONField) -> Int? {
        key.withUTF8 { bytes in names.firstIndex { !$0.isEmpty && $0.utf8.elementsEqual(bytes) } } ?? nil
    }

    private func row(_ item: JSONField) -> Row {
        var row = Row()
        for (key, value) in item.members {
            if let column = column(key) { row.columns[column] = value }
        }
        return row
    }

    /// The rest of a row that the reader has entered. The same as of the row as a value, but walked once only.
    func row(_ reader: inout JSONReader) throws(JSONError) -> Row {
        var row = Row()
        while let key = try reader.nextKey() {
            guard let column = column(key) else {
                _ = try reader.readValue()
                continue
            }
            if column == Column.user.rawValue {
                row.account = nil
                if try reader.enterObject() {
                    var account = Account()
                    while let (key, value) = try reader.nextMember() { account.set(key, value) }
                    row.account = account
                    continue
                }
            }
            row.columns[column] = try reader.readValue()
        }
        return row
    }

    /// The key of a row that may have no other columns.
    func key(of item: JSONField) -> ChatID? {
        item.kind == .object ? FrameText.id(row(item)[.id]) : nil
    }

    /// A row as a message, and its time of change. Nil for other values, and for rows without a key or without content.
    func message(_ item: JSONField, _ context: DialectContext) -> (message: ChatMessage, updated: ChatTimestamp?)? {
        guard item.kind == .object else { return nil }
        let row = row(item)
        guard let message = message(row, context) else { return nil }
        return (message, FrameTime().read(row[.updated]))
    }

    func message(_ row: Row, _ context: DialectContext) -> ChatMessage? {
        guard let id = FrameText.id(row[.id]) else { return nil }
        let text = row[.text].flatMap { $0.isNull ? nil : $0 }
        guard text == nil || text?.kind == .string else { return nil }
        let room = FrameText.name(row[.room])
        var file = row[.file].flatMap(attachment)
        guard text != nil || file != nil else { return nil }
        // Any author of a row can name any file in it.
        let isOfRoom = name(.room) == nil || room == context.room
        if guardsFiles, row[.file]?.kind != .object || !isOfRoom { file?.url = nil }
        var sender = row.account?.person ?? row[.user].map(Self.person) ?? ChatPerson()
        let alias = FrameText.nonEmpty(row[.senderName])
        if let alias { sender.name = alias }
        // Accounts have ids, so a name alone is never us.
        let isSelf = sender.id.map(context.isSelf) ?? false
        var message = ChatMessage(
            id: id, room: room, sender: sender, text: text?.string ?? "",
            at: FrameTime().read(row[.date]), attachments: file.map { [$0] } ?? [],
            replyTo: FrameText.id(row[.replyTo]), ref: FrameText.name(row[.clientID]), isSelf: isSelf)
        message.isUnderOwnName = alias == nil && sender.name != nil
        return message
    }

    /// The usable ones of an array of rows, or of one row.
    func messages(_ data: JSONField, _ context: DialectContext) -> [ChatMessage] {
        guard data.kind == .array else { return message(data, context).map { [$0.message] } ?? [] }
        return data.elements.compactMap { message($0, context)?.message }
    }

    /// The same, oldest first; equal times in the order of their keys, if these are numbers.
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
        var account = Account()
        for (key, value) in user.members { account.set(key, value) }
        return account.person
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

    /// The address of a file. The server usually wants a token for it. Nil for an id that would lead to another path.
    private func address(of file: ChatID) -> String? {
        CallTarget.segment(file.rawValue).map { "\(base)/assets/\($0)" }
    }
}

/// A name of at most 16 bytes in two words. Only those of one length are compared.
private struct NameMark: Equatable {
    static let maxBytes = 16

    private var front: UInt64 = 0
    private var back: UInt64 = 0

    init() {}

    /// The words overlap as far as they must: each name of one length is read alike.
    @inline(__always)
    init(_ bytes: UnsafeRawBufferPointer) {
        switch bytes.count {
        case 8...:
            front = bytes.loadUnaligned(as: UInt64.self)
            back = bytes.loadUnaligned(fromByteOffset: bytes.count &- 8, as: UInt64.self)
        case 4...:
            front = UInt64(bytes.loadUnaligned(as: UInt32.self))
            back = UInt64(bytes.loadUnaligned(fromByteOffset: bytes.count &- 4, as: UInt32.self))
        case 2...:
            front = UInt64(bytes.loadUnaligned(as: UInt16.self))
            back = UInt64(bytes.loadUnaligned(fromByteOffset: bytes.count &- 2, as: UInt16.self))
        case 1: front = UInt64(bytes[0])
        default: break
        }
    }
}

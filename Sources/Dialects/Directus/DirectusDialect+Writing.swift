import ChatModel
import JSONText

extension DirectusDialect {
    /// A command becomes one frame. A message must carry an id, by which its answer is known. Of its files the first that
    /// was uploaded goes into the row, the others as links into the text. Author and time are the server's to say.
    ///
    /// A fetch without a limit and with a `since` asks for everything since then; without either for a page.
    public func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand {
        switch command {
        case .message(let message): return create(message, context)
        case .edit(let edit):
            return frame("items", estimate: edit.text.utf8.count) { writer in
                request("update", "e:", edit.id.rawValue, to: &writer)
                writer.key("id")
                Self.write(key: edit.id.rawValue, to: &writer)
                writer.key("data")
                writer.beginObject()
                if let column = items.name(.text) {
                    writer.key(text: column)
                    writer.string(edit.text)
                }
                writer.endObject()
            }
        case .delete(let delete):
            guard let first = delete.ids.first else { return .unsupported(.missingField) }
            return frame("items") { writer in
                request("delete", "d:", first.rawValue, to: &writer)
                writer.key("ids")
                writer.beginArray()
                for id in delete.ids { Self.write(key: id.rawValue, to: &writer) }
                writer.endArray()
            }
        case .typing(let typing):
            guard self.typing == .extension else { return .unsupported(.unsupported) }
            guard let name = typing.sender.name else { return .unsupported(.missingField) }
            return frame("typing") { writer in
                writer.member("room", Self.room(typing.room, context))
                writer.member("name", name)
                writer.member("state", typing.state.rawValue)
            }
        case .auth(let credentials, let ref):
            return frame("auth") { writer in
                switch credentials {
                case .accessToken(let token):
                    writer.member("access_token", token)
                case .refreshToken(let token):
                    writer.member("refresh_token", token)
                case .password(let email, let password):
                    writer.member("email", email)
                    writer.member("password", password)
                }
                Self.write(uid: ref, to: &writer)
            }
        case .subscribe(let room, let limit):
            let room = Self.room(room, context)
            return frame("subscribe") { writer in
                writer.member("collection", collection)
                Self.write(uid: "s:" + room, to: &writer)
                query(room, limit: limit ?? Self.defaultLimit, [], to: &writer)
            }
        case .fetch(let room, let ref, let limit, let before, let since):
            return frame("items") { writer in
                request("read", "h:", ref ?? "", to: &writer)
                query(
                    Self.room(room, context), limit: limit ?? (since == nil ? Self.defaultLimit : Self.everything),
                    [("_lt", before), ("_gt", since)], to: &writer)
            }
        case .ping(let ref): return frame("ping") { Self.write(uid: ref, to: &$0) }
        case .pong(let ref): return frame("pong") { Self.write(uid: ref, to: &$0) }
        case .receipt, .join, .leave, .presence, .reaction: return .unsupported(.unsupported)
        }
    }

    /// A limit that is none.
    static var everything: Int { -1 }

    private func create(_ message: ChatMessage, _ context: DialectContext) -> EncodedCommand {
        guard let id = message.id else { return .unsupported(.missingField) }
        if let bytes = plainCreate(message, id, context) {
            return .text(bytes)
        }
        let file = items.name(.file).flatMap { column in
            message.attachments.firstIndex { $0.fileID != nil }.map { (column, $0) }
        }
        var links = message.attachments
        if let file { links.remove(at: file.1) }
        let text = FrameAttachment.textWithLinks(message.text, links)
        return frame("items", estimate: text.utf8.count) { writer in
            request("create", "m:", id.rawValue, to: &writer)
            writer.key("data")
            writer.beginObject()
            if let column = items.name(.text) {
                writer.key(text: column)
                writer.string(text)
            }
            if let column = items.name(.room) {
                writer.key(text: column)
                Self.write(key: Self.room(message.room, context), to: &writer)
            }
            if sendsSenderName, let column = items.name(.senderName), let name = message.sender.name {
                writer.key(text: column)
                writer.string(name)
            }
            if sendsClientID, let column = items.name(.clientID) {
                writer.key(text: column)
                writer.id(id)
            }
            if let column = items.name(.replyTo), let replyTo = message.replyTo {
                writer.key(text: column)
                Self.write(key: replyTo.rawValue, to: &writer)
            }
            if let file, let fileID = message.attachments[file.1].fileID {
                writer.key(text: file.0)
                writer.string(fileID)
            }
            writer.endObject()
        }
    }

    /// The constant parts of all frames that create a row with a text and a room.
    struct CreatePieces: Sendable {
        /// Up to the message's id.
        let head: [UInt8]
        /// From there to the text.
        let beforeText: [UInt8]
        /// From there to the room; nil where there is no column for it.
        let beforeRoom: [UInt8]?

        init(collection: String, items: DirectusItems) {
            func json(_ text: String) -> String {
                var writer = JSONWriter()
                writer.string(text)
                return writer.withBytes { String(decoding: $0, as: UTF8.self) }
            }
            head = Array(#"{"type":"items","action":"create","collection":\#(json(collection)),"uid":"m:"#.utf8)
            beforeText = Array(#"","data":{\#(json(items.name(.text) ?? "")):""#.utf8)
            beforeRoom = items.name(.room).map { Array(#"",\#(json($0)):"#.utf8) }
        }
    }

    /// The frame for the message of every day: a text without anything to escape, and nothing else. Nil for others.
    private func plainCreate(_ message: ChatMessage, _ id: ChatID, _ context: DialectContext) -> [UInt8]? {
        guard !sendsSenderName, !sendsClientID, message.attachments.isEmpty, message.replyTo == nil else { return nil }
        let room = Self.room(message.room, context)
        let pieces = createPieces
        return PlainFrame.make(
            byteCount: pieces.head.count + id.utf8Count + pieces.beforeText.count + message.text.utf8.count
                + (pieces.beforeRoom?.count ?? 0) + room.utf8.count + #"""}}"#.utf8.count
        ) { frame in
            frame.put(json: pieces.head)
            frame.put(id)
            frame.put(json: pieces.beforeText)
            frame.put(text: message.text)
            guard let beforeRoom = pieces.beforeRoom else { return frame.put(json: #""}}"#) }
            frame.put(json: beforeRoom)
            if Self.isWholeNumber(room) {
                frame.put(text: room)
                frame.put(json: "}}")
            } else {
                frame.put(json: "\"")
                frame.put(text: room)
                frame.put(json: #""}}"#)
            }
        }
    }

    // MARK: - Parts

    private static func room(_ room: String?, _ context: DialectContext) -> String {
        if let room, !room.isEmpty { return room }
        return context.room
    }

    private func frame(_ type: StaticString, estimate: Int = 0, _ body: (inout JSONWriter) -> Void) -> EncodedCommand {
        var writer = JSONWriter(capacity: estimate + 256)
        writer.beginObject()
        writer.member("type", word: type)
        body(&writer)
        writer.endObject()
        return .text(writer.finish())
    }

    /// The beginning of every frame of type `items`.
    private func request(_ action: StaticString, _ mark: String, _ ref: String, to writer: inout JSONWriter) {
        writer.member("action", word: action)
        writer.member("collection", collection)
        writer.key("uid")
        writer.beginString()
        writer.appendToString(mark)
        writer.appendToString(ref)
        writer.endString()
    }

    private static func write(uid: String?, to writer: inout JSONWriter) {
        guard let uid else { return }
        writer.member("uid", uid)
    }

    /// A row's key, or a room: the database takes digits for a number.
    private static func write(key: String, to writer: inout JSONWriter) {
        if let number = wholeNumber(key) { writer.integer(number) } else { writer.string(key) }
    }

    /// Longest run of digits that is taken for a number: any double holds it exactly, and so does any peer.
    private static let maxNumberDigits = 15

    private static func wholeNumber(_ text: String) -> Int64? { isWholeNumber(text) ? Int64(text) : nil }

    private static func isWholeNumber(_ text: String) -> Bool {
        let digits = text.utf8
        guard let first = digits.first, first &- UInt8(ascii: "0") < 10, digits.count <= maxNumberDigits,
            first != UInt8(ascii: "0") || digits.count == 1
        else { return false }
        return digits.allSatisfy { $0 &- UInt8(ascii: "0") < 10 }
    }

    // MARK: - Queries

    private func query(
        _ room: String, limit: Int, _ times: [(name: String, time: ChatTimestamp?)], to writer: inout JSONWriter
    ) {
        writer.key("query")
        writer.beginObject()
        writer.key("fields")
        writer.beginArray()
        for field in items.requested { writer.string(field) }
        writer.endArray()
        writeFilter(room, times, after: { $0.key("filter") }, to: &writer)
        writer.key("sort")
        writer.beginArray()
        for key in sortKeys { writer.string(key) }
        writer.endArray()
        writer.member("limit", number: Int64(limit))
        writer.endObject()
    }

    /// Newest first, so that a limit selects the newest.
    var sortKeys: [String] { [items.name(.date), items.name(.id)].compactMap { $0.map { "-" + $0 } } }

    /// Selects the room's rows that pass the configured filter and lie within the times. Writes nothing, not even
    /// `after`, when that is all rows.
    func writeFilter(
        _ room: String, _ times: [(name: String, time: ChatTimestamp?)],
        after: (inout JSONWriter) -> Void = { _ in }, to writer: inout JSONWriter
    ) {
        let date = items.name(.date)
        let times = date == nil ? [] : times.filter { $0.time != nil }
        guard items.name(.room) != nil || filter != nil || !times.isEmpty else { return }
        after(&writer)
        writer.beginObject()
        writer.key("_and")
        writer.beginArray()
        if let column = items.name(.room) {
            Self.condition(column, "_eq", to: &writer) { Self.write(key: room, to: &$0) }
        }
        if let filter { writer.value(filter) }
        for (name, time) in times {
            guard let date, let time else { continue }
            Self.condition(date, name, to: &writer) { $0.string(ISOTime.text(time, fraction: true)) }
        }
        writer.endArray()
        writer.endObject()
    }

    private static func condition(
        _ column: String, _ comparison: String, to writer: inout JSONWriter, _ value: (inout JSONWriter) -> Void
    ) {
        writer.beginObject()
        writer.key(text: column)
        writer.beginObject()
        writer.key(text: comparison)
        value(&writer)
        writer.endObject()
        writer.endObject()
    }
}

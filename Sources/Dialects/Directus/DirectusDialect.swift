import ChatModel
import JSONText

// The realtime endpoint of Directus, a database with an API: messages are rows of a collection.
//
// Frames are distinguished by `type`. Requests carry a `uid`, which the answer repeats; its first letter is the kind of
// request:
//
//     s:ROOM   subscription to a room: history first, then every change
//     h:REF    older messages
//     m:ID     create, e:ID  update, d:ID  delete
//
// A subscription without `event` answers with the newest rows and then sends what changes, so nothing is lost between
// history and live. Deletes ignore the subscription's filter and name rows of any room. The server does not answer the
// protocol's ping, so both sides ping in JSON. Subscriptions outlive an expired token, events do not.

/// Directus realtime.
///
/// Source: observed, directus fixtures/in.jsonl, out.jsonl.
public struct DirectusDialect: Dialect {
    /// How many messages are asked for where the command does not say, as many as a page of the vendor's guide.
    static let defaultLimit = 50
    /// How long a start of typing holds without another, in milliseconds. The wire does not say; the same as elsewhere.
    static let typingMilliseconds: Int64 = 3000

    /// Values of `typing`.
    enum TypingFrames: String, CaseIterable {
        case off
        /// A server extension passes on frames of type `typing`.
        case `extension`
    }

    public let traits: DialectTraits
    let collection: String
    let items: DirectusItems
    /// A filter on rows besides the room.
    let filter: JSONValue?
    let sendsSenderName: Bool
    let sendsClientID: Bool
    let typing: TypingFrames
    let createPieces: CreatePieces

    /// Options: `base`, the HTTP base; `collection`; `fields`, a table of column names; `filter`, a Directus filter;
    /// `send_sender_name`, `send_client_id`; `public_files`; `typing`, `off` or `extension`.
    public init(_ options: consuming DialectOptions = DialectOptions()) throws(DialectOptionError) {
        collection = try options.text("collection") ?? "messages"
        guard CallTarget.segment(collection) != nil else {
            throw options.error("collection", "must be the name of a collection")
        }
        let guardsFiles = try !(options.flag("public_files") ?? false)
        items = try DirectusItems(
            fields: options.table("fields"), base: options.text("base") ?? "", guardsFiles: guardsFiles)
        filter = options.value("filter")
        guard filter == nil || filter?.object != nil else { throw options.error("filter", "must be a table") }
        sendsSenderName = try options.flag("send_sender_name") ?? false
        guard !sendsSenderName || items.name(.senderName) != nil else {
            throw options.error("send_sender_name", "needs a column: fields.sender_name is empty")
        }
        sendsClientID = try options.flag("send_client_id") ?? false
        guard !sendsClientID || items.name(.clientID) != nil else {
            throw options.error("send_client_id", "needs a column: fields.client_id is empty")
        }
        typing = try options.choice("typing", of: TypingFrames.self) ?? .off
        try options.finish()
        createPieces = CreatePieces(collection: collection, items: items)
        var traits = DialectTraits(
            name: "directus", identity: .single, messageIDOrigin: .server, echoesOwnMessages: true,
            confirmation: .receipt, typingOut: typing == .off ? .none : .startStop,
            backoff: BackoffTraits(first: .seconds(1), factor: 2, cap: .seconds(30), jitter: 0.25))
        traits.authenticatesSenders = true
        traits.opening = [.authenticates, .subscribes]
        traits.waitsForReady = true
        traits.history = .pushed
        traits.older = .socket
        traits.liveness = .jsonPing
        traits.deletesOfOtherRooms = true
        traits.sendsSenderName = sendsSenderName
        traits.namesSenders = false
        traits.answersDeletes = true
        traits.returnsClientIDs = sendsClientID
        traits.guardsFiles = guardsFiles
        self.traits = traits
    }

    public var calls: (any DialectCalls)? { DirectusCalls(dialect: self) }

    // MARK: - Reading

    private struct Fields {
        var type: JSONField?
        var event: JSONField?
        var data: JSONField?
        var uid: JSONField?
        var status: JSONField?
        var error: JSONField?
        var refreshToken: JSONField?
        var room: JSONField?
        var name: JSONField?
        var user: JSONField?
        var state: JSONField?

        @inline(__always)
        mutating func set(_ key: JSONField, _ value: JSONField) {
            switch key {
            case "type": type = value
            case "event": event = value
            case "data": data = value
            case "uid": uid = value
            case "status": status = value
            case "error": error = value
            case "refresh_token": refreshToken = value
            case "room": room = value
            case "name": name = value
            case "user": user = value
            case "state": state = value
            default: break
            }
        }

        var ref: String? { FrameText.name(uid) }

        /// Whether the rows that may follow are new messages.
        var announcesRows: Bool {
            guard status == nil, let type, let event else { return false }
            return type.equals("subscription") && event.equals("create")
        }

        /// The data unless null.
        var presentData: JSONField? { data.flatMap { $0.isNull ? nil : $0 } }
    }

    public func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame {
        decode(frame, context, readsRowsAtOnce: true)
    }

    /// - Parameter readsRowsAtOnce: rows of new messages are read in one walk when the frame has announced them before,
    ///   as servers do. Without, a second walk gives the same result.
    private func decode(
        _ frame: UnsafeRawBufferPointer, _ context: DialectContext, readsRowsAtOnce: Bool
    ) -> DecodedFrame {
        var fields = Fields()
        do throws(JSONError) {
            var reader = try JSONReader(frame)
            if try reader.enterObject() {
                while let key = try reader.nextKey() {
                    if key.equals("data"), readsRowsAtOnce, fields.announcesRows, try reader.enterArray() {
                        let live = try rows(&reader, context)
                        while let key = try reader.nextKey() {
                            // A later member may change the announced type.
                            guard key.equals("uid") else { return decode(frame, context, readsRowsAtOnce: false) }
                            _ = try reader.readValue()
                        }
                        try reader.finish()
                        return live
                    }
                    fields.set(key, try reader.readValue())
                }
                try reader.finish()
            } else {
                _ = try reader.readValue()
                try reader.finish()
                return .dropped(.notObject, typeKey: nil)
            }
        } catch {
            return .dropped(.malformed, typeKey: nil)
        }
        guard let type = fields.type, !type.isNull else { return .dropped(.missingField, typeKey: nil) }
        if fields.status?.equals("error") ?? false { return .event(complaint(type, fields)) }
        switch type {
        case "subscription": return subscription(type, fields, context)
        case "items": return .events(answer(fields, context))
        case "auth":
            let auth = ChatAuth(state: .ok, refresh: FrameText.nonEmpty(fields.refreshToken), ref: fields.ref)
            return .event(.auth(auth))
        case "ping": return .event(.ping(ref: nil))
        case "pong": return .event(.pong(ref: fields.ref))
        case "typing" where typing == .extension: return typed(type, fields, context)
        default: return .dropped(.unknownType, typeKey: FrameText.typeKey(type))
        }
    }

    /// The rest of an array of new rows.
    private func rows(_ reader: inout JSONReader, _ context: DialectContext) throws(JSONError) -> DecodedFrame {
        // Mostly there is one row, for which an array would cost more than the row.
        var first: ChatMessage?
        var others: [ChatEvent] = []
        while try reader.hasNextElement() {
            guard try reader.enterObject() else {
                _ = try reader.readValue()
                continue
            }
            guard let message = items.message(try items.row(&reader), context) else { continue }
            if first == nil {
                first = message
            } else {
                others.append(.message(message))
            }
        }
        guard let first else { return .events([]) }
        return others.isEmpty ? .event(.message(first)) : .events([.message(first)] + others)
    }

    private func complaint(_ type: JSONField, _ fields: Fields) -> ChatEvent {
        var code: String?
        var text: String?
        if let error = fields.error {
            for (key, value) in error.members {
                switch key {
                case "code": code = FrameText.name(value)
                case "message": text = value.string
                default: break
                }
            }
        }
        guard type.equals("auth") else {
            let wait = code == "REQUESTS_EXCEEDED" ? DirectusWait.milliseconds(in: text ?? "") : nil
            return .error(
                ChatError(
                    code: code ?? "UNKNOWN", text: text ?? "", isFatal: false, ref: fields.ref,
                    retryAfterMilliseconds: wait))
        }
        let state: ChatAuth.State =
            switch code {
            case "TOKEN_EXPIRED": .expired
            case "AUTH_TIMEOUT": .timeout
            default: .failed
            }
        return .auth(ChatAuth(state: state, text: text.flatMap { $0.isEmpty ? nil : $0 }, ref: fields.ref))
    }

    private func subscription(_ type: JSONField, _ fields: Fields, _ context: DialectContext) -> DecodedFrame {
        func drop(_ reason: DropReason) -> DecodedFrame { .dropped(reason, typeKey: FrameText.typeKey(type)) }
        guard let event = fields.event else { return drop(.unknownType) }
        switch event {
        case "create":
            guard let data = fields.presentData else { return drop(.missingField) }
            return .events(items.messages(data, context).map { .message($0) })
        case "update":
            guard let data = fields.presentData else { return drop(.missingField) }
            guard data.kind == .array else { return .events(edit(data, context).map { [$0] } ?? []) }
            return .events(data.elements.compactMap { edit($0, context) })
        case "delete":
            let ids =
                fields.data.map { data in
                    data.kind == .array ? data.elements.compactMap(FrameText.id) : FrameText.id(data).map { [$0] } ?? []
                } ?? []
            guard !ids.isEmpty else { return drop(.missingField) }
            return .event(.delete(ChatDelete(ids: ids)))
        case "init":
            guard let data = fields.presentData else { return .event(.ready(ChatReady(ref: fields.ref))) }
            return .event(.history(ChatHistory(messages: items.history(data, context), ref: fields.ref)))
        case "unsubscribe": return .events([])
        default: return drop(.unknownType)
        }
    }

    /// An update repeats the whole row without marking the changes.
    private func edit(_ item: JSONField, _ context: DialectContext) -> ChatEvent? {
        guard let (message, updated) = items.message(item, context), let id = message.id else { return nil }
        return .edit(
            ChatEdit(
                id: id, text: message.text, room: message.room, sender: message.sender, at: updated,
                attachments: message.attachments, isSelf: message.isSelf))
    }

    /// An answer to a request; other answers need no event.
    private func answer(_ fields: Fields, _ context: DialectContext) -> [ChatEvent] {
        guard let uid = fields.ref else { return [] }
        if uid.utf8.starts(with: "m:".utf8) {
            let ids: [ChatID]? = fields.data.map { data in
                data.kind == .array ? data.elements.compactMap(items.key) : items.key(of: data).map { [$0] } ?? []
            }
            return [.receipt(ChatReceipt(state: .sent, ids: ids ?? [], ref: Self.reference(uid)))]
        }
        if uid.utf8.starts(with: "d:".utf8), let ref = Self.reference(uid) {
            return [.receipt(ChatReceipt(state: .sent, ids: [ChatID(ref)], ref: uid))]
        }
        if uid.utf8.starts(with: "h:".utf8) {
            let messages = fields.presentData.map { items.history($0, context) } ?? []
            return [.history(ChatHistory(messages: messages, ref: Self.reference(uid)))]
        }
        return []
    }

    /// The rest of a `uid` behind its letter and colon; nil when it is empty.
    private static func reference(_ uid: String) -> String? {
        let rest = uid.utf8.dropFirst(2)
        return rest.isEmpty ? nil : String(rest)
    }

    /// A typing frame of the extension, which names the account, too.
    private func typed(_ type: JSONField, _ fields: Fields, _ context: DialectContext) -> DecodedFrame {
        let sender = ChatPerson(id: FrameText.id(fields.user), name: FrameText.nonEmpty(fields.name))
        guard let state = fields.state?.string.flatMap(ChatTyping.State.init(rawValue:)),
            sender.id != nil || sender.name != nil
        else { return .dropped(.missingField, typeKey: FrameText.typeKey(type)) }
        return .events([
            .typing(
                ChatTyping(
                    state: state, sender: sender, room: FrameText.name(fields.room),
                    ttlMilliseconds: state == .start ? Self.typingMilliseconds : nil,
                    isSelf: context.isSelf(sender)))
        ])
    }
}

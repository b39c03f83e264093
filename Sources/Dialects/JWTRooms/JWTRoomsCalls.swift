import ChatModel
import JSONText

/// The HTTP side of ``JWTRoomsDialect``: login, rooms, history, files and read marks.
///
/// Source: observed, the published backend's routes and models.
struct JWTRoomsCalls: DialectCalls {
    let dialect: JWTRoomsDialect

    // MARK: - Requests

    /// Nil for a room that cannot stand in an address, and for a file beyond ``JWTRoomsDialect/maxUploadBytes``, which
    /// the backend would refuse only after the whole upload.
    func request(for call: BackendCall, context: DialectContext) -> BackendRequest? {
        switch call {
        case .logIn(let user, let password):
            return Self.secret("/api/auth/login") { writer in
                writer.member("username", user)
                writer.member("password", password)
            }
        case .refresh(let token):
            return Self.secret("/api/auth/refresh") { writer in
                writer.member("refresh_token", token)
            }
        case .whoAmI: return BackendRequest(.get, "/api/auth/me")
        case .rooms: return BackendRequest(.get, "/api/rooms")
        case .history(let query):
            guard let room = segment(query.room, context) else { return nil }
            guard let limit = query.limit else { return BackendRequest(.get, "/api/messages/\(room)") }
            return BackendRequest(.get, "/api/messages/\(room)/recent?limit=\(max(limit, 1))")
        case .markRead(let room):
            guard let room = segment(room, context) else { return nil }
            return BackendRequest(.post, "/api/rooms/\(room)/mark-read")
        case .upload(let file):
            guard file.bytes.count <= JWTRoomsDialect.maxUploadBytes else { return nil }
            return BackendRequest(
                .post, "/api/upload-file", body: .multipart(fields: [], fileField: "file", file: file))
        }
    }

    private static func secret(_ target: String, _ members: (inout JSONWriter) -> Void) -> BackendRequest {
        var writer = JSONWriter()
        writer.beginObject()
        members(&writer)
        writer.endObject()
        return BackendRequest(.post, target, body: .json(writer.finish()), isAuthorized: false)
    }

    /// The room as an address wants it: its id, where we are in it and know that.
    private func segment(_ room: String, _ context: DialectContext) -> String? {
        CallTarget.segment(room == context.room ? dialect.roomNumber(context) ?? room : room)
    }

    // MARK: - Answers

    func reply(to call: BackendCall, answer: BackendAnswer, context: DialectContext) -> BackendReply {
        switch call {
        case .history(let query): return history(query, answer, context)
        case .markRead where answer.body.isEmpty: return .done
        case .logIn, .refresh, .whoAmI, .rooms, .markRead, .upload: break
        }
        guard let value = try? JSONValue(parsing: answer.body) else { return .unusable(.malformed) }
        if case .rooms = call { return Self.rooms(value) }
        guard value.object != nil else { return .unusable(.notObject) }
        switch call {
        case .logIn, .refresh:
            guard let access = CallAnswer.token(value["access_token"]) else {
                return .unusable(Self.reason(value["access_token"]))
            }
            return .tokens(BackendTokens(access: access, refresh: CallAnswer.nonEmpty(value["refresh_token"])))
        case .whoAmI:
            guard let name = CallAnswer.nonEmpty(value["username"]) else {
                return .unusable(Self.reason(value["username"]))
            }
            return .person(ChatPerson(id: CallAnswer.id(value["id"]).map { ChatID($0) }, name: name))
        case .upload:
            guard let url = CallAnswer.nonEmpty(value["file_url"]) else {
                return .unusable(Self.reason(value["file_url"]))
            }
            let mime = CallAnswer.nonEmpty(value["mime_type"])
            // As in the answer, with the server's relative address and name: frames must carry these.
            return .attachment(
                ChatAttachment(
                    kind: FrameAttachment.kind(mime: mime), url: url, name: CallAnswer.nonEmpty(value["filename"]),
                    size: value["file_size"]?.integer.flatMap { $0 > 0 ? $0 : nil }, mime: mime))
        case .markRead, .rooms, .history: return .done
        }
    }

    /// Why the one member that counts is of no use.
    private static func reason(_ value: JSONValue?) -> DropReason {
        value == nil || value?.isNull == true ? .missingField : .wrongType
    }

    private static func rooms(_ value: JSONValue) -> BackendReply {
        guard let rooms = value.array else { return .unusable(.wrongType) }
        return .rooms(
            rooms.compactMap { room in
                guard let id = CallAnswer.id(room["id"]) else { return nil }
                return BackendRoom(
                    id: id, name: CallAnswer.nonEmpty(room["name"]) ?? id,
                    unread: room["unread_count"]?.integer.flatMap { $0 >= 0 ? $0 : nil })
            })
    }

    /// `recent` is not simply the newest: the backend sorts by whole seconds, so that of a burst within one second the
    /// newest are missing. The result is sorted by id.
    private func history(_ query: HistoryQuery, _ answer: BackendAnswer, _ context: DialectContext) -> BackendReply {
        var messages: [ChatMessage] = []
        let outcome = CallAnswer.forEachElement(of: answer) { element in
            guard element.kind == .object,
                case .message(let message) = dialect.message(JWTRoomsDialect.Fields(element), context)
            else { return }
            messages.append(message)
        }
        switch outcome {
        case .failure(let failure): return .unusable(failure.reason)
        case .success(let count):
            guard let limit = query.limit else { return .messages(messages, isComplete: true) }
            return .messages(Self.sortedByID(messages), isComplete: count < max(limit, 1))
        }
    }

    /// By number, where every message has one; else as they are.
    private static func sortedByID(_ messages: [ChatMessage]) -> [ChatMessage] {
        guard messages.allSatisfy({ $0.id.map { JWTRoomsDialect.isNumber($0.rawValue) } ?? false }) else {
            return messages
        }
        // Numbers without zeros in front: the longer one is the greater.
        return messages.sorted { a, b in
            guard let a = a.id?.rawValue.utf8, let b = b.id?.rawValue.utf8 else { return false }
            return a.count == b.count ? a.lexicographicallyPrecedes(b) : a.count < b.count
        }
    }

    /// FastAPI's `detail`: a text, or a list of faults in a request. Of the latter only `msg`, since `input` repeats
    /// request data.
    func complaint(_ answer: BackendAnswer) -> String? {
        switch (try? JSONValue(parsing: answer.body))?["detail"] {
        case .string(let text): CallAnswer.complaint(text)
        case .array(let faults):
            CallAnswer.complaint(
                faults.prefix(Self.maxFaults).compactMap { CallAnswer.nonEmpty($0["msg"]) }.joined(separator: "; "))
        default: nil
        }
    }

    /// Faults of one request that are reported.
    private static let maxFaults = 3
}

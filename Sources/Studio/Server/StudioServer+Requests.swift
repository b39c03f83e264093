import ChatModel
import HTTPProtocol
import JSONText
import WireBytes

// What the studio answers over HTTP: its page, and the calls of `jwt-rooms`.
//
// Source: observed, the published backend's routes; docs/backends/jwt-rooms.md.

extension StudioServer {
    /// A request with its whole body.
    struct Request {
        let head: HTTPRequestHead
        /// The path without its query, split at slashes.
        let path: [String]
        let query: String
        let body: [UInt8]
        let at: ChatTimestamp

        init(_ head: HTTPRequestHead, body: [UInt8], at: ChatTimestamp) {
            self.head = head
            self.body = body
            self.at = at
            let parts = head.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
            path = (parts.first ?? "").split(separator: "/").map { HTTPURL.percentDecoded(String($0)) ?? String($0) }
            query = parts.count > 1 ? String(parts[1]) : ""
        }

        var json: JSONValue? { try? JSONValue(parsing: body) }
    }

    mutating func answer(_ request: Request, _ actions: inout [StudioAction]) -> StudioAnswer {
        guard request.path.first == "api" else { return page(request) }
        let method = request.head.method == "HEAD" ? "GET" : request.head.method
        let route = request.path.dropFirst().map(\.self)
        switch (method, route.count, route.first, route.last) {
        case ("POST", 2, "auth", "signup"): return signUp(request)
        case ("POST", 2, "auth", "login"): return logIn(request)
        case ("POST", 2, "auth", "refresh"): return refresh(request)
        case ("GET", 2, "files", let name?): return file(name)
        case ("GET", 2, "reactions", "available"):
            return .json(.array(JWTRoomsWire.reactionChoices.map { .string($0) }))
        default: break
        }
        guard let token = Self.bearer(request.head) else { return .detail("Not authenticated", 403, "Forbidden") }
        guard let user = accounts.user(of: token, at: request.at, secrets: secrets) else {
            return .detail("Could not validate credentials", 401, "Unauthorized")
        }
        return answer(request, method, route, user: user, &actions)
    }

    private mutating func answer(
        _ request: Request, _ method: String, _ route: [String], user: String, _ actions: inout [StudioAction]
    ) -> StudioAnswer {
        switch (method, route.count, route.first, route.last) {
        case ("POST", 2, "auth", "logout"):
            accounts.logOut(user)
            return .json(.object([.init("message", .string("Successfully logged out"))]))
        case ("GET", 2, "auth", "me"): return .json(identity(user))
        case ("GET", 1, "rooms", _):
            return .json(.array(rooms.names.reversed().compactMap { rooms.rooms[$0] }.map { listing($0, user) }))
        case ("POST", 1, "rooms", _):
            guard let name = request.json?["name"]?.string, StudioRoomName.isValid(name) else {
                return Self.missing("name")
            }
            guard let room = rooms.room(name, at: request.at) else {
                return .detail("Too many rooms", 400, "Bad Request")
            }
            return .json(summary(room))
        case ("GET", 2, "rooms", let id?): return room(id).map { .json(summary($0)) } ?? noRoom(id)
        case ("POST", 3, "rooms", "mark-read"):
            guard let room = room(route[1]) else { return noRoom(route[1]) }
            let count = markRead(room.name, by: user, at: request.at, &actions)
            return .json(
                .object([
                    .init("message", .string("Marked \(count) messages as read")),
                    .init("read_count", .integer(Int64(count))),
                ]))
        case ("GET", 2, "messages", let id?):
            return room(id).map { .json(messages($0, user, limit: nil)) } ?? noRoom(id)
        case ("GET", 3, "messages", "recent"):
            let limit = Self.field("limit", in: request.query).flatMap { ASCII.decimal($0.utf8) } ?? 50
            return room(route[1]).map { .json(messages($0, user, limit: limit)) } ?? noRoom(route[1])
        case ("POST", 1, "upload-file", _): return upload(request, &actions)
        case ("POST", 2, "reactions", "add"):
            guard let value = request.json, let number = value["message_id"]?.integer,
                let emoji = value["reaction_type"]?.string
            else { return Self.missing("message_id") }
            return react(number, emoji, isOn: true, by: user)
        case ("DELETE", 3, "reactions", let number?):
            return react(Int64(number) ?? 0, nil, isOn: false, by: user)
        default: return .detail("Not Found", 404, "Not Found")
        }
    }

    // MARK: - The page

    private func page(_ request: Request) -> StudioAnswer {
        guard request.head.method == "GET" || request.head.method == "HEAD" else {
            var answer = StudioAnswer.text(
                "The studio answers GET and WebSocket requests here.\n", status: 405, reason: "Method Not Allowed")
            answer.headers.append(("Allow", "GET, HEAD"))
            return answer
        }
        let host = request.head.headers.first("Host") ?? "this address"
        if request.path == ["studio.json"] {
            return StudioAnswer(
                status: 200, reason: "OK",
                headers: [("Content-Type", "application/json"), ("Cache-Control", "no-store")],
                body: StudioPage.setup(rooms: settings.rooms, relay: settings.relay))
        }
        if request.path == ["health"] { return .json(.object([.init("status", .string("healthy"))])) }
        let isForBrowsers = request.head.headers.all("Accept").contains { $0.contains("text/html") }
        guard isForBrowsers, HTTPHeaders.isValidValue(host) else {
            return .text(StudioPage.text(host: host, rooms: settings.visitedRooms))
        }
        return StudioAnswer(
            status: 200, reason: "OK",
            headers: [
                ("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store"),
                ("Content-Security-Policy", StudioPage.policy(authority: host, relay: settings.relay)),
                ("Cross-Origin-Opener-Policy", "same-origin"),
            ],
            body: StudioPage.html)
    }

    // MARK: - Accounts

    private static func bearer(_ head: HTTPRequestHead) -> String? {
        guard let value = head.headers.first("Authorization"), ASCII.equalsIgnoringCase(value.prefix(7), "bearer ")
        else { return nil }
        return String(value.dropFirst(7))
    }

    private static func missing(_ field: String) -> StudioAnswer {
        .json(
            .object([
                .init(
                    "detail",
                    .array([
                        .object([
                            .init("type", .string("missing")),
                            .init("loc", .array([.string("body"), .string(field)])),
                            .init("msg", .string("Field required")),
                        ])
                    ]))
            ]), status: 422, reason: "Unprocessable Entity")
    }

    private mutating func signUp(_ request: Request) -> StudioAnswer {
        guard let name = request.json?["username"]?.string, request.json?["password"]?.string != nil else {
            return Self.missing("username")
        }
        guard accounts.signUp(name, at: request.at) else {
            return .detail("Username already registered", 400, "Bad Request")
        }
        return .json(.object([.init("message", .string("User registered successfully"))]))
    }

    private mutating func logIn(_ request: Request) -> StudioAnswer {
        guard let name = request.json?["username"]?.string, let password = request.json?["password"]?.string else {
            return Self.missing("username")
        }
        guard let pair = accounts.logIn(name, password: password, at: request.at, secrets: &secrets) else {
            return .detail("Incorrect username or password", 401, "Unauthorized")
        }
        return .json(pair)
    }

    private mutating func refresh(_ request: Request) -> StudioAnswer {
        guard let token = request.json?["refresh_token"]?.string else { return Self.missing("refresh_token") }
        guard let pair = accounts.refresh(token, at: request.at, secrets: &secrets) else {
            return .detail("Invalid or expired refresh token", 401, "Unauthorized")
        }
        return .json(pair)
    }

    private func identity(_ user: String) -> JSONValue {
        let account = accounts.accounts[user]
        return .object([
            .init("username", .string(user)), .init("id", .integer(account?.number ?? 0)),
            .init("created_at", account.map { .string(JWTRoomsWire.seconds($0.createdAt)) } ?? .null),
        ])
    }

    // MARK: - Rooms and messages

    private func room(_ id: String) -> StudioRoom? {
        Int64(id).flatMap { rooms.name(number: $0) }.flatMap { rooms.rooms[$0] }
    }

    private func noRoom(_ id: String) -> StudioAnswer {
        Int64(id) == nil
            ? .detail("int_parsing", 422, "Unprocessable Entity") : .detail("Room not found", 404, "Not Found")
    }

    private func summary(_ room: StudioRoom) -> JSONValue { .object(Self.members(room)) }

    private static func members(_ room: StudioRoom) -> [JSONValue.Member] {
        [
            .init("name", .string(room.name)), .init("id", .integer(room.number)),
            .init("created_at", .string(JWTRoomsWire.seconds(room.createdAt))),
        ]
    }

    private func listing(_ room: StudioRoom, _ user: String) -> JSONValue {
        let last = room.messages.last.map { message in
            JSONValue.object([
                .init("message_id", .integer(message.number)), .init("sender", .string(message.senderName)),
                .init("message", .string(message.text)), .init("message_type", .string(JWTRoomsWire.type(message))),
                .init("timestamp", .string(JWTRoomsWire.seconds(message.at))),
            ])
        }
        return .object(
            Self.members(room) + [
                .init("last_message", last ?? .null),
                .init("unread_count", .integer(Int64(room.unread(by: user)))),
            ])
    }

    /// All messages, or the newest `limit`; oldest first.
    ///
    /// Deviation: the published backend sorts the newest by whole seconds; here they are simply the newest.
    private func messages(_ room: StudioRoom, _ user: String, limit: Int?) -> JSONValue {
        let kept = room.messages.filter { !$0.isDeleted }
        return .array(
            kept.suffix(limit ?? kept.count).map { .object(JWTRoomsWire.members($0, in: room, viewer: user)) })
    }

    private mutating func react(_ number: Int64, _ emoji: String?, isOn: Bool, by user: String) -> StudioAnswer {
        let id = ChatID(String(number))
        let person = ChatPerson(name: user)
        guard let name = rooms.names.first(where: { rooms.rooms[$0]?.message(number: number) != nil }) else {
            return .detail("Message not found", 404, "Not Found")
        }
        let old = rooms.rooms[name]?.message(number: number)?.reactions.first { $0.sender.name == user }?.emoji
        guard let emoji = emoji ?? old else { return .detail("Reaction not found", 404, "Not Found") }
        if isOn, let old, old != emoji { _ = rooms.react(id, old, isOn: false, by: person, in: name) }
        _ = rooms.react(id, emoji, isOn: isOn, by: person, in: name)
        let summary = rooms.rooms[name]?.message(number: number).map(JWTRoomsWire.summary) ?? .array([])
        return .json(
            .object([
                .init("success", .bool(true)),
                .init("message", .string("Reaction \(isOn ? "added" : "removed") successfully")),
                .init("reaction", .null), .init("reaction_summary", summary),
            ]))
    }

    /// Sockets are told of it by their own receipts.
    private mutating func markRead(
        _ name: String, by user: String, at: ChatTimestamp, _ actions: inout [StudioAction]
    ) -> Int {
        let ids = rooms.markRead(name, by: user)
        if !ids.isEmpty {
            tell(.receipt(.read, ids, by: ChatPerson(name: user)), in: name, from: nil, at: at, &actions)
        }
        return ids.count
    }

    // MARK: - Files

    private mutating func upload(_ request: Request, _ actions: inout [StudioAction]) -> StudioAnswer {
        let type = request.head.headers.first("Content-Type") ?? ""
        guard let part = StudioMultipart.part("file", in: request.body, contentType: type) else {
            return Self.missing("file")
        }
        guard part.content.count <= StudioFiles.maxFileBytes else {
            return .detail("File size must be less than 10MB", 400, "Bad Request")
        }
        let mime = HTTPParameterizedValue(part.mime)?.value.lowercased() ?? ""
        let file = StudioFile(
            name: secrets.uuid().lowercased() + StudioFiles.suffix(of: part.fileName),
            mime: HTTPHeaders.isValidValue(mime) && !mime.isEmpty ? mime : "application/octet-stream",
            bytes: Array(request.body[part.content]))
        files.add(file)
        if rooms.isRecording { actions.append(.storeFile(name: file.name, mime: file.mime, bytes: file.bytes)) }
        return .json(
            .object([
                .init("file_url", .string(StudioFiles.path + file.name)), .init("filename", .string(file.name)),
                .init("file_size", .integer(Int64(file.bytes.count))), .init("mime_type", .string(file.mime)),
                .init("message", .string("File uploaded successfully")),
            ]))
    }

    private func file(_ name: String) -> StudioAnswer {
        guard let file = files[name] else { return .detail("File not found", 404, "Not Found") }
        return StudioAnswer(
            status: 200, reason: "OK",
            headers: [
                ("Content-Type", file.mime == "text/plain" ? "text/plain; charset=utf-8" : file.mime),
                ("Content-Disposition", StudioFiles.isShown(file.mime) ? "inline" : "attachment"),
                ("Content-Security-Policy", "sandbox; default-src 'none'"),
                ("Cache-Control", "private, max-age=86400, immutable"),
                ("Cross-Origin-Resource-Policy", "same-origin"),
            ],
            body: file.bytes)
    }

    /// The value of a field of the query, percent-decoded.
    static func field(_ name: String, in query: String) -> String? {
        for field in query.split(separator: "&") {
            let parts = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2, parts[0] == name { return HTTPURL.percentDecoded(String(parts[1])) }
        }
        return nil
    }
}

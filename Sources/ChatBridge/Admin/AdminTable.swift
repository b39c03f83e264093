import JSONText

/// The names of the requests.
enum AdminRequest: String, CaseIterable, Sendable {
    case status, ready, reload, reconnect, disable, enable, kick, drain, tail, say, history, export, forget, store
}

/// A parameter of a request.
struct AdminArgument: Sendable {
    enum Kind: Sendable {
        case text, number, flag

        func accepts(_ value: JSONValue) -> Bool {
            switch self {
            case .text: value.string != nil
            case .number: value.integer != nil
            case .flag: value.bool != nil
            }
        }

        var words: String {
            switch self {
            case .text: "a string"
            case .number: "a whole number"
            case .flag: "true or false"
            }
        }
    }

    let name: String
    let kind: Kind
    let isRequired: Bool
    /// Part of a sentence, for the documentation.
    let summary: String

    init(_ name: String, _ kind: Kind, isRequired: Bool = false, _ summary: String) {
        self.name = name
        self.kind = kind
        self.isRequired = isRequired
        self.summary = summary
    }

    static let room = AdminArgument("room", .text, isRequired: true, "a room's configured name, or its channel")
}

/// A request: its parameters, its place in the documentation, and what carries it out.
struct AdminRow: Sendable {
    typealias Handler = @Sendable (_ service: AdminService, _ call: AdminCall, _ exchange: AdminExchange) -> Void

    let request: AdminRequest
    let arguments: [AdminArgument]
    /// Its items end with the connection only.
    let streams: Bool
    /// It may take longer than other answers.
    let isLong: Bool
    /// It changes something, so the log has the request and its user.
    let isLogged: Bool
    let summary: String
    let handle: Handler

    init(
        _ request: AdminRequest, _ arguments: [AdminArgument] = [], streams: Bool = false, isLong: Bool = false,
        isLogged: Bool = false, _ summary: String, _ handle: @escaping Handler
    ) {
        self.request = request
        self.arguments = arguments
        self.streams = streams
        self.isLong = isLong
        self.isLogged = isLogged
        self.summary = summary
        self.handle = handle
    }
}

/// All requests: the server's dispatch and checks, and the commands of the command line.
enum AdminTable {
    static let rows: [AdminRow] = [
        AdminRow(.status, [], "the bridge, its rooms and its clients") { $0.status($2) },
        AdminRow(.ready, [], "whether the bridge is ready, and if not, why") { $0.ready($2) },
        AdminRow(.reload, [], isLogged: true, "reads the configuration again, as SIGHUP does") { $0.reload($2) },
        AdminRow(.reconnect, [.room], isLogged: true, "opens a new link in place of the present one") {
            $0.reconnect($1, $2)
        },
        AdminRow(
            .disable, [.room], isLogged: true, "closes the room's link until it is enabled or the bridge restarted"
        ) {
            $0.disable($1, $2)
        },
        AdminRow(.enable, [.room], isLogged: true, "opens the link of a disabled room") { $0.enable($1, $2) },
        AdminRow(
            .kick,
            [
                AdminArgument("id", .number, isRequired: true, "the number of the client in the status"),
                AdminArgument("reason", .text, "shown to the client and to the rooms"),
            ], isLogged: true, "closes a client's connection"
        ) { $0.kick($1, $2) },
        AdminRow(.drain, [], isLogged: true, "stops the bridge in order, as SIGTERM does") { $0.drain($2) },
        AdminRow(
            .tail,
            [
                AdminArgument("room", .text, "only of this room"),
                AdminArgument("raw", .flag, "the frames of the links, too"),
            ], streams: true, "what goes in and out of the rooms, from now on"
        ) { $0.tail($1, $2) },
        AdminRow(
            .say, [.room, AdminArgument("text", .text, isRequired: true, "the message")], isLogged: true,
            "says something in a room, as the bridge itself"
        ) { $0.say($1, $2) },
        AdminRow(
            .history,
            [
                .room, AdminArgument("since", .number, "milliseconds since 1970: only later messages"),
                AdminArgument("limit", .number, "the newest so many; default 50, or 10000 with \"since\""),
            ], "messages of a room, oldest first"
        ) { $0.history($1, $2) },
        AdminRow(.export, [.room], "all stored messages of a room, oldest first") { $0.export($1, $2) },
        AdminRow(
            .forget,
            [
                AdminArgument("user", .text, isRequired: true, "an account, id@backend, or a nick"),
                AdminArgument("account", .flag, "it is an account's name, perhaps of one that is gone"),
                AdminArgument("confirmed", .flag, "erase; else only say whom"),
            ], isLong: true, isLogged: true, "erases a person"
        ) { $0.forget($1, $2) },
        AdminRow(.store, [], "where the database lies") { $0.storePlace($2) },
    ]

    private static let byRequest = Dictionary(rows.map { ($0.request, $0) }, uniquingKeysWith: { first, _ in first })

    /// Every request has a row; a test walks them.
    static func row(_ request: AdminRequest) -> AdminRow { byRequest[request] ?? rows[0] }
}

/// The verbs that a client may send.
///
/// Each has a row in ``IRCCommandTable``, which a session consults before its handler runs.
public enum IRCCommand: String, CaseIterable, Sendable {
    case pass = "PASS"
    case nick = "NICK"
    case user = "USER"
    case cap = "CAP"
    case authenticate = "AUTHENTICATE"
    case register = "REGISTER"
    case verify = "VERIFY"
    case webirc = "WEBIRC"
    case ping = "PING"
    case pong = "PONG"
    case quit = "QUIT"
    case join = "JOIN"
    case part = "PART"
    case names = "NAMES"
    case list = "LIST"
    case topic = "TOPIC"
    case mode = "MODE"
    case who = "WHO"
    case whois = "WHOIS"
    case whowas = "WHOWAS"
    case ison = "ISON"
    case userhost = "USERHOST"
    case away = "AWAY"
    case setname = "SETNAME"
    case privmsg = "PRIVMSG"
    case notice = "NOTICE"
    case tagmsg = "TAGMSG"
    case markread = "MARKREAD"
    case redact = "REDACT"
    case batch = "BATCH"
    case chathistory = "CHATHISTORY"
    case search = "SEARCH"
    case motd = "MOTD"
    case lusers = "LUSERS"
    case version = "VERSION"
    case time = "TIME"
    case info = "INFO"
}

/// The commands, one row each: what is checked before a handler runs, and what the line costs.
public enum IRCCommandTable {
    public struct Row: Sendable {
        public let command: IRCCommand
        /// Parameters without which the answer is 461. Where the field has an answer of its own for a missing parameter
        /// (409, 411, 412, 431), the handler gives it and this is 0.
        public let minParams: Int
        /// Whether it may be used before registration; else the answer is 451.
        public let beforeRegistration: Bool
        /// Flood tokens: 0 for what must never delay a client, 1 for a line, more for what makes many lines.
        public let penalty: Int
        /// One line for the documentation.
        public let summary: String

        init(
            _ command: IRCCommand, minParams: Int = 0, beforeRegistration: Bool = false, penalty: Int = 1,
            _ summary: String
        ) {
            self.command = command
            self.minParams = minParams
            self.beforeRegistration = beforeRegistration
            self.penalty = penalty
            self.summary = summary
        }
    }

    public static let rows: [Row] = [
        Row(.pass, minParams: 1, beforeRegistration: true, "gives the connection's password"),
        Row(.nick, beforeRegistration: true, "sets or changes the nick"),
        Row(.user, minParams: 4, beforeRegistration: true, "names the user at registration"),
        Row(.cap, minParams: 1, beforeRegistration: true, penalty: 0, "negotiates capabilities"),
        Row(.webirc, minParams: 4, beforeRegistration: true, "a gateway says for whom it connects"),
        Row(.authenticate, minParams: 1, beforeRegistration: true, "logs in with SASL"),
        Row(.register, minParams: 3, beforeRegistration: true, penalty: 3, "makes an account"),
        Row(.verify, minParams: 2, beforeRegistration: true, "confirms an account that was made"),
        Row(.ping, beforeRegistration: true, "asks for a PONG"),
        Row(.pong, beforeRegistration: true, penalty: 0, "answers a PING"),
        Row(.quit, beforeRegistration: true, penalty: 0, "ends the connection"),
        Row(.join, minParams: 1, "enters rooms"),
        Row(.part, minParams: 1, "leaves rooms"),
        Row(.names, penalty: 2, "lists the people of a room"),
        Row(.list, penalty: 3, "lists the rooms"),
        Row(.topic, minParams: 1, "reads or sets a room's topic"),
        Row(.mode, minParams: 1, "reads or sets modes"),
        Row(.who, penalty: 2, "describes the people of a room, or one"),
        Row(.whois, "describes a person"),
        Row(.whowas, "describes a person who left"),
        Row(.ison, minParams: 1, "asks which nicks are present"),
        Row(.userhost, minParams: 1, "asks for the hosts of nicks"),
        Row(.away, "marks oneself away, or back"),
        Row(.setname, minParams: 1, "changes one's real name"),
        Row(.privmsg, "sends a message"),
        Row(.notice, "sends a message that nothing answers"),
        Row(.tagmsg, minParams: 1, penalty: 0, "sends tags without a text: typing, reactions"),
        Row(.markread, penalty: 0, "reads or moves a read marker"),
        Row(.redact, minParams: 2, "takes a message back"),
        Row(.batch, minParams: 1, "begins or ends a message of several lines"),
        Row(.chathistory, minParams: 1, penalty: 2, "asks for what was said before"),
        Row(.search, minParams: 1, penalty: 4, "looks for what was said before"),
        Row(.motd, penalty: 2, "shows the message of the day"),
        Row(.lusers, "counts the people and rooms"),
        Row(.version, "names the server's version"),
        Row(.time, "tells the server's time"),
        Row(.info, penalty: 2, "tells about the server"),
    ]

    private static let byVerb: [String: Row] = Dictionary(
        rows.map { ($0.command.rawValue, $0) }, uniquingKeysWith: { first, _ in first })

    /// The row of a verb in upper case, as ``IRCParse`` gives it; nil for 421.
    public static func row(for verb: String) -> Row? { byVerb[verb] }
}

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

    // People and the server.
    case monitor = "MONITOR"
    case isupport = "ISUPPORT"
    case metadata = "METADATA"
    case relaymsg = "RELAYMSG"
    case help = "HELP"
    case helpop = "HELPOP"
    case admin = "ADMIN"
    case stats = "STATS"
    case links = "LINKS"
    case trace = "TRACE"
    case users = "USERS"
    case summon = "SUMMON"
    case servlist = "SERVLIST"
    case squery = "SQUERY"

    // Moderation.
    case oper = "OPER"
    case kick = "KICK"
    case invite = "INVITE"
    case kill = "KILL"
    case wallops = "WALLOPS"
    case rehash = "REHASH"
    case restart = "RESTART"
    case die = "DIE"
    case connect = "CONNECT"
    case squit = "SQUIT"
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
        /// With this capability it may be used before registration too.
        public let earlyWith: IRCCapability?

        init(
            _ command: IRCCommand, minParams: Int = 0, beforeRegistration: Bool = false, penalty: Int = 1,
            earlyWith: IRCCapability? = nil, _ summary: String
        ) {
            self.command = command
            self.minParams = minParams
            self.beforeRegistration = beforeRegistration
            self.penalty = penalty
            self.earlyWith = earlyWith
            self.summary = summary
        }
    }

    public static let rows: [Row] = [
        Row(.pass, minParams: 1, beforeRegistration: true, "gives the connection's password"),
        Row(.nick, beforeRegistration: true, "sets or changes the nick"),
        Row(.user, minParams: 4, beforeRegistration: true, "names the user at registration"),
        Row(.cap, minParams: 1, beforeRegistration: true, penalty: 0, "negotiates capabilities"),
        Row(.webirc, minParams: 4, beforeRegistration: true, "says for whom a gateway connects"),
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
        Row(.away, earlyWith: .preAway, "marks oneself away, or back"),
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

        Row(
            .monitor, minParams: 1,
            "tells when people come, go or change; C clears the list, L lists it, S says who is there"),
        Row(
            .isupport, penalty: 2, earlyWith: .extendedISupport, "tells what the server supports"),
        Row(
            .metadata, minParams: 2, penalty: 2,
            "tells what is known of people upstream: their display names"),
        Row(
            .relaymsg, minParams: 3, "says something under another's name, for bots that mirror a room"),
        Row(.help, penalty: 2, "explains a command, or lists them"),
        Row(.helpop, penalty: 2, "explains a command, or lists them"),
        Row(.admin, "names who runs the server"),
        Row(.stats, "tells how the server is doing: u how long it runs"),
        Row(.links, "lists the servers: this one"),
        Row(.trace, "shows the way to a server"),
        Row(.users, "would list who is logged in to the machine; switched off"),
        Row(.summon, "would call somebody on the machine; switched off"),
        Row(.servlist, "lists services: there is one, *bridge"),
        Row(.squery, "writes to a service, as PRIVMSG does"),

        Row(.oper, minParams: 2, "becomes an operator, with an administrator's account"),
        Row(
            .kick, minParams: 2, penalty: 2, "removes IRC users from a room"),
        Row(.invite, "invites an IRC user; alone, lists one's own invitations"),
        Row(.kill, minParams: 1, "ends an IRC user's connection; for operators"),
        Row(.wallops, minParams: 1, penalty: 2, "writes to everybody with user mode w; for operators"),
        Row(.rehash, "would read the configuration again; done on the machine instead"),
        Row(.restart, "would start the server anew; done on the machine instead"),
        Row(.die, "would stop the server; done on the machine instead"),
        Row(.connect, "would link another server; there are none"),
        Row(.squit, "would unlink a server; there are none"),
    ]

    private static let byVerb: [String: Row] = Dictionary(
        rows.map { ($0.command.rawValue, $0) }, uniquingKeysWith: { first, _ in first })

    /// The row of a verb in upper case, as ``IRCParse`` gives it; nil for 421.
    public static func row(for verb: String) -> Row? { byVerb[verb] }
}

import ChatModel
import IRCProtocol

/// What a client's line asks for. Syntax, arity and registration are already checked.
enum SessionRequest: Equatable {
    case reply(IRCMessage)
    /// NICK, USER and CAP are complete.
    case register
    case changeNick(String)
    case setRealname(String)
    case join([String])
    case partEverything
    case part([String], reason: String?)
    case names([String])
    case who(mask: String, whox: IRCWhoxRequest?, operatorsOnly: Bool)
    case whois([String])
    case whowas(String, count: Int?)
    case list(ListFilter)
    case readTopic(String)
    case setTopic(String, to: String)
    case mode(String, [String])
    case away(String?)
    case message(verb: MessageVerb, targets: [String], text: String?, tags: [IRCTag])
    /// A message of several lines is complete.
    case multiline(IncomingBatch)
    case readMarker(String)
    case moveMarker(String, ChatTimestamp)
    case redact(String, msgid: String, reason: String?)
    case history(HistoryRequest)
    case search(SearchRequest)
    case isOn([String])
    case userhost([String])
    /// MOTD, LUSERS, VERSION, TIME or INFO, of the server named.
    case query(IRCCommand, of: String?)
    case capabilitiesChanged
    case ping(String)
    case pong(String)
    case authenticate(String)
    case registerAccount(String, email: String, password: String)
    case verifyAccount(String)
    /// A gateway connects for somebody else.
    case announceClient(password: String, gateway: String, address: String)
    case quit(String)

    // People, the server and moderation.
    case monitor([String])
    case isupport
    /// The target, the subcommand, and what follows.
    case metadata([String])
    case relay(String, as: String, text: String, tags: [IRCTag])
    /// HELP, ADMIN, STATS and the like.
    case serverCommand(IRCCommand, [String])
    case oper(String, String)
    case kick([String], [String], reason: String?)
    case invite(String, to: String)
    case listInvitations
    case kill(String, reason: String?)
    case wallops(String)
}

enum MessageVerb: String {
    case privmsg = "PRIVMSG"
    case notice = "NOTICE"
    case tagmsg = "TAGMSG"
}

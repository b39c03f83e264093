import IRCProtocol

// The commands of a bridge, one row each. Only the code that makes a bridge refers to this table: bridge and sessions
// do not depend on it.

extension IRCCommandTable {
    package static let standard = IRCCommandTable(
        registration + rooms + people + messages + server + moderation + machine)

    private static let channels = IRCCommand.TargetList(.first, atMost: IRCSession.maxChannelsPerLine)
    private static let anybody = IRCCommand.TargetList(.first, atMost: IRCSession.maxTargets)

    private static let registration: [IRCCommand] = [
        IRCCommand(
            "PASS", takes: "<password>", minParams: 1, needs: .nothing, "gives the connection's password"
        ) {
            // Clients send a password with blanks without the colon before it.
            $0.passReceived($1.params.joined(separator: " "), $2)
        },
        IRCCommand("NICK", takes: "<nick>", needs: .nothing, "sets or changes the nick") {
            $0.nickReceived($1.param(0), $2)
        },
        IRCCommand(
            "USER", takes: "<name> 0 * :<real name>", minParams: 4, needs: .nothing, "names the user at registration"
        ) { $0.userReceived($1.params[0], realname: $1.params[3], $2) },
        IRCCommand(
            "CAP", takes: "LS|LIST|REQ|END [<capabilities>]", minParams: 1, needs: .nothing, penalty: 0,
            "negotiates capabilities"
        ) { $0.negotiate($1.params, $2) },
        IRCCommand(
            "WEBIRC", takes: "<password> <gateway> <hostname> <address> [:<options>]", minParams: 4, needs: .nothing,
            "says for whom a gateway connects"
        ) { $0.announceClient($2, password: $1.params[0], gateway: $1.params[1], address: $1.params[3]) },
        IRCCommand(
            "AUTHENTICATE", takes: "<mechanism>|<data>|*", minParams: 1, needs: .nothing, "logs in with SASL"
        ) { $0.authenticate($1.params[0], $2) },
        IRCCommand(
            "REGISTER", takes: "<account>|* * <password>", minParams: 3, needs: .nothing, penalty: 3,
            "makes an account"
        ) { $0.registerAccount($1.params[0], email: $1.params[1], password: $1.params[2], $2) },
        IRCCommand(
            "VERIFY", takes: "<account> <code>", minParams: 2, needs: .nothing, "confirms an account that was made"
        ) { $0.verifyAccount($1.params[0], $2) },
        IRCCommand("PING", takes: "<token>", needs: .nothing, "asks for a PONG") { $0.pingReceived($1.param(0), $2) },
        IRCCommand("PONG", takes: "<token>", needs: .nothing, penalty: 0, "answers a PING") {
            $0.pongReceived($1.params.last, $2)
        },
        IRCCommand("QUIT", takes: "[:<reason>]", needs: .nothing, penalty: 0, "ends the connection") {
            $0.quitReceived($1.param(0), $2)
        },
    ]

    private static let rooms: [IRCCommand] = [
        IRCCommand("JOIN", takes: "<#room>[,<#room>…]", minParams: 1, targets: channels, "enters rooms") {
            $0.joinReceived($1.params[0], $2)
        },
        IRCCommand(
            "PART", takes: "<#room>[,<#room>…] [:<reason>]", minParams: 1, targets: channels, "leaves rooms"
        ) {
            $0.part(IRCSession.list($1.params[0]), reason: $1.param(1), $2)
        },
        IRCCommand("NAMES", takes: "<#room>[,<#room>…]", penalty: 2, "lists the people of a room") {
            $0.names(Array(IRCSession.list($1.param(0) ?? "").prefix(IRCSession.maxChannelsPerLine)), $2)
        },
        IRCCommand(
            "LIST", takes: "[<#room>|<mask>|!<mask>|<n|>n|C<n|C>n|T<n|T>n][,…]", penalty: 3, "lists the rooms"
        ) { $0.list(ListFilter($1.param(0) ?? ""), $2) },
        IRCCommand("TOPIC", takes: "<#room> [:<topic>]", minParams: 1, "reads or sets a room's topic") {
            $0.topicReceived($1.params[0], $1.param(1), $2)
        },
        IRCCommand(
            "MODE", takes: "<#room>|<nick> [<modes> [<parameters>]]", minParams: 1, "reads or sets modes"
        ) { $0.mode($1.params[0], Array($1.params.dropFirst()), $2) },
    ]

    private static let people: [IRCCommand] = [
        IRCCommand(
            "WHO", takes: "<#room>|<nick>|<mask> [o] [%<fields>[,<token>]]", penalty: 2,
            "describes the people of a room, or one"
        ) { $0.who($1.param(0) ?? "*", $1.param(1), $2) },
        IRCCommand(
            "WHOIS", takes: "[<server>] <nick>[,<nick>…]", targets: .init(.last, atMost: IRCSession.maxTargets),
            "describes a person"
        ) {
            $0.whoisReceived($1.params.last, $2)
        },
        IRCCommand("WHOWAS", takes: "<nick> [<count>]", "describes a person who left") {
            $0.whowas($1.param(0), count: $1.param(1), $2)
        },
        IRCCommand("ISON", takes: "<nick> [<nick>…]", minParams: 1, "asks which nicks are present") {
            $0.isOn($1.params, $2)
        },
        IRCCommand("USERHOST", takes: "<nick> [<nick>…]", minParams: 1, "asks for the hosts of nicks") {
            $0.userhost($1.params, $2)
        },
        IRCCommand(
            "AWAY", takes: "[:<message>]", needs: .registrationOr(.preAway), "marks oneself away, or back"
        ) { $0.awayReceived($1.param(0), $2) },
        IRCCommand("SETNAME", takes: ":<real name>", minParams: 1, "changes one's real name") {
            $0.setRealname($1.params[0], $2)
        },
    ]

    private static let messages: [IRCCommand] = [
        IRCCommand("PRIVMSG", takes: "<#room>|<nick>[,…] :<text>", targets: anybody, "sends a message") {
            $0.textReceived(.privmsg, $1, $2)
        },
        IRCCommand(
            "NOTICE", takes: "<#room>|<nick>[,…] :<text>", targets: anybody, "sends a message that nothing answers"
        ) {
            $0.textReceived(.notice, $1, $2)
        },
        IRCCommand(
            "TAGMSG", takes: "<#room>|<nick>[,…]", minParams: 1, penalty: 0, targets: anybody,
            "sends tags without a text: typing, reactions"
        ) { $0.tagsReceived($1, $2) },
        IRCCommand(
            "MARKREAD", takes: "<#room> [timestamp=<time>]", penalty: 0, "reads or moves a read marker"
        ) { $0.markReadReceived($1.param(0), $1.param(1), $2) },
        IRCCommand("REDACT", takes: "<#room>|<nick> <msgid> [:<reason>]", minParams: 2, "takes a message back") {
            $0.redact($1.params[0], $1.params[1], reason: $1.param(2), $2)
        },
        IRCCommand(
            "BATCH", takes: "+<reference> draft/multiline <#room>|<nick> or -<reference>", minParams: 1,
            "begins or ends a message of several lines"
        ) { $0.carryOut($2.batchStep($1), $2) },
        IRCCommand(
            "CHATHISTORY",
            takes: "LATEST|BEFORE|AFTER|AROUND|BETWEEN <#room> <from> [<to>] <limit> or TARGETS <from> <to> <limit>",
            minParams: 1, penalty: 2, "asks for what was said before"
        ) { $0.chathistoryReceived($1.params, $2) },
        IRCCommand(
            "SEARCH", takes: "<key>=<value>[;<key>=<value>…]", minParams: 1, penalty: 4,
            "looks for what was said before"
        ) { $0.searchReceived($1.params, $2) },
    ]

    private static let server: [IRCCommand] = [
        IRCCommand("MOTD", takes: "[<server>]", penalty: 2, "shows the message of the day") {
            $0.motd(of: $1.param(0), $2)
        },
        IRCCommand("LUSERS", "counts the people and rooms") { $0.lusers(of: $1.param(1), $2) },
        IRCCommand("VERSION", takes: "[<server>]", "names the server's version") { $0.version(of: $1.param(0), $2) },
        IRCCommand("TIME", takes: "[<server>]", "tells the server's time") { $0.time(of: $1.param(0), $2) },
        IRCCommand("INFO", takes: "[<server>]", penalty: 2, "tells about the server") { $0.info(of: $1.param(0), $2) },
        IRCCommand(
            "MONITOR", takes: "+|- <nick>[,<nick>…] or C|L|S", minParams: 1,
            "tells when people come, go or change; C clears the list, L lists it, S says who is there"
        ) { $0.monitor($1.params, $2) },
        IRCCommand(
            "ISUPPORT", needs: .registrationOr(.extendedISupport), penalty: 2, "tells what the server supports"
        ) { $0.sendISupport($2) },
        IRCCommand(
            "METADATA", takes: "<#room>|<nick>|* GET|LIST|SYNC|SUB|UNSUB|SUBS [<key>…]", minParams: 2, penalty: 2,
            "tells what is known of people upstream: their display names"
        ) { $0.metadata($1.params, $2) },
        IRCCommand(
            "RELAYMSG", takes: "<#room> <nick>/<suffix> :<text>", minParams: 3,
            "says something under another's name, for bots that mirror a room"
        ) { $0.relay($1.params[0], as: $1.params[1], $1.params[2], $1.tags, $2) },
        IRCCommand("HELP", takes: "[<command>]", penalty: 2, "explains a command, or lists them") {
            $0.helpReceived($1.param(0), $2)
        },
        IRCCommand("HELPOP", takes: "[<command>]", penalty: 2, "explains a command, or lists them") {
            $0.helpReceived($1.param(0), $2)
        },
        IRCCommand("ADMIN", takes: "[<server>]", "names who runs the server") { $0.admin(of: $1.param(0), $2) },
        IRCCommand(
            "STATS", takes: "[<letter> [<server>]]", "tells how the server is doing: u how long it runs"
        ) { $0.stats($1.param(0), of: $1.param(1), $2) },
        IRCCommand("LINKS", takes: "[<mask>]", "lists the servers: this one") { $0.links($1.params, $2) },
        IRCCommand("TRACE", takes: "[<server>]", "shows the way to a server") { $0.trace($1.param(0), $2) },
        IRCCommand(
            "USERS", takes: "[<server>]", "would list who is logged in to the machine; switched off"
        ) { $0.users(of: $1.param(0), $2) },
        IRCCommand("SUMMON", takes: "<user>", "would call a user of the machine; switched off") { $0.summon($2) },
        IRCCommand("SERVLIST", "lists services: there is one, *bridge") { $0.servlist($2) },
        IRCCommand("SQUERY", takes: "*bridge :<text>", "writes to a service, as PRIVMSG does") {
            $0.squery($1.param(0), $1.param(1), $2)
        },
    ]

    private static let moderation: [IRCCommand] = [
        IRCCommand(
            "OPER", takes: "<account> <password>", minParams: 2, "becomes an operator, with an administrator's account"
        ) { $0.oper($1.params[0], $1.params[1], $2) },
        IRCCommand(
            "KICK", takes: "<#room> <nick>[,<nick>…] [:<reason>]", minParams: 2, penalty: 2,
            targets: .init(.second, atMost: IRCSession.maxTargets),
            "removes IRC users from a room"
        ) { $0.kick(IRCSession.list($1.params[0]), IRCSession.list($1.params[1]), reason: $1.param(2), $2) },
        IRCCommand("INVITE", takes: "<nick> <#room>", "invites an IRC user; alone, lists one's own invitations") {
            $0.inviteReceived($1.param(0), to: $1.param(1), $2)
        },
        IRCCommand(
            "KILL", takes: "<nick> [:<reason>]", minParams: 1, needs: .operatorRights,
            "ends an IRC user's connection; for operators"
        ) { $0.kill($1.params[0], reason: $1.param(1), $2) },
        IRCCommand(
            "WALLOPS", takes: ":<text>", minParams: 1, needs: .operatorRights, penalty: 2,
            "writes to all users with mode w; for operators"
        ) { $0.wallops($1.params[0], $2) },
    ]

    /// Commands refused over IRC, even to operators: the administrator runs them on the machine.
    private static let machine: [IRCCommand] = [
        IRCCommand(
            "REHASH", needs: .operatorRights, "would read the configuration again; done on the machine instead"
        ) { $0.refuseMachineCommand($1.command, $2) },
        IRCCommand(
            "RESTART", needs: .operatorRights, "would start the server anew; done on the machine instead"
        ) { $0.refuseMachineCommand($1.command, $2) },
        IRCCommand("DIE", needs: .operatorRights, "would stop the server; done on the machine instead") {
            $0.refuseMachineCommand($1.command, $2)
        },
        IRCCommand(
            "CONNECT", takes: "<server>", needs: .operatorRights, "would link another server; there are none"
        ) { $0.noSuchServer($1.param(0) ?? "", $2) },
        IRCCommand(
            "SQUIT", takes: "<server>", needs: .operatorRights, "would unlink a server; there are none"
        ) { $0.noSuchServer($1.param(0) ?? "", $2) },
    ]
}

extension IRCMessage {
    fileprivate func param(_ index: Int) -> String? { index < params.count ? params[index] : nil }
}

/// What HELP tells of each command: what follows its verb, and in a sentence what it does.
///
/// Source: modern.ircdocs.horse, "HELP message".
public enum IRCHelp {
    /// `<required> [optional]`. A command without an entry takes nothing, or nothing that a person would type.
    private static let usages: [IRCCommand: String] = [
        .pass: "<password>",
        .nick: "<nick>",
        .user: "<name> 0 * :<real name>",
        .cap: "LS|LIST|REQ|END [<capabilities>]",
        .authenticate: "<mechanism>|<data>|*",
        .register: "<account>|* * <password>",
        .verify: "<account> <code>",
        .webirc: "<password> <gateway> <hostname> <address> [:<options>]",
        .ping: "<token>",
        .pong: "<token>",
        .quit: "[:<reason>]",
        .join: "<#room>[,<#room>…]",
        .part: "<#room>[,<#room>…] [:<reason>]",
        .names: "<#room>[,<#room>…]",
        .list: "[<#room>|<mask>|!<mask>|<n|>n|C<n|C>n|T<n|T>n][,…]",
        .topic: "<#room> [:<topic>]",
        .mode: "<#room>|<nick> [<modes> [<parameters>]]",
        .who: "<#room>|<nick>|<mask> [o] [%<fields>[,<token>]]",
        .whois: "[<server>] <nick>[,<nick>…]",
        .whowas: "<nick> [<count>]",
        .ison: "<nick> [<nick>…]",
        .userhost: "<nick> [<nick>…]",
        .away: "[:<message>]",
        .setname: ":<real name>",
        .privmsg: "<#room>|<nick>[,…] :<text>",
        .notice: "<#room>|<nick>[,…] :<text>",
        .tagmsg: "<#room>|<nick>[,…]",
        .markread: "<#room> [timestamp=<time>]",
        .redact: "<#room>|<nick> <msgid> [:<reason>]",
        .batch: "+<reference> draft/multiline <#room>|<nick> or -<reference>",
        .chathistory: "LATEST|BEFORE|AFTER|AROUND|BETWEEN <#room> <from> [<to>] <limit> or TARGETS <from> <to> <limit>",
        .search: "<key>=<value>[;<key>=<value>…]",
        .motd: "[<server>]",
        .version: "[<server>]",
        .time: "[<server>]",
        .info: "[<server>]",
        .monitor: "+|- <nick>[,<nick>…] or C|L|S",
        .metadata: "<#room>|<nick>|* GET|LIST|SYNC|SUB|UNSUB|SUBS [<key>…]",
        .relaymsg: "<#room> <nick>/<suffix> :<text>",
        .help: "[<command>]",
        .helpop: "[<command>]",
        .admin: "[<server>]",
        .stats: "[<letter> [<server>]]",
        .links: "[<mask>]",
        .trace: "[<server>]",
        .users: "[<server>]",
        .summon: "<user>",
        .squery: "*bridge :<text>",
        .oper: "<account> <password>",
        .kick: "<#room> <nick>[,<nick>…] [:<reason>]",
        .invite: "<nick> <#room>",
        .kill: "<nick> [:<reason>]",
        .wallops: ":<text>",
        .connect: "<server>",
        .squit: "<server>",
    ]

    /// The lines about a command; nil where there is no such.
    ///
    /// - Parameter topic: a verb in any case.
    public static func lines(about topic: String) -> (verb: String, lines: [String])? {
        guard let row = IRCCommandTable.row(for: String(topic.prefix(32)).uppercased()) else { return nil }
        let verb = row.command.rawValue
        let usage = usages[row.command].map { verb + " " + $0 } ?? verb
        return (verb, [usage, "", verb + " " + row.summary + "."])
    }

    /// The lines of HELP without a topic: what this is, and the commands, some in a line.
    public static var index: [String] {
        var lines = ["HELP <command> explains one of these commands:", ""]
        var line = ""
        for verb in IRCCommandTable.rows.map(\.command.rawValue).sorted() {
            if line.utf8.count + 1 + verb.utf8.count > maxIndexBytes {
                lines.append(line)
                line = ""
            }
            line += line.isEmpty ? verb : " " + verb
        }
        if !line.isEmpty { lines.append(line) }
        return lines
    }

    /// Bytes of a line of verbs: what a terminal shows without wrapping, behind time and server.
    private static let maxIndexBytes = 60
}

import Accounts
import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import IRCProtocol
import Media
import Rooms
import Upstream
import WireBytes

// Tables for docs/reference/irc.md: the IRC features, generated from the tables that the program uses.

/// The tables of docs/reference/irc.md.
public enum IRCSurface {
    /// A generated part of the page.
    public struct Section: Equatable, Sendable {
        /// The name in its markers.
        public var name: String
        /// Lines of Markdown.
        public var text: String
    }

    public static var sections: [Section] {
        [
            Section(name: "capabilities", text: capabilities),
            Section(name: "commands", text: commands),
            Section(name: "isupport", text: isupport),
            Section(name: "service", text: service),
            Section(name: "reductions", text: reductions),
        ]
    }

    // MARK: - Capabilities

    /// The purpose of each capability, by its first name. A test requires them to be complete.
    static let purposes: [String: String] = [
        "message-tags": "tags; `TAGMSG`: typing, reactions, receipts; message ids",
        "server-time": "when a message was written, in milliseconds",
        "account-tag": "whose account a line comes from",
        "account-notify": "who logs in or out",
        "extended-join": "account and real name of who joins",
        "batch": "lines that belong together",
        "labeled-response": "which answer belongs to which line",
        "echo-message": "own messages come back when the backend has them",
        "standard-replies": "errors that programs understand",
        "away-notify": "who goes away and comes back",
        "multi-prefix": "all prefixes of a nick",
        "userhost-in-names": "whole sources in NAMES",
        "setname": "changed real names",
        "invite-notify": "who is invited",
        "no-implicit-names": "a JOIN without its NAMES",
        "draft/read-marker": "how far the account has read, on all its clients",
        "cap-notify": "capabilities that come and go",
        "sasl": "logging in",
        "znc.in/self-message": "what one's other clients say in private",
        "draft/message-redaction": "messages that were taken back",
        "draft/multiline": "messages of several lines as one",
        "draft/chathistory": "asking for what was said before",
        "draft/event-playback": "reactions, joins and the like in that answer",
        "soju.im/search": "searching what was said",
        "extended-monitor": "more about the people that one watches",
        "draft/pre-away": "being away before registration ends",
        "draft/extended-isupport": "005 before registration, and in a batch",
        "draft/metadata-2": "display names of people upstream",
        "draft/relaymsg": "speaking under others' names, for bots that mirror a room",
        "draft/account-registration": "making an account",
        "sts": "keeping to TLS",
    ]

    /// A server with every feature that depends on the configuration, to list its features.
    private static func server() -> IRCServer {
        var settings = BridgeSettings(serverName: "irc.example.org", instanceID: "", rooms: [])
        let nobody = SCRAMVerifier(password: SecretBytes([0x78]), salt: [0], iterations: 1)
        settings.accounts = [AccountSettings(name: "ann", password: nobody, mayRelay: true)]
        // A backend that takes files, for FILEHOST.
        if let dialect = try? JWTRoomsDialect(), let base = try? HTTPURL(parsing: "https://chat.example.org") {
            settings.backends = [BackendSettings(name: "main", dialect: dialect, httpBase: base)]
            settings.media = MediaSettings(
                links: SignedFileLinks(base: "https://irc.example.org", key: [0], lifetime: .zero))
        }
        let parts = HubParts(
            settings, isDurable: false,
            now: Now(monotonic: MonotonicInstant(nanoseconds: 0), wall: .init(milliseconds: 0)),
            random: AnyRandomNumberGenerator(NoChance()))
        return IRCServer(parts, .standard, stored: nil)
    }

    private struct NoChance: RandomNumberGenerator {
        func next() -> UInt64 { 0 }
    }

    private static var capabilities: String {
        let server = server()
        let origin = ClientOrigin(address: "192.0.2.1", isLocal: true)
        let session = IRCSession(
            id: ClientID(rawValue: 1), origin: origin, offer: server.offer(for: origin), terms: server.sessionTerms,
            now: server.context.now)
        var negotiation = session.negotiation
        guard
            case .replies(let lines) = negotiation.commandReceived(params: ["LS", "302"], isRegistered: false)
        else { return "" }
        let offered = lines.flatMap { $0.params.last?.split(separator: " ").map(String.init) ?? [] }
        let rows = negotiation.available.members.map { capability -> [String] in
            let row = IRCCapabilityTable.row(for: capability)
            let names = row.names.map { name in
                code(offered.first { $0 == name || $0.hasPrefix(name + "=") } ?? name)
            }
            return [names.joined(separator: ", "), purposes[row.names.first ?? ""] ?? "", link(row.source)]
        }
        return table(["capability", "for", "source"], rows)
    }

    /// A link to the specification, where it has a page.
    private static func link(_ source: String) -> String {
        let prefix = "IRCv3 "
        guard source.hasPrefix(prefix) else { return source }
        let name = String(source.dropFirst(prefix.count))
        guard !name.contains(" ") else { return source }
        return "[\(name)](https://ircv3.net/specs/extensions/\(name))"
    }

    // MARK: - Commands

    private static var commands: String {
        table(
            ["command", "", "parameters", "cost", "before 001"],
            IRCCommandTable.standard.rows.map { row in
                [
                    code(row.verb), row.summary, row.minParams == 0 ? "" : "\(row.minParams) or more",
                    row.penalty == 0 ? "" : String(row.penalty),
                    early(row.needs),
                ]
            })
    }

    private static func early(_ needs: IRCCommand.Needs) -> String {
        switch needs {
        case .nothing: "yes"
        case .registrationOr(let capability): "with " + self.capability(capability)
        case .registration, .operatorRights: ""
        }
    }

    // MARK: - *bridge

    private static var service: String {
        table(
            ["say", "", "cost"],
            ServiceCommandTable.standard.rows.map { row in
                [code(row.usage), row.summary + (row.isForAdmins ? "; for administrators" : ""), String(row.penalty)]
            })
    }

    // MARK: - 005

    private static var isupport: String {
        table(
            ["token", "value here"],
            server().isupport.flatMap { $0 }.map { token in
                let parts = token.split(separator: "=", maxSplits: 1).map(String.init)
                return [code(parts[0]), parts.count > 1 ? code(parts[1]) : ""]
            })
    }

    // MARK: - Reductions

    private static var reductions: String {
        let tags = IRCReductionTable.tags.map { row in
            ["tag " + code(row.name), capability(row.needs), "the line without it"]
        }
        let commands = IRCReductionTable.commands.map { row in
            [code(row.command), capability(row.needs), words(row.without)]
        }
        let rest = [["any other tag", capability(.messageTags), "the line without it"]]
        return table(["line", "needs", "without"], tags + rest + commands)
    }

    private static func words(_ without: IRCReductionTable.Fallback) -> String {
        switch without {
        case .nothing: "nothing"
        case .firstParams(let count): count == 1 ? "its first parameter" : "its first \(count) parameters"
        case .onlyToItself: "only to whom it is about"
        case .notice: "a NOTICE, unless the command's own capability is there"
        case .onePrefixInNames, .onePrefixInFlags: "the highest prefix of each nick"
        case .nicksInNames: "nicks alone"
        }
    }

    // MARK: - Markdown

    private static func capability(_ capability: IRCCapability) -> String {
        code(IRCCapabilityTable.row(for: capability).names.first ?? "")
    }

    private static func code(_ text: String) -> String { "`" + text + "`" }

    private static func table(_ head: [String], _ rows: [[String]]) -> String {
        let lines = [head, head.map { _ in "---" }] + rows
        return lines.map { cells in
            "| " + cells.map { $0.replacingBars() }.joined(separator: " | ") + " |"
        }
        .joined(separator: "\n")
    }
}

extension String {
    /// Escapes bars, which would end a cell.
    fileprivate func replacingBars() -> String {
        split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|")
    }
}

import BridgeTestSupport
import BridgeTypes
import IRCProtocol
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Table of commands")
struct CommandTableTests {
    static let verbs = IRCCommandTable.standard.rows.map(\.verb)

    @Test("every command has one row, under a verb as the parser gives it", arguments: verbs)
    func rows(verb: String) throws {
        #expect(Self.verbs.filter { $0 == verb }.count == 1)
        let command = try #require(IRCCommandTable.standard[verb])
        #expect(command.verb == verb)
        #expect(!command.summary.isEmpty)
        #expect((0...15).contains(command.minParams) && command.penalty >= 0)
        let parsed = try Array("\(verb.lowercased()) x".utf8).withUnsafeBytes { try IRCParse.parse($0) }
        #expect(parsed.command == verb)
    }

    @Test("what must never delay a client costs nothing; registration needs its commands")
    func costs() {
        let table = IRCCommandTable.standard
        for verb in ["TAGMSG", "PONG", "CAP"] { #expect(table[verb]?.penalty == 0) }
        #expect(
            Set(table.rows.filter { $0.needs == .nothing }.map(\.verb)) == [
                "PASS", "NICK", "USER", "CAP", "AUTHENTICATE", "REGISTER", "VERIFY", "PING", "PONG", "QUIT", "WEBIRC",
            ])
        let later = table.rows.filter {
            if case .registrationOr = $0.needs { true } else { false }
        }
        #expect(later.map(\.verb) == ["AWAY", "ISUPPORT"])
        #expect(
            Set(table.rows.filter { $0.needs == .operatorRights }.map(\.verb)) == [
                "KILL", "WALLOPS", "REHASH", "RESTART", "DIE", "CONNECT", "SQUIT",
            ])
        #expect(table["privmsg"] == nil)
        #expect(table[""] == nil)
    }

    /// A row that promises fewer parameters than its handler takes would end the process.
    @Test("every handler does with what its row promises", arguments: verbs, ["", "x", ":"])
    func leastParams(verb: String, word: String) throws {
        let command = try #require(IRCCommandTable.standard[verb])
        let harness = BridgeHarness(settings: try CommandLawTests.settings())
        harness.start()
        harness.connect(1)
        for line in ["CAP REQ :batch draft/multiline draft/metadata-2", "NICK bob", "USER u 0 * :u", "CAP END"] {
            harness.send(1, line)
        }
        let session = try #require(harness.bridge.irc.sessions[ClientID(rawValue: 1)])
        let person = try #require(session.person)
        harness.perform { bridge, now in
            bridge.context.now = now
            bridge.irc.operators.add(person)
            for count in command.minParams...(command.minParams + 1) {
                guard session.state != .closed else { return }
                let params = Array(repeating: word, count: count)
                command.handle(bridge.irc, IRCMessage(command: verb, params: params), session)
            }
        }
        #expect(harness.violations == [])
    }

    @Test("HELP knows every command, in any case", arguments: verbs)
    func help(verb: String) throws {
        let table = IRCCommandTable.standard
        let command = try #require(table.command(named: verb.lowercased()))
        #expect(command.verb == verb)
        let lines = command.help
        #expect(lines.count == 3 && lines[0].hasPrefix(verb) && lines[2].hasPrefix(verb + " "))
        #expect(lines.allSatisfy { $0.utf8.count < 400 })
        #expect(table.helpIndex.contains { $0.split(separator: " ").contains(Substring(verb)) })
    }

    @Test("HELP knows nothing else")
    func noHelp() {
        let table = IRCCommandTable.standard
        #expect(table.command(named: "") == nil)
        #expect(table.command(named: String(repeating: "x", count: 10_000)) == nil)
        #expect(table.helpIndex.allSatisfy { $0.utf8.count <= 60 })
    }
}

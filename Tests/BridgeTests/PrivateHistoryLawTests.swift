import BridgeTestSupport
import BridgeTypes
import ChatModel
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Conversations at random between people who come and go, log in and out, and take each other's nicks.
@Suite("Laws of private history")
struct PrivateHistoryLawTests {
    private static let nicks = ["ann", "bob", "cleo", "x", "y", "z"]

    private struct World {
        var random: SeededGenerator
        let stage: PrivateStage
        /// What was said, by the accounts of a conversation in order; a visitor's is a blank and the nick.
        var said: [[String]: [String]] = [:]
        /// What accounts said that is not taken back.
        var own: [(account: String, key: [String], text: String, msgid: String)] = []
        /// Clients that are here, and their accounts.
        var accounts: [UInt64: String?] = [:]
        var lastClient: UInt64 = 0
        var lastText = 0

        mutating func roll(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
        mutating func client() -> UInt64? { accounts.keys.sorted().randomElement(using: &random) }

        func nick(_ client: UInt64) -> String {
            stage.harness.bridge.irc.sessions[ClientID(rawValue: client)]?.nick ?? "*"
        }

        mutating func come() {
            lastClient += 1
            let account = roll(4) > 0 ? PrivateStage.accounts[roll(3)] : nil
            let nick = PrivateHistoryLawTests.nicks[roll(6)]
            stage.enter(lastClient, nick, as: account, caps: HistoryStage.caps)
            // The nick may be somebody else's.
            guard stage.harness.bridge.irc.sessions[ClientID(rawValue: lastClient)]?.person != nil else {
                return stage.harness.disconnect(lastClient)
            }
            accounts[lastClient] = .some(account)
        }

        mutating func say() {
            guard let from = client(), let to = client() else { return }
            lastText += 1
            stage.send(from, "PRIVMSG \(nick(to)) :t\(lastText)")
            guard accounts[from] ?? nil != nil || accounts[to] ?? nil != nil else { return }
            let key = [party(from), party(to)].sorted()
            said[key, default: []].append("t\(lastText)")
            guard let account = accounts[from] ?? nil else { return }
            let line = stage.page(from, "CHATHISTORY LATEST \(nick(to)) * 1").first ?? ""
            own.append((account, key, "t\(lastText)", HistoryStage.tag("msgid", line) ?? ""))
        }

        /// Whoever asks: what accounts say to each other is taken back by the account that said it, by the other's name.
        mutating func takeBack() {
            guard let client = client(), !own.isEmpty else { return }
            let index = roll(own.count)
            let message = own[index]
            let partner = message.key.first { $0 != message.account } ?? message.account
            guard !partner.hasPrefix(" ") else { return }
            let isOwn = accounts[client] ?? nil == message.account
            let answer = stage.send(client, "REDACT \(partner) \(message.msgid)")
            #expect(answer.contains { $0.contains(" FAIL REDACT ") } == !isOwn, "\(answer)")
            guard isOwn else { return }
            own.remove(at: index)
            said[message.key]?.removeAll { $0 == message.text }
        }

        func party(_ client: UInt64) -> String { (accounts[client] ?? nil) ?? " \(nick(client).lowercased())" }

        mutating func step(restarts: Bool) {
            switch roll(20) {
            case 0..<4: if accounts.count < 6 { come() }
            case 4..<6:
                if let client = client() {
                    stage.harness.disconnect(client)
                    accounts[client] = nil
                }
            case 6..<8: if let client = client() { stage.send(client, "NICK \(PrivateHistoryLawTests.nicks[roll(6)])") }
            case 8:
                if let client = client() {
                    let account = PrivateStage.accounts[roll(3)]
                    stage.send(client, "PRIVMSG *bridge :login \(account) pw")
                    accounts[client] = .some(account)
                }
            case 9:
                if let client = client(), accounts[client] ?? nil != nil {
                    stage.send(client, "PRIVMSG *bridge :logout")
                    accounts[client] = .some(nil)
                }
            case 11..<13: takeBack()
            case 10 where restarts:
                stage.restart()
                accounts = [:]
            default: say()
            }
        }

        func words(_ lines: [String]) -> [String] {
            lines.compactMap { $0.split(separator: ": ").last.map(String.init) }
        }

        /// Each client sees what is its account's, all of it, and nothing else, by whatever nick it asks.
        func check() {
            for (client, account) in accounts.sorted(by: { $0.key < $1.key }) {
                for nick in PrivateHistoryLawTests.nicks {
                    let found = words(stage.latest(client, nick))
                    let isOwn = said.contains { account.map($0.key.contains) ?? false && $0.value == found }
                    #expect(found.isEmpty || isOwn, "\(account ?? "nobody") asked for \(nick)")
                }
                for other in accounts.keys {
                    // Who is here is asked about by their nick.
                    let wanted = account.flatMap { said[[$0, party(other)].sorted()] } ?? []
                    #expect(words(stage.latest(client, nick(other))) == wanted)
                }
                let targets = stage.targets(client)
                #expect(Set(targets).count == targets.count)
                let own = said.filter { account.map($0.key.contains) ?? false }
                let pages = targets.map { words(stage.latest(client, $0)) }
                let found = Set(pages)
                // Where everything was taken back nothing tells one from another.
                let empty = pages.count { $0.isEmpty } - (found.contains([]) ? 1 : 0)
                // An account's own name is always its own. A visitor's nick is whose it was last.
                let certain = own.filter { $0.key.allSatisfy { !$0.hasPrefix(" ") } }
                #expect(targets.count >= certain.count && targets.count == found.count + empty)
                #expect(found.isSuperset(of: certain.values) && found.isSubset(of: own.values))
                #expect(
                    words(stage.words(client, "SEARCH text=t;limit=100")).allSatisfy { text in
                        own.values.contains { $0.contains(text) }
                    })
            }
            #expect(stage.harness.violations == [])
        }
    }

    @Test("everybody sees all of their own, and nothing of others", arguments: LawSeeds.seeds(30), [false, true])
    func ownAlone(seed: UInt64, isDurable: Bool) throws {
        var world = World(random: SeededGenerator(seed: seed), stage: try PrivateStage(isDurable))
        for _ in 0..<3 { world.come() }
        for step in 0..<120 {
            world.step(restarts: isDurable)
            if step % 20 == 19 { world.check() }
        }
    }
}

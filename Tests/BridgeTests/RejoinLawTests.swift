import BridgeTestSupport
import ChatModel
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Whoever comes and goes in whatever order, an account is where it joined and did not leave.
@Suite("Rooms of accounts, as a law")
struct RejoinLawTests {
    private static let names = ["#lobby", "#kitchen", "#attic"]

    @Test(
        "who logs in is where the account was, and the next process knows it as of the last answer to a PING, or later",
        arguments: LawSeeds.seeds(20))
    func law(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let stage = try RejoinStage()
        let accounts = ["remy", "lin"]
        /// What each account's rooms are, after each step that may have changed them.
        var past: [[String: [String]]] = [[:]]
        /// The newest of these that somebody was told is kept.
        var certain = 0
        var clients: [UInt64: String] = [:]
        var lastClient: UInt64 = 10
        func arrive(_ account: String) -> UInt64 {
            lastClient += 1
            stage.logIn(lastClient, "\(account)@c\(lastClient)")
            clients[lastClient] = account
            return lastClient
        }
        func host() {
            stage.logIn(1, "colette@desk")
            for name in Self.names { _ = stage.send(1, "JOIN " + name) }
        }
        host()
        stage.harness.store.commits = false
        for step in 0..<120 {
            var now = past[past.count - 1]
            let name = Self.names.randomElement(using: &random) ?? ""
            let client = clients.keys.sorted().randomElement(using: &random)
            switch (Int.random(in: 0..<20, using: &random), client) {
            case (0..<4, _):
                let account = accounts.randomElement(using: &random) ?? ""
                let new = arrive(account)
                #expect(Set(stage.rooms(of: new)) == Set(now[account] ?? []), "seed \(seed), step \(step)")
            case (4..<9, let client?):
                _ = stage.send(client, "JOIN " + name)
                let account = clients[client] ?? ""
                if now[account]?.contains(name) != true { now[account, default: []].append(name) }
            case (9..<11, let client?):
                _ = stage.send(client, "PART " + name)
                now[clients[client] ?? ""]?.removeAll { $0 == name }
            case (11, let client?):
                let account = clients[client] ?? ""
                // Who is called so is who has it.
                _ = stage.send(1, "KICK \(name) \(account) :out")
                now[account]?.removeAll { $0 == name }
            case (12..<14, let client?):
                stage.harness.disconnect(client)
                clients[client] = nil
            case (14, let client?):
                _ = stage.send(client, "QUIT :bye")
                clients[client] = nil
            case (15, let client?):
                stage.harness.perform { _, _ in stage.harness.store.commit() }
                #expect(stage.send(client, "PING x").contains { $0.contains("PONG") })
                certain = past.count - 1
            case (16..<18, _):
                let count = Int.random(in: 1...3, using: &random)
                stage.harness.perform { _, _ in stage.harness.store.commit(count) }
            case (18, _):
                stage.restart()
                stage.harness.store.commits = false
                clients = [:]
                let kept = Dictionary(uniqueKeysWithValues: accounts.map { ($0, stage.kept($0)) })
                let isKnown = past[certain...].contains { state in accounts.allSatisfy { state[$0] ?? [] == kept[$0] } }
                #expect(isKnown, "seed \(seed), step \(step): \(kept)")
                past = [kept]
                certain = 0
                host()
                continue
            default: continue
            }
            past.append(now)
            for (client, account) in clients {
                #expect(Set(stage.rooms(of: client)) == Set(now[account] ?? []), "seed \(seed), step \(step)")
            }
        }
        #expect(stage.harness.violations == [])
    }
}

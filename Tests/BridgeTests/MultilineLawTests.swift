import BridgeTestSupport
import BridgeTypes
import ChatModel
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Laws of messages of several lines")
struct MultilineLawTests {
    /// What stands between the first and the last word of a line is anything but what ends one.
    private static let alphabet = [
        "a", "b", " ", "  ", "é", "👩🏽‍🍳", "e\u{301}", ":", "@", ",", "/", "x\u{200D}y", "ratatouille ",
        "https://x.example/y ",
        "日本語", "*", "<b>", "\u{A0}",
    ]

    private func text(_ random: inout SeededGenerator, bytes: Int) -> String {
        var text = ""
        let wanted = Int(random.next() % UInt64(bytes))
        while text.utf8.count < wanted { text += Self.alphabet.randomElement(using: &random) ?? "" }
        return text
    }

    /// The lines of a batch that carry a text, cut here and there.
    private func pieces(of line: String, _ random: inout SeededGenerator) -> [String] {
        var pieces: [String] = []
        var rest = Array(line)
        while rest.map({ String($0).utf8.count }).reduce(0, +) > 300 || !rest.isEmpty && random.next() % 4 == 0 {
            var piece = ""
            let most = 1 + Int(random.next() % 250)
            while let next = rest.first, piece.isEmpty || piece.utf8.count + String(next).utf8.count <= most {
                piece.append(rest.removeFirst())
            }
            pieces.append(piece)
        }
        if !rest.isEmpty || pieces.isEmpty { pieces.append(String(rest)) }
        return pieces
    }

    /// Byte for byte; where they differ is written down.
    private func isSame(_ some: [String], _ others: [String]) -> Bool {
        if some.map({ Array($0.utf8) }) == others.map({ Array($0.utf8) }) { return true }
        let common = zip(some.joined().utf8, others.joined().utf8).prefix { $0 == $1 }.count
        Issue.record("\(some.count) and \(others.count) texts, alike up to byte \(common)")
        return false
    }

    /// What a client makes of what it got: the words of each message, batches joined.
    private func joined(_ lines: [String]) -> [String] {
        var messages: [String] = []
        var open: String?
        for line in lines {
            if line.contains(" BATCH +") {
                open = ""
                continue
            }
            if line.contains(" BATCH -"), let words = open {
                messages.append(String(words.dropFirst()))
                open = nil
                continue
            }
            guard let match = line.firstMatch(of: #/ PRIVMSG #lobby :/#) else { continue }
            let words = String(line[match.range.upperBound...])
            if open == nil {
                messages.append(words)
            } else {
                open? += (line.contains("draft/multiline-concat") ? "" : "\n") + words
            }
        }
        return messages
    }

    @Test(
        "any text of any batch arrives upstream byte for byte, and comes down so that its lines give the text",
        arguments: LawSeeds.seeds(60))
    func bothWays(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let stage = try ActionsStage(
            ActionsStubDialect(), limits: LimitSettings { $0.messagesPerSecond = nil }, echoes: true)
        let caps = ActionsStage.modern + " draft/multiline"
        stage.enter(1, "alice", caps: caps)
        stage.enter(2, "bob", caps: caps)
        stage.enter(3, "carol", caps: "")
        for _ in 0..<8 {
            let lines = (0...Int(random.next() % 6)).map { _ in
                random.next() % 4 == 0 ? "" : text(&random, bytes: 700).replacing("|", with: "")
            }
            let said = lines.joined(separator: "\n")
            guard lines.contains(where: { !$0.isEmpty }), said.utf8.count < 16_000 else { continue }
            stage.harness.send(1, "BATCH +x draft/multiline #lobby")
            for line in lines {
                for (index, piece) in pieces(of: line, &random).enumerated() {
                    stage.harness.send(
                        1, "@batch=x\(index > 0 ? ";draft/multiline-concat" : "") PRIVMSG #lobby :\(piece)")
                }
            }
            stage.harness.send(1, "BATCH -x")
            stage.harness.advance(by: .seconds(5))
            let happened = stage.happened()
            let up = happened.compactMap { line in
                line.hasPrefix("U0> ") ? line.firstRange(of: "|text=").map { String(line[$0.upperBound...]) } : nil
            }
            #expect(isSame(up, [said]), "seed \(seed)")
            for client in 1...2 {
                let down = joined(happened.filter { $0.hasPrefix("C\(client)< ") })
                #expect(isSame(down, [said]), "seed \(seed), client \(client)")
            }
            let plain = happened.filter { $0.hasPrefix("C3< ") }
            #expect(plain.allSatisfy { $0.utf8.count - 4 <= 510 && !$0.hasSuffix("#lobby :") }, "seed \(seed)")
            let words = joined(plain).joined()
            #expect(isSame([words], [said.replacing("\n", with: "")]), "seed \(seed)")
        }
    }

    @Test("a text from upstream comes down so that its lines give the text", arguments: LawSeeds.seeds(60))
    func down(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let stage = try ActionsStage(ActionsStubDialect(), limits: LimitSettings { $0.messagesPerSecond = nil })
        stage.enter(1, "alice", caps: ActionsStage.modern + " draft/multiline")
        stage.enter(2, "bob", caps: "")
        for number in 0..<8 {
            let lines = (0...Int(random.next() % 6)).map { _ in
                random.next() % 4 == 0 ? "" : text(&random, bytes: 900).replacing("|", with: "")
            }
            // Blank lines around a text are nobody's.
            var said = lines.joined(separator: "\n")[...]
            while said.hasPrefix("\n") { said = said.dropFirst() }
            while said.hasSuffix("\n") { said = said.dropLast() }
            guard !said.isEmpty else { continue }
            stage.backend("message|id=m\(number)|from=s1|name=Remy|text=" + lines.joined(separator: "\n"))
            let happened = stage.happened()
            let whole = joined(happened.filter { $0.hasPrefix("C1< ") })
            #expect(isSame(whole, [String(said)]), "seed \(seed)")
            let plain = happened.filter { $0.hasPrefix("C2< ") }
            #expect(plain.allSatisfy { $0.utf8.count - 4 <= 510 }, "seed \(seed)")
            #expect(isSame([joined(plain).joined()], [String(said).replacing("\n", with: "")]), "seed \(seed)")
        }
    }
}

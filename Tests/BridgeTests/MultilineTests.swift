import BridgeTestSupport
import BridgeTypes
import ChatModel
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// What a client of today negotiates.
private let multiline = ActionsStage.modern + " draft/multiline"

@Suite("Messages of several lines")
struct MultilineTests {
    /// alice has draft/multiline, bob too, carol has tags alone, dora nothing.
    private func stage(
        _ dialect: ActionsStubDialect = ActionsStubDialect(), echoes: Bool = true,
        limits: LimitSettings = LimitSettings { $0.messagesPerSecond = nil }
    ) throws -> ActionsStage {
        let stage = try ActionsStage(dialect, limits: limits, echoes: echoes)
        stage.enter(1, "alice", caps: multiline)
        stage.enter(2, "bob", caps: multiline)
        stage.enter(3, "carol", caps: "message-tags")
        stage.enter(4, "dora", caps: "")
        return stage
    }

    private func send(_ stage: ActionsStage, _ lines: String...) {
        for line in lines { stage.harness.send(1, line) }
    }

    /// References and msgids by the order in which they come.
    private func settled(_ lines: [String]) -> [String] {
        var names: [String: String] = [:]
        func name(_ text: Substring, _ kind: String) -> String {
            let known = names[kind + text] ?? kind + String(names.keys.count { $0.hasPrefix(kind) } + 1)
            names[kind + text] = known
            return known
        }
        return lines.map { line in
            line.replacing(/msgid=([A-Za-z0-9_-]+)/) { "msgid=" + name($0.1, "m") }
                .replacing(/(batch=|BATCH [+-])([a-z0-9]+)/) { $0.1 + name($0.2, "r") }
        }
    }

    // MARK: - Up

    @Test("a batch is one message upstream, one batch for those who know batches, lines for the others")
    func whole() throws {
        let stage = try stage()
        send(
            stage, "@label=xyz BATCH +123 draft/multiline #lobby", "@batch=123 PRIVMSG #lobby hello",
            "@batch=123 PRIVMSG #lobby :#how is ", "@batch=123;draft/multiline-concat PRIVMSG #lobby :everyone?")
        #expect(stage.happened() == [], "nothing happens before the end")
        send(stage, "BATCH -123")
        let lines = settled(stage.happened())
        #expect(lines.count { $0.hasPrefix("U0>") } == 1)
        #expect(lines.first?.hasSuffix("|text=hello\n#how is everyone?") == true)
        let alice = ":alice!~u@bridge"
        #expect(
            lines.filter { $0.hasPrefix("C1") }
                == [
                    "C1< @msgid=m1;label=xyz \(alice) BATCH +r1 draft/multiline #lobby",
                    "C1< @batch=r1 \(alice) PRIVMSG #lobby :hello",
                    "C1< @batch=r1 \(alice) PRIVMSG #lobby :#how is ",
                    "C1< @batch=r1;draft/multiline-concat \(alice) PRIVMSG #lobby :everyone?",
                    "C1< \(alice) BATCH -r1",
                ].map { $0.replacing("r1", with: "r2") })
        #expect(
            lines.filter { $0.hasPrefix("C2") } == [
                "C2< @msgid=m1 \(alice) BATCH +r1 draft/multiline #lobby",
                "C2< @batch=r1 \(alice) PRIVMSG #lobby :hello",
                "C2< @batch=r1 \(alice) PRIVMSG #lobby :#how is ",
                "C2< @batch=r1;draft/multiline-concat \(alice) PRIVMSG #lobby :everyone?",
                "C2< \(alice) BATCH -r1",
            ])
        #expect(
            lines.filter { $0.hasPrefix("C3") } == [
                "C3< @msgid=m1 \(alice) PRIVMSG #lobby :hello", "C3< \(alice) PRIVMSG #lobby :#how is ",
                "C3< \(alice) PRIVMSG #lobby :everyone?",
            ])
        #expect(
            lines.filter { $0.hasPrefix("C4") } == [
                "C4< \(alice) PRIVMSG #lobby :hello", "C4< \(alice) PRIVMSG #lobby :#how is ",
                "C4< \(alice) PRIVMSG #lobby :everyone?",
            ])
    }

    @Test("blank lines reach the backend and those who know batches, and nobody else")
    func blankLines() throws {
        let stage = try stage()
        send(
            stage, "BATCH +1 draft/multiline #lobby", "@batch=1 PRIVMSG #lobby :", "@batch=1 PRIVMSG #lobby :a",
            "@batch=1 PRIVMSG #lobby", "@batch=1 PRIVMSG #lobby :b", "@batch=1 PRIVMSG #lobby :", "BATCH -1")
        let lines = settled(stage.happened())
        #expect(lines.first?.hasSuffix("|text=\na\n\nb\n") == true)
        #expect(lines.filter { $0.hasPrefix("C2< @batch") }.map { $0.suffix(2) } == [" :", ":a", " :", ":b", " :"])
        #expect(lines.filter { $0.hasPrefix("C4") }.map { $0.suffix(2) } == [":a", ":b"])
        #expect(lines.filter { $0.hasPrefix("C3") }.first?.hasPrefix("C3< @msgid=m1 ") == true)
    }

    @Test("what belongs to the whole stands on BATCH: a reply answers with all its lines")
    func tags() throws {
        let stage = try stage()
        stage.backend("message|id=m1|from=s1|name=Remy|text=soup?")
        let soup = stage.newestMsgid()
        _ = stage.happened()
        send(
            stage, "@+draft/reply=\(soup);+secret=1 BATCH +1 draft/multiline #lobby",
            "@batch=1;+draft/reply=other PRIVMSG #lobby :yes", "@batch=1 PRIVMSG #lobby :please", "BATCH -1")
        let lines = stage.happened()
        #expect(lines.first?.hasSuffix("|text=<Remy> soup?\nyes\nplease") == true)
        let batch = try #require(lines.first { $0.hasPrefix("C2") })
        #expect(batch.contains(";+reply=\(soup);+draft/reply=\(soup);+secret=1 :alice"))
        #expect(!lines.contains { $0.contains("reply=other") })
        #expect(lines.filter { $0.hasPrefix("C3") }.map { $0.contains("+reply=") } == [true, false])
        // Whoever sees no tags sees whom it answers.
        #expect(
            lines.filter { $0.hasPrefix("C4") } == [
                "C4< :alice!~u@bridge PRIVMSG #lobby :Remy: yes", "C4< :alice!~u@bridge PRIVMSG #lobby :please",
            ])
    }

    struct Mistake: CustomTestStringConvertible, Sendable {
        let what: String
        let lines: [String]
        let answer: String

        var testDescription: String { what }
    }

    @Test(
        "a mistake is told once, and nothing of the batch goes anywhere",
        arguments: [
            Mistake(
                what: "a line of another batch",
                lines: ["BATCH +1 draft/multiline #lobby", "@batch=2 PRIVMSG #lobby x"],
                answer: "MULTILINE_INVALID :The batch that is open has another name"),
            Mistake(
                what: "a line of no batch", lines: ["@batch=2 PRIVMSG #lobby x"],
                answer: "MULTILINE_INVALID :No such batch is open"),
            Mistake(
                what: "a blank line that continues",
                lines: [
                    "BATCH +1 draft/multiline #lobby", "@batch=1 PRIVMSG #lobby x",
                    "@batch=1;draft/multiline-concat PRIVMSG #lobby :",
                ], answer: "MULTILINE_INVALID :A line that continues another is not blank"),
            Mistake(
                what: "another target",
                lines: ["BATCH +1 draft/multiline #lobby", "@batch=1 PRIVMSG #Kitchen x"],
                answer: "MULTILINE_INVALID_TARGET #lobby #Kitchen :All lines of a batch have its target"),
            Mistake(
                what: "too many lines",
                lines: ["BATCH +1 draft/multiline #lobby"] + Array(repeating: "@batch=1 PRIVMSG #lobby x", count: 5),
                answer: "MULTILINE_MAX_LINES 4 :The message has too many lines"),
            Mistake(
                what: "too many bytes",
                lines: [
                    "BATCH +1 draft/multiline #lobby", "@batch=1 PRIVMSG #lobby " + String(repeating: "x", count: 20),
                    "@batch=1 PRIVMSG #lobby " + String(repeating: "x", count: 20),
                ], answer: "MULTILINE_MAX_BYTES 40 :The message is too long"),
            Mistake(
                what: "a NOTICE", lines: ["BATCH +1 draft/multiline #lobby", "@batch=1 NOTICE #lobby x"],
                answer: "MULTILINE_INVALID :Only PRIVMSG stands in a batch"),
            Mistake(
                what: "blank lines alone",
                lines: ["BATCH +1 draft/multiline #lobby", "@batch=1 PRIVMSG #lobby :", "BATCH -1"],
                answer: "MULTILINE_INVALID :A message has words"),
            Mistake(
                what: "no line", lines: ["BATCH +1 draft/multiline #lobby", "BATCH -1"],
                answer: "MULTILINE_INVALID :A message has words"),
            Mistake(
                what: "another type", lines: ["BATCH +1 netsplit a b"],
                answer: "MULTILINE_INVALID :Batches from clients are draft/multiline, to one target"),
            Mistake(
                what: "no target", lines: ["BATCH +1 draft/multiline"],
                answer: "MULTILINE_INVALID :Batches from clients are draft/multiline, to one target"),
            Mistake(
                what: "two at a time", lines: ["BATCH +1 draft/multiline #lobby", "BATCH +2 draft/multiline #lobby"],
                answer: "MULTILINE_INVALID :One batch at a time; both are dropped"),
            Mistake(
                what: "no name", lines: ["BATCH + draft/multiline #lobby"],
                answer: "MULTILINE_INVALID :That is no name for a batch"),
            Mistake(
                what: "the end of another",
                lines: ["BATCH +1 draft/multiline #lobby", "@batch=1 PRIVMSG #lobby x", "BATCH -2"],
                answer: "MULTILINE_INVALID :The batch that is open has another name"),
            Mistake(what: "no sign", lines: ["BATCH 1"], answer: "MULTILINE_INVALID :BATCH begins with + or -"),
        ])
    func mistakes(mistake: Mistake) throws {
        let stage = try stage(
            limits: LimitSettings {
                $0.messagesPerSecond = nil
                $0.multilineMaxBytes = 40
                $0.multilineMaxLines = 4
            })
        for line in mistake.lines { stage.harness.send(1, line) }
        #expect(stage.happened() == ["C1< :bridge FAIL BATCH " + mistake.answer])
        // What the client had on its way of that batch is no news; what comes after it is.
        guard mistake.lines.first == "BATCH +1 draft/multiline #lobby" else { return }
        if mistake.lines.last?.hasPrefix("BATCH -") != true {
            send(stage, "@batch=1 PRIVMSG #lobby :more", "BATCH -1")
            #expect(stage.happened() == [])
        }
        send(stage, "BATCH +3 draft/multiline #lobby", "@batch=3 PRIVMSG #lobby :again", "BATCH -3")
        #expect(stage.happened().first?.hasSuffix("|text=again") == true)
    }

    @Test("exactly what the limits allow is taken, line ends counted")
    func limits() throws {
        let stage = try stage(
            limits: LimitSettings {
                $0.messagesPerSecond = nil
                $0.multilineMaxBytes = 11
                $0.multilineMaxLines = 3
            })
        send(
            stage, "BATCH +1 draft/multiline #lobby", "@batch=1 PRIVMSG #lobby :abcd", "@batch=1 PRIVMSG #lobby :efgh",
            "@batch=1;draft/multiline-concat PRIVMSG #lobby :ij", "BATCH -1")
        #expect(stage.happened().first?.hasSuffix("|text=abcd\nefghij") == true)
        stage.harness.connect(9)
        stage.harness.send(9, "CAP LS 302")
        #expect(stage.happened().contains { $0.contains("draft/multiline=max-bytes=11,max-lines=3") })
    }

    @Test("other lines go their way while a batch is open; a client that goes takes it along")
    func interleaved() throws {
        let stage = try stage()
        send(
            stage, "BATCH +1 draft/multiline #lobby", "@batch=1 PRIVMSG #lobby :one", "PING x",
            "PRIVMSG #lobby :between")
        var lines = stage.happened()
        #expect(lines.first == "C1< :bridge PONG bridge :x" || lines.first == "C1< :bridge PONG bridge x")
        #expect(lines.dropFirst().first?.hasSuffix("|text=between") == true)
        send(stage, "@batch=1 PRIVMSG #lobby :two", "BATCH -1")
        #expect(stage.happened().first?.hasSuffix("|text=one\ntwo") == true)
        send(stage, "BATCH +2 draft/multiline #lobby", "@batch=2 PRIVMSG #lobby :lost", "QUIT :bye")
        lines = stage.happened()
        #expect(!lines.contains { $0.contains("lost") })
        #expect(lines.contains { $0.hasPrefix("C2< ") && $0.contains(" QUIT ") })
    }

    @Test("a client that has not asked for it cannot send batches, and its lines are messages")
    func notNegotiated() throws {
        let stage = try stage()
        stage.harness.send(3, "BATCH +1 draft/multiline #lobby")
        stage.harness.send(3, "@batch=1 PRIVMSG #lobby :one")
        stage.harness.send(3, "BATCH -1")
        let lines = stage.happened().filter { $0.hasPrefix("C3") || $0.hasPrefix("U0") }
        #expect(
            lines.first == "C3< :bridge NOTICE carol :BATCH MULTILINE_INVALID: "
                + "Only clients with batch and draft/multiline send batches")
        #expect(lines.count == 2 && lines.last?.hasSuffix("|text=one") == true)
    }

    @Test("labels: on the FAIL, on the echo's BATCH, an ACK where there is no echo")
    func labels() throws {
        let stage = try stage()
        send(stage, "@label=a BATCH +1 draft/multiline #lobby", "@batch=1 PRIVMSG #else :x")
        #expect(
            stage.happened().map { $0.hasPrefix("C1< @label=a :bridge FAIL BATCH MULTILINE_INVALID_TARGET ") } == [true]
        )
        send(stage, "@label=b BATCH +2 draft/multiline #nowhere", "@batch=2 PRIVMSG #nowhere :x", "BATCH -2")
        #expect(stage.happened() == ["C1< @label=b :bridge 403 alice #nowhere :No such room"])
        send(stage, "CAP REQ -echo-message")
        _ = stage.happened()
        send(stage, "@label=c BATCH +3 draft/multiline #lobby", "@batch=3 PRIVMSG #lobby :x", "@label=d BATCH -3")
        let own = stage.happened().filter { $0.hasPrefix("C1") }
        #expect(own == ["C1< @label=d :bridge ACK", "C1< @label=c :bridge ACK"])
    }

    @Test("to a person it is a batch too, and the sender's other answers stand beside it")
    func privately() throws {
        let stage = try stage()
        stage.harness.send(2, "AWAY :out")
        _ = stage.happened()
        send(
            stage, "@label=p BATCH +1 draft/multiline carol", "@batch=1 PRIVMSG carol :a", "@batch=1 PRIVMSG carol :b",
            "BATCH -1")
        var lines = settled(stage.happened())
        #expect(
            lines == [
                "C3< @msgid=m1 :alice!~u@bridge PRIVMSG carol :a", "C3< :alice!~u@bridge PRIVMSG carol :b",
                "C1< @msgid=m1;label=p :alice!~u@bridge BATCH +r1 draft/multiline carol",
                "C1< @batch=r1 :alice!~u@bridge PRIVMSG carol :a", "C1< @batch=r1 :alice!~u@bridge PRIVMSG carol :b",
                "C1< :alice!~u@bridge BATCH -r1",
            ])
        send(
            stage, "@label=q BATCH +1 draft/multiline bob", "@batch=1 PRIVMSG bob :a", "@batch=1 PRIVMSG bob :b",
            "BATCH -1")
        lines = settled(stage.happened()).filter { $0.hasPrefix("C1") }
        #expect(
            lines == [
                "C1< @label=q :bridge BATCH +r2 labeled-response",
                "C1< @msgid=m1;batch=r2 :alice!~u@bridge BATCH +r3 draft/multiline bob",
                "C1< @batch=r3 :alice!~u@bridge PRIVMSG bob :a", "C1< @batch=r3 :alice!~u@bridge PRIVMSG bob :b",
                "C1< @batch=r2 :alice!~u@bridge BATCH -r3", "C1< @batch=r2 :bridge 301 alice bob out",
                "C1< :bridge BATCH -r2",
            ])
    }

    @Test("an ACTION of several lines is one to those who know batches, and one a line to the others")
    func action() throws {
        let stage = try stage()
        send(
            stage, "BATCH +1 draft/multiline #lobby", "@batch=1 PRIVMSG #lobby :\u{1}ACTION stirs",
            "@batch=1 PRIVMSG #lobby :and tastes\u{1}", "BATCH -1")
        let lines = stage.happened()
        #expect(lines.first?.hasSuffix("|text=* alice stirs\nand tastes") == true)
        #expect(
            lines.filter { $0.hasPrefix("C2< @batch") }.map { String($0.split(separator: " :").last ?? "") } == [
                "\u{1}ACTION stirs", "and tastes\u{1}",
            ])
        #expect(
            lines.filter { $0.hasPrefix("C4") } == [
                "C4< :alice!~u@bridge PRIVMSG #lobby :\u{1}ACTION stirs\u{1}",
                "C4< :alice!~u@bridge PRIVMSG #lobby :\u{1}ACTION and tastes\u{1}",
            ])
    }

    @Test("a paste costs less than as many messages, and more than one")
    func flood() throws {
        let stage = try stage(
            limits: LimitSettings {
                $0.messagesPerSecond = 2
                $0.messagesBurst = 10
            })
        stage.harness.advance(by: .seconds(60))
        send(stage, "BATCH +1 draft/multiline #lobby")
        for number in 1...50 { send(stage, "@batch=1 PRIVMSG #lobby :line \(number)") }
        send(stage, "BATCH -1", "PRIVMSG #lobby :next")
        let now = stage.happened().filter { $0.hasPrefix("U0") }
        #expect(now.count == 1 && now[0].hasSuffix("line 50"))
        stage.harness.advance(by: .seconds(10))
        #expect(stage.happened().filter { $0.hasPrefix("U0") }.map { $0.hasSuffix("|text=next") } == [true])
    }

    // MARK: - Down

    @Test("a message from upstream with line ends is one batch, and what is too long for a line continues it")
    func down() throws {
        let stage = try stage()
        let long = String(repeating: "ratatouille ", count: 50)
        stage.backend("message|id=m1|from=s1|name=Remy|text=one\n\n\(long)\n")
        let lines = settled(stage.happened())
        let remy = ":Remy!chat@chat.example"
        let bob = lines.filter { $0.hasPrefix("C2") }.dropFirst()
        #expect(bob.first == "C2< @msgid=m1 \(remy) BATCH +r1 draft/multiline #lobby")
        #expect(bob.last == "C2< \(remy) BATCH -r1")
        #expect(
            bob.dropFirst().dropLast().map { $0.contains("draft/multiline-concat") } == [false, false, false, true])
        let words = bob.dropFirst().dropLast().map { String($0.split(separator: " :", maxSplits: 2).last ?? "") }
        #expect(words[0] == "one")
        #expect(words[2] + words[3] == long)
        #expect(lines.filter { $0.hasPrefix("C4") }.count == 4, "JOIN and three lines")
        #expect(lines.filter { $0.hasPrefix("C3") && $0.contains("msgid") }.count == 1)
    }

    @Test("more lines than a client gets are counted, in a batch as without")
    func tooMany() throws {
        let stage = try stage(
            limits: LimitSettings {
                $0.messagesPerSecond = nil
                $0.multilineMaxLines = 3
            })
        stage.backend("message|id=m1|from=s1|name=Remy|text=1\n2\n3\n4\n5")
        let lines = stage.happened()
        for client in 1...4 {
            let words = lines.filter { $0.hasPrefix("C\(client)") && $0.contains("PRIVMSG") }
            let end = try #require(words.last)
            #expect(words.count == 4 && end.contains(#/:… 2 more lines: /msg \*bridge show [\w-]+$/#), "\(end)")
        }
    }

    @Test("an edit of several lines is a batch that answers the original")
    func edit() throws {
        let stage = try stage()
        stage.backend("message|id=m1|from=s1|name=Remy|text=soup")
        let soup = stage.newestMsgid()
        _ = stage.happened()
        stage.backend("edit|id=m1|from=s1|name=Remy|text=soup\nof the day")
        let lines = settled(stage.happened()).filter { $0.hasPrefix("C2") }
        let remy = ":Remy!chat@chat.example"
        #expect(
            lines == [
                "C2< @+reply=\(soup);+draft/reply=\(soup) \(remy) BATCH +r1 draft/multiline #lobby",
                "C2< @batch=r1 \(remy) PRIVMSG #lobby :* soup", "C2< @batch=r1 \(remy) PRIVMSG #lobby :of the day",
                "C2< \(remy) BATCH -r1",
            ])
    }

    // MARK: - Later

    @Test("what an IRC user said in several lines is kept, and comes in lines that give its text")
    func keptPaste() throws {
        let caps = "message-tags server-time batch draft/multiline"
        let stage = try BacklogStage()
        stage.enter(1, "alice@phone", caps: caps)
        stage.leave(1)
        stage.enter(2, "bob@desk", caps: caps)
        let long = String(repeating: "stir ", count: 120)
        stage.harness.send(2, "@+draft/reply=x BATCH +1 draft/multiline #lobby")
        for line in ["PRIVMSG #lobby :", "PRIVMSG #lobby :" + long.prefix(300)] {
            stage.harness.send(2, "@batch=1 " + line)
        }
        stage.harness.send(2, "@batch=1;draft/multiline-concat PRIVMSG #lobby :" + long.dropFirst(300))
        stage.harness.send(2, "BATCH -1")
        #expect(stage.sentMessages().count == 1)
        stage.crash()
        stage.enter(1, "alice@phone", caps: caps)
        let lines = settled(stage.raw(1)).map { $0.replacing(/time=[^; ]+/, with: "time=T") }
        let heads = lines.filter { $0.contains(" BATCH +") }
        #expect(heads.count == 2, "\(lines)")
        #expect(heads.last?.contains(";+reply=x;+draft/reply=x;batch=r1 :bob!") == true, "\(lines)")
        let said = lines.filter { $0.contains(" PRIVMSG ") }
        #expect(said.map { $0.contains("draft/multiline-concat") } == [false, false, true])
        #expect(
            said.map { String($0.split(separator: " #lobby :", maxSplits: 1).dropFirst().first ?? "") }.joined() == long
        )
    }

    @Test("what a client missed comes as a batch in the history's batch, with the times in front where it sees none")
    func backlog() throws {
        let stage = try BacklogStage()
        stage.enter(1, "alice@phone", caps: "message-tags server-time batch draft/multiline")
        stage.leave(1)
        stage.say(#"soup\n\nof the day"#)
        stage.enter(1, "alice@phone", caps: "message-tags server-time batch draft/multiline")
        var lines = settled(stage.raw(1)).map { $0.replacing(/time=[^; ]+/, with: "time=T") }
        let remy = ":ann!chat@b"
        #expect(
            lines == [
                "@time=T :bridge BATCH +r1 chathistory #lobby",
                "@time=T;msgid=m1;batch=r1 \(remy) BATCH +r2 draft/multiline #lobby",
                "@batch=r2 \(remy) PRIVMSG #lobby :soup", "@batch=r2 \(remy) PRIVMSG #lobby :",
                "@batch=r2 \(remy) PRIVMSG #lobby :of the day", "@batch=r1;time=T \(remy) BATCH -r2",
                "@time=T :bridge BATCH -r1",
            ], "\(lines)")
        stage.harness.advance(by: .seconds(5))
        stage.leave(1)
        stage.say(#"more\nwords"#)
        stage.enter(1, "alice@phone", caps: "")
        lines = stage.raw(1).map { $0.replacing(/\[[0-9:]+\]/, with: "[T]") }
        #expect(lines == ["\(remy) PRIVMSG #lobby :[T] more", "\(remy) PRIVMSG #lobby :[T] words"], "\(lines)")
    }
}

import BridgeTestSupport
import ChatModel
import Dialects
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Answers in the forms that everybody expects")
struct AnswerFormTests {
    private func stage(rooms: [String] = ["lobby", "kitchen"]) throws -> ActionsStage {
        try ActionsStage(ActionsStubDialect(says: ["message"]), rooms: rooms)
    }

    private func come(_ stage: ActionsStage, _ client: UInt64, _ nick: String, _ rooms: String...) {
        stage.harness.connect(client)
        for line in ["NICK \(nick)", "USER \(nick) 0 * :\(nick) of \(nick)"] + rooms.map({ "JOIN #\($0)" }) {
            stage.harness.send(client, line)
        }
        _ = stage.happened()
    }

    @Test(
        "WHOWAS gives as many entries as are asked for, the newest first",
        arguments: [
            ("WHOWAS bob", 2), ("WHOWAS bob 1", 1), ("WHOWAS bob 2", 2), ("WHOWAS bob 0", 2), ("WHOWAS bob -1", 2),
            ("WHOWAS bob x", 2), ("WHOWAS bob 99999999999999999999", 2),
        ])
    func whowas(row: (line: String, count: Int)) throws {
        let stage = try stage(rooms: ["lobby"])
        come(stage, 1, "alice")
        for ident in ["one", "two"] {
            stage.harness.connect(2)
            for line in ["NICK bob", "USER \(ident) 0 * :b", "QUIT"] { stage.harness.send(2, line) }
        }
        _ = stage.happened()
        stage.harness.send(1, row.line)
        let lines = stage.harness.takeLines(1)
        let entries = lines.filter { $0.contains(" 314 ") }
        #expect(entries.count == row.count)
        #expect(entries.first?.contains("~two") == true)
        #expect(lines.last == ":bridge 369 alice bob :End of WHOWAS")
    }

    @Test("an empty user or real name is a missing parameter", arguments: ["USER al 0 * :", "USER :"])
    func emptyNames(line: String) throws {
        let stage = try stage(rooms: ["lobby"])
        stage.harness.connect(1)
        stage.harness.send(1, "NICK alice")
        stage.harness.send(1, line)
        #expect(stage.harness.takeLines(1) == [":bridge 461 alice USER :Not enough parameters"])
    }

    @Test("a message to oneself comes once plain and once as the labeled echo", arguments: ["PRIVMSG", "NOTICE"])
    func toOneself(verb: String) throws {
        let stage = try stage(rooms: ["lobby"])
        stage.enter(1, "alice", caps: "echo-message batch labeled-response")
        stage.harness.send(1, "@label=7 \(verb) alice :hi")
        #expect(
            stage.harness.takeLines(1) == [
                ":alice!~u@bridge \(verb) alice :hi", "@label=7 :alice!~u@bridge \(verb) alice :hi",
            ])
    }
}

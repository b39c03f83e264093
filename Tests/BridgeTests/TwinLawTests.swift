import BridgeTestSupport
import BridgeTypes
import ChatModel
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Programs of an account that all go by one name, and met at the beginning: they come, go, hang and speak, in any order, and the
/// bridge dies now and then. Each writes down everything that the others and people upstream say, once and in order; what it said
/// itself may come back.
private final class RandomTwins {
    private struct Program {
        var caps: String
        /// The connection that it reads and answers; nil: it is away.
        var connection: UInt64?
        var record: [String] = []
        var msgids: Set<String> = []
    }

    let stage: BacklogStage
    private var random: SeededGenerator
    private var programs: [Program]
    private var said: [(author: Int?, text: String)] = []
    private var nextConnection: UInt64 = 1
    /// All are there for the first time.
    private var haveMet = false
    private(set) var problems: [String] = []

    init(seed: UInt64, capabilities: [String]) throws {
        random = SeededGenerator(seed: seed)
        stage = try BacklogStage(
            limits: LimitSettings {
                $0.acceptsPerSecondPerAddress = nil
                $0.messagesPerSecond = nil
                $0.upstreamMessagesPerSecond = nil
                $0.backlog = 100_000
            })
        stage.harness.answersPings = false
        programs = capabilities.map { Program(caps: BacklogStage.caps + " " + $0) }
        for program in programs.indices { come(program) }
        haveMet = true
    }

    func run(steps: Int) {
        for _ in 0..<steps {
            step()
            settle()
        }
        for program in programs.indices where programs[program].connection == nil { come(program) }
        say()
        settle()
        for (number, program) in programs.enumerated() {
            let expected = said.filter { $0.author != number }.map(\.text)
            if program.record != expected { problems.append("\(number) wrote \(program.record), not \(expected)") }
        }
    }

    private func step() {
        let program = Int(random.next() % UInt64(programs.count))
        switch random.next() % 16 {
        case 0, 1, 2: if programs[program].connection == nil { come(program) }
        case 3, 4: goAway(program, closes: true)
        case 5: goAway(program, closes: false)
        case 6, 7, 8: stage.harness.advance(by: .milliseconds(Int64(random.next() % 4000)))
        case 9: if random.next() % 4 == 0 { crash() }
        case 10, 11, 12: speak(program)
        default: say()
        }
    }

    private func come(_ program: Int) {
        let connection = nextConnection
        nextConnection += 1
        programs[program].connection = connection
        stage.connect(connection, "alice@ann", caps: programs[program].caps)
        settle()
        // Something may be said while it waits for those of its name.
        if haveMet, random.next() % 2 == 0 { say() }
        if stage.session(connection)?.person == nil { stage.harness.advance(by: .seconds(3)) }
        settle()
        if stage.session(connection)?.rooms.isEmpty != false { stage.harness.send(connection, "JOIN #lobby") }
        settle()
        if stage.session(connection)?.rooms.count != 1 { problems.append("\(program) is not in the room") }
    }

    /// - Parameter closes: otherwise the connection stands for some time, and nobody reads it.
    private func goAway(_ program: Int, closes: Bool) {
        guard let connection = programs[program].connection else { return }
        programs[program].connection = nil
        if closes { stage.leave(connection) }
    }

    private func crash() {
        for program in programs.indices { programs[program].connection = nil }
        stage.crash()
        stage.harness.answersPings = false
    }

    private func say() {
        let text = "m\(said.count)"
        said.append((nil, text))
        stage.say(text)
        settle()
    }

    private func speak(_ program: Int) {
        guard let connection = programs[program].connection, stage.session(connection)?.rooms.isEmpty == false else {
            return
        }
        let text = "m\(said.count)"
        said.append((program, text))
        stage.speak(connection, text)
    }

    /// Everybody who is there reads, and answers.
    private func settle() {
        var goesOn = true
        while goesOn {
            goesOn = false
            for program in programs.indices {
                guard let connection = programs[program].connection else { continue }
                write(program, connection)
                while stage.answer(connection) { goesOn = true }
            }
        }
        for program in programs.indices {
            if let connection = programs[program].connection { write(program, connection) }
        }
    }

    private func write(_ program: Int, _ connection: UInt64) {
        for line in stage.raw(connection) {
            guard let match = line.firstMatch(of: #/msgid=([^; ]+).* PRIVMSG #lobby :(.*)$/#) else { continue }
            guard programs[program].msgids.insert(String(match.1)).inserted else { continue }
            let text = String(match.2)
            if said.contains(where: { $0.text == text && $0.author == program }) { continue }
            programs[program].record.append(text)
        }
    }
}

@Suite("Laws of clients of one name")
struct TwinLawTests {
    @Test(
        "nobody of one name misses what the others got", arguments: LawSeeds.seeds(12),
        [["", "", ""], ["", "away-notify"], ["", "", "away-notify"]])
    func nothingLost(_ seed: UInt64, _ capabilities: [String]) throws {
        let twins = try RandomTwins(seed: seed, capabilities: capabilities)
        twins.run(steps: 150)
        #expect(twins.problems == [], "seed \(seed)")
        #expect(twins.stage.harness.violations == [], "seed \(seed)")
    }
}

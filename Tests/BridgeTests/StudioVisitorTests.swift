import BridgeTestSupport
import ChatModel
import Dialects
import Testing
import WireBytes

@testable import Studio

/// A visitor on a manual clock, in a room whose other members are names.
private final class VisitorBench {
    private var visitor = StudioVisitor(room: "lobby")
    private var random: SeededGenerator
    private let start = MonotonicInstant(nanoseconds: 0)
    private var now = MonotonicInstant(nanoseconds: 0)
    private var messageCount = 0
    var hasCompany = true
    /// What the visitor sent, with the seconds since the start.
    private(set) var log: [(at: Duration, event: ChatEvent)] = []

    init(seed: UInt64 = 1) { random = SeededGenerator(seed: seed) }

    var nextDeadline: MonotonicInstant? { visitor.nextDeadline }

    private var wall: ChatTimestamp {
        // 2025-11-21T03:18:56Z at the start.
        ChatTimestamp(milliseconds: 1_763_695_136_000 + (now - start).wholeNanoseconds / 1_000_000)
    }

    /// Lets time pass, as an owner would who wakes at each deadline.
    func wait(_ time: Duration) {
        let end = now + time
        while let next = visitor.nextDeadline, next <= end {
            now = max(now, next)
            note(visitor.timerFired(now: now, wall: wall, hasCompany: hasCompany, using: &random))
        }
        now = end
    }

    func newcomer(_ name: String) { visitor.newcomer(name, now: now, using: &random) }
    func joined(_ name: String) { visitor.joined(name, now: now, using: &random) }

    /// - Returns: the message's id.
    @discardableResult
    func say(_ name: String?, _ text: String, id: String? = nil) -> String {
        messageCount += 1
        let messageID = "M\(messageCount)"
        let sender = ChatPerson(id: (id ?? name.map { "id-\($0)" }).map { ChatID($0) }, name: name)
        let message = ChatMessage(id: ChatID(messageID), sender: sender, text: text, at: wall)
        guard
            let frames = EnvelopeDialect().encode(.message(message), context: DialectContext(room: "lobby")).frames
        else {
            Issue.record("the test's own message cannot be encoded")
            return messageID
        }
        for frame in frames { feed(frame.bytes) }
        return messageID
    }

    func feed(_ frame: [UInt8]) {
        note(frame.withUnsafeBytes { visitor.frameReceived($0, now: now, wall: wall, using: &random) })
    }

    private func note(_ frames: [[UInt8]]) {
        let context = DialectContext(selfIDs: [StudioVisitor.id], room: "lobby")
        for frame in frames {
            switch frame.withUnsafeBytes({ EnvelopeDialect().decode($0, isBinary: false, context: context) }) {
            case .event(let event): log.append((now - start, event))
            case .several(let events): log += events.map { (now - start, $0) }
            case .dropped(let reason, _): Issue.record("the visitor sent what cannot be read: \(reason)")
            }
        }
    }

    var said: [String] {
        log.compactMap { if case .message(let message) = $0.event { message.text } else { nil } }
    }
    var read: [String] {
        log.flatMap { entry -> [String] in
            if case .receipt(let receipt) = entry.event { receipt.ids.map(\.rawValue) } else { [] }
        }
    }
    var typed: [Duration] {
        log.compactMap { if case .typing = $0.event { $0.at } else { nil } }
    }
    var saidAt: [Duration] {
        log.compactMap { if case .message = $0.event { $0.at } else { nil } }
    }
}

@Suite struct StudioVisitorTests {
    // MARK: - PendingRegistrations

    @Test(
        "a newcomer is greeted by name within five seconds, after two of typing",
        arguments: 1...20 as ClosedRange<UInt64>)
    func greets(seed: UInt64) throws {
        let bench = VisitorBench(seed: seed)
        bench.newcomer("ada")
        bench.wait(.seconds(60))
        #expect(bench.said.count == 1)
        #expect(bench.said.first?.contains("ada") == true)
        let said = try #require(bench.saidAt.first)
        let typed = try #require(bench.typed.first)
        #expect(said <= StudioVisitor.greetingLimit)
        #expect(said - typed == .seconds(2))
        #expect(bench.nextDeadline == nil)
    }

    @Test("newcomers of one moment share a greeting")
    func greetsTogether() {
        let bench = VisitorBench()
        for name in ["ada", "ben", "ada", "cyd"] { bench.newcomer(name) }
        bench.wait(.seconds(60))
        #expect(bench.said.count == 1)
        #expect(bench.said.first?.contains("ada, ben and cyd.") == true)
    }

    @Test("a crowd is greeted in one short line")
    func greetsCrowds() {
        let bench = VisitorBench()
        for number in 1...1000 { bench.newcomer("guest\(number)") }
        bench.wait(.seconds(60))
        #expect(bench.said.count == 1)
        #expect(bench.said.first?.contains("guest5 and others") == true)
        #expect(bench.said.first?.contains("guest6") == false)
    }

    @Test("somebody who left and came back is greeted again")
    func greetsAgain() {
        let bench = VisitorBench()
        bench.newcomer("ada")
        bench.wait(.seconds(10))
        bench.newcomer("ada")
        bench.wait(.seconds(10))
        #expect(bench.said.count == 2)
    }

    @Test("somebody who speaks without having been announced is greeted with the first answer only")
    func greetsSpeakers() {
        let bench = VisitorBench()
        bench.say("ada", "the weather is fine")
        bench.wait(.seconds(10))
        bench.say("ada", "so it is")
        bench.wait(.seconds(10))
        #expect(bench.said.map { $0.hasPrefix("Hello ada. ") } == [true, false])
    }

    @Test("somebody who was announced is not greeted a second time when they speak")
    func greetsOnce() {
        let bench = VisitorBench()
        bench.newcomer("ada")
        bench.wait(.seconds(10))
        bench.say("ada", "the weather is fine")
        bench.wait(.seconds(10))
        #expect(bench.said.count == 2)
        #expect(bench.said.last?.hasPrefix("Hello") == false)
    }

    // MARK: - The script

    struct ScriptRow: CustomTestStringConvertible, Sendable {
        var testDescription: String { message }
        var message: String
        var topic: String
    }

    @Test(
        "a message finds its row",
        arguments: [
            ScriptRow(message: "Remy: hello!", topic: "hello"), ScriptRow(message: "HI", topic: "hello"),
            ScriptRow(message: "help", topic: "help"), ScriptRow(message: "ping", topic: "ping"),
            ScriptRow(message: "show me typing please", topic: "typing"),
            ScriptRow(message: "have you read it?", topic: "receipts"),
            ScriptRow(message: "what time is it?", topic: "time"), ScriptRow(message: "thanks", topic: "thanks"),
            ScriptRow(message: "bye", topic: "goodbye"), ScriptRow(message: "why not? \r\n", topic: "question"),
            ScriptRow(message: "a thing", topic: "feature"), ScriptRow(message: "", topic: "feature"),
            ScriptRow(message: "chip thistle overtime", topic: "feature"),
            ScriptRow(message: "日本語？", topic: "feature"),
        ])
    func findsRows(row: ScriptRow) {
        #expect(StudioScript.row(for: row.message).topic == row.topic)
    }

    static let topics = StudioScript.rows + [StudioScript.question, StudioScript.features]

    @Test("every row has something to say, in one short line, to whoever asked", arguments: topics.map(\.topic))
    func rowsAreComplete(topic: String) throws {
        let row = try #require(Self.topics.first { $0.topic == topic })
        #expect(!row.texts.isEmpty)
        let facts = StudioScript.Facts(name: "ada", room: "lobby", time: "12:00:00 UTC")
        for text in row.texts.map({ $0(facts) }) {
            #expect(text.contains("ada"))
            // With a greeting before it, it must still fit an IRC line of 512 bytes.
            #expect(text.utf8.count <= 300)
            #expect(text.utf8.allSatisfy { (0x20...0x7E).contains($0) })
        }
    }

    @Test("each word belongs to one row, and each topic is one row")
    func wordsAreDistinct() {
        let words = StudioScript.rows.flatMap { Array($0.words) }
        #expect(Set(words).count == words.count)
        #expect(Set(Self.topics.map(\.topic)).count == Self.topics.count)
        #expect(words.allSatisfy { word in word.utf8.allSatisfy { (0x61...0x7A).contains($0) } })
    }

    @Test("an answer comes after typing, and texts are taken in turn")
    func answers() {
        let bench = VisitorBench()
        bench.newcomer("ada")
        bench.wait(.seconds(10))
        for _ in 0...StudioScript.features.texts.count {
            bench.say("ada", "a thing")
            bench.wait(.seconds(10))
        }
        let answers = Array(bench.said.dropFirst())
        #expect(answers.count == StudioScript.features.texts.count + 1)
        #expect(Set(answers).count == StudioScript.features.texts.count)
        #expect(answers.first == answers.last)
        #expect(bench.typed.count == bench.said.count)
    }

    @Test("typing can be seen for eight seconds, refreshed before it would expire")
    func typesLong() throws {
        let bench = VisitorBench()
        bench.say("ada", "typing")
        bench.wait(.seconds(20))
        let said = try #require(bench.saidAt.first)
        let typed = bench.typed
        #expect(typed.first.map { said - $0 } == .seconds(8))
        #expect(zip(typed, typed.dropFirst() + [said]).allSatisfy { $1 - $0 < .seconds(3) })
    }

    @Test("the time is told in words")
    func tellsTime() {
        let bench = VisitorBench()
        bench.wait(.seconds(4))
        bench.say("ada", "time")
        bench.wait(.seconds(10))
        #expect(bench.said.first?.contains("03:19:00 UTC") == true)
    }

    // MARK: - Barriers

    struct PingRow: CustomTestStringConvertible, Sendable {
        var testDescription: String { message }
        var message: String
        var answer: String?
    }

    @Test(
        "ping-X is answered pong-X at once, with the sender named",
        arguments: [
            PingRow(message: "ping-42", answer: "ada: pong-42"),
            PingRow(message: "Remy: please PING-aB_c-9, now", answer: "ada: pong-aB_c-9"),
            PingRow(message: "ping- ping-7", answer: "ada: pong-7"),
            PingRow(message: "(ping-1)", answer: "ada: pong-1"),
            PingRow(
                message: "ping-" + String(repeating: "x", count: 5000),
                answer: "ada: pong-" + String(repeating: "x", count: 64)),
            PingRow(message: String(repeating: "ping- ", count: 5000), answer: nil),
            PingRow(message: "shopping-list", answer: nil), PingRow(message: "éping-1", answer: nil),
            PingRow(message: "pong-1", answer: nil), PingRow(message: "ping-", answer: nil),
        ])
    func answersBarriers(row: PingRow) {
        let bench = VisitorBench()
        bench.say("ada", row.message)
        #expect(bench.said == (row.answer.map { [$0] } ?? []))
    }

    @Test("a barrier is no reason for another answer, but it is read")
    func barriersAreRead() {
        let bench = VisitorBench()
        let id = bench.say("ada", "ping-1")
        bench.wait(.seconds(60))
        #expect(bench.said == ["ada: pong-1"])
        #expect(bench.read == [id])
    }

    // MARK: - Receipts

    @Test("every message of others is read one second after it came, in order")
    func readsEverything() {
        let bench = VisitorBench()
        let first = bench.say("ada", "one")
        bench.wait(.milliseconds(400))
        let second = bench.say("ben", "two")
        bench.wait(.milliseconds(599))
        #expect(bench.read == [])
        bench.wait(.milliseconds(1))
        #expect(bench.read == [first])
        bench.wait(.milliseconds(400))
        #expect(bench.read == [first, second])
    }

    @Test("a flood is read up to the limit and answered once")
    func boundsFloods() {
        let bench = VisitorBench()
        for number in 0..<(StudioVisitor.maxReceipts * 3) { bench.say("ada", "flood \(number)") }
        bench.wait(.seconds(60))
        #expect(bench.read.count == StudioVisitor.maxReceipts)
        #expect(bench.said.count == 1)
        // Not for ever: afterwards all is as before.
        let id = bench.say("ada", "sorry")
        bench.wait(.seconds(60))
        #expect(bench.read.last == id)
        #expect(bench.said.count == 2)
    }

    // MARK: - Restraint

    @Test("one answer a person, and five at once")
    func boundsAnswers() {
        let bench = VisitorBench()
        for number in 1...8 {
            bench.say("guest\(number)", "hello")
            bench.say("guest\(number)", "hello again")
        }
        bench.wait(.seconds(60))
        #expect(bench.said.count == StudioVisitor.maxAnswers)
    }

    @Test("what is said while it is about to answer is what it answers")
    func answersTheLast() {
        let bench = VisitorBench()
        bench.say("ada", "hello")
        bench.wait(.seconds(2))
        bench.say("ada", "what time is it")
        bench.wait(.seconds(2))
        #expect(bench.said.count == 1)
        #expect(bench.said.first?.hasPrefix("Hello ada. ada: it is ") == true, "\(bench.said)")
        bench.wait(.seconds(60))
        bench.say("ada", "hello")
        bench.say("ada", "typing")
        bench.wait(.seconds(7))
        #expect(bench.said.count == 1)
        bench.wait(.seconds(60))
        #expect(bench.said.last?.contains("eight seconds of typing") == true && bench.said.count == 2)
    }

    @Test("a greeting is not kept waiting by answers")
    func greetsDuringAnswers() {
        let bench = VisitorBench()
        for number in 1...8 { bench.say("guest\(number)", "typing") }
        bench.newcomer("ada")
        bench.wait(StudioVisitor.greetingLimit)
        #expect(bench.said.count == 1)
        #expect(bench.said.first?.contains("ada") == true)
    }

    @Test("asked to stop, it says no more until it hears its name; it goes on reading, and answers barriers")
    func isQuietWhenAsked() {
        let bench = VisitorBench()
        bench.say("ada", "please stop typing")
        bench.wait(.seconds(30))
        #expect(bench.said.count == 1)
        bench.say("ada", "hello")
        bench.say("ben", "are you there?")
        bench.joined("cyd")
        bench.say("ada", "ping-1")
        bench.wait(.seconds(30))
        #expect(bench.said.count == 2)
        #expect(bench.said.last?.contains("pong-1") == true)
        bench.say("ada", "Remy, hello")
        bench.wait(.seconds(30))
        #expect(bench.said.count == 3)
        bench.say("ben", "and now?")
        bench.wait(.seconds(30))
        #expect(bench.said.count == 4)
    }

    @Test("a person who joins again after an outage is not greeted again")
    func greetsOnceAfterAnOutage() {
        let bench = VisitorBench()
        bench.joined("ada")
        bench.wait(.seconds(30))
        bench.joined("ada")
        bench.wait(.seconds(30))
        #expect(bench.said.count == 1)
    }

    @Test("it does not answer itself, nor a visitor of another room")
    func ignoresItself() {
        let bench = VisitorBench()
        bench.say(StudioVisitor.name, "ping-1 hello", id: StudioVisitor.id.rawValue)
        bench.say("Impostor", "hello", id: StudioVisitor.id.rawValue.lowercased())
        bench.newcomer(StudioVisitor.name)
        #expect(bench.nextDeadline == nil)
        #expect(bench.log.isEmpty)
    }

    @Test("to an empty room it says nothing, and does not make up for it")
    func keepsSilence() {
        let bench = VisitorBench()
        bench.newcomer("ada")
        bench.say("ben", "hello")
        bench.hasCompany = false
        bench.wait(.seconds(30))
        bench.hasCompany = true
        bench.wait(.seconds(30))
        #expect(bench.log.isEmpty)
        #expect(bench.nextDeadline == nil)
        bench.newcomer("ada")
        bench.wait(.seconds(30))
        #expect(bench.said.count == 1)
        #expect(bench.said.first?.contains("ada.") == true)
    }

    struct FrameRow: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var frame: String
    }

    @Test(
        "a frame that asks for nothing gets nothing",
        arguments: [
            FrameRow(testDescription: "empty", frame: ""), FrameRow(testDescription: "not JSON", frame: "hello"),
            FrameRow(testDescription: "an array", frame: "[]"), FrameRow(testDescription: "no keys", frame: "{}"),
            FrameRow(testDescription: "typing", frame: #"{"event":"typing","sender_id":"a","body":""}"#),
            FrameRow(
                testDescription: "a receipt", frame: #"{"event":"readReceipt","message_id":"m","sender_id":"a"}"#),
            FrameRow(testDescription: "a message of nobody", frame: #"{"event":"message","body":"hello"}"#),
            FrameRow(
                testDescription: "ids too long to keep",
                frame: #"{"event":"message","body":"hello","message_id":"\#(String(repeating: "m", count: 300))","#
                    + #""sender_id":"\#(String(repeating: "s", count: 300))"}"#),
            FrameRow(testDescription: "deep", frame: String(repeating: "[", count: 100_000)),
        ])
    func ignoresFrames(row: FrameRow) {
        let bench = VisitorBench()
        bench.feed(Array(row.frame.utf8))
        #expect(bench.nextDeadline == nil)
        #expect(bench.log.isEmpty)
    }

    struct NameRow: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var name: String?
        var printed: String
    }

    @Test(
        "a name is printed without what could harm a line",
        arguments: [
            NameRow(testDescription: "plain", name: "ada", printed: "ada"),
            NameRow(testDescription: "none", name: nil, printed: "friend"),
            NameRow(testDescription: "blank", name: " \r\n", printed: "friend"),
            NameRow(testDescription: "line breaks", name: "a\r\nQUIT\u{2028}", printed: "aQUIT"),
            NameRow(testDescription: "direction", name: "a\u{202E}b", printed: "ab"),
            NameRow(
                testDescription: "long", name: String(repeating: "é", count: 1000),
                printed: String(repeating: "é", count: 40)),
        ])
    func printsNames(row: NameRow) {
        #expect(StudioScript.printable(row.name) == row.printed)
    }

    @Test("the same seed tells the same story")
    func isDeterministic() {
        func story(_ seed: UInt64) -> [String] {
            let bench = VisitorBench(seed: seed)
            bench.newcomer("ada")
            bench.say("ben", "hello")
            bench.wait(.seconds(30))
            return bench.log.map { "\($0.at) \($0.event)" }
        }
        #expect(story(1) == story(1))
        #expect(story(1) != story(2))
    }

    @Test("its ids are random UUIDs in upper case")
    func makesIDs() throws {
        let bench = VisitorBench()
        bench.say("ada", "ping-1")
        bench.say("ada", "ping-2")
        let ids = bench.log.compactMap { entry -> String? in
            if case .message(let message) = entry.event { message.id?.rawValue } else { nil }
        }
        #expect(Set(ids).count == 2)
        for id in ids {
            let form = id.utf8.map { $0 == UInt8(ascii: "-") ? "-" : ASCII.isHexDigit($0) ? "x" : "?" }.joined()
            #expect(form == "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
            #expect(id == id.uppercased())
            #expect(Array(id.utf8)[14] == UInt8(ascii: "4"))
            #expect("89AB".utf8.contains(Array(id.utf8)[19]))
        }
    }
}

import BridgeTypes
import Configuration
import Foundation
import Testing

@testable import ChatBridge

/// Operators search the log by its events: each that the program can write is caused by a test that looks at its level and its
/// metadata.
@Suite("Events in the log, all of them")
struct LogEventCoverageTests {
    /// Checked where its whole line is.
    private static let elsewhere = [
        "admin-closed": "AdminSocketTests.noSocket", "admin-in-use": "AdminSocketTests.twoBridges",
        "admin-refused": "AdminSocketTests.otherUser", "admin-request": "AdminSocketTests.kick",
        "accept-certificate-ending": "StatusRoutesTests.logged", "backend-token-late": "StatusRoutesTests.logged",
        "queue-waiting": "StatusRoutesTests.logged",
        "mirror-away": "MirrorQueueTests.aToolThatIsAway", "mirror-back": "MirrorQueueTests.aToolThatIsAway",
        "mirror-closed": "MirrorQueueTests.aHookThatIsGone",
        "mirror-gave-up": "MirrorQueueTests.whatIsTooOldIsGivenUpAndTold",
        "mirror-refused": "MirrorQueueTests.whatIsRefusedIsPassedOver",
        "mirror-read-failed": "MirrorQueueTests.aStoreThatFails",
        "mirror-hook-refused": "mirrors_hooks.a_wrong_secret",
        "mirror-login-refused": "NetworkConversationTests.registration",
        "mirror-channel-lost": "mirrors_irc.kicked_and_back",
        "mirror-relaymsg-refused": "NetworkConversationTests.speaking",
        "log-lines-dropped": "LoggingTests.fullPipe", "backend-lifetime-odd": "LoginEndTests.oddLifetimes",
    ]

    private static let repository = TranscriptTests.folder.appendingPathComponent("../../..").standardizedFileURL

    private static func texts(_ folder: String, _ suffix: String) -> [String] {
        let root = repository.appendingPathComponent(folder)
        let paths = FileManager.default.enumerator(atPath: root.path)?.compactMap { $0 as? String } ?? []
        return paths.filter { $0.hasSuffix(suffix) }.compactMap {
            try? String(contentsOf: root.appendingPathComponent($0), encoding: .utf8)
        }
    }

    /// The arguments of a call whose opening parenthesis stands before `text`.
    private static func arguments(_ text: Substring) -> [String] {
        var (found, depth, isQuoted, isEscaped) = ([""], 0, false, false)
        for character in text {
            if isQuoted {
                if character == "\"", !isEscaped { isQuoted = false }
                isEscaped = character == "\\" && !isEscaped
            } else if character == "\"" {
                isQuoted = true
            } else if "([{".contains(character) {
                depth += 1
            } else if ")]}".contains(character) {
                depth -= 1
                if depth < 0 { break }
            } else if character == ",", depth == 0 {
                found.append("")
                continue
            }
            found[found.count - 1].append(character)
        }
        return found
    }

    private struct Written {
        var events: Set<String> = []
        /// Calls whose event is no literal.
        var unnamed: [String] = []

        mutating func add(_ argument: String?, _ call: Substring) {
            let names = (argument ?? "").matches(of: #/"([a-z]+(?:-[a-z]+)*)"/#).map { String($0.1) }
            if names.isEmpty { unnamed.append(String(call.prefix(80))) }
            events.formUnion(names)
        }
    }

    private static let written: Written = {
        var written = Written()
        for text in texts("Sources", ".swift") {
            for call in text.matches(of: #/(?:note|BridgeNote|noteSparingly)\(/#) {
                let arguments = arguments(text[call.range.upperBound...])
                // A level comes first, or one of two.
                guard arguments[0].contains(#/(?:^|[ \n])\.(?:error|warn|info|debug|trace)\s*$/#) else { continue }
                written.add(arguments.dropFirst().first, text[call.range.lowerBound...])
            }
            for call in text.matches(of: #/log\.(?:error|warn|info|debug|trace)\(/#) {
                written.add(arguments(text[call.range.upperBound...]).first, text[call.range.lowerBound...])
            }
            // What is said in rooms has an event for each direction.
            for call in text.matches(of: #/noteChat\("([a-z]+)"/#) { written.events.insert("message-" + call.1) }
            for field in text.matches(of: #/event: "([a-z]+(?:-[a-z]+)+)"/#) { written.events.insert(String(field.1)) }
        }
        return written
    }()

    private static let caused: Set<String> = {
        var caused = Set(LogEventTests.rows.map(\.event))
        for text in texts("Tests/BridgeTests/Transcripts", ".txt") {
            caused.formUnion(text.matches(of: #/(?m)^B< \[([a-z-]+): [a-z]+/#).map { String($0.1) })
        }
        for text in texts("Tests/EndToEnd", ".py") {
            caused.formUnion(
                text.matches(of: #/\.logged\(\s*"([a-z-]+)", "(?:error|warn|info|debug|trace)"/#).map { String($0.1) })
        }
        return caused
    }()

    @Test("every event has a row in the table of docs/EVENTS.md, and every row an event")
    func explained() {
        let names = LogEventTable.all.map(\.name)
        #expect(Set(names).count == names.count)
        let known = Self.written.events.union(Self.elsewhere.keys)
        #expect(known.subtracting(names).sorted() == [], "without a row")
        #expect(Set(names).subtracting(known).sorted() == [], "rows without an event")
    }

    @Test("a row has the levels that its tests see")
    func levels() {
        for row in LogEventTests.rows {
            let seen = Set(row.notes.compactMap { $0.split(separator: " ").first.map(String.init) })
            let said = Set(LogEventTable.all.first { $0.name == row.event }?.levels.map(\.rawValue) ?? [])
            #expect(seen.isSubset(of: said), "\(row.event)")
        }
    }

    @Test("every event is caused by a test, and no test waits for one that is not there")
    func complete() {
        #expect(Self.written.events.count > 80)
        // One is how a note of what is said in rooms is made, see above.
        #expect(Self.written.unnamed.count <= 1, "\(Self.written.unnamed)")
        let missing = Self.written.events.subtracting(Self.caused).subtracting(Self.elsewhere.keys)
        #expect(missing.sorted() == [], "no test causes them and looks at level and metadata")
        #expect(Self.caused.subtracting(Self.written.events).sorted() == [], "the program writes no such event")
    }
}

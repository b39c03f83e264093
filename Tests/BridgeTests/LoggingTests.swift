import BridgeTestSupport
import Foundation
import Testing

@testable import ChatBridge
@testable import Configuration

/// Keeps what was written; each test has one of its own and uses it from one thread.
private final class RecordingSink: LogSink, @unchecked Sendable {
    private(set) var lines: [String] = []

    func write(
        _ level: LogLevel, _ subsystem: LogSubsystem, _ event: String, _ message: String,
        _ metadata: [(key: String, value: LogValue)]
    ) {
        let record = LogRecord(
            milliseconds: 0, level: level, subsystem: subsystem, event: event, message: message, metadata: metadata)
        lines.append(String(decoding: LogFormatter.line(record, .journal), as: UTF8.self))
    }
}

private func line(
    _ message: String, _ metadata: [(key: String, value: LogValue)] = [], _ rendering: LogRendering
) -> String {
    let record = LogRecord(
        milliseconds: 1_795_230_245_678, level: .warn, subsystem: .upstream, event: "upstream-lost", message: message,
        metadata: metadata)
    return String(decoding: LogFormatter.line(record, rendering), as: UTF8.self)
}

@Suite("Logging")
struct LoggingTests {
    // MARK: - Forms

    static let metadata: [(key: String, value: LogValue)] = [
        ("room", "lobby"), ("close-code", 1006), ("clean", false), ("delay", LogValue(1.5)),
    ]

    @Test("a line for people")
    func text() {
        #expect(
            line("link lost", Self.metadata, .text(colored: false))
                == "2026-11-21T03:04:05.678Z WARN  upstream: link lost event=upstream-lost room=lobby close-code=1006 "
                + "clean=false delay=1.5\n")
        #expect(
            line("link lost", [("room", "lobby")], .text(colored: true))
                == "\u{1B}[2m2026-11-21T03:04:05.678Z\u{1B}[0m \u{1B}[33mWARN\u{1B}[0m  upstream: link lost "
                + "\u{1B}[2mevent=\u{1B}[0mupstream-lost \u{1B}[2mroom=\u{1B}[0mlobby\n")
    }

    @Test("a line for the journal begins with its priority and has no time")
    func journal() {
        #expect(
            line("link lost", [("room", "lobby")], .journal)
                == "<4>upstream: link lost event=upstream-lost room=lobby\n")
    }

    @Test("a line for machines is one JSON object")
    func json() throws {
        let text = line("link \"lost\"\n", Self.metadata, .json)
        #expect(
            text
                == #"{"ts":"2026-11-21T03:04:05.678Z","level":"warn","subsystem":"upstream","event":"upstream-lost","#
                + #""msg":"link \"lost\"\n","room":"lobby","close-code":1006,"clean":false,"delay":1.5}"# + "\n")
        #expect(try JSONSerialization.jsonObject(with: Data(text.utf8)) is [String: Any])
    }

    @Test("a metadata key never repeats one of the line's own")
    func reservedKeys() {
        let text = line("m", [("msg", "a"), ("room", "b"), ("room", "c"), ("x", LogValue(Double.nan))], .json)
        #expect(text.hasSuffix(#""msg":"m","msg_":"a","room":"b","room_":"c","x":null}"# + "\n"))
    }

    @Test(
        "whatever a peer sends, a line stays one line and shows no control",
        arguments: [
            ("a\nb", #""a\nb""#), ("a b", #""a b""#), ("", #""""#), ("a=b", #""a=b""#), ("a\"b\\", #""a\"b\\""#),
            ("\u{1B}[31m", #""\u{1b}[31m""#), ("\u{9B}2J", #"\u{9b}2J"#), ("\u{202E}x", #"\u{202e}x"#),
            ("\u{2028}", #"\u{2028}"#), ("\0", #""\u{0}""#), ("grüß", "grüß"), ("👩‍👩‍👧", "👩‍👩‍👧"),
        ])
    func escapes(_ value: String, _ expected: String) throws {
        let text = line("m", [("v", LogValue(value))], .text(colored: false))
        #expect(text.hasSuffix(" v=\(expected)\n"))

        let json = line("m", [("v", LogValue(value))], .json)
        #expect(json.unicodeScalars.dropLast().allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) })
        let object = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
        #expect(object["v"] as? String == value)
    }

    @Test("an overlong value is cut and marked")
    func overlong() {
        let text = line("m", [("v", LogValue(String(repeating: "ü", count: 10_000)))], .json)
        #expect(text.utf8.count < LogText.maxValueByteCount + 300)
        #expect(text.contains("…"))
    }

    @Test(
        "time is UTC with milliseconds, before 1970 and over leap days too",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"), (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] as [(Int64, String)])
    func time(_ milliseconds: Int64, _ expected: String) {
        #expect(LogTime.format(milliseconds: milliseconds) == expected)
    }

    @Test("a secret in metadata or a message is blank")
    func secret() {
        let secret = Secret("hunter2")
        let text = line("token \(secret)", [("a", "\(secret)"), ("b", LogValue(secret))], .json)
        #expect(!text.contains("hunter2"))
        #expect(text.contains(#""a":"***","b":"***""#))
    }

    // MARK: - Levels

    @Test("below the level nothing is written and nothing evaluated", arguments: LogLevel.allCases)
    func levels(_ level: LogLevel) {
        let sink = RecordingSink()
        let logger = Logger(subsystem: .room, configuration: LogConfiguration(level: level), sink: sink)
        var evaluated = 0
        func message() -> String {
            evaluated += 1
            return "m"
        }
        for each in LogLevel.allCases { logger.log(each, "e", message(), ["level": "\(each.rawValue)"]) }
        let expected = LogLevel.allCases.filter { $0 <= level }
        #expect(sink.lines.map { String($0.split(separator: "=").last?.dropLast() ?? "") } == expected.map(\.rawValue))
        #expect(evaluated == expected.count)
    }

    @Test("a subsystem's own level counts over the general one")
    func subsystemLevel() {
        var configuration = LogConfiguration(level: .warn)
        configuration.levels = [LogSubsystemLevel(subsystem: .upstream, level: .trace)]
        let sink = RecordingSink()
        #expect(Logger(subsystem: .upstream, configuration: configuration, sink: sink).isEnabled(.trace))
        #expect(!Logger(subsystem: .room, configuration: configuration, sink: sink).isEnabled(.info))
    }

    // MARK: - Where lines go

    @Test(
        "auto is text on a terminal, the journal's form when the stream is the journal, JSON otherwise",
        arguments: [
            (LogFormat.auto, true, "", LogRendering.text(colored: true)), (.auto, false, "1:2", .journal),
            (.auto, false, "1:3", .json), (.auto, false, "", .json), (.auto, true, "1:2", .text(colored: true)),
            (.json, true, "", .json), (.text, false, "1:2", .text(colored: false)),
        ] as [(LogFormat, Bool, String, LogRendering)])
    func rendering(_ format: LogFormat, _ isTerminal: Bool, _ journal: String, _ expected: LogRendering) {
        let resolved = LogRendering.resolve(
            format, color: .auto, isTerminal: isTerminal, stream: (1, 2), variables: ["JOURNAL_STREAM": journal])
        #expect(resolved == expected)
    }

    @Test("a file is appended to, a line at a time, from many threads")
    func file() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
        defer { try? FileManager.default.removeItem(atPath: path) }
        var configuration = LogConfiguration()
        configuration.to = .file(path)
        for round in 0..<2 {
            let sink = try DescriptorLogSink.open(configuration, color: .auto, variables: [:])
            let logger = Logger(subsystem: .main, configuration: configuration, sink: sink)
            await withTaskGroup(of: Void.self) { group in
                for task in 0..<8 {
                    group.addTask {
                        for index in 0..<50 {
                            logger.info("e", String(repeating: "x", count: 500), ["n": "\(round)/\(task)/\(index)"])
                        }
                    }
                }
            }
        }
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == 800)
        #expect(lines.allSatisfy { $0.hasPrefix("{\"ts\":") && $0.hasSuffix("\"}") })
        #expect(Set(lines.compactMap { $0.split(separator: "\"n\":").last }).count == 800)
    }

    /// Lines within PIPE_BUF go out whole or not; longer ones may go out in part.
    @Test("a full pipe drops lines, and the next that fits says how many", arguments: [700, 2000])
    func fullPipe(_ byteCount: Int) throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        defer { _ = close(ends[0]) }
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        let sink = DescriptorLogSink(descriptor: ends[1], closing: true, rendering: .journal, clock: { 0 })
        let logger = Logger(subsystem: .main, configuration: LogConfiguration(), sink: sink)
        let long = String(repeating: "x", count: byteCount)
        for _ in 0..<200 { logger.info("e", long, ["a": "\(long)", "b": "\(long)", "end": true]) }

        func drain() -> String {
            var bytes = [UInt8](repeating: 0, count: 1 << 20)
            _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
            var all: [UInt8] = []
            while true {
                let count = read(ends[0], &bytes, bytes.count)
                if count <= 0 { return String(decoding: all, as: UTF8.self) }
                all += bytes[..<count]
            }
        }
        let before = drain().split(separator: "\n")
        logger.info("e", "after")
        let after = drain().split(separator: "\n")
        let whole = before.filter { $0.hasSuffix("end=true") }.count
        #expect(whole < 200)
        #expect(
            after.map(String.init) == [
                "<4>main: log lines were dropped, their reader was too slow event=log-lines-dropped count=\(200 - whole)",
                "<6>main: after event=e",
            ])
    }

    @Test("a log that cannot be opened says why")
    func unopenable() {
        var configuration = LogConfiguration()
        configuration.to = .file("/nonexistent/dir/log")
        #expect {
            try DescriptorLogSink.open(configuration, color: .auto, variables: [:])
        } throws: { error in
            "\(error)" == "cannot open the log \"/nonexistent/dir/log\": No such file or directory"
        }
    }
}

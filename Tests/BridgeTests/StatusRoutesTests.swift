import BridgeCore
import BridgeTestSupport
import BridgeTypes
import ChatModel
import Digests
import HTTPProtocol
import IRCServer
import JSONText
import Studio
import Testing
import Transport
import Upstream
import WireBytes

@testable import ChatBridge
@testable import Configuration
@testable import Rooms

@Suite("Metrics and status")
struct StatusRoutesTests {
    // MARK: - Text

    private static let row = MetricRow(
        .counter, "chatbridge_frobs_total", "Says \"a\\b\".", labels: ["room", "kind"]
    ) { _ in [] }

    private static let samples: [MetricRow.Sample] = [
        .init(["lobby", "x\"y"], 3), .init(["lobby", "a"], 1.5), .init(["ops", "a"], 2),
    ]

    private static func text(
        _ row: MetricRow, _ samples: [MetricRow.Sample], _ format: MetricsText.Format = .prometheus,
        hasRoomLabels: Bool = true
    ) -> String {
        var text = MetricsText(format, hasRoomLabels: hasRoomLabels)
        text.append(row, samples)
        return text.text
    }

    @Test("samples are sorted, escaped and typed, and OpenMetrics names the family without _total")
    func lines() {
        #expect(
            Self.text(Self.row, Self.samples) == """
                # HELP chatbridge_frobs_total Says "a\\\\b".
                # TYPE chatbridge_frobs_total counter
                chatbridge_frobs_total{room="lobby",kind="a"} 1.5
                chatbridge_frobs_total{room="lobby",kind="x\\"y"} 3
                chatbridge_frobs_total{room="ops",kind="a"} 2

                """)
        #expect(
            Self.text(Self.row, [], .openMetrics) == ""
                && Self.text(Self.row, Self.samples, .openMetrics).hasPrefix(
                    """
                    # HELP chatbridge_frobs Says \\"a\\\\b\\".
                    # TYPE chatbridge_frobs counter
                    chatbridge_frobs_total{room="lobby",kind="a"} 1.5
                    """)
        )
    }

    @Test(
        "without room labels rooms are merged by what their values mean",
        arguments: [
            ("chatbridge_a_messages", 3.5), ("chatbridge_a_oldest_seconds", 2.0),
            ("chatbridge_a_timestamp_seconds", 1.5),
        ])
    func merged(name: String, value: Double) {
        let row = MetricRow(.gauge, name, "h", labels: ["room"]) { _ in [] }
        let text = Self.text(row, [.init(["lobby"], 1.5), .init(["ops"], 2)], hasRoomLabels: false)
        let number = value == 2 ? "2" : "\(value)"
        #expect(text.hasSuffix("\n\(name) \(number)\n"))
    }

    @Test("a histogram's buckets are cumulative, and end with all")
    func histogram() {
        var histogram = Histogram()
        histogram.observe(.microseconds(500))
        histogram.observe(.milliseconds(3), times: 2)
        histogram.observe(.seconds(9))
        let row = MetricRow(.histogram, "chatbridge_h_seconds", "h", labels: ["op"]) { _ in [] }
        let lines = Self.text(row, [.init(["a"], histogram)]).split(separator: "\n").map(String.init)
        #expect(lines.contains("chatbridge_h_seconds_bucket{op=\"a\",le=\"0.0005\"} 1"))
        #expect(lines.contains("chatbridge_h_seconds_bucket{op=\"a\",le=\"0.005\"} 3"))
        #expect(lines.contains("chatbridge_h_seconds_bucket{op=\"a\",le=\"2.5\"} 3"))
        #expect(
            lines.suffix(3) == [
                "chatbridge_h_seconds_bucket{op=\"a\",le=\"+Inf\"} 4", "chatbridge_h_seconds_sum{op=\"a\"} 9.0065",
                "chatbridge_h_seconds_count{op=\"a\"} 4",
            ])
    }

    @Test("names are unique and follow Prometheus's rules, and the page has the table")
    func table() throws {
        let rows = MetricsTable.rows
        #expect(Set(rows.map(\.name)).count == rows.count)
        for row in rows {
            #expect(row.name.hasPrefix("chatbridge_") || row.name.hasPrefix("process_"))
            #expect((row.kind == .counter) == row.name.hasSuffix("_total"), "\(row.name)")
            #expect(!row.labels.contains("le") && !row.help.isEmpty && !row.help.contains("|"))
        }
        let page = try RepositoryFile.text("docs/METRICS.md")
        #expect(
            page.contains("<!-- made: metrics -->\n\n\(MetricsTable.page)\n\n<!-- end -->\n"), "scripts/generate-docs")
    }

    @Test(
        "alerts and dashboard ask for metrics that exist",
        arguments: [
            "config/prometheus/chatbridge.rules.yml", "config/prometheus/chatbridge.test.yml",
            "config/grafana/chatbridge.json",
        ])
    func names(path: String) throws {
        let known = Set(MetricsTable.rows.map(\.name))
        let asked = try RepositoryFile.text(path).matches(of: #/(?:chatbridge|process)_[a-z_]+/#).map { String($0.0) }
        #expect(!asked.isEmpty)
        for name in asked where !known.contains(name) {
            #expect(name.hasSuffix("_bucket") && known.contains(String(name.dropLast("_bucket".count))), "\(name)")
        }
    }

    // MARK: - The token

    @Test(
        "a request is admitted with the one token, in a field or in its address",
        arguments: [
            ("Bearer 0123456789abcdef", nil, true), ("bearer  0123456789abcdef", nil, true),
            ("Bearer 0123456789abcdeF", nil, false), ("Basic 0123456789abcdef", nil, false), (nil, nil, false),
            (nil, "token=0123456789abcdef", true), (nil, "x=1&token=%30123456789abcdef", true),
            (nil, "token=0123456789abcde", false), (nil, "token=%3", false), (nil, "token=", false),
            (nil, "token=wrong&token=0123456789abcdef", false), ("Bearer x", "token=0123456789abcdef", false),
        ] as [(String?, String?, Bool)])
    func token(field: String?, query: String?, isAdmitted: Bool) {
        let headers = HTTPHeaders(field.map { [("Authorization", $0)] } ?? [])
        #expect(
            StatusRoutes.admits(headers, query: query, SecretBytes("0123456789abcdef".utf8)) == isAdmitted)
        #expect(StatusRoutes.admits(headers, query: query, nil))
    }

    // MARK: - Troubles

    private static func status(
        storage: StoreCondition = .sound, _ change: (inout RoomStatus) -> Void = { _ in }
    ) throws -> BridgeStatus {
        let room = RoomSettings(name: "lobby", dialect: StubDialect { _ in }, url: try HTTPURL(parsing: "ws://a/"))
        let harness = BridgeHarness(settings: BridgeSettings(serverName: "b", instanceID: "t", rooms: [room]))
        harness.start()
        harness.advance(by: .seconds(600))
        var status = harness.bridge.status(now: harness.clock.now)
        status.storage = storage
        change(&status.rooms[0])
        return status
    }

    private static func ago(_ seconds: Int64) -> ChatTimestamp {
        ChatTimestamp(milliseconds: ManualClock.epochMilliseconds + 600_000 - seconds * 1000)
    }

    static let cases: [(@Sendable () throws -> BridgeStatus, String?)] = [
        ({ try status() }, nil),
        ({ try status(storage: .failing("the disk is full")) }, "error storage: the disk is full"),
        (
            {
                try status {
                    $0.state.link = .waiting
                    $0.state.reason = "the server answered 503"
                    ($0.since, $0.retryIn) = (ago(90), .seconds(120))
                }
            }, "error room lobby: down for 90 s: the server answered 503; next try in 2 min"
        ),
        (
            {
                try status {
                    $0.state.link = .waiting
                    $0.state.reason = "the server answered 401"
                    ($0.since, $0.retryIn, $0.awaitsCredentials) = (ago(90), .seconds(840), true)
                }
            },
            "error room lobby: down for 90 s: the server answered 401; next try in 14 min, or within 10 s of other credentials"
        ),
        (
            { try status { ($0.misread, $0.understandsNothing) = (3, true) } },
            "error room lobby: none of the 0 frames that came was understood"
        ),
        (
            { try status { $0.misread = 3 } },
            "warning room lobby: no message came, and 3 frames had not what the dialect says"
        ),
        ({ try status { $0.misread = 2 } }, nil),
        (
            { try status { $0.historyFailure = "the server answered 500" } },
            "warning room lobby: its history does not come: the server answered 500"
        ),
        (
            {
                try status {
                    let traffic = RoomTraffic()
                    traffic.shown(at: ago(5))
                    ($0.misread, $0.down) = (10, traffic.down)
                }
            }, nil
        ),
        ({ try status { $0.tokenEndsAt = ago(120) } }, "error room lobby: its token ended 2 min ago"),
        ({ try status { $0.tokenEndsAt = ago(-20) } }, "warning room lobby: its token ends in 20 s"),
        ({ try status { $0.tokenEndsAt = ago(-50) } }, nil),
        (
            { try status { ($0.queued, $0.oldestQueuedFor, $0.isPaced) = (7, .seconds(45), true) } },
            "warning room lobby: 7 of 1000 messages wait to be sent, the oldest for 45 s"
        ),
        (
            { try status { ($0.queued, $0.oldestQueuedFor) = (7, .seconds(45)) } },
            "warning room lobby: 7 of 1000 messages wait, the oldest for 45 s"
        ),
        ({ try status { ($0.queued, $0.oldestQueuedFor) = (7, .seconds(3)) } }, nil),
        (
            { try status { ($0.queued, $0.oldestQueuedFor) = (1000, .seconds(3)) } },
            "error room lobby: 1000 of 1000 messages wait, the oldest for 3 s"
        ),
    ]

    @Test("a trouble is told, with how bad it is", arguments: cases.indices)
    func trouble(index: Int) throws {
        let (make, expected) = Self.cases[index]
        let found = StatusTrouble.all(try make(), certificates: [])
        #expect(found.map { "\($0.level.rawValue) \($0.subject): \($0.text)" } == (expected.map { [$0] } ?? []))
    }

    @Test(
        "a mirror whose tool takes nothing is told, and is worse where that has no place for it any more",
        arguments: [
            (.idle, nil, []),
            (
                .away, "the server answered 503",
                ["warning mirror team: the tool has taken nothing for 6 min: the server answered 503"]
            ),
            (
                .closed, "the server answered 404",
                ["error mirror team: the tool has taken nothing for 6 min: the server answered 404"]
            ),
        ] as [(MirrorStatus.State, String?, [String])])
    func mirrors(_ state: MirrorStatus.State, _ reason: String?, _ expected: [String]) throws {
        var configuration = MirrorConfiguration()
        (configuration.name, configuration.kind, configuration.rooms) = ("team", .json, ["lobby"])
        let mirror = Mirror(
            try MirrorPlan(configuration, installation: "i", environment: testEnvironment()), after: nil, stored: [],
            underWay: [], random: AnyRandomNumberGenerator(SeededGenerator(seed: 1)))
        var status = MirrorStatus(mirror, NetworkDriver { _ in })
        (status.state, status.since, status.reason) = (state, reason.map { _ in Self.ago(370) }, reason)
        let found = StatusTrouble.all(try Self.status(), certificates: [], mirrors: [status])
        #expect(found.map { "\($0.level.rawValue) \($0.subject): \($0.text)" } == expected)
    }

    @Test("certificates are told from two weeks before their end, behind what is worse")
    func certificates() throws {
        let at = try Self.status().at.milliseconds / 1000
        let found = StatusTrouble.all(
            try Self.status(),
            certificates: [("ircs://a", at + 86_400 * 6), ("ircs://b", at + 86_400 * 60), ("ircs://c", at - 7200)].map {
                CertificateEnd(listener: $0.0, at: ChatTimestamp(milliseconds: $0.1 * 1000))
            })
        #expect(found.map(\.subject) == ["certificate of ircs://c", "certificate of ircs://a"])
        #expect(found.map(\.level) == [.error, .warning])
    }

    @Test("a trouble is logged when it begins and when it gets worse, with what to do; not those with own events")
    func logged() {
        var notes: [BridgeNote] = []
        let log = TroubleLog { notes.append($0) }
        func trouble(
            _ kind: StatusTrouble.Kind, _ level: StatusTrouble.Level, _ name: String = "lobby"
        ) -> StatusTrouble { StatusTrouble(kind: kind, level: level, name: name, text: "so it is") }
        log.look([trouble(.link, .error), trouble(.storage, .error), trouble(.queue, .warning)])
        log.look([trouble(.queue, .warning), trouble(.token, .error)])
        log.look([trouble(.queue, .error), trouble(.token, .warning), trouble(.certificate, .warning, "ircs://a")])
        log.look([])
        log.look([trouble(.certificate, .warning, "ircs://a")])
        #expect(
            notes.map { "\($0.level) \($0.event) \($0.metadata["room"] ?? $0.metadata["for"] ?? "")" } == [
                "warn queue-waiting lobby", "error backend-token-late lobby", "error queue-waiting lobby",
                "warn accept-certificate-ending ircs://a", "warn accept-certificate-ending ircs://a",
            ])
        #expect(notes.first?.text == "room lobby: so it is: \(StatusTrouble.Kind.queue.remedy)")
        for note in notes {
            let levels = LogEventTable.all.first { $0.name == note.event }?.levels.map(\.rawValue) ?? []
            #expect(levels.contains("\(note.level)"), "\(note.event)")
        }
    }

    @Test("a refused reload is a warning, with its first problem and how many there are")
    func refusedReload() throws {
        let status = try Self.status()
        let refusal = ConfigurationReload.Refusal(
            at: status.at.after(-90_000), problems: ["a.toml:3:1: unknown key \"topik\"", "a.toml:9:1: x"])
        let found = StatusTrouble.all(status, certificates: [], refusal: refusal)
        #expect(
            found == [
                StatusTrouble(
                    kind: .reload, level: .warning, name: "",
                    text: "refused 90 s ago: a.toml:3:1: unknown key \"topik\", and 1 more")
            ])
    }

    // MARK: - The page

    @Test("the page names no other resource, and its policy allows its own style and script alone")
    func page() throws {
        let html = StatusPage.html
        for word in ["http://", "https://", "@import", "url(", "innerHTML", "eval(", "on" + "click", "style=\""] {
            #expect(!html.contains(word), "\(word)")
        }
        for (tag, directive) in [("style", "style-src"), ("script", "script-src")] {
            let begin = try #require(html.firstRange(of: "<\(tag)>")).upperBound
            let end = try #require(html.firstRange(of: "</\(tag)>")).lowerBound
            let hash = Base64.encode(SHA256.hash(Array(html[begin..<end].utf8)))
            #expect(StatusPage.policy.contains("\(directive) 'sha256-\(hash)'"))
        }
        #expect(StatusPage.policy.hasPrefix("default-src 'none';"))
    }

    @Test("the newest notes are kept, without those that may hold chat text")
    func notes() {
        let board = StatusBoard(warnings: [], store: nil)
        for number in 0..<150 {
            board.noted(BridgeNote(.info, "a-\(number)", "t"), at: ChatTimestamp(milliseconds: Int64(number)))
            board.noted(BridgeNote(.debug, "d", "t"), at: ChatTimestamp(milliseconds: Int64(number)))
            board.noted(BridgeNote(.trace, "message-up", "secret"), at: ChatTimestamp(milliseconds: Int64(number)))
        }
        #expect(board.notes.map(\.note.event) == (50..<150).map { "a-\($0)" })
    }
}

@Suite("Metrics and status of a running bridge")
struct StatusServiceTests {
    private struct SilentSink: LogSink {
        func write(
            _ level: LogLevel, _ subsystem: LogSubsystem, _ event: String, _ message: String,
            _ metadata: [(key: String, value: LogValue)]
        ) {}
    }

    private static func start(backend port: Int, _ http: String) async throws -> BridgeService {
        let configuration = try load(
            """
            [[rooms]]
            name = "lobby"
            url = "ws://127.0.0.1:\(port)/lobby"
            [storage]
            url = "memory:"
            [[listeners]]
            bind = "irc://127.0.0.1:0"
            [[http]]
            bind = "http://127.0.0.1:0"
            \(http)
            """)
        let log = Logger(subsystem: .main, configuration: LogConfiguration(), sink: SilentSink())
        return try await BridgeService.start(
            configuration, instanceID: "test", environment: testEnvironment([:]), log: log
        ) { _ in }
    }

    /// One request over a connection of its own, all of the answer.
    private static func talk(_ stage: HTTPStage, _ port: Int, _ path: String, fields: String = "") async throws
        -> String
    {
        try await withCheckedThrowingContinuation { continuation in
            stage.loop.enqueue { transport in
                guard let house = transport.delegate as? HTTPTestHouse else {
                    return continuation.resume(returning: "")
                }
                house.talk(
                    "GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(fields)\r\n", port: port,
                    transport
                ) { continuation.resume(returning: $0) }
            }
        }
    }

    @Test("metrics, status and page are served as they are asked for")
    func served() async throws {
        let studio = try await StudioDriver.start(port: 0)
        let service = try await Self.start(backend: studio.port, "serve = [\"health\", \"metrics\", \"status\"]")
        let port = try #require(service.httpAddresses.first?.port)
        let stage = try await HTTPStage()
        var metrics = ""
        for _ in 0..<10_000 where !metrics.contains("chatbridge_upstream_up{room=\"lobby\"} 1\n") {
            metrics = try await Self.talk(stage, port, "/metrics")
        }
        #expect(metrics.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"))
        #expect(metrics.contains("\nchatbridge_upstream_connects_total{room=\"lobby\",result=\"ok\"} 1\n"))
        #expect(metrics.contains("\nchatbridge_ready 1\n") && metrics.contains("\nprocess_open_fds "))
        let open = try await Self.talk(
            stage, port, "/metrics", fields: "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.1\r\n")
        #expect(open.contains("application/openmetrics-text; version=1.0.0") && open.hasSuffix("# EOF\n"))

        let answer = try await Self.talk(stage, port, "/status.json")
        let json = try JSONValue(parsing: String(answer[try #require(answer.firstRange(of: "\r\n\r\n")).upperBound...]))
        #expect(json["ready"]?.bool == true && json["troubles"]?.array == [] && json["warnings"]?.array == [])
        #expect(json["rooms"]?.array?.first?["state"]?.string == "up")

        let page = try await Self.talk(stage, port, "/status")
        #expect(page.contains("Content-Security-Policy: default-src 'none'; style-src 'sha256-"))
        #expect(page.contains("Referrer-Policy: no-referrer\r\n") && page.hasSuffix("</html>\n"))
        #expect(try await Self.talk(stage, port, "/healthz").hasPrefix("HTTP/1.1 200"))
        service.shutdown()
        await service.waitUntilStopped()
        studio.stop()
        studio.waitUntilStopped()
    }

    @Test("with a token everything but health asks for it")
    func guarded() async throws {
        let studio = try await StudioDriver.start(port: 0)
        let service = try await Self.start(
            backend: studio.port,
            "serve = [\"health\", \"metrics\", \"status\"]\ntoken = \"0123456789abcdef\"\nroom_labels = false")
        let port = try #require(service.httpAddresses.first?.port)
        let stage = try await HTTPStage()
        for path in ["/metrics", "/status", "/status.json", "/status/stream"] {
            let refused = try await Self.talk(stage, port, path)
            #expect(refused.hasPrefix("HTTP/1.1 401") && refused.contains("WWW-Authenticate: Bearer\r\n"), "\(path)")
        }
        let metrics = try await Self.talk(
            stage, port, "/metrics", fields: "Authorization: Bearer 0123456789abcdef\r\n")
        #expect(metrics.hasPrefix("HTTP/1.1 200") && metrics.contains("\nchatbridge_upstream_up "))
        #expect(!metrics.contains("room="))
        #expect(try await Self.talk(stage, port, "/status?token=0123456789abcdef").hasPrefix("HTTP/1.1 200"))
        #expect(try await Self.talk(stage, port, "/healthz").hasPrefix("HTTP/1.1 200"))
        var readiness = ""
        for _ in 0..<10_000 where !readiness.hasPrefix("HTTP/1.1 200") {
            readiness = try await Self.talk(stage, port, "/readyz")
            try #require(!readiness.hasPrefix("HTTP/1.1 401"))
        }
        #expect(readiness.hasPrefix("HTTP/1.1 200"))
        service.shutdown()
        await service.waitUntilStopped()
        studio.stop()
        studio.waitUntilStopped()
    }
}

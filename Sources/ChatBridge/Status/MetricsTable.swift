import BridgeCore
import BridgeTypes
import ChatModel
import IRCServer
import Mirrors
import Rooms
import Upstream
import WireBytes

/// The metrics. Labels are from closed sets, rooms and listeners of the configuration; never nicks or addresses.
enum MetricsTable {
    static let rows = processRows + clientRows + roomRows + mirrorRows + storageRows

    /// The label that `room_labels = false` removes.
    static let roomLabel = "room"

    private static let processRows: [MetricRow] = [
        MetricRow(.gauge, "chatbridge_build_info", "Always 1.", labels: ["version"]) {
            [.init([$0.status.version], 1)]
        },
        MetricRow(.gauge, "chatbridge_start_time_seconds", "When the bridge was started, in seconds since 1970.") {
            [.init([], Self.seconds($0.status.startedAt))]
        },
        MetricRow(.gauge, "chatbridge_ready", "1: /readyz answers 200.") { [.init([], $0.readiness.isReady ? 1 : 0)] },
        MetricRow(.gauge, "chatbridge_draining", "1: the bridge is stopping, and accepts no clients.") {
            [.init([], $0.status.isRunning ? 0 : 1)]
        },
        MetricRow(
            .gauge, "chatbridge_config_last_reload_successful", "0: the last reload of the configuration was refused."
        ) { [.init([], $0.reload.refusal == nil ? 1 : 0)] },
        MetricRow(
            .gauge, "chatbridge_config_last_reload_success_timestamp_seconds",
            "When the configuration in force was read, in seconds since 1970."
        ) { [.init([], Self.seconds($0.reload.succeededAt))] },
        MetricRow(.counter, "process_cpu_seconds_total", "CPU time of the process, user and system.") {
            [.init([], $0.process.cpuSeconds)]
        },
        MetricRow(.gauge, "process_resident_memory_bytes", "Memory of the process in RAM.") {
            $0.process.residentBytes.map { [.init([], $0)] } ?? []
        },
        MetricRow(.gauge, "process_open_fds", "Open file descriptors.") {
            $0.process.openFiles.map { [.init([], $0)] } ?? []
        },
        MetricRow(.gauge, "process_max_fds", "Limit of open file descriptors.") {
            $0.process.maxFiles.map { [.init([], $0)] } ?? []
        },
    ]

    private static let mirrorRows: [MetricRow] = [
        MetricRow(
            .counter, "chatbridge_mirror_deliveries_total",
            "Messages for a mirror's tool: ok, it has them; refused; given up, since they had waited for too long.",
            labels: ["mirror", "result"]
        ) { reading in
            reading.mirrors.flatMap { mirror in
                [
                    .init([mirror.name, "ok"], mirror.standing.posted),
                    .init([mirror.name, "refused"], mirror.standing.refused),
                    .init([mirror.name, "given-up"], mirror.standing.givenUp),
                ]
            }
        },
        MetricRow(
            .counter, "chatbridge_mirror_retries_total", "Posts that were tried again.", labels: ["mirror"]
        ) { $0.mirrors.map { .init([$0.name], $0.standing.retries) } },
        MetricRow(
            .gauge, "chatbridge_mirror_queue_messages", "Messages that wait for a mirror's tool.", labels: ["mirror"]
        ) { $0.mirrors.map { .init([$0.name], Int(clamping: $0.standing.waiting)) } },
        MetricRow(
            .gauge, "chatbridge_mirror_up", "0: the mirror's tool takes nothing now.", labels: ["mirror"]
        ) { $0.mirrors.map { .init([$0.name], $0.reason == nil ? 1 : 0) } },
        MetricRow(
            .counter, "chatbridge_mirror_arrivals_total",
            "What a mirror's tool has brought: ok, messages in the room; refused requests.",
            labels: ["mirror", "result"]
        ) { reading in
            reading.mirrors.flatMap { mirror in
                [
                    .init([mirror.name, "ok"], mirror.arrived),
                    .init([mirror.name, "refused"], mirror.arrivalsRefused),
                ]
            }
        },
    ]

    private static let doorLabels = ["listener", "transport"]

    private static func doors(_ counts: [ClientTraffic.Door: Int]) -> [MetricRow.Sample] {
        counts.map { .init([$0.key.listener, $0.key.transport.rawValue], $0.value) }
    }

    private static let clientRows: [MetricRow] = [
        MetricRow(.gauge, "chatbridge_clients", "Connected IRC clients.", labels: doorLabels) {
            doors($0.clients.open)
        },
        MetricRow(
            .counter, "chatbridge_client_connections_total", "Accepted connections of IRC clients.", labels: doorLabels
        ) { doors($0.clients.opened) },
        MetricRow(
            .counter, "chatbridge_client_disconnects_total",
            "Ended connections of IRC clients: QUIT; closed without; a full send queue; a PING without answer; no "
                + "registration or log-in; another protocol; the bridge stopped; anything else.", labels: ["reason"]
        ) { reading in
            zip(ClientTraffic.End.allCases, reading.clients.ends).map { .init([$0.rawValue], $1) }
        },
        MetricRow(
            .counter, "chatbridge_client_auth_total",
            "Log-ins that were checked. The mechanism is one of SASL, or PASS, OPER, WEBIRC, service (/msg *bridge).",
            labels: ["mechanism", "result"]
        ) { $0.clients.logins.map { .init([$0.key.mechanism, $0.key.result.rawValue], $0.value) } },
        MetricRow(
            .counter, "chatbridge_tls_handshake_failures_total", "TLS handshakes of IRC clients that failed.",
            labels: ["listener"]
        ) { $0.driver.failedHandshakes.map { .init([$0.key], $0.value) } },
        MetricRow(
            .counter, "chatbridge_client_messages_total",
            "IRC lines by command. In: the known commands, others as other. Out: messages, joins and leaves by name, "
                + "answers with numbers as numeric.", labels: ["direction", "command"]
        ) { reading in
            zip(reading.clients.receivedCommands, reading.clients.received).map { .init(["in", $0], $1) }
                + zip(ClientTraffic.sentCommands, reading.clients.sent).map { .init(["out", $0], $1) }
        },
        MetricRow(
            .counter, "chatbridge_client_bytes_total", "Bytes of IRC clients, without TLS.", labels: ["direction"]
        ) { [.init(["in"], $0.driver.clients.received), .init(["out"], $0.driver.clients.sent)] },
        MetricRow(
            .histogram, "chatbridge_client_sendq_bytes",
            "Bytes that wait for each client, seen anew at each reading of the metrics."
        ) { [.init($0.driver.sendQueues)] },
        MetricRow(
            .counter, "chatbridge_rate_limited_total",
            "Clients that were slowed down or refused: lines that wait, refused connections, delayed "
                + "answers to failed log-ins.", labels: ["kind"]
        ) { reading in
            zip(ClientTraffic.RateLimit.allCases, reading.clients.limited).map { .init([$0.rawValue], $1) }
        },
        MetricRow(
            .gauge, "chatbridge_certificate_expiry_timestamp_seconds",
            "When the certificate of a listener ends, in seconds since 1970.", labels: ["listener"]
        ) { $0.certificates.map { .init([$0.listener], Self.seconds($0.at)) } },
    ]

    private static func each(
        _ value: @escaping @Sendable (RoomStatus) -> Double?
    ) -> @Sendable (MetricsReading) -> [MetricRow.Sample] {
        { reading in
            reading.status.rooms.compactMap { room in value(room).map { MetricRow.Sample([room.state.name], $0) } }
        }
    }

    private static let roomRows: [MetricRow] = [
        MetricRow(.gauge, "chatbridge_upstream_up", "1: the room's link is usable.", labels: [roomLabel]) {
            // A room without members has no link, and is no trouble.
            $0.status.rooms.filter { !($0.state.isOnDemand && $0.state.link == .stopped) }
                .map { .init([$0.state.name], $0.state.isUp ? 1 : 0) }
        },
        MetricRow(
            .gauge, "chatbridge_upstream_state", "1: the room's link is in this state, and in no other.",
            labels: [roomLabel, "state"]
        ) { reading in
            reading.status.rooms.flatMap { room in
                RoomState.Link.allCases.map { .init([room.state.name, $0.rawValue], room.state.link == $0 ? 1 : 0) }
            }
        },
        MetricRow(
            .counter, "chatbridge_upstream_connects_total",
            "Attempts to link the room: usable; refused for the credentials; failed otherwise.",
            labels: [roomLabel, "result"]
        ) { reading in
            reading.status.rooms.flatMap { room -> [MetricRow.Sample] in
                let (name, attempts) = (room.state.name, room.attempts)
                return [
                    .init([name, "ok"], attempts.succeeded), .init([name, "refused"], attempts.refused),
                    .init([name, "failed"], attempts.failed),
                ]
            }
        },
        MetricRow(
            .counter, "chatbridge_upstream_messages_total",
            "Relayed by the room. In: messages of backend users that were shown. Out: messages of IRC users that the "
                + "backend confirmed. Typing, receipts (read), joins, leaves (part) and the rest: events received and sent.",
            labels: [roomLabel, "direction", "type"]
        ) { reading in
            reading.status.rooms.flatMap { room in
                RoomTraffic.Kind.allCases.flatMap { kind -> [MetricRow.Sample] in
                    [
                        .init([room.state.name, "in", kind.rawValue], room.down[kind]),
                        .init([room.state.name, "out", kind.rawValue], room.up[kind]),
                    ]
                }
            }
        },
        MetricRow(
            .counter, "chatbridge_upstream_undecodable_total", "Frames of the backend that were not understood.",
            labels: [roomLabel], each { Double($0.undecodable) }),
        MetricRow(
            .gauge, "chatbridge_upstream_rtt_seconds", "Time between the last ping of the link and its answer.",
            labels: [roomLabel], each { $0.roundTrip.map(Self.seconds) }),
        MetricRow(
            .gauge, "chatbridge_upstream_queue_messages", "Messages of IRC users that the backend has not confirmed.",
            labels: [roomLabel], each { Double($0.queued) }),
        MetricRow(
            .gauge, "chatbridge_upstream_queue_limit_messages", "With so many, further messages are refused.",
            labels: [roomLabel], each { Double($0.queueLimit) }),
        MetricRow(
            .gauge, "chatbridge_upstream_queue_oldest_seconds",
            "Age of the oldest of these messages; 0: there is none.",
            labels: [roomLabel], each { Self.seconds($0.oldestQueuedFor ?? .zero) }),
        MetricRow(
            .gauge, "chatbridge_upstream_users", "Users of the backend in the room.", labels: [roomLabel],
            each { Double($0.upstreamUsers) }),
        MetricRow(
            .gauge, "chatbridge_upstream_token_expiry_timestamp_seconds",
            "When the token of the room's log-in ends, in seconds since 1970, where the backend said so. It is renewed "
                + "before.", labels: [roomLabel], each { $0.tokenEndsAt.map(Self.seconds) }),
        MetricRow(
            .histogram, "chatbridge_relay_latency_seconds",
            "Time that messages spend in the bridge. Down: from the reading of the frame to the queueing of the lines for "
                + "the clients. Up: from the handling of the line to the queueing of the frame for the backend, with any "
                + "wait in the room's queue.", labels: ["direction"]
        ) { [.init(["down"], $0.latencyDown), .init(["up"], $0.latencyUp)] },
    ]

    private static let storageRows: [MetricRow] = [
        MetricRow(.gauge, "chatbridge_storage_up", "0: the store takes no changes; messages of now may be lost.") {
            $0.storage == nil ? [] : [.init([], $0.status.storage == .sound ? 1 : 0)]
        },
        MetricRow(
            .histogram, "chatbridge_storage_operation_seconds",
            "Time from the order to the answer, with any wait for orders before it.", labels: ["op"]
        ) { reading in
            reading.storage.map { storage in
                StoreMeasurements.Operation.allCases.map { .init([$0.rawValue], storage.times[$0] ?? Histogram()) }
            } ?? []
        },
        MetricRow(.counter, "chatbridge_storage_errors_total", "Orders that failed.", labels: ["op"]) { reading in
            reading.storage.map { storage in
                StoreMeasurements.Operation.allCases.map { .init([$0.rawValue], storage.errors[$0] ?? 0) }
            } ?? []
        },
    ]

    private static func seconds(_ at: ChatTimestamp) -> Double { Double(at.milliseconds) / 1000 }
    private static func seconds(_ duration: Duration) -> Double { Double(duration.wholeNanoseconds / 1000) / 1e6 }

    // MARK: - Documentation

    /// The table of docs/METRICS.md.
    static var page: String {
        (["| name | type | labels | |", "|---|---|---|---|"]
            + rows.map { row in
                "| `\(row.name)` | \(row.kind.rawValue) | \(row.labels.map { "`\($0)`" }.joined(separator: ", ")) | "
                    + "\(row.help) |"
            }).map { $0 + "\n" }.joined()
    }
}

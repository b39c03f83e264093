import Configuration

/// One value of a log line's metadata.
///
/// Interpolating a ``Secret`` gives `***`.
enum LogValue: Hashable, Sendable, ExpressibleByStringLiteral, ExpressibleByStringInterpolation,
    ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral
{
    case text(String)
    case integer(Int64)
    case real(Double)
    case boolean(Bool)

    init(stringLiteral value: String) { self = .text(value) }
    init(integerLiteral value: Int64) { self = .integer(value) }
    init(booleanLiteral value: Bool) { self = .boolean(value) }

    /// The description of any value.
    init(_ value: some CustomStringConvertible) { self = .text(value.description) }
    init(_ value: some BinaryInteger) { self = .integer(Int64(clamping: value)) }
    init(_ value: Double) { self = .real(value) }

    var plain: String {
        switch self {
        case .text(let text): text
        case .integer(let number): String(number)
        case .real(let number): String(number)
        case .boolean(let flag): String(flag)
        }
    }
}

/// Metadata in the order in which it is written. Keys are stable: `room`, `session`, `dialect`, `close-code`, `client`,
/// `err`.
typealias LogMetadata = KeyValuePairs<String, LogValue>

/// One line before it is text.
struct LogRecord: Sendable {
    var milliseconds: Int64
    var level: LogLevel
    var subsystem: LogSubsystem
    /// Stable and machine-readable, `upstream-lost`.
    var event: String
    /// A sentence for people.
    var message: String
    var metadata: [(key: String, value: LogValue)]
}

/// Writes the lines of one subsystem. A cheap value, usable from any thread.
///
/// Below the level nothing is built: message and metadata are not even evaluated.
struct Logger: Sendable {
    private let subsystem: LogSubsystem
    private let level: LogLevel
    private let sink: any LogSink

    init(subsystem: LogSubsystem, configuration: LogConfiguration, sink: any LogSink) {
        self.subsystem = subsystem
        level = configuration.level(of: subsystem)
        self.sink = sink
    }

    /// Whether a line at `level` would be written.
    func isEnabled(_ level: LogLevel) -> Bool { level <= self.level }

    func log(
        _ level: LogLevel, _ event: String, _ message: @autoclosure () -> String,
        _ metadata: @autoclosure () -> LogMetadata = [:]
    ) {
        guard isEnabled(level) else { return }
        sink.write(level, subsystem, event, message(), metadata().map { (key: $0.key, value: $0.value) })
    }

    func error(
        _ event: String, _ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:]
    ) { log(.error, event, message(), metadata()) }

    func warn(
        _ event: String, _ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:]
    ) { log(.warn, event, message(), metadata()) }

    func info(
        _ event: String, _ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:]
    ) { log(.info, event, message(), metadata()) }
}

/// Where lines go.
protocol LogSink: Sendable {
    func write(
        _ level: LogLevel, _ subsystem: LogSubsystem, _ event: String, _ message: String,
        _ metadata: [(key: String, value: LogValue)])
}

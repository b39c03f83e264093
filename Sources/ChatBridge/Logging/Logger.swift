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

    /// Anything that can say what it is.
    init(_ value: some CustomStringConvertible) { self = .text(value.description) }
    init(_ value: some BinaryInteger) { self = .integer(Int64(clamping: value)) }
    init(_ value: Double) { self = .real(value) }
    init(_ value: Bool) { self = .boolean(value) }
    /// In whole milliseconds.
    init(_ value: Duration) {
        let (seconds, attoseconds) = value.components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        self = .integer(overflow ? .max : product &+ attoseconds / 1_000_000_000_000_000)
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
/// Below the level nothing is built: message and metadata are not even evaluated. Chat text goes only into lines at trace, and
/// only with ``showsMessages``; frames are never logged.
struct Logger: Sendable {
    let subsystem: LogSubsystem
    let level: LogLevel
    /// `log.messages`.
    let showsMessages: Bool
    private let context: [(key: String, value: LogValue)]
    private let sink: any LogSink

    init(subsystem: LogSubsystem, configuration: LogConfiguration, sink: any LogSink) {
        self.init(
            subsystem: subsystem, level: configuration.level(of: subsystem), showsMessages: configuration.messages,
            context: [], sink: sink)
    }

    private init(
        subsystem: LogSubsystem, level: LogLevel, showsMessages: Bool, context: [(key: String, value: LogValue)],
        sink: any LogSink
    ) {
        self.subsystem = subsystem
        self.level = level
        self.showsMessages = showsMessages
        self.context = context
        self.sink = sink
    }

    /// A logger whose lines all carry `metadata` in front of their own.
    func with(_ metadata: LogMetadata) -> Logger {
        Logger(
            subsystem: subsystem, level: level, showsMessages: showsMessages,
            context: context + metadata.map { (key: $0.key, value: $0.value) }, sink: sink)
    }

    /// Whether a line at `level` would be written.
    func isEnabled(_ level: LogLevel) -> Bool { level <= self.level }

    func log(
        _ level: LogLevel, _ event: String, _ message: @autoclosure () -> String,
        _ metadata: @autoclosure () -> LogMetadata = [:]
    ) {
        guard isEnabled(level) else { return }
        sink.write(level, subsystem, event, message(), context + metadata().map { (key: $0.key, value: $0.value) })
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

    func debug(
        _ event: String, _ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:]
    ) { log(.debug, event, message(), metadata()) }

    func trace(
        _ event: String, _ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:]
    ) { log(.trace, event, message(), metadata()) }
}

/// Where lines go.
protocol LogSink: Sendable {
    func write(
        _ level: LogLevel, _ subsystem: LogSubsystem, _ event: String, _ message: String,
        _ metadata: [(key: String, value: LogValue)])
}

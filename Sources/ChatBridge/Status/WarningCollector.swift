import Configuration
import Threads

/// Collects log lines as sentences, for the status page.
final class WarningCollector: LogSink {
    private let lines = Locked<[String]>([])

    var texts: [String] { lines.withLock { $0 } }

    func write(
        _ level: LogLevel, _ subsystem: LogSubsystem, _ event: String, _ message: String,
        _ metadata: [(key: String, value: LogValue)]
    ) {
        let text = metadata.reduce(message) { "\($0), \($1.key) \($1.value.plain)" }
        lines.withLock { $0.append(text) }
    }
}

import BridgeTypes
import Configuration

/// Writes the core's notes to the operator's log, each under the subsystem it belongs to.
struct NoteLog: Sendable {
    /// By raw value of the note's level.
    private static let levels = LogLevel.allCases

    private let sink: any LogSink
    private let levels: LogConfiguration

    init(sink: any LogSink, configuration: LogConfiguration) {
        self.sink = sink
        self.levels = configuration
    }

    func callAsFunction(_ note: BridgeNote) {
        let subsystem = Self.subsystem(of: note.event)
        let level = Self.levels[note.level.rawValue]
        guard level <= levels.level(of: subsystem) else { return }
        sink.write(
            level, subsystem, note.event, note.text, note.metadata.sorted.map { ($0.key, LogValue.text($0.value)) })
    }

    static func subsystem(of event: String) -> LogSubsystem {
        if event.hasPrefix("upstream-") || event.hasPrefix("frame-") || event.hasPrefix("backend-") { return .upstream }
        if event.hasPrefix("client-") || ["bad-line", "foreign-protocol", "wrong-password"].contains(event) {
            return .downstream
        }
        if event.hasPrefix("admin-") { return .main }
        return event.hasPrefix("accept-") ? .transport : .room
    }
}

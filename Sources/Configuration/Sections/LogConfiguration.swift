import BridgeTypes

/// Log form, levels and destination.
package struct LogConfiguration: Equatable, Sendable {
    package var format = LogFormat.auto
    package var level = LogLevel.info
    /// Levels of single subsystems, where they differ.
    package var levels: [LogSubsystemLevel] = []
    package var to = LogDestination.standardError
    /// Whether chat text may appear, at trace.
    package var messages = false

    /// The level that counts for a subsystem.
    package func level(of subsystem: LogSubsystem) -> LogLevel {
        levels.first { $0.subsystem == subsystem }?.level ?? level
    }

    package static var standard: LogConfiguration { LogConfiguration() }

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey(
            "format", \.format, .choice,
            about: """
                `text`, `json`, or `auto`: text on a terminal, the journal's form under systemd, JSON otherwise
                """),
        ConfigurationKey(
            "level", \.level, .choice,
            about: "`error`, `warn`, `info`, `debug` or `trace`"),
        ConfigurationKey(
            "levels", \.levels, .subsystemLevels,
            about: """
                levels of subsystems, as `{ upstream = "debug" }`: `main`, `downstream`, `upstream`, `room`, \
                `transport`
                """),
        ConfigurationKey(
            "to", \.to, .logDestination,
            about: "or a file's path, beginning with `/` or `./`"),
        ConfigurationKey(
            "messages", \.messages, .boolean,
            about: "`true`: the first words of messages are logged at trace; secrets are never logged"),
    ]
}

/// How much a line matters, most urgent first.
package enum LogLevel: String, CaseIterable, Comparable, Sendable {
    case error, warn, info, debug
    /// Also messages, where `messages` allows it.
    case trace

    /// 0 is the most urgent.
    package var rank: Int {
        switch self {
        case .error: 0
        case .warn: 1
        case .info: 2
        case .debug: 3
        case .trace: 4
        }
    }

    package static func < (a: Self, b: Self) -> Bool { a.rank < b.rank }

    /// The number that journald reads between angle brackets. Source: sd-daemon(3); RFC 5424 §6.2.1.
    package var journalPriority: Int {
        switch self {
        case .error: 3
        case .warn: 4
        case .info: 6
        case .debug, .trace: 7
        }
    }
}

/// Parts of the bridge, as in `[log] levels`.
package enum LogSubsystem: String, CaseIterable, Sendable {
    /// Start, stop, signals, configuration.
    case main
    /// IRC clients and their listeners.
    case downstream
    /// WebSocket links.
    case upstream
    /// Rooms, people and messages between the two.
    case room
    /// The event loop and its sockets.
    case transport
}

package struct LogSubsystemLevel: Hashable, Sendable {
    package var subsystem: LogSubsystem
    package var level: LogLevel
}

/// The configured form.
package enum LogFormat: String, CaseIterable, Sendable {
    /// Text on a terminal, the journal's form under systemd, JSON otherwise.
    case auto
    case text
    case json
}

package enum LogDestination: Hashable, Sendable, CustomStringConvertible {
    case standardError
    /// Appended to; made with mode 0640.
    case file(String)

    package var description: String {
        switch self {
        case .standardError: "stderr"
        case .file(let path): path
        }
    }
}

// MARK: - Forms

extension ConfigurationForm where Value == [LogSubsystemLevel] {
    static var subsystemLevels: Self {
        map(of: "levels", key: \.subsystem.rawValue) { name, text throws(MapError) in
            guard let subsystem = LogSubsystem(rawValue: name) else {
                let names = LogSubsystem.allCases.map(\.rawValue)
                let hint = NearestName.hint(for: name, among: names)
                throw .key("unknown subsystem \"\(name)\"\(hint); there are: \(names.joined(separator: ", "))")
            }
            guard let level = LogLevel(rawValue: text) else {
                let names = LogLevel.allCases.map(\.rawValue)
                throw .value(
                    "unknown level\(NearestName.hint(for: text, among: names)); there are: "
                        + names.joined(separator: ", "))
            }
            return LogSubsystemLevel(subsystem: subsystem, level: level)
        } print: {
            $0.level.rawValue
        }
    }
}

extension ConfigurationForm where Value == LogDestination {
    static var logDestination: Self {
        text("\"stderr\" or a path that begins with \"/\" or \"./\"") { text throws(AddressError) in
            if text == "stderr" { return .standardError }
            return text.hasPrefix("/") || text.hasPrefix("./") ? .file(text) : nil
        } print: {
            $0.description
        }
    }
}

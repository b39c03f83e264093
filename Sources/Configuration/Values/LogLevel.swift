/// How much a line matters, most urgent first.
package enum LogLevel: String, CaseIterable, Comparable, Sendable {
    case error, warn, info, debug
    /// Shows frames, secrets blanked.
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

/// Which part of the bridge speaks; what `[log] levels` names.
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
    /// The embedded demo backend.
    case studio
}

package struct LogSubsystemLevel: Hashable, Sendable {
    package var subsystem: LogSubsystem
    package var level: LogLevel
}

/// What an operator asks for.
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

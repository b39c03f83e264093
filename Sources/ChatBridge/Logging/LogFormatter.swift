import Configuration

/// The form of a line, once `auto` is settled.
enum LogRendering: Equatable, Sendable {
    case text(colored: Bool)
    /// `<6>` in front, no time: journald adds its own. Source: sd-daemon(3).
    case journal
    /// One object a line.
    case json

    /// Resolves `[log] format`.
    ///
    /// - Parameters:
    ///   - stream: device and inode of where lines go, or nil.
    ///   - isTerminal: whether that is a terminal.
    static func resolve(
        _ format: LogFormat, color: ColorChoice, isTerminal: Bool, stream: (device: UInt64, inode: UInt64)?,
        variables: [String: String]
    ) -> LogRendering {
        let colored = color.isColored(isTerminal: isTerminal, variables: variables)
        switch format {
        case .text: return .text(colored: colored)
        case .json: return .json
        case .auto:
            if isTerminal { return .text(colored: colored) }
            // Programs inherit the variable even when their output was redirected since, so it must match.
            // Source: systemd.exec(5), $JOURNAL_STREAM.
            if let stream, variables["JOURNAL_STREAM"] == "\(stream.device):\(stream.inode)" { return .journal }
            return .json
        }
    }
}

/// From a record to the bytes of one line, newline included.
enum LogFormatter {
    /// Keys of a JSON line that metadata cannot have; theirs get an underscore behind.
    private static let reserved: Set<String> = ["ts", "level", "subsystem", "event", "msg"]

    static func line(_ record: LogRecord, _ rendering: LogRendering) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(256)
        switch rendering {
        case .text(let colored): appendText(record, colored: colored, to: &line)
        case .journal:
            line += "<\(record.level.journalPriority)>\(record.subsystem.rawValue): ".utf8
            appendBody(record, keyColor: "", reset: "", to: &line)
        case .json: appendJSON(record, to: &line)
        }
        line.append(UInt8(ascii: "\n"))
        return line
    }

    private static func appendText(_ record: LogRecord, colored: Bool, to line: inout [UInt8]) {
        let (dim, reset) = colored ? ("\u{1B}[2m", "\u{1B}[0m") : ("", "")
        let level = record.level.rawValue.uppercased()
        line += "\(dim)\(LogTime.format(milliseconds: record.milliseconds))\(reset) ".utf8
        line += "\(colored ? color(record.level) : "")\(level)\(reset)".utf8
        line += String(repeating: " ", count: 6 - level.count).utf8
        line += "\(record.subsystem.rawValue): ".utf8
        appendBody(record, keyColor: dim, reset: reset, to: &line)
    }

    private static func appendBody(_ record: LogRecord, keyColor: String, reset: String, to line: inout [UInt8]) {
        LogText.appendPlain(LogText.shortened(record.message), to: &line)
        for (key, value) in [(key: "event", value: LogValue.text(record.event))] + record.metadata {
            line += " \(keyColor)\(key)=\(reset)".utf8
            switch value {
            case .text(let text): LogText.appendValue(LogText.shortened(text), to: &line)
            case .integer(let number): line += "\(number)".utf8
            case .real(let number): line += "\(number)".utf8
            case .boolean(let flag): line += "\(flag)".utf8
            }
        }
    }

    private static func color(_ level: LogLevel) -> String {
        switch level {
        case .error: "\u{1B}[31m"
        case .warn: "\u{1B}[33m"
        case .info: "\u{1B}[32m"
        case .debug: "\u{1B}[36m"
        case .trace: "\u{1B}[2m"
        }
    }

    private static func appendJSON(_ record: LogRecord, to line: inout [UInt8]) {
        line += "{\"ts\":\"\(LogTime.format(milliseconds: record.milliseconds))\"".utf8
        line += ",\"level\":\"\(record.level.rawValue)\",\"subsystem\":\"\(record.subsystem.rawValue)\"".utf8
        appendMember("event", .text(record.event), to: &line)
        appendMember("msg", .text(record.message), to: &line)
        var used = reserved
        for (key, value) in record.metadata {
            // A key twice is a line that readers disagree about.
            var name = key
            while !used.insert(name).inserted { name += "_" }
            appendMember(name, value, to: &line)
        }
        line.append(UInt8(ascii: "}"))
    }

    private static func appendMember(_ key: String, _ value: LogValue, to line: inout [UInt8]) {
        line.append(UInt8(ascii: ","))
        LogText.appendJSON(key, to: &line)
        line.append(UInt8(ascii: ":"))
        switch value {
        case .text(let text): LogText.appendJSON(LogText.shortened(text), to: &line)
        case .integer(let number): line += "\(number)".utf8
        case .real(let number): line += (number.isFinite ? "\(number)" : "null").utf8
        case .boolean(let flag): line += "\(flag)".utf8
        }
    }
}

import Configuration
import Glibc
import Threads

/// Writes each line with one `write(2)` to a descriptor.
///
/// A line that does not fit (a full pipe set to non-blocking) is dropped and counted: a log must not stop the relay.
/// The next line that fits is preceded by the number of lost ones.
final class DescriptorLogSink: LogSink {
    struct OpenError: Error, CustomStringConvertible {
        var description: String
    }

    private struct State {
        var droppedLineCount = 0
        /// A line went out in part: the next begins on a line of its own.
        var isMidLine = false
    }

    private let descriptor: Int32
    private let closesDescriptor: Bool
    private let rendering: LogRendering
    /// Ends every JSON line, so that the lines of several bridges can be told apart.
    private let instance: String
    private let clock: @Sendable () -> Int64
    private let state = Locked(State())

    /// - Parameters:
    ///   - closing: whether the descriptor is closed with the sink.
    ///   - instance: the bridge's instance id; empty: not written.
    ///   - clock: milliseconds since 1970.
    init(
        descriptor: Int32, closing: Bool, rendering: LogRendering, instance: String = "",
        clock: @escaping @Sendable () -> Int64 = DescriptorLogSink.wallClockMilliseconds
    ) {
        self.descriptor = descriptor
        self.closesDescriptor = closing
        self.rendering = rendering
        self.instance = rendering == .json ? instance : ""
        self.clock = clock
    }

    var isStandardError: Bool { descriptor == STDERR_FILENO }
    /// Whether lines go to standard error in a form for people, as on a terminal.
    var isForPeople: Bool { if case .text = rendering { isStandardError } else { false } }

    deinit {
        if closesDescriptor { _ = close(descriptor) }
    }

    /// Opens the configured destination.
    ///
    /// - Throws: ``OpenError`` when the file cannot be opened.
    static func open(
        _ configuration: LogConfiguration, color: ColorChoice, variables: [String: String], instance: String = ""
    ) throws(OpenError) -> DescriptorLogSink {
        var descriptor = STDERR_FILENO
        var closing = false
        if case .file(let path) = configuration.to {
            descriptor = Glibc.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0o640)
            guard descriptor >= 0 else {
                throw OpenError(description: "cannot open the log \"\(path)\": \(String(cString: strerror(errno)))")
            }
            closing = true
        }
        var status = stat()
        let stream: (device: UInt64, inode: UInt64)? =
            fstat(descriptor, &status) == 0 ? (UInt64(status.st_dev), UInt64(status.st_ino)) : nil
        let rendering = LogRendering.resolve(
            configuration.format, color: color, isTerminal: isatty(descriptor) == 1, stream: stream,
            variables: variables)
        return DescriptorLogSink(
            descriptor: descriptor, closing: closing, rendering: rendering, instance: instance)
    }

    @Sendable static func wallClockMilliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    func write(
        _ level: LogLevel, _ subsystem: LogSubsystem, _ event: String, _ message: String,
        _ metadata: [(key: String, value: LogValue)]
    ) {
        let now = clock()
        let line = LogFormatter.line(
            LogRecord(
                milliseconds: now, level: level, subsystem: subsystem, event: event, message: message,
                metadata: identified(metadata)), rendering)
        state.withLock { write(line, now, &$0) }
    }

    private func write(_ line: [UInt8], _ now: Int64, _ state: inout State) {
        // Together with the line, or a stalled reader's pipe would fill up with notices.
        var notice: [UInt8] = []
        if state.droppedLineCount > 0 {
            notice = LogFormatter.line(
                LogRecord(
                    milliseconds: now, level: .warn, subsystem: .main, event: "log-lines-dropped",
                    message: "log lines were dropped, their reader was too slow",
                    metadata: identified([("count", LogValue(state.droppedLineCount))])), rendering)
        }
        let sent = put(notice + line, &state)
        if sent >= notice.count { state.droppedLineCount = 0 }
        if sent < notice.count + line.count { state.droppedLineCount += 1 }
    }

    private func identified(_ metadata: [(key: String, value: LogValue)]) -> [(key: String, value: LogValue)] {
        instance.isEmpty ? metadata : metadata + [("instance", .text(instance))]
    }

    /// Writes bytes that end in a newline, or as many as there is room for. Returns how many of them went out.
    private func put(_ bytes: [UInt8], _ state: inout State) -> Int {
        let lead = state.isMidLine ? [UInt8(ascii: "\n")] : []
        let sent = (lead + bytes).withUnsafeBytes { buffer in
            var sent = 0
            while sent < buffer.count {
                let count = Glibc.write(descriptor, buffer.baseAddress?.advanced(by: sent), buffer.count - sent)
                if count > 0 {
                    sent += count
                } else if count == 0 || errno != EINTR {
                    break
                }
            }
            return sent
        }
        guard sent > 0 else { return 0 }
        let ours = sent - lead.count
        state.isMidLine = ours > 0 && bytes[ours - 1] != UInt8(ascii: "\n")
        return ours
    }
}

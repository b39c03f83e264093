import CSystem
import Glibc
import WireBytes

// The executable's needs of the machine beside sockets: clocks, random numbers, limits, names.

/// The clocks of the machine.
public enum SystemClock {
    /// Nanoseconds on CLOCK_MONOTONIC.
    public static func monotonic() -> MonotonicInstant { MonotonicInstant(nanoseconds: cb_monotonic_nanoseconds()) }

    /// Which start of the machine ``monotonic()`` counts from; nil: the kernel does not say. Source: random(4).
    public static func boot() -> String? {
        guard let file = fopen("/proc/sys/kernel/random/boot_id", "re") else { return nil }
        defer { _ = fclose(file) }
        var line: [CChar] = Array(repeating: 0, count: 64)
        guard fgets(&line, Int32(line.count), file) != nil else { return nil }
        let boot = String(decoding: line.prefix { $0 > 0x20 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return boot.isEmpty ? nil : boot
    }

    /// Milliseconds since 1970.
    public static func wallMilliseconds() -> Int64 { cb_realtime_nanoseconds() / 1_000_000 }
}

/// Random numbers from the kernel, fetched 4 KiB at a time and wiped as they are used: fit for masks, keys and nonces.
///
/// Copies draw from one buffer, so no number is handed out twice. Confined to one thread, hence not `Sendable`.
public struct BufferedSystemRandom: RandomNumberGenerator {
    /// Bytes fetched in one call.
    public static let bufferBytes = 4096

    private final class Buffer {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferBytes, alignment: 8)
        var offset = bufferBytes

        deinit {
            bytes.initializeMemory(as: UInt8.self, repeating: 0)
            bytes.deallocate()
        }

        func refill() -> Bool {
            var filled = 0
            while filled < bufferBytes {
                let got = cb_getrandom(bytes.baseAddress.map { $0 + filled }, bufferBytes - filled)
                if got == -Int64(EINTR) { continue }
                guard got > 0 else { return false }
                filled += Int(got)
            }
            offset = 0
            return true
        }
    }

    private let buffer = Buffer()

    public init() {}

    public mutating func next() -> UInt64 {
        if buffer.offset == Self.bufferBytes, !buffer.refill() {
            // Kernels before 3.17 lack the call, and a sandbox may forbid it.
            var fallback = SystemRandomNumberGenerator()
            return fallback.next()
        }
        let value = buffer.bytes.load(fromByteOffset: buffer.offset, as: UInt64.self)
        buffer.bytes.storeBytes(of: 0, toByteOffset: buffer.offset, as: UInt64.self)
        buffer.offset &+= MemoryLayout<UInt64>.size
        return value
    }
}

/// Limits the kernel sets for this process.
public enum ProcessLimits {
    /// Raises the number of files that may be open to the most an unprivileged process may have.
    ///
    /// - Returns: the number now in force; nil when the kernel would not say.
    @discardableResult
    public static func raiseOpenFiles() -> Int? {
        let limit = cb_raise_open_files()
        return limit >= 0 ? Int(limit) : openFiles
    }

    /// How many files may be open now.
    public static var openFiles: Int? {
        let limit = cb_open_file_limit()
        return limit >= 0 ? Int(limit) : nil
    }
}

/// Signals whose handling concerns the whole process.
public enum ProcessSignals {
    /// Lets writes to a closed pipe, such as standard output, fail instead of ending the process. Sockets do not need it.
    public static func ignoreBrokenPipes() { cb_signal_ignore(SIGPIPE) }

    /// Lets writes beyond the largest size that a file may have fail, as on a full disk, instead of ending the process.
    ///
    /// Source: setrlimit(2), RLIMIT_FSIZE.
    public static func ignoreFileSizeLimit() { cb_signal_ignore(SIGXFSZ) }
}

/// The process's memory.
public enum ProcessMemory {
    /// Gives freed memory back to the kernel. Walks the whole heap: for quiet moments.
    public static func releaseFreed() { cb_memory_trim() }
}

/// The machine and its terminals.
public enum Machine {
    /// The machine's name as it calls itself; empty when it has none.
    public static var hostName: String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let base = buffer.baseAddress, cb_hostname(base, buffer.count) >= 0 else { return "" }
            return String(cString: base)
        }
    }

    /// Whether the descriptor is a terminal.
    public static func isTerminal(_ descriptor: Int32) -> Bool { cb_isatty(descriptor) > 0 }
}

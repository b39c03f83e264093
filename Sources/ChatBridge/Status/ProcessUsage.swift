import Glibc
import Threads
import Transport

/// What the process takes of the machine. Source: proc(5); the names are those of Prometheus's client libraries.
struct ProcessUsage: Equatable {
    var cpuSeconds: Double
    var residentBytes: Int?
    var openFiles: Int?
    var maxFiles: Int?

    static func now() -> ProcessUsage {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return ProcessUsage(
            cpuSeconds: Double(time.tv_sec) + Double(time.tv_nsec) / 1e9, residentBytes: residentBytes(),
            openFiles: openFiles(), maxFiles: ProcessLimits.openFiles)
    }

    /// The second number of statm, in pages.
    private static func residentBytes() -> Int? {
        guard let file = fopen("/proc/self/statm", "re") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 128)
        guard fgets(&line, Int32(line.count), file) != nil else { return nil }
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let numbers = text.split(separator: " ")
        guard numbers.count > 1, let pages = Int(numbers[1]) else { return nil }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }

    private static func openFiles() -> Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        // Without ".", ".." and the folder itself.
        var count = -3
        while readdir(folder) != nil { count += 1 }
        return count
    }
}

import Glibc
import Threads
import Transport
import WireBytes

/// Files that came within messages, in a folder of the state directory: one file each, called after what is in it.
///
/// Old ones go first, and the oldest where there are too many, by their number or by what they take of the disk. The folder
/// is looked through once; from then on it is known what is there. Everything here blocks on the disk.
final class MediaStore: Sendable {
    static let folder = "media"
    /// Largest file that is read, in bytes: it came in a frame, and frames are bounded by `max_message`, of 256 MiB at most.
    static let maxFileBytes = 256 * 1024 * 1024
    /// Files at once, however small: as many as a usual file system has inodes for a GiB, and about 12 MB of memory.
    static let maxFiles = 65_536
    /// Seconds after which a file that is not whole is nobody's any more.
    private static let leftOverSeconds = 3600

    let directory: String
    /// Bytes of all files, as the disk counts them.
    let maxBytes: Int
    private let maxFiles: Int
    /// Nil: kept for ever.
    let retention: Duration?
    /// Nanoseconds since 1970.
    private let clock: @Sendable () -> Int64
    /// Nil: the folder was not looked through yet.
    private let index = Locked<MediaIndex?>(nil)

    init(
        stateDirectory: String, maxBytes: Int, retention: Duration?, maxFiles: Int = MediaStore.maxFiles,
        clock: @escaping @Sendable () -> Int64 = MediaStore.wallClock
    ) {
        directory = stateDirectory + "/" + Self.folder
        self.maxBytes = maxBytes
        self.maxFiles = maxFiles
        self.retention = retention
        self.clock = clock
    }

    /// Whether `name` is one that this bridge gives: nothing that leads elsewhere.
    static func isName(_ name: String) -> Bool {
        let parts = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return parts.count == 2 && parts[0].count == MediaIndex.keyBytes && (1...5).contains(parts[1].count)
            && parts[0].allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) || "-_".utf8.contains($0) }
            && parts[1].allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) }
    }

    static let wallClock: @Sendable () -> Int64 = {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return MediaIndex.nanoseconds(now)
    }

    // MARK: - Keeping

    /// Keeps a file, and makes room for it. What is there already, under whatever extension, is not kept twice.
    ///
    /// - Returns: why it is not kept, as a sentence; nil: it is.
    func keep(_ name: String, _ bytes: [UInt8]) -> String? {
        guard Self.isName(name) else { return "\"\(name)\" cannot name a file" }
        let cost = MediaIndex.cost(bytes.count)
        guard cost <= maxBytes else { return "it has more bytes than all files together may have" }
        guard InstanceIdentity.makeDirectory(directory) else { return Self.lastError(directory) }
        return withIndex { index in
            let now = clock()
            if let known = index.name(of: name) {
                // Somebody sent it again: as new as today.
                if stamp(directory + "/" + known, now) {
                    index.touch(known, at: now)
                    return nil
                }
                index.remove(known)
            }
            if let why = makeRoom(in: &index, bytes: cost, files: 1) { return why }
            if let why = write(name, bytes, now) { return why }
            index.insert(name, cost: cost, at: now)
            return nil
        }
    }

    private func write(_ name: String, _ bytes: [UInt8], _ now: Int64) -> String? {
        let path = directory + "/" + name
        let fresh = "\(path).\(getpid()).new"
        _ = unlink(fresh)
        let descriptor = Glibc.open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return Self.lastError(fresh) }
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            written += count
        }
        let failure = Self.lastError(fresh)
        _ = close(descriptor)
        guard written == bytes.count else {
            _ = unlink(fresh)
            return failure
        }
        // The disk and the index are to have one order.
        _ = stamp(fresh, now)
        guard rename(fresh, path) == 0 else {
            let failure = Self.lastError(path)
            _ = unlink(fresh)
            return failure
        }
        return nil
    }

    private func stamp(_ path: String, _ now: Int64) -> Bool {
        let at = timespec(tv_sec: Int(now / 1_000_000_000), tv_nsec: Int(now % 1_000_000_000))
        return utimensat(AT_FDCWD, path, [at, at], AT_SYMLINK_NOFOLLOW) == 0
    }

    // MARK: - Reading

    /// Nil where there is none of that name. What is open can be read to its end, whether the name goes or not.
    func open(_ name: String) -> MediaStoreFile? {
        guard Self.isName(name) else { return nil }
        let known = withIndex { $0.name(of: name) }
        return MediaStoreFile(directory + "/" + (known ?? name), maxBytes: Self.maxFileBytes)
    }

    // MARK: - Room

    /// Removes what is too old, and what is too much.
    func sweep() { _ = withIndex { makeRoom(in: &$0, bytes: 0, files: 0) } }

    /// - Returns: why there is none, as a sentence.
    private func makeRoom(in index: inout MediaIndex, bytes: Int, files: Int) -> String? {
        let now = clock()
        let oldest = retention.flatMap { retention in
            let (at, over) = now.subtractingReportingOverflow(retention.wholeNanoseconds)
            return over ? nil : at
        }
        while let first = index.oldest {
            let isOld = oldest.map { first.at < $0 } ?? false
            guard isOld || index.bytes > maxBytes - bytes || index.count > maxFiles - files else { return nil }
            let path = directory + "/" + first.name
            guard unlink(path) == 0 || errno == ENOENT else { return Self.lastError(path) }
            index.remove(first.name)
        }
        return nil
    }

    private func withIndex<R: Sendable>(_ body: (inout MediaIndex) -> R) -> R {
        index.withLock { index in
            var known = index.take() ?? scan()
            defer { index = known }
            return body(&known)
        }
    }

    private func scan() -> MediaIndex {
        var index = MediaIndex()
        guard let folder = opendir(directory) else { return index }
        defer { _ = closedir(folder) }
        let now = clock()
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            let path = directory + "/" + name
            var status = stat()
            guard name.utf8.first != UInt8(ascii: "."), lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG
            else { continue }
            let at = MediaIndex.nanoseconds(status.st_mtim)
            if Self.isName(name) {
                guard let other = index.name(of: name) else {
                    index.insert(name, cost: MediaIndex.cost(status), at: at)
                    continue
                }
                // Of an earlier version, which kept a file once for each type: one of them is enough.
                if unlink(path) == 0 { index.touch(other, at: at) }
            } else if (now &- at) / 1_000_000_000 > Self.leftOverSeconds {
                // Half written when a process ended.
                _ = unlink(path)
            }
        }
        return index
    }

    static func lastError(_ path: String) -> String { "\(path): \(String(cString: strerror(errno)))" }
}

/// What is known of the folder: the files by what is in them, and which is the oldest.
struct MediaIndex: Sendable {
    /// Of a name, what stands for the file's contents, in bytes.
    static let keyBytes = 22
    /// Least that a file costs, in bytes: a block, or its place in a folder and among the inodes.
    static let blockBytes = 4096

    private struct File: Sendable {
        var name: String
        var cost: Int
    }

    private var files: [String: File] = [:]
    private var order = DeadlineHeap<String>()
    /// Of all files, as the disk counts them.
    private(set) var bytes = 0

    var count: Int { files.count }

    /// The name on the disk of the file that has the contents of `name`.
    func name(of name: String) -> String? { files[Self.key(name)]?.name }

    /// The file that was sent longest ago, and when: nanoseconds since 1970.
    var oldest: (name: String, at: Int64)? {
        mutating get {
            guard let at = order.next(), let key = order.popDue(at) else { return nil }
            order.set(key, at: at)
            return files[key].map { ($0.name, at.nanoseconds) }
        }
    }

    mutating func insert(_ name: String, cost: Int, at: Int64) {
        remove(name)
        files[Self.key(name)] = File(name: name, cost: cost)
        order.set(Self.key(name), at: MonotonicInstant(nanoseconds: at))
        bytes += cost
    }

    mutating func touch(_ name: String, at: Int64) {
        let key = Self.key(name)
        guard files[key] != nil else { return }
        let at = MonotonicInstant(nanoseconds: at)
        order.set(key, at: order[key].map { max($0, at) } ?? at)
    }

    mutating func remove(_ name: String) {
        guard let file = files.removeValue(forKey: Self.key(name)) else { return }
        order.cancel(Self.key(name))
        bytes -= file.cost
    }

    private static func key(_ name: String) -> String {
        String(decoding: name.utf8.prefix(keyBytes), as: UTF8.self)
    }

    /// What a file of so many bytes takes of the disk: whole blocks.
    static func cost(_ bytes: Int) -> Int { (max(bytes, 1) + blockBytes - 1) / blockBytes * blockBytes }

    static func cost(_ status: stat) -> Int {
        let size = min(max(Int(status.st_size), 0), MediaStore.maxFileBytes)
        // What the file system compresses may be read by one that does not.
        return max(cost(size), min(max(Int(status.st_blocks), 0), Int.max / 1024) * 512)
    }

    static func nanoseconds(_ time: timespec) -> Int64 {
        let (whole, over) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
        return over ? (time.tv_sec < 0 ? .min : .max) : whole.addingReportingOverflow(Int64(time.tv_nsec)).partialValue
    }
}

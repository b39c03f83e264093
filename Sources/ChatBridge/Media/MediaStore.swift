import Glibc
import Threads
import WireBytes

/// Files from within messages, in a folder of the state directory: one file each, named after its contents.
///
/// Files are removed by age, then the oldest beyond the limits on number and disk usage. The folder is scanned once;
/// from then on the index is in memory. Everything here blocks on the disk.
final class MediaStore: Sendable {
    static let folder = "media"
    /// Largest file that is read, in bytes: it came in a frame, and frames are bounded by `max_message`, of 256 MiB at most.
    static let maxFileBytes = 256 * 1024 * 1024
    /// Files at once, however small: as many as a usual file system has inodes for a GiB, and about 12 MB of memory.
    static let maxFiles = 65_536
    /// Age in seconds at which incomplete files are removed.
    private static let leftOverSeconds = 3600

    let directory: String
    /// Bytes of all files, as the disk counts them.
    let maxBytes: Int
    private let maxFiles: Int
    /// Nil: unlimited.
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

    /// Stores a file and makes room for it. Equal contents are stored once, under any extension.
    ///
    /// - Returns: nil, or the error as a sentence.
    func keep(_ name: String, _ bytes: [UInt8]) -> String? {
        guard Self.isName(name) else { return "\"\(name)\" cannot name a file" }
        let cost = MediaIndex.cost(bytes.count)
        guard cost <= maxBytes else { return "it has more bytes than all files together may have" }
        guard StateFile.makeDirectory(directory) else { return StateFile.lastError(directory) }
        return withIndex { index in
            let now = clock()
            if let known = index.name(of: name) {
                // A repeated file counts as new.
                if stamp(directory + "/" + known, now) {
                    index.touch(known, at: now)
                    return nil
                }
                index.remove(known)
            }
            if let why = makeRoom(in: &index, bytes: cost, files: 1) { return why }
            // The disk and the index have one order.
            let why = StateFile.replace(directory + "/" + name, with: bytes) { _ = stamp($0, now) }
            if let why { return why }
            index.insert(name, cost: cost, at: now)
            return nil
        }
    }

    private func stamp(_ path: String, _ now: Int64) -> Bool {
        let at = timespec(tv_sec: Int(now / 1_000_000_000), tv_nsec: Int(now % 1_000_000_000))
        return utimensat(AT_FDCWD, path, [at, at], AT_SYMLINK_NOFOLLOW) == 0
    }

    // MARK: - Reading

    /// Nil where there is none of that name. An open file can be read to its end even after its removal.
    func open(_ name: String) -> MediaStoreFile? {
        guard Self.isName(name) else { return nil }
        let known = withIndex { $0.name(of: name) }
        return MediaStoreFile(directory + "/" + (known ?? name), maxBytes: Self.maxFileBytes)
    }

    // MARK: - Room

    /// Removes files by age and limits.
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
            guard unlink(path) == 0 || errno == ENOENT else { return StateFile.lastError(path) }
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
                // Earlier versions stored a file once for each type: one of them is enough.
                if unlink(path) == 0 { index.touch(other, at: at) }
            } else if (now &- at) / 1_000_000_000 > Self.leftOverSeconds {
                // Half written when a process ended.
                _ = unlink(path)
            }
        }
        return index
    }
}

/// The index of the folder: files by contents, and their ages.
struct MediaIndex: Sendable {
    /// Length of a name's content hash, in bytes.
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

    /// Disk usage of a file of so many bytes: whole blocks.
    static func cost(_ bytes: Int) -> Int { (max(bytes, 1) + blockBytes - 1) / blockBytes * blockBytes }

    static func cost(_ status: stat) -> Int {
        let size = min(max(Int(status.st_size), 0), MediaStore.maxFileBytes)
        // A copy on another file system may be uncompressed.
        return max(cost(size), min(max(Int(status.st_blocks), 0), Int.max / 1024) * 512)
    }

    static func nanoseconds(_ time: timespec) -> Int64 {
        let (whole, over) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
        return over ? (time.tv_sec < 0 ? .min : .max) : whole.addingReportingOverflow(Int64(time.tv_nsec)).partialValue
    }
}

/// An open stored file: it can be read in parts, by any thread, and is closed with this.
final class MediaStoreFile: Sendable {
    private let descriptor: Int32
    /// Never 0.
    let byteCount: Int

    /// Nil where there is none, or none that this store could have written.
    init?(_ path: String, maxBytes: Int) {
        descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_size > 0, status.st_size <= maxBytes
        else {
            byteCount = 0
            return nil
        }
        byteCount = Int(status.st_size)
    }

    deinit {
        if descriptor >= 0 { _ = close(descriptor) }
    }

    /// Blocks on the disk.
    ///
    /// - Returns: all of `part`; nil: it is not there.
    func read(_ part: Range<Int>) -> [UInt8]? {
        guard part.lowerBound >= 0, part.upperBound <= byteCount else { return nil }
        let bytes = [UInt8](unsafeUninitializedCapacity: part.count) { buffer, filled in
            while filled < part.count {
                let count = pread(
                    descriptor, buffer.baseAddress?.advanced(by: filled), part.count - filled,
                    part.lowerBound + filled)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                filled += count
            }
        }
        return bytes.count == part.count ? bytes : nil
    }
}

import BridgeCore
import Digests
import Glibc
import Transport
import WireBytes

/// The key of links to files: 32 random bytes in the state directory, for the owner's eyes alone. With another key, links
/// that were given out open no more.
enum MediaKey {
    static let fileName = "media.key"
    static let byteCount = 32

    enum Outcome: Equatable {
        case kept([UInt8])
        /// Links end with the process.
        case forgotten([UInt8], why: String)

        var key: [UInt8] {
            switch self {
            case .kept(let key), .forgotten(let key, _): key
            }
        }
    }

    /// Reads the key from `directory`, or makes one and keeps it there (mode 0600). Blocks on the disk.
    static func load(directory: String) -> Outcome {
        let path = directory + "/" + fileName
        if let known = read(path) { return .kept(known) }
        var random = BufferedSystemRandom()
        let key = (0..<byteCount).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        guard InstanceIdentity.makeDirectory(directory) else {
            return .forgotten(key, why: MediaStore.lastError(directory))
        }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let why = MediaStore.lastError(path)
            // Another process may have been faster.
            return read(path).map { .kept($0) } ?? .forgotten(key, why: why)
        }
        defer { _ = close(descriptor) }
        let line = Array((Base64.encodeURLSafe(key) + "\n").utf8)
        guard Glibc.write(descriptor, line, line.count) == line.count, fsync(descriptor) == 0 else {
            return .forgotten(key, why: MediaStore.lastError(path))
        }
        return .kept(key)
    }

    private static func read(_ path: String) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { _ = close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        guard count > 0 else { return nil }
        let text = String(decoding: bytes[..<count], as: UTF8.self)
        let key = text.split(whereSeparator: \.isWhitespace).first.flatMap { Base64.decodeURLSafe(String($0)) }
        return key.flatMap { $0.count == byteCount ? $0 : nil }
    }
}

/// Files that came within messages, in a folder of the state directory: one file each, called after what is in it.
///
/// Old ones go first, and the oldest where there are too many. Everything here blocks on the disk.
struct MediaStore: Sendable {
    static let folder = "media"
    /// Largest file that is read, in bytes: it came in a frame, and frames are bounded by `max_message`, of 256 MiB at most.
    static let maxFileBytes = 256 * 1024 * 1024
    /// Seconds after which a file that is not whole is nobody's any more.
    private static let leftOverSeconds = 3600

    let directory: String
    /// Bytes of all files.
    var maxBytes: Int
    /// Nil: kept for ever.
    var retention: Duration?

    init(stateDirectory: String, maxBytes: Int, retention: Duration?) {
        directory = stateDirectory + "/" + Self.folder
        self.maxBytes = maxBytes
        self.retention = retention
    }

    /// Whether `name` is one that this bridge gives: nothing that leads elsewhere.
    static func isName(_ name: String) -> Bool {
        let parts = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return parts.count == 2 && parts[0].count == 22 && (1...5).contains(parts[1].count)
            && parts[0].allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) || "-_".utf8.contains($0) }
            && parts[1].allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) }
    }

    /// Keeps a file, and makes room for it.
    ///
    /// - Returns: why it is not kept, as a sentence; nil: it is.
    func keep(_ name: String, _ bytes: [UInt8]) -> String? {
        guard Self.isName(name) else { return "\"\(name)\" cannot name a file" }
        guard bytes.count <= maxBytes else { return "it has more bytes than all files together may have" }
        guard InstanceIdentity.makeDirectory(directory) else { return Self.lastError(directory) }
        let path = directory + "/" + name
        // Somebody sent it again: as new as today.
        if utimensat(AT_FDCWD, path, nil, AT_SYMLINK_NOFOLLOW) == 0 { return nil }
        sweep(reserving: bytes.count)
        let fresh = "\(path).\(getpid()).new"
        _ = unlink(fresh)
        let descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return Self.lastError(fresh) }
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
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
        guard rename(fresh, path) == 0 else {
            let failure = Self.lastError(path)
            _ = unlink(fresh)
            return failure
        }
        return nil
    }

    /// Nil where there is none of that name.
    func read(_ name: String) -> [UInt8]? {
        guard Self.isName(name) else { return nil }
        let descriptor = open(directory + "/" + name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { _ = close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_size > 0, status.st_size <= Self.maxFileBytes else {
            return nil
        }
        let size = Int(status.st_size)
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
            while filled < size {
                let count = Glibc.read(descriptor, buffer.baseAddress?.advanced(by: filled), size - filled)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                filled += count
            }
        }
        return bytes.count == size ? bytes : nil
    }

    /// Removes what is too old, and then the oldest until `more` bytes fit.
    func sweep(reserving more: Int = 0) {
        guard let folder = opendir(directory) else { return }
        defer { _ = closedir(folder) }
        var files: [(path: String, bytes: Int, seconds: Int)] = []
        let now = time(nil)
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            let path = directory + "/" + name
            var status = stat()
            guard name.utf8.first != UInt8(ascii: "."), lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG
            else { continue }
            if Self.isName(name) {
                files.append((path, Int(status.st_size), status.st_mtim.tv_sec))
            } else if now - status.st_mtim.tv_sec > Self.leftOverSeconds {
                // Half written when a process ended.
                _ = unlink(path)
            }
        }
        files.sort { ($0.seconds, $0.path) < ($1.seconds, $1.path) }
        let oldest = retention.map { now - Int($0.components.seconds) }
        var total = files.reduce(more) { $0 + $1.bytes }
        for file in files where total > maxBytes || oldest.map({ file.seconds < $0 }) ?? false {
            if unlink(file.path) == 0 { total -= file.bytes }
        }
    }

    static func lastError(_ path: String) -> String { "\(path): \(String(cString: strerror(errno)))" }
}

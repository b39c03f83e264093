import Glibc

/// Small files of this program: whole reads, whole writes, atomic replacement. Everything here blocks on the disk.
enum StateFile {
    /// The path and the system's last error, for messages.
    static func lastError(_ path: String) -> String { "\(path): \(String(cString: strerror(errno)))" }

    /// Creates the directory and those above it; true when it exists afterwards.
    static func makeDirectory(_ path: String) -> Bool {
        if access(path, W_OK) == 0 { return true }
        if let slash = path.lastIndex(of: "/"), slash != path.startIndex {
            let parent = String(path[..<slash])
            if access(parent, F_OK) != 0, !makeDirectory(parent) { return false }
        }
        return mkdir(path, 0o700) == 0 || errno == EEXIST
    }

    /// The owner and the permissions of a directory; nil: there is none.
    static func owner(_ path: String) -> (user: uid_t, mode: mode_t)? {
        var status = stat()
        return stat(path, &status) == 0 ? (status.st_uid, status.st_mode & 0o7777) : nil
    }

    /// The contents of a file; nil where it cannot be opened or has more than `maxBytes`.
    static func read(_ path: String, maxBytes: Int, followsLinks: Bool = false) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | (followsLinks ? 0 : O_NOFOLLOW))
        guard descriptor >= 0 else { return nil }
        defer { _ = close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 * 1024)
        while bytes.count <= maxBytes {
            let count = Glibc.read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            bytes += piece[..<count]
        }
        return bytes.count <= maxBytes ? bytes : nil
    }

    /// Writes all of `bytes`; false with `errno` set where that fails.
    static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            written += count
        }
        return true
    }

    /// Writes `bytes` to a file of mode 0600.
    ///
    /// - Parameters:
    ///   - flags: of open(2), besides those for writing: `O_EXCL`, `O_APPEND`.
    ///   - syncs: whether the contents are on the disk afterwards.
    /// - Returns: nil, or the error as a sentence.
    static func write(_ bytes: [UInt8], to path: String, _ flags: Int32, syncs: Bool = false) -> String? {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0o600)
        guard descriptor >= 0 else { return lastError(path) }
        defer { _ = close(descriptor) }
        return write(bytes, to: descriptor) && (!syncs || fsync(descriptor) == 0) ? nil : lastError(path)
    }

    /// Replaces a file atomically: the new one is written beside it and renamed.
    ///
    /// - Parameters:
    ///   - syncs: whether the contents are on the disk before the rename.
    ///   - prepare: is called with the new file's path before the rename.
    /// - Returns: nil, or the error as a sentence.
    static func replace(
        _ path: String, with bytes: [UInt8], syncs: Bool = false, prepare: (String) -> Void = { _ in }
    ) -> String? {
        let fresh = "\(path).\(getpid()).new"
        // A leftover of a crash: the process number is this process's.
        _ = unlink(fresh)
        if let failure = write(bytes, to: fresh, O_EXCL, syncs: syncs) {
            _ = unlink(fresh)
            return failure
        }
        prepare(fresh)
        if rename(fresh, path) == 0 { return nil }
        let failure = lastError(path)
        _ = unlink(fresh)
        return failure
    }
}

/// A value that is generated once and stored in a file of one line, so that it survives restarts.
enum PersistentValue<Value> {
    case stored(Value)
    /// It could not be stored, and ends with the process.
    case unsaved(Value, reason: String)

    var value: Value {
        switch self {
        case .stored(let value), .unsaved(let value, _): value
        }
    }

    /// Reads the value from `directory`, or generates and stores it (mode 0600).
    static func load(
        _ fileName: String, in directory: String, followsLinks: Bool = false, parse: (String) -> Value?,
        format: (Value) -> String, generate: () -> Value
    ) -> PersistentValue {
        let path = directory + "/" + fileName
        func known() -> Value? {
            let bytes = StateFile.read(path, maxBytes: 4096, followsLinks: followsLinks)
            let word = String(decoding: bytes ?? [], as: UTF8.self).split(whereSeparator: \.isWhitespace).first
            return word.flatMap { parse(String($0)) }
        }
        if let known = known() { return .stored(known) }
        let value = generate()
        guard StateFile.makeDirectory(directory) else {
            return .unsaved(value, reason: StateFile.lastError(directory))
        }
        guard let failure = StateFile.write(Array((format(value) + "\n").utf8), to: path, O_EXCL, syncs: true) else {
            return .stored(value)
        }
        // Another process may have been faster.
        if errno == EEXIST, let known = known() { return .stored(known) }
        return .unsaved(value, reason: failure)
    }
}

extension PersistentValue: Equatable where Value: Equatable {}

/// Why a bridge cannot be started, for the operator.
struct StartError: Error, CustomStringConvertible {
    let description: String
}

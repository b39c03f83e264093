import CSQLite
import CSystem
import Glibc
import Threads

/// Opens a store's file: exclusively, of a known version, undamaged.
enum StoreFile {
    /// The parts of an open store.
    struct Parts {
        var lock: StoreFileLock
        var changes: StoreChanges
        var queries: StoreQueries
        var writerQueries: StoreQueries
        var opening: StoreOpening
    }

    /// Files up to this size (in bytes, 64 MiB) are checked page by page when they are opened: a fraction of a second.
    /// Larger ones when they were found damaged in use.
    static let checkedBytes: Int64 = 64 << 20

    /// How long a statement waits for another program that has the file open, a shell for example; the inbox has room
    /// for more.
    static let busyMilliseconds: Int32 = 2000

    /// Pages of 4 KiB after which the log is moved into the database, 16 MiB: ids lie all over their index, and a page
    /// that changed often is moved once.
    private static let checkpointPages = 4096

    /// The index of so many pages of the log, in bytes. Source: sqlite.org/walformat.html §2.
    private static let sharedIndexBytes = 32_768

    /// Largest size of the log after a checkpoint, in bytes: 64 MiB.
    private static let maxLogBytes = 64 << 20

    /// The writer's page cache, in KiB: the indexes of some hundred thousand messages.
    private static let cacheKiB = 32_768

    /// The marker file of a database that was found damaged in use; the next opening checks all of it.
    static func suspectMarker(_ path: String) -> String { path + ".suspect" }

    static func open(
        _ settings: StoreSettings, wallClockMilliseconds: Int64
    ) throws(StoreOpenError) -> Parts {
        let path = settings.path
        // NUL would end the path early, for the kernel and for SQLite.
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw .cannotOpen("A database needs a path; \"\(path)\" is none.")
        }
        let lock = try StoreFileLock(path: path)
        do throws(AttemptError) {
            return try attempt(settings, lock: lock, opening: StoreOpening())
        } catch {
            if case .open(let error) = error { throw error }
        }
        let aside = try moveAside(path, wallClockMilliseconds: wallClockMilliseconds)
        do throws(AttemptError) {
            return try attempt(settings, lock: lock, opening: StoreOpening(movedAside: aside))
        } catch {
            switch error {
            case .open(let error): throw error
            case .damaged: throw cannotOpen(path, "a new one is damaged at once")
            }
        }
    }

    // MARK: - One attempt

    private enum AttemptError: Error {
        case damaged
        case open(StoreOpenError)
    }

    private static func cannotOpen(_ path: String, _ reason: String) -> StoreOpenError {
        .cannotOpen("The database \(path) cannot be opened: \(reason).")
    }

    private static func attempt(
        _ settings: StoreSettings, lock: StoreFileLock, opening: StoreOpening
    ) throws(AttemptError) -> Parts {
        let path = settings.path
        do throws(SQLiteError) {
            let size = try prepareFile(path)
            var opening = opening
            opening.exclusiveReason = reserveSharedIndex(path)
            return try parts(settings, size: size, lock: lock, opening: opening)
        } catch {
            if let refusal = error.refusal { throw .open(refusal(path)) }
            throw error.scope == .file ? .damaged : .open(cannotOpen(path, error.sentence))
        }
    }

    /// Creates the file, or restricts it, readable by its owner alone; returns its size in bytes.
    private static func prepareFile(_ path: String) throws(SQLiteError) -> Int64 {
        // Before SQLite has it open: closing any descriptor of a file drops the locks that the process has on it.
        let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SQLiteError(code: SQLiteCode.cannotOpen, sentence: systemErrorText(errno)) }
        defer { cb_close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw SQLiteError(code: SQLiteCode.cannotOpen, sentence: systemErrorText(errno))
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw SQLiteError(code: SQLiteCode.cannotOpen, sentence: "it is no file")
        }
        if status.st_mode & 0o077 != 0 { _ = fchmod(descriptor, 0o600) }
        return Int64(status.st_size)
    }

    /// Reserves the file through which SQLite shares the index of the log with other processes, and says why it cannot:
    /// on a full disk. Exclusively, SQLite needs no such file.
    ///
    /// SQLite maps the file into memory and trusts one byte written in 4 KiB to have got blocks for all of them. Where
    /// blocks are smaller, as in file systems of less than 512 MiB, or where each write takes new ones, the system ends
    /// the process with SIGBUS at the first page that the disk has no room for.
    private static func reserveSharedIndex(_ path: String) -> String? {
        var log = stat()
        let logBytes = stat(path + "-wal", &log) == 0 ? Int(log.st_size) : 0
        let needed = sharedIndexBytes * (logBytes / (checkpointPages * 4096) + 2)
        // Before SQLite has it open, as in `prepareFile`.
        let descriptor = Glibc.open(path + "-shm", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return systemErrorText(errno) }
        defer { cb_close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return systemErrorText(errno) }
        let error = posix_fallocate(descriptor, 0, needed)
        guard error != 0 else { return nil }
        // What it got of them is given back: the log needs them more.
        _ = ftruncate(descriptor, status.st_size)
        return error == ENOSPC || error == EDQUOT ? "the disk is full" : systemErrorText(error)
    }

    private static func parts(
        _ settings: StoreSettings, size: Int64, lock: StoreFileLock, opening: StoreOpening
    ) throws(SQLiteError) -> Parts {
        func connect(isReadOnly: Bool) throws(SQLiteError) -> SQLiteConnection {
            try SQLiteConnection(
                path: settings.path, isReadOnly: isReadOnly, isExclusive: opening.exclusiveReason != nil,
                busyMilliseconds: busyMilliseconds)
        }
        let writing = try connect(isReadOnly: false)
        do throws(SQLiteError) {
            try prepare(writing, settings, size: size)
            let reading = try connect(isReadOnly: true)
            do throws(SQLiteError) {
                return Parts(
                    lock: lock, changes: try StoreChanges(writing, settings.conversationLimits, boot: settings.boot),
                    queries: try StoreQueries(reading, boot: settings.boot),
                    writerQueries: try StoreQueries(writing, boot: settings.boot), opening: opening)
            } catch {
                reading.close()
                throw error
            }
        } catch {
            // Not left to the last reference: a damaged file is about to be renamed.
            writing.close()
            throw error
        }
    }

    /// Checks that the file is a store and undamaged, and migrates it to the present version.
    private static func prepare(
        _ connection: SQLiteConnection, _ settings: StoreSettings, size: Int64
    ) throws(SQLiteError) {
        // Reading the version first: a file of another program stays as it is.
        let found = Int(try connection.integer("PRAGMA user_version"))
        let application = try connection.integer("PRAGMA application_id")
        if application != StoreSchema.applicationID {
            let tables = try connection.integer("SELECT count(*) FROM sqlite_schema")
            guard found == 0, tables == 0 else {
                throw SQLiteError(code: SQLiteCode.foreign, sentence: "another program made it")
            }
        }
        guard found <= StoreSchema.version, found >= 0 else {
            throw SQLiteError(code: SQLiteCode.newer, sentence: String(found))
        }

        let path = settings.path
        let isSuspect = access(suspectMarker(path), F_OK) == 0
        if isSuspect || size <= checkedBytes {
            guard try connection.text("PRAGMA quick_check(1)") == "ok" else {
                throw SQLiteError(code: SQLiteCode.damaged, sentence: "the database is damaged")
            }
            if isSuspect { _ = unlink(suspectMarker(path)) }
        }

        guard try connection.text("PRAGMA journal_mode = WAL") == "wal" else {
            throw SQLiteError(code: SQLiteCode.cannotOpen, sentence: "its file system cannot keep a write-ahead log")
        }
        let sync =
            switch settings.sync {
            case .normal: "NORMAL"
            case .full: "FULL"
            case .off: "OFF"
            }
        try connection.execute(
            """
            PRAGMA synchronous = \(sync); PRAGMA temp_store = MEMORY; PRAGMA secure_delete = ON;
            PRAGMA cache_size = -\(cacheKiB); PRAGMA wal_autocheckpoint = \(checkpointPages);
            PRAGMA journal_size_limit = \(maxLogBytes);
            """)
        try StoreSchema.migrate(connection, from: found)
        if let pages = settings.maxPageCount { try connection.execute("PRAGMA max_page_count = \(pages)") }
    }

    // MARK: - Moving aside

    /// Renames a damaged database and its log, for a later inspection; returns its new path.
    private static func moveAside(_ path: String, wallClockMilliseconds: Int64) throws(StoreOpenError) -> String {
        let base = "\(path).damaged-\(max(0, wallClockMilliseconds) / 1000)"
        var aside = base
        var attempt = 1
        while access(aside, F_OK) == 0 {
            attempt += 1
            aside = "\(base)-\(attempt)"
        }
        guard rename(path, aside) == 0 else {
            throw cannotOpen(path, "it is damaged, and cannot be renamed: \(systemErrorText(errno))")
        }
        // With its log it may still be repaired; without it, a new database would take the log for its own.
        for suffix in ["-wal", "-shm"] where rename(path + suffix, aside + suffix) != 0 && errno != ENOENT {
            throw cannotOpen(path, "its file \(path)\(suffix) cannot be renamed: \(systemErrorText(errno))")
        }
        _ = unlink(suspectMarker(path))
        return aside
    }

    /// Makes the next opening check every page.
    static func markSuspect(_ path: String) {
        let descriptor = Glibc.open(suspectMarker(path), O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        if descriptor >= 0 { cb_close(descriptor) }
    }
}

/// Codes of errors raised here, not by SQLite. SQLite's own primary codes are below 256.
private enum SQLiteCode {
    static let cannotOpen: Int32 = 14
    static let damaged: Int32 = 11
    static let newer: Int32 = 1001
    static let foreign: Int32 = 1002
}

extension SQLiteError {
    /// The refusal of an undamaged file that is no store of this program, given its path.
    fileprivate var refusal: ((String) -> StoreOpenError)? {
        switch code {
        case SQLiteCode.newer:
            let found = Int(sentence) ?? 0
            return { .newer(path: $0, found: found, known: StoreSchema.version) }
        case SQLiteCode.foreign:
            return { .cannotOpen("The file \($0) is a database of another program. It was left as it is.") }
        default: return nil
        }
    }
}

/// Holds a database for this store alone, by a lock on the file `path` with `.lock`. The kernel releases it when the
/// process ends, however it ends; the file stays, since removing it would race with waiting processes.
final class StoreFileLock: Sendable {
    private let descriptor: Locked<Int32>

    init(path: String) throws(StoreOpenError) {
        let file = Glibc.open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw .cannotOpen("The file \(path).lock cannot be opened: \(systemErrorText(errno)).")
        }
        while flock(file, LOCK_EX | LOCK_NB) != 0 {
            let error = errno
            if error == EINTR { continue }
            cb_close(file)
            if error == EWOULDBLOCK { throw .inUse(path: path) }
            throw .cannotOpen("The file \(path).lock cannot be locked: \(systemErrorText(error)).")
        }
        descriptor = Locked(file)
    }

    deinit { release() }

    func release() {
        let file = descriptor.withLock { descriptor -> Int32 in
            defer { descriptor = -1 }
            return descriptor
        }
        guard file >= 0 else { return }
        // Explicitly: a child that is about to exec another program has the descriptor for a moment too, and a close
        // alone would leave it the lock. Source: flock(2).
        flock(file, LOCK_UN)
        cb_close(file)
    }
}

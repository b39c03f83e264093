import CSQLite
import CSystem
import Glibc

/// Why a copy was not made: a sentence.
public struct StoreBackupError: Error, Equatable, Sendable {
    public var sentence: String
    /// The database could not be read; else the copy could not be written.
    public var isOfSource: Bool
}

/// Copies a database that another process may be writing, by SQLite's online backup.
///
/// The copy is the database at one moment: a read transaction holds its snapshot meanwhile, so writers neither wait nor
/// make the copy begin anew. Source: sqlite.org/backup.html; sqlite.org/isolation.html.
public enum StoreBackup {
    /// Pages copied between two reports, of 4 KiB each.
    private static let pagesAtOnce: Int32 = 256
    private static let busyMilliseconds: Int32 = 5000

    /// Copies `path` to `target`, which must not exist; it appears when it is complete, readable by its owner alone.
    ///
    /// - Parameter progress: is told the pages copied and all of them.
    /// - Returns: the size of the copy in bytes.
    public static func copy(
        _ path: String, to target: String, progress: (Int, Int) -> Void
    ) throws(StoreBackupError) -> Int {
        func failure(_ what: String, _ why: String) -> StoreBackupError {
            StoreBackupError(sentence: "\(what): \(why)", isOfSource: what == path)
        }
        // Before the work: a copy is made once, and never over another.
        guard access(target, F_OK) != 0 else { throw failure(target, "the file exists and is left alone") }
        let part = "\(target).\(getpid()).part"
        let descriptor = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(part, systemErrorText(errno)) }
        defer {
            cb_close(descriptor)
            _ = unlink(part)
            _ = unlink(part + "-journal")
        }
        let source: SQLiteConnection
        do throws(SQLiteError) {
            source = try SQLiteConnection(
                path: path, isReadOnly: true, isExclusive: false, busyMilliseconds: busyMilliseconds)
            // The first read begins the snapshot.
            try source.execute("BEGIN")
            _ = try source.integer("SELECT count(*) FROM sqlite_schema")
        } catch {
            throw failure(path, error.sentence)
        }
        do throws(SQLiteError) {
            let copy = try SQLiteConnection(path: part, isReadOnly: false, isExclusive: false, busyMilliseconds: 0)
            try source.copy(into: copy, pagesAtOnce: pagesAtOnce, progress)
            copy.close()
        } catch {
            throw failure(error.scope == .file ? path : target, error.sentence)
        }
        // `link` refuses a name that exists, where `rename` would replace it.
        guard fsync(descriptor) == 0, link(part, target) == 0 else { throw failure(target, systemErrorText(errno)) }
        var status = stat()
        return fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
    }
}

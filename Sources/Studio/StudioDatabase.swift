import CSQLite
import Glibc

/// Why a studio's database is of no use.
public struct StudioDatabaseError: Error, CustomStringConvertible {
    public let description: String
}

/// The changes of the studio's rooms, and its files, in a SQLite file. For one thread.
///
/// The rooms are the sum of their changes: a table of texts that only grows, and one of files. Nothing else is kept, so
/// an old file can always be read.
final class StudioDatabase {
    private var handle: OpaquePointer?
    /// From `PRAGMA user_version`; another means a file of another program.
    private static let version = 1
    /// How long a statement waits for another process that holds the file, in milliseconds.
    private static let busyMilliseconds: Int32 = 2000

    /// Opens the file, which is made where there is none.
    init(path: String) throws(StudioDatabaseError) {
        let flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        guard sqlite3_open_v2(path, &handle, flags, nil) == SQLITE_OK else {
            let error = failure("cannot open \(path)")
            sqlite3_close_v2(handle)
            handle = nil
            throw error
        }
        sqlite3_busy_timeout(handle, Self.busyMilliseconds)
        var found: Int64 = 0
        try rows("PRAGMA user_version") { found = sqlite3_column_int64($0, 0) }
        guard found == 0 || found == Self.version else {
            throw StudioDatabaseError(description: "\(path) is a database of another program or version")
        }
        if found == 0 {
            var tables: Int64 = 0
            try rows("SELECT count(*) FROM sqlite_schema") { tables = sqlite3_column_int64($0, 0) }
            guard tables == 0 else {
                throw StudioDatabaseError(description: "\(path) is a database of another program")
            }
        }
        try execute(
            """
            PRAGMA journal_mode = WAL;
            PRAGMA synchronous = NORMAL;
            CREATE TABLE IF NOT EXISTS changes (number INTEGER PRIMARY KEY, change TEXT NOT NULL);
            CREATE TABLE IF NOT EXISTS files (name TEXT PRIMARY KEY, mime TEXT NOT NULL, content BLOB NOT NULL);
            PRAGMA user_version = \(Self.version);
            """)
    }

    deinit { sqlite3_close_v2(handle) }

    // MARK: - Reading

    func forEachChange(_ body: (String) -> Void) throws(StudioDatabaseError) {
        try rows("SELECT change FROM changes ORDER BY number") { body(Self.text($0, 0)) }
    }

    func forEachFile(_ body: (_ name: String, _ mime: String, _ content: [UInt8]) -> Void) throws(StudioDatabaseError) {
        try rows("SELECT name, mime, content FROM files ORDER BY rowid") { statement in
            let count = Int(sqlite3_column_bytes(statement, 2))
            let content = sqlite3_column_blob(statement, 2).map {
                Array(UnsafeRawBufferPointer(start: $0, count: count))
            }
            body(Self.text(statement, 0), Self.text(statement, 1), content ?? [])
        }
    }

    // MARK: - Writing

    /// In one transaction.
    func append(_ changes: [String]) throws(StudioDatabaseError) {
        try execute("BEGIN IMMEDIATE")
        do throws(StudioDatabaseError) {
            for change in changes {
                try insert("INSERT INTO changes (change) VALUES (?1)", texts: [change], content: nil)
            }
            try execute("COMMIT")
        } catch {
            sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
            throw error
        }
    }

    func addFile(name: String, mime: String, content: [UInt8]) throws(StudioDatabaseError) {
        try insert(
            "INSERT OR IGNORE INTO files (name, mime, content) VALUES (?1, ?2, ?3)", texts: [name, mime],
            content: content)
    }

    // MARK: - SQLite

    private func execute(_ sql: String) throws(StudioDatabaseError) {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw failure("cannot write the database") }
    }

    private func rows(_ sql: String, _ body: (OpaquePointer) -> Void) throws(StudioDatabaseError) {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK, let statement else {
            throw failure("cannot read the database")
        }
        defer { sqlite3_finalize(statement) }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: body(statement)
            case SQLITE_DONE: return
            default: throw failure("cannot read the database")
            }
        }
    }

    /// - Parameter content: the last parameter, as a blob.
    private func insert(_ sql: String, texts: [String], content: [UInt8]?) throws(StudioDatabaseError) {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK, let statement else {
            throw failure("cannot write the database")
        }
        defer { sqlite3_finalize(statement) }
        // The bytes must stay where they are until the statement has run.
        let result = Self.withBuffers(texts.map { Array($0.utf8) } + (content.map { [$0] } ?? [])) { buffers in
            for (index, buffer) in buffers.enumerated() {
                let isContent = content != nil && index == texts.count
                let bound =
                    isContent
                    ? sqlite3_bind_blob64(statement, Int32(index + 1), buffer.baseAddress, UInt64(buffer.count), nil)
                    : cq_bind_text(
                        statement, Int32(index + 1), buffer.baseAddress?.assumingMemoryBound(to: CChar.self),
                        UInt64(buffer.count))
                guard bound == SQLITE_OK else { return bound }
            }
            return sqlite3_step(statement)
        }
        guard result == SQLITE_DONE else { throw failure("cannot write the database") }
    }

    /// Each is given an address even when it is empty: SQLite takes none for NULL.
    private static func withBuffers<R>(
        _ arrays: [[UInt8]], _ held: [UnsafeRawBufferPointer] = [], _ body: ([UnsafeRawBufferPointer]) -> R
    ) -> R {
        guard held.count < arrays.count else { return body(held) }
        return (arrays[held.count] + [0]).withUnsafeBytes { bytes in
            withBuffers(arrays, held + [UnsafeRawBufferPointer(rebasing: bytes.dropLast())], body)
        }
    }

    private static func text(_ statement: OpaquePointer, _ column: Int32) -> String {
        guard let start = sqlite3_column_text(statement, column) else { return "" }
        return String(
            decoding: UnsafeBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column))),
            as: UTF8.self)
    }

    private func failure(_ what: String) -> StudioDatabaseError {
        StudioDatabaseError(description: "\(what): \(String(cString: sqlite3_errmsg(handle)))")
    }
}

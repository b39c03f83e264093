import CSQLite
import Glibc

/// An error of SQLite.
struct SQLiteError: Error, Equatable {
    /// The primary result code.
    var code: Int32
    /// A part of a sentence.
    var sentence: String

    /// The extent of the damage.
    enum Scope {
        /// This operation; others can succeed.
        case operation
        /// All operations, for the moment.
        case transient
        /// The file.
        case file
    }

    var scope: Scope {
        switch code {
        case SQLITE_CORRUPT, SQLITE_NOTADB: .file
        case SQLITE_FULL, SQLITE_IOERR, SQLITE_BUSY, SQLITE_LOCKED, SQLITE_NOMEM, SQLITE_READONLY, SQLITE_CANTOPEN,
            SQLITE_PROTOCOL, SQLITE_PERM, SQLITE_AUTH, SQLITE_INTERRUPT, SQLITE_NOLFS, SQLITE_INTERNAL:
            .transient
        default: .operation
        }
    }

    /// - Parameter connection: the connection on which the call failed; nil when there is none.
    init(_ result: Int32, on connection: OpaquePointer?) {
        code = result & 0xFF
        let system = connection.map { sqlite3_system_errno($0) } ?? 0
        sentence =
            switch code {
            case SQLITE_FULL: "the disk is full"
            case SQLITE_IOERR, SQLITE_CANTOPEN: Self.sentence(ofSystemError: system, code: code)
            case SQLITE_BUSY, SQLITE_LOCKED: "another program holds the database"
            case SQLITE_READONLY, SQLITE_PERM: "the database may not be written"
            case SQLITE_NOMEM: "there is not enough memory"
            case SQLITE_CORRUPT, SQLITE_NOTADB: "the database is damaged"
            default:
                connection.flatMap { sqlite3_errmsg($0) }.map { "SQLite says: " + String(cString: $0) }
                    ?? "SQLite says: " + String(cString: sqlite3_errstr(result))
            }
    }

    init(code: Int32, sentence: String) {
        self.code = code
        self.sentence = sentence
    }

    private static func sentence(ofSystemError error: Int32, code: Int32) -> String {
        switch error {
        case ENOSPC, EDQUOT: "the disk is full"
        case EFBIG: "the file has reached the size that it may have"
        case 0: code == SQLITE_IOERR ? "the disk does not answer as it should" : "the database cannot be opened"
        default:
            (code == SQLITE_IOERR ? "reading or writing fails: " : "the database cannot be opened: ")
                + systemErrorText(error)
        }
    }
}

/// A connection to a database, for one thread at a time.
final class SQLiteConnection {
    private var handle: OpaquePointer?

    /// - Parameters:
    ///   - busyMilliseconds: how long a statement waits for another process that holds the file.
    ///   - isExclusive: other processes are excluded, and nothing is shared with them: the index of the log is in memory
    ///     and not in the file `-shm`. The same for all connections of a process. Source: sqlite.org/vfs.html, "unix-excl".
    init(path: String, isReadOnly: Bool, isExclusive: Bool, busyMilliseconds: Int32) throws(SQLiteError) {
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_NOMUTEX | (isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE)
        let result = sqlite3_open_v2(path, &opened, flags, isExclusive ? "unix-excl" : nil)
        guard result == SQLITE_OK, let opened else {
            let error = SQLiteError(result, on: opened)
            sqlite3_close_v2(opened)
            throw error
        }
        handle = opened
        sqlite3_busy_timeout(opened, busyMilliseconds)
    }

    deinit { close() }

    /// Ends the connection and its statements, which must not be used after it.
    func close() {
        guard let handle else { return }
        self.handle = nil
        while let statement = sqlite3_next_stmt(handle, nil) { sqlite3_finalize(statement) }
        sqlite3_close_v2(handle)
    }

    /// Executes statements whose rows do not matter.
    func execute(_ sql: String) throws(SQLiteError) {
        let result = sqlite3_exec(handle, sql, nil, nil, nil)
        guard result == SQLITE_OK else { throw SQLiteError(result, on: handle) }
    }

    /// A statement that lives as long as the connection.
    func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
        var statement: OpaquePointer?
        let result = sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard result == SQLITE_OK, let handle, let statement else { throw SQLiteError(result, on: handle) }
        return SQLiteStatement(handle: statement, connection: handle)
    }

    /// The first column of the first row; nil when there is none.
    func text(_ sql: String) throws(SQLiteError) -> String? {
        let statement = try prepare(sql)
        defer { sqlite3_finalize(statement.handle) }
        return try statement.step() ? statement.optionalText(0) : nil
    }

    func integer(_ sql: String) throws(SQLiteError) -> Int64 {
        let statement = try prepare(sql)
        defer { sqlite3_finalize(statement.handle) }
        return try statement.step() ? statement.integer(0) : 0
    }

    var isInTransaction: Bool { handle.map { sqlite3_get_autocommit($0) == 0 } ?? false }

    /// Rolls back the open transaction, if there is one still: some failures end it themselves.
    func rollBack() {
        if isInTransaction { sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
    }

    /// Sets a limit; when SQLite refuses the value, the old limit stays.
    func set(_ pragma: String, to value: Int64) {
        sqlite3_exec(handle, "PRAGMA \(pragma) = \(value)", nil, nil, nil)
    }

    /// Copies the database into another, some pages at a time.
    ///
    /// - Parameter progress: is told the pages copied and all of them.
    func copy(
        into target: SQLiteConnection, pagesAtOnce: Int32, _ progress: (Int, Int) -> Void
    ) throws(SQLiteError) {
        guard let backup = sqlite3_backup_init(target.handle, "main", handle, "main") else {
            throw SQLiteError(sqlite3_errcode(target.handle), on: target.handle)
        }
        var result = SQLITE_OK
        while result == SQLITE_OK {
            result = sqlite3_backup_step(backup, pagesAtOnce)
            let total = Int(sqlite3_backup_pagecount(backup))
            progress(total - Int(sqlite3_backup_remaining(backup)), total)
        }
        let end = sqlite3_backup_finish(backup)
        guard result == SQLITE_DONE, end == SQLITE_OK else {
            throw SQLiteError(end == SQLITE_OK ? result : end, on: target.handle)
        }
    }

    /// Moves as much as possible from the log into the database, without waiting for readers.
    func checkpoint() {
        sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
    }
}

/// A prepared statement. Each use ends with a reset, before its parameters' bytes are freed.
struct SQLiteStatement {
    let handle: OpaquePointer
    let connection: OpaquePointer

    func bind(_ index: Int32, _ value: Int64) { sqlite3_bind_int64(handle, index, value) }

    /// True: there is a row to read.
    func step() throws(SQLiteError) -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let result: throw SQLiteError(result, on: connection)
        }
    }

    func reset() { sqlite3_reset(handle) }

    /// Rows that the last statement inserted, changed or deleted.
    var changes: Int { Int(sqlite3_changes64(connection)) }

    // MARK: - Columns

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

    /// Calls `body` with a text's bytes; nil for NULL.
    func withBytes<R>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> R) -> R? {
        guard let start = sqlite3_column_text(handle, column) else { return nil }
        return body(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column))))
    }

    func optionalText(_ column: Int32) -> String? { withBytes(column) { String(decoding: $0, as: UTF8.self) } }

    func text(_ column: Int32) -> String { optionalText(column) ?? "" }
}

/// The parameters of one statement, gathered in one piece of memory from which SQLite reads them without a copy.
final class SQLiteValues {
    private enum Slot {
        case null
        case integer(Int64)
        case text(offset: Int, count: Int)
    }

    /// Largest buffer that is reused; one for a longer text is freed after it.
    private static let reusedBytes = 1 << 20

    private var slots: [Slot] = []
    private var bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 1)
    private var used = 0

    deinit { bytes.deallocate() }

    private func reserve(_ count: Int) {
        guard bytes.count - used < count else { return }
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: max(bytes.count * 2, used + count), alignment: 1)
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<used]))
        bytes.deallocate()
        bytes = larger
    }

    func add(_ value: Int64) { slots.append(.integer(value)) }
    func add(_ value: Int64?) { slots.append(value.map { .integer($0) } ?? .null) }
    func addNull() { slots.append(.null) }

    func add(_ text: String) {
        var text = text
        text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
    }

    func add(_ text: String?) {
        if let text { add(text) } else { addNull() }
    }

    func add(_ text: UnsafeRawBufferPointer) {
        reserve(text.count)
        UnsafeMutableRawBufferPointer(rebasing: bytes[used...]).copyMemory(from: text)
        slots.append(.text(offset: used, count: text.count))
        used += text.count
    }

    /// A text of exactly `count` bytes, if `fill` writes it; when it returns false, nothing is added.
    func add(count: Int, _ fill: (UnsafeMutablePointer<UInt8>) -> Bool) -> Bool {
        reserve(count)
        guard let base = bytes.baseAddress, fill((base + used).assumingMemoryBound(to: UInt8.self)) else {
            return false
        }
        slots.append(.text(offset: used, count: count))
        used += count
        return true
    }

    /// Executes `statement`, which returns no rows, with the added values, and clears them.
    ///
    /// - Returns: how many rows changed.
    @discardableResult
    func run(_ statement: SQLiteStatement) throws(SQLiteError) -> Int {
        defer { finish(statement) }
        try bind(to: statement)
        _ = try statement.step()
        return statement.changes
    }

    /// The first column of the first row that `statement` returns for the added values, which are cleared.
    func integer(_ statement: SQLiteStatement) throws(SQLiteError) -> Int64? {
        defer { finish(statement) }
        try bind(to: statement)
        return try statement.step() ? statement.optionalInteger(0) : nil
    }

    func bind(to statement: SQLiteStatement) throws(SQLiteError) {
        var index: Int32 = 0
        for slot in slots {
            index += 1
            let result =
                switch slot {
                case .null: sqlite3_bind_null(statement.handle, index)
                case .integer(let value): sqlite3_bind_int64(statement.handle, index, value)
                case .text(let offset, let count):
                    // Never a null pointer, which would be NULL: there is always memory.
                    cq_bind_text(
                        statement.handle, index,
                        bytes.baseAddress.map { ($0 + offset).assumingMemoryBound(to: CChar.self) },
                        UInt64(count))
                }
            guard result == SQLITE_OK else { throw SQLiteError(result, on: statement.connection) }
        }
    }

    func finish(_ statement: SQLiteStatement) {
        statement.reset()
        slots.removeAll(keepingCapacity: true)
        used = 0
        if bytes.count > Self.reusedBytes {
            bytes.deallocate()
            bytes = .allocate(byteCount: 4096, alignment: 1)
        }
    }
}

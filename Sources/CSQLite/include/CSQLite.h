#ifndef CHATBRIDGE_CSQLITE_H
#define CHATBRIDGE_CSQLITE_H

// SQLite for Swift: macros with casts in its header are not imported, so they stand here as functions. No logic.

#include <sqlite3.h>

/// Binds `count` bytes of UTF-8 without a copy: they must stay where they are until the statement is reset.
static inline int cq_bind_text(sqlite3_stmt *statement, int index, const char *bytes, sqlite3_uint64 count) {
    return sqlite3_bind_text64(statement, index, bytes, count, SQLITE_STATIC, SQLITE_UTF8);
}

#endif

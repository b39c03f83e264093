/// The tables, as migrations from each version of the file to the next. Steps are added, never changed: files of every
/// version exist.
///
/// Texts are UTF-8 and may hold NUL; times are milliseconds since 1970 UTC; lists (attachments, tags) are JSON. A
/// private conversation is a room without a backend, named after its parties. Ids stand in their original spelling;
/// where equal ids may be spelled differently and rows are found by them, a column of its own holds the canonical
/// spelling.
enum StoreSchema {
    /// The value of `PRAGMA application_id`, by which a store is distinguished from another program's database: "cbrd".
    static let applicationID: Int64 = 0x6362_7264

    /// The version that this program writes, in `PRAGMA user_version`.
    static var version: Int { steps.count }

    /// Step `n` leads from version `n` to `n + 1`.
    static let steps: [String] = [
        """
        CREATE TABLE rooms(
            id INTEGER PRIMARY KEY,
            backend TEXT NOT NULL,
            room TEXT NOT NULL,
            next_sequence INTEGER NOT NULL DEFAULT 0,
            live_until INTEGER,
            UNIQUE(backend, room)
        ) STRICT;

        CREATE TABLE messages(
            room INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            msgid TEXT NOT NULL,
            kind INTEGER NOT NULL,
            at INTEGER NOT NULL,
            backend_at INTEGER,
            gap_from INTEGER,
            upstream_id TEXT,
            sender_id TEXT,
            sender_name TEXT,
            nick TEXT NOT NULL,
            source TEXT NOT NULL,
            account TEXT,
            text TEXT NOT NULL,
            sent_as TEXT,
            attachments TEXT,
            flags INTEGER NOT NULL,
            reply_to TEXT,
            tags TEXT,
            author TEXT,
            client TEXT,
            PRIMARY KEY(room, seq)
        ) STRICT, WITHOUT ROWID;
        CREATE UNIQUE INDEX messages_msgid ON messages(room, msgid);
        CREATE INDEX messages_time ON messages(at);

        CREATE TABLE outbox(
            position INTEGER PRIMARY KEY,
            key TEXT NOT NULL UNIQUE,
            id TEXT NOT NULL,
            room INTEGER NOT NULL,
            link TEXT NOT NULL,
            sender_id TEXT,
            sender_name TEXT,
            sent_as TEXT NOT NULL,
            attachments TEXT,
            reply_to TEXT,
            accepted_at INTEGER NOT NULL,
            author TEXT NOT NULL,
            nick TEXT NOT NULL,
            source TEXT NOT NULL,
            account TEXT,
            client TEXT,
            text TEXT NOT NULL,
            tags TEXT,
            state INTEGER NOT NULL,
            confirmed INTEGER NOT NULL,
            reason TEXT
        ) STRICT;
        CREATE INDEX outbox_room ON outbox(room, state);

        CREATE TABLE markers(
            room INTEGER NOT NULL,
            key TEXT NOT NULL,
            reader TEXT NOT NULL,
            at INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            PRIMARY KEY(room, key)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE cursors(
            account TEXT NOT NULL,
            client TEXT NOT NULL,
            room INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            PRIMARY KEY(account, client, room)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE identities(
            backend TEXT NOT NULL,
            key TEXT NOT NULL,
            person_id TEXT,
            person_name TEXT,
            nick TEXT NOT NULL,
            realname TEXT NOT NULL,
            last_seen INTEGER NOT NULL,
            PRIMARY KEY(backend, key)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE probe(id INTEGER PRIMARY KEY, filler BLOB) STRICT;
        """,
        """
        CREATE TABLE receipts(
            room INTEGER NOT NULL,
            author_key TEXT NOT NULL,
            reader_key TEXT NOT NULL,
            author TEXT NOT NULL,
            reader_id TEXT,
            reader_name TEXT,
            delivered INTEGER NOT NULL,
            read INTEGER NOT NULL,
            PRIMARY KEY(room, author_key, reader_key)
        ) STRICT, WITHOUT ROWID;
        """,
        """
        CREATE TABLE accounts(
            name TEXT PRIMARY KEY,
            password TEXT NOT NULL,
            made_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        -- Where a time stands in a room's order. Nothing asks for a time alone.
        DROP INDEX messages_time;
        CREATE INDEX messages_room_time ON messages(room, at);
        """,
        """
        CREATE TABLE nicks(
            nick TEXT PRIMARY KEY,
            shown TEXT NOT NULL,
            account TEXT NOT NULL,
            position INTEGER NOT NULL UNIQUE
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE choices(
            account TEXT PRIMARY KEY,
            receipts TEXT,
            notices INTEGER NOT NULL,
            mutes TEXT
        ) STRICT, WITHOUT ROWID;
        """,
        """
        CREATE TABLE memberships(
            account TEXT NOT NULL,
            backend TEXT NOT NULL,
            room TEXT NOT NULL,
            channel TEXT NOT NULL,
            position INTEGER NOT NULL,
            PRIMARY KEY(account, backend, room)
        ) STRICT, WITHOUT ROWID;

        ALTER TABLE choices ADD COLUMN rejoin INTEGER;
        """,
        """
        ALTER TABLE outbox ADD COLUMN said_after INTEGER;
        """,
        """
        ALTER TABLE rooms ADD COLUMN live_counted INTEGER;
        ALTER TABLE rooms ADD COLUMN live_boot TEXT;
        """,
        """
        CREATE TABLE mirrored(
            position INTEGER PRIMARY KEY,
            mirror TEXT NOT NULL,
            backend TEXT NOT NULL,
            room TEXT NOT NULL,
            msgid TEXT NOT NULL,
            tool_id TEXT NOT NULL,
            is_theirs INTEGER NOT NULL,
            UNIQUE(mirror, backend, room, msgid)
        ) STRICT;
        CREATE INDEX mirrored_age ON mirrored(mirror, position);
        """,
        """
        CREATE TABLE bookmarks(
            mirror TEXT NOT NULL,
            subject TEXT NOT NULL,
            place TEXT NOT NULL,
            PRIMARY KEY(mirror, subject)
        ) STRICT, WITHOUT ROWID;
        """,
        """
        ALTER TABLE rooms ADD COLUMN history_unasked INTEGER NOT NULL DEFAULT 0;
        """,
    ]

    /// Brings the file to ``version``, each step in one transaction with the new version's number.
    ///
    /// - Parameter found: the file's version, at most ``version``.
    static func migrate(_ connection: SQLiteConnection, from found: Int) throws(SQLiteError) {
        for step in found..<max(found, version) {
            do {
                try connection.execute(
                    "BEGIN IMMEDIATE; \(steps[step]) PRAGMA application_id = \(applicationID);"
                        + "PRAGMA user_version = \(step + 1); COMMIT;")
            } catch {
                connection.rollBack()
                throw error
            }
        }
    }
}

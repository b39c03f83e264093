-- A database as version 9 of the schema wrote it. Never changed: files like it are about.
PRAGMA application_id = 1667396196;
PRAGMA user_version = 9;
BEGIN TRANSACTION;
CREATE TABLE accounts(
    name TEXT PRIMARY KEY,
    password TEXT NOT NULL,
    made_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "accounts" VALUES('bea','hash of hers',1750000000600);
CREATE TABLE bookmarks(
            mirror TEXT NOT NULL,
            subject TEXT NOT NULL,
            place TEXT NOT NULL,
            PRIMARY KEY(mirror, subject)
        ) STRICT, WITHOUT ROWID;
INSERT INTO "bookmarks" VALUES('team','batch lobby','4');
CREATE TABLE choices(
            account TEXT PRIMARY KEY,
            receipts TEXT,
            notices INTEGER NOT NULL,
            mutes TEXT, rejoin INTEGER) STRICT, WITHOUT ROWID;
INSERT INTO "choices" VALUES('bea','off',1,'[["nick","cleo","Cleo"]]',NULL);
CREATE TABLE cursors(
            account TEXT NOT NULL,
            client TEXT NOT NULL,
            room INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            PRIMARY KEY(account, client, room)
        ) STRICT, WITHOUT ROWID;
INSERT INTO "cursors" VALUES('ann','phone',1,6);
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
INSERT INTO "identities" VALUES('chat','ip1','p1','Päivi','paivi','Päivi P.',1750000000000);
CREATE TABLE markers(
            room INTEGER NOT NULL,
            key TEXT NOT NULL,
            reader TEXT NOT NULL,
            at INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            PRIMARY KEY(room, key)
        ) STRICT, WITHOUT ROWID;
INSERT INTO "markers" VALUES(1,'a','a',1750000000350,5);
CREATE TABLE memberships(
            account TEXT NOT NULL,
            backend TEXT NOT NULL,
            room TEXT NOT NULL,
            channel TEXT NOT NULL,
            position INTEGER NOT NULL,
            PRIMARY KEY(account, backend, room)
        ) STRICT, WITHOUT ROWID;
INSERT INTO "memberships" VALUES('bea','chat','lobby','#lobby',0);
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
INSERT INTO "messages" VALUES(1,4,'m4',0,1750000000000,1750000000001,NULL,'0e5a7f3c-1111-4222-8333-abcdefabcdef','p1','Päivi','paivi','paivi!p@chat',NULL,'hello',NULL,'[{"kind":"image","url":"https://h/x.png","size":12,"duration":1.5}]',1,'m1',NULL,NULL,NULL);
INSERT INTO "messages" VALUES(1,5,'m5',0,1750000000100,NULL,NULL,NULL,'a','Ann','ann','ann!ann@host','ann','ACTION waves','* waves',NULL,0,NULL,'[["+x","v"],["+y"]]','a','phone');
INSERT INTO "messages" VALUES(1,6,'m6',1,1750000000400,NULL,1750000000200,NULL,NULL,NULL,'bridge','bridge',NULL,'*** missing',NULL,NULL,0,NULL,NULL,NULL,NULL);
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
INSERT INTO "mirrored" VALUES(1,'team','chat','lobby','m4','17',1);
CREATE TABLE nicks(
            nick TEXT PRIMARY KEY,
            shown TEXT NOT NULL,
            account TEXT NOT NULL,
            position INTEGER NOT NULL UNIQUE
        ) STRICT, WITHOUT ROWID;
INSERT INTO "nicks" VALUES('beatrix','Beatrix','bea',1);
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
        , said_after INTEGER) STRICT;
INSERT INTO "outbox" VALUES(3,'0E5A7F3C-1111-4222-8333-ABCDEFABCDEF','0e5a7f3c-1111-4222-8333-abcdefabcdef',1,'ann','a','Ann','as sent',NULL,'0e5a7f3c-1111-4222-8333-abcdefabcdef',1750000000300,'a','ann','ann!ann@host','ann','phone','as said','[["+x","v"]]',2,1,'too old',NULL);
INSERT INTO "outbox" VALUES(4,'second','second',1,'',NULL,'Ann','b',NULL,NULL,1750000000301,'a','ann','ann!ann@host',NULL,NULL,'b',NULL,1,0,NULL,NULL);
CREATE TABLE probe(id INTEGER PRIMARY KEY, filler BLOB) STRICT;
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
INSERT INTO "receipts" VALUES(1,'b','ir1','b','r1','Remy',5,4);
CREATE TABLE rooms(
            id INTEGER PRIMARY KEY,
            backend TEXT NOT NULL,
            room TEXT NOT NULL,
            next_sequence INTEGER NOT NULL DEFAULT 0,
            live_until INTEGER, live_counted INTEGER, live_boot TEXT,
            UNIQUE(backend, room)
        ) STRICT;
INSERT INTO "rooms" VALUES(1,'chat','lobby',7,1750000000500,NULL,NULL);
INSERT INTO "rooms" VALUES(2,'chat','attic',0,NULL,NULL,NULL);
CREATE UNIQUE INDEX messages_msgid ON messages(room, msgid);
CREATE INDEX outbox_room ON outbox(room, state);
CREATE INDEX messages_room_time ON messages(room, at);
CREATE INDEX mirrored_age ON mirrored(mirror, position);
COMMIT;

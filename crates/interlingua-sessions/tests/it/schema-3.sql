-- The third schema, with a session of two entries.
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT,
    record TEXT NOT NULL,
    fence INTEGER NOT NULL DEFAULT 0,
    least_next INTEGER NOT NULL DEFAULT 0,
    closed INTEGER NOT NULL DEFAULT 0,
    commands INTEGER NOT NULL DEFAULT 0,
    used_at INTEGER NOT NULL,
    expires_at INTEGER,
    holder TEXT
) STRICT;
CREATE INDEX sessions_used ON sessions (used_at);
CREATE INDEX sessions_expiring ON sessions (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE log (
    place INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    checksum INTEGER,
    lines BLOB NOT NULL
) STRICT;
CREATE TABLE commands (
    session INTEGER NOT NULL,
    position INTEGER NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    final INTEGER NOT NULL DEFAULT 0,
    sequence INTEGER,
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX commands_open ON commands (session, position) WHERE final = 0;
CREATE TABLE fences (last INTEGER NOT NULL) STRICT;
INSERT INTO fences VALUES (7);
INSERT INTO sessions (id, record, fence, least_next, commands, used_at) VALUES (
    'old',
    '{"id":"old","agent":"codex","state":{"state":"idle"},"createdAt":1,"updatedAt":2,"usedAt":2}',
    7, 2, 1, 2
);
INSERT INTO log VALUES (1 << 32, 2, NULL, CAST('{"sequence":0,"type":"turn_started"}
{"sequence":1,"type":"turn_ended","outcome":"completed"}
' AS BLOB));
INSERT INTO commands VALUES (1, 0, 'k', '{"type":"close"}', '{"status":"accepted"}', 0, NULL);
PRAGMA user_version = 3;

-- Conversations: what reaches a group, what leaves it, and which chat both belong to. What sessions run for is a change or a chat.

-- +goose Up
CREATE TABLE subject (
	id TEXT PRIMARY KEY CHECK (id GLOB 'chg-*' OR id GLOB 'cht-*')
) STRICT, WITHOUT ROWID;
INSERT INTO subject (id) SELECT id FROM change;
-- +goose StatementBegin
CREATE TRIGGER change_is_a_subject AFTER INSERT ON change
BEGIN
	INSERT INTO subject (id) VALUES (NEW.id);
END;
-- +goose StatementEnd

ALTER TABLE session RENAME TO session_of_change;
DROP INDEX session_change;
CREATE TABLE session (
	id         TEXT PRIMARY KEY,
	subject    TEXT NOT NULL REFERENCES subject (id),
	attempt    INTEGER NOT NULL CHECK (attempt >= 1),
	started_at INTEGER NOT NULL,
	doc        TEXT NOT NULL CHECK (json_valid(doc))
) STRICT;
INSERT INTO session (rowid, id, subject, attempt, started_at, doc) SELECT rowid, id, change, attempt, started_at, doc FROM session_of_change;
DROP TABLE session_of_change;
CREATE INDEX session_subject ON session (subject, attempt);

ALTER TABLE asked RENAME TO asked_of_change;
CREATE TABLE asked (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT,
	subject  TEXT NOT NULL REFERENCES subject (id),
	host     TEXT NOT NULL,
	port     INTEGER NOT NULL CHECK (port BETWEEN 0 AND 65535),
	method   TEXT NOT NULL,
	route    TEXT NOT NULL,
	verdict  TEXT NOT NULL CHECK (verdict IN ('allowed', 'refused', 'failed')),
	why      TEXT NOT NULL,
	count    INTEGER NOT NULL CHECK (count >= 1),
	first_at INTEGER NOT NULL,
	last_at  INTEGER NOT NULL,
	UNIQUE (subject, host, port, method, route, verdict, why)
) STRICT;
INSERT INTO asked SELECT * FROM asked_of_change;
DROP TABLE asked_of_change;

ALTER TABLE usage RENAME TO usage_of_change;
DROP INDEX usage_row;
DROP INDEX usage_minute;
CREATE TABLE usage (
	seq       INTEGER PRIMARY KEY AUTOINCREMENT,
	subject   TEXT REFERENCES subject (id), -- NULL: an agent was tried
	session   TEXT NOT NULL,
	model     TEXT NOT NULL,
	minute    INTEGER NOT NULL CHECK (minute % 60000 = 0),
	requests  INTEGER NOT NULL CHECK (requests >= 1),
	estimated INTEGER NOT NULL CHECK (estimated BETWEEN 0 AND requests),
	unpriced  INTEGER NOT NULL CHECK (unpriced BETWEEN 0 AND requests),
	input     INTEGER NOT NULL CHECK (input >= 0),
	cached    INTEGER NOT NULL CHECK (cached >= 0),
	output    INTEGER NOT NULL CHECK (output >= 0),
	cost      INTEGER NOT NULL CHECK (cost >= 0)
) STRICT;
INSERT INTO usage SELECT * FROM usage_of_change;
DROP TABLE usage_of_change;
CREATE UNIQUE INDEX usage_row ON usage (subject, session, model, minute);
CREATE INDEX usage_minute ON usage (minute);

CREATE TABLE conversation (
	id         TEXT PRIMARY KEY CHECK (id GLOB 'cnv-*'),
	platform   TEXT NOT NULL CHECK (platform <> ''),
	address    TEXT NOT NULL CHECK (address <> ''), -- as the platform has it
	kind       TEXT NOT NULL CHECK (kind IN ('direct', 'group', 'threaded')),
	name       TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	UNIQUE (platform, address)
) STRICT;

-- The uid that the sandboxes of a group run as: its memory belongs to it.
CREATE TABLE resident (
	folder TEXT PRIMARY KEY,
	uid    INTEGER NOT NULL CHECK (uid >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE chat (
	id           TEXT PRIMARY KEY CHECK (id GLOB 'cht-*'),
	folder       TEXT NOT NULL CHECK (folder <> ''), -- of its group
	conversation TEXT NOT NULL REFERENCES conversation (id),
	thread       TEXT NOT NULL, -- '' = none
	identity     TEXT NOT NULL, -- of the session that goes on; '' = none yet
	agent        TEXT NOT NULL, -- that this identity is one of
	tree         TEXT NOT NULL, -- that its last session ran
	turn         INTEGER NOT NULL CHECK (turn >= 0), -- the last that was begun
	fence        INTEGER NOT NULL CHECK (fence >= 0), -- of the claim that is good
	tool         TEXT CHECK (json_valid(tool)), -- in flight; NULL: none (CH-094)
	created_at   INTEGER NOT NULL,
	UNIQUE (folder, conversation, thread)
) STRICT;
-- +goose StatementBegin
CREATE TRIGGER chat_is_a_subject AFTER INSERT ON chat
BEGIN
	INSERT INTO subject (id) VALUES (NEW.id);
END;
-- +goose StatementEnd

-- What a platform handed over, once. No content: that stands in the messages that came of it.
CREATE TABLE intake (
	seq          INTEGER PRIMARY KEY AUTOINCREMENT,
	conversation TEXT NOT NULL REFERENCES conversation (id),
	platform_id  TEXT, -- NULL: the platform has none
	received_at  INTEGER NOT NULL, -- by our clock
	outcome      TEXT NOT NULL CHECK (outcome IN ('stored', 'dropped')),
	reason       TEXT NOT NULL,
	UNIQUE (conversation, platform_id)
) STRICT;
CREATE INDEX intake_age ON intake (received_at);

CREATE TABLE message_in (
	seq        INTEGER PRIMARY KEY AUTOINCREMENT,
	id         TEXT NOT NULL UNIQUE CHECK (id GLOB 'msg-*'),
	chat       TEXT NOT NULL REFERENCES chat (id),
	intake     INTEGER, -- seq of its row, which may be gone; NULL: the host's own
	kind       TEXT NOT NULL CHECK (kind IN ('chat', 'task', 'system', 'answer')),
	trig       INTEGER NOT NULL DEFAULT 1 CHECK (trig IN (0, 1)), -- CH-006
	identity   TEXT NOT NULL, -- of the sender, platform:account; '' = the host
	sender     TEXT NOT NULL, -- a label
	text       TEXT NOT NULL,
	reply_to   TEXT NOT NULL,
	quote_from TEXT NOT NULL,
	quote      TEXT NOT NULL,
	question   TEXT NOT NULL, -- that it answers
	at         INTEGER NOT NULL,
	status     TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'completed', 'folded', 'dead')),
	tries      INTEGER NOT NULL CHECK (tries >= 0),
	due_at     INTEGER NOT NULL,
	fence      INTEGER NOT NULL CHECK (fence >= 0), -- of the claim that has it, or had it last
	turn       INTEGER NOT NULL CHECK (turn >= 0), -- that it was given in last; 0 = none
	reason     TEXT NOT NULL, -- why it is dead, or waits
	ended_at   INTEGER,
	task       TEXT NOT NULL, -- that woke the group; '' = none
	recurrence TEXT CHECK (json_valid(recurrence)), -- NULL: it does not come again
	UNIQUE (chat, intake)
) STRICT;
CREATE INDEX message_in_chat ON message_in (chat, status, seq);
CREATE INDEX message_in_due ON message_in (due_at) WHERE status = 'pending' AND trig = 1;
CREATE INDEX message_in_task ON message_in (task) WHERE task <> '';

CREATE TABLE message_out (
	seq    INTEGER PRIMARY KEY AUTOINCREMENT,
	id     TEXT NOT NULL UNIQUE CHECK (id GLOB 'out-*'),
	chat   TEXT NOT NULL REFERENCES chat (id),
	lane   TEXT NOT NULL CHECK (lane IN ('talk', 'notice')), -- a notice is the host's word
	turn   INTEGER NOT NULL CHECK (turn >= 0),
	number INTEGER NOT NULL CHECK (number >= 1),
	call   TEXT NOT NULL, -- the tool call that sent it; '' = none
	question TEXT NOT NULL, -- that it is the card of; '' = none
	text   TEXT NOT NULL,
	at     INTEGER NOT NULL,
	UNIQUE (chat, lane, turn, number)
) STRICT;
CREATE INDEX message_out_chat ON message_out (chat, seq);
CREATE UNIQUE INDEX message_out_call ON message_out (chat, call) WHERE call <> '';

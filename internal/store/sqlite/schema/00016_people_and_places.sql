-- People beside the owner, and how each is known; the platforms on which groups talk, who hears what there, and what leaves by them.

-- +goose Up
DROP INDEX role_owner;
ALTER TABLE role RENAME TO role_before;
CREATE TABLE role (
	person TEXT NOT NULL REFERENCES person (id),
	role   TEXT NOT NULL CHECK (role IN ('owner', 'global_admin', 'group_admin', 'member')),
	folder TEXT NOT NULL, -- of a group; '' = all
	PRIMARY KEY (person, role, folder),
	CHECK ((folder = '') = (role IN ('owner', 'global_admin')))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX role_owner ON role (role) WHERE role = 'owner';
INSERT INTO role (person, role, folder) SELECT person, role, '' FROM role_before;
DROP TABLE role_before;

ALTER TABLE person ADD COLUMN gone INTEGER NOT NULL DEFAULT 0 CHECK (gone IN (0, 1)); -- what they decided names them still
ALTER TABLE identity ADD COLUMN direct TEXT NOT NULL DEFAULT ''; -- conversation in which they are alone with the assistant; '' = none was seen

-- A code by which somebody shows that an account is theirs. Who reads the database reads no code.
CREATE TABLE link_code (
	hash       TEXT PRIMARY KEY,
	person     TEXT NOT NULL REFERENCES person (id),
	expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE channel (
	name       TEXT PRIMARY KEY CHECK (name NOT IN ('terminal', 'dev', 'agent', 'host', 'home', 'all') AND name GLOB '[a-z]*' AND name NOT GLOB '*[^a-z0-9-]*' AND length(name) <= 32), -- the platform of its conversations and identities
	platform   TEXT NOT NULL CHECK (platform <> ''),
	settings   TEXT NOT NULL CHECK (json_valid(settings)), -- no secret
	credential TEXT NOT NULL, -- file:PATH; '' = none
	cursor     TEXT NOT NULL, -- from where on the platform goes on
	added_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE conversation ADD COLUMN policy TEXT NOT NULL DEFAULT 'request_approval' CHECK (policy IN ('strict', 'request_approval', 'public')); -- CH-050

CREATE TABLE wiring (
	conversation           TEXT NOT NULL REFERENCES conversation (id),
	folder                 TEXT NOT NULL CHECK (folder <> ''),
	engage_mode            TEXT NOT NULL DEFAULT 'mention' CHECK (engage_mode IN ('pattern', 'mention', 'mention-sticky')), -- CH-001
	engage_pattern         TEXT CHECK ((engage_pattern IS NOT NULL) = (engage_mode = 'pattern')), -- CH-002
	sender_scope           TEXT NOT NULL DEFAULT 'all' CHECK (sender_scope IN ('all', 'known')), -- CH-003
	ignored_message_policy TEXT NOT NULL DEFAULT 'drop' CHECK (ignored_message_policy IN ('drop', 'accumulate')), -- CH-004
	created_at             INTEGER NOT NULL,
	PRIMARY KEY (conversation, folder)
) STRICT, WITHOUT ROWID;

-- A group that was mentioned in a thread, and is engaged by all that is said there from then on (CH-017).
CREATE TABLE sticky (
	conversation TEXT NOT NULL,
	thread       TEXT NOT NULL,
	folder       TEXT NOT NULL,
	PRIMARY KEY (conversation, thread, folder)
) STRICT, WITHOUT ROWID;

-- What a stranger said, or was said in a place that no group hears, until somebody has decided about it (CH-053, CH-070).
CREATE TABLE pending (
	question     TEXT PRIMARY KEY REFERENCES question (id),
	kind         TEXT NOT NULL CHECK (kind IN ('sender', 'channel')),
	conversation TEXT NOT NULL REFERENCES conversation (id),
	identity     TEXT NOT NULL, -- platform:account, or platform:handle of who has none; of a channel ''
	folder       TEXT NOT NULL, -- group that is wanted; of a channel ''
	sender       TEXT NOT NULL, -- a label
	event        TEXT NOT NULL CHECK (json_valid(event)),
	created_at   INTEGER NOT NULL,
	UNIQUE (kind, conversation, identity)
) STRICT, WITHOUT ROWID;

ALTER TABLE message_out ADD COLUMN shows TEXT NOT NULL DEFAULT '' CHECK (shows IN ('', 'approval', 'trial', 'promote', 'mount', 'question', 'admission', 'diff')); -- '' = it is none
UPDATE message_out SET shows = card;
ALTER TABLE message_out DROP COLUMN card;
ALTER TABLE message_out RENAME COLUMN shows TO card;
ALTER TABLE message_out ADD COLUMN conversation TEXT NOT NULL DEFAULT '';
UPDATE message_out SET conversation = (SELECT conversation FROM chat WHERE chat.id = message_out.chat);
DROP INDEX message_out_card;
CREATE INDEX message_out_card ON message_out (conversation, seq) WHERE digits > 0;
CREATE INDEX message_out_change ON message_out (change, seq) WHERE digits > 0;

-- How a message leaves by a channel.
CREATE TABLE delivery (
	seq          INTEGER PRIMARY KEY AUTOINCREMENT,
	out          TEXT NOT NULL UNIQUE, -- a message_out
	channel      TEXT NOT NULL,
	conversation TEXT NOT NULL,
	lane         TEXT NOT NULL CHECK (lane IN ('talk', 'notice')),
	status       TEXT NOT NULL CHECK (status IN ('waiting', 'sent', 'dead')),
	pieces       INTEGER NOT NULL CHECK (pieces >= 0), -- that have arrived
	tries        INTEGER NOT NULL CHECK (tries >= 0), -- of the next piece
	due_at       INTEGER NOT NULL,
	platform_id  TEXT NOT NULL, -- of the last piece
	reason       TEXT NOT NULL, -- why it waits, or is dead
	ended_at     INTEGER,
	told         INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0, 1)), -- of a card: it shows its outcome
	CHECK ((ended_at IS NULL) = (status = 'waiting'))
) STRICT;
CREATE INDEX delivery_waits ON delivery (conversation, lane, seq) WHERE status = 'waiting';
CREATE INDEX delivery_due ON delivery (due_at) WHERE status = 'waiting';
-- +goose StatementBegin
CREATE TRIGGER message_leaves_by_its_channel AFTER INSERT ON message_out
BEGIN
	INSERT INTO delivery (out, channel, conversation, lane, status, pieces, tries, due_at, platform_id, reason)
	SELECT NEW.id, channel.name, conversation.id, NEW.lane, 'waiting', 0, 0, NEW.at, '', ''
	FROM chat JOIN conversation ON conversation.id = chat.conversation JOIN channel ON channel.name = conversation.platform
	WHERE chat.id = NEW.chat;
END;
-- +goose StatementEnd

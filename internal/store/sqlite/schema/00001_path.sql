-- The path of a change. Times are Unix milliseconds UTC; what is only read back whole is JSON.

-- +goose Up
CREATE TABLE owner (
	one  INTEGER PRIMARY KEY CHECK (one = 1),
	uid  INTEGER NOT NULL CHECK (uid >= 0),
	name TEXT NOT NULL
) STRICT;

CREATE TABLE counter (
	name TEXT PRIMARY KEY,
	next INTEGER NOT NULL CHECK (next >= 0)
) STRICT, WITHOUT ROWID;
INSERT INTO counter (name, next) VALUES ('uid', 0);

CREATE TABLE change (
	seq         INTEGER PRIMARY KEY AUTOINCREMENT,
	id          TEXT NOT NULL UNIQUE CHECK (id GLOB 'chg-*'),
	state       TEXT NOT NULL CHECK (state IN ('requested', 'preparing', 'working', 'paused', 'blocked', 'submitted',
	            'awaiting_approval', 'landing', 'in_trial', 'finalized', 'rolled_back', 'rollback_failed', 'rejected',
	            'cancelled', 'failed')),
	top         TEXT NOT NULL,
	request     TEXT NOT NULL CHECK (json_valid(request)),
	base        TEXT NOT NULL,
	uid         INTEGER NOT NULL CHECK (uid >= 0),
	attempts    INTEGER NOT NULL CHECK (attempts >= 0),
	problem     TEXT NOT NULL CHECK (problem IN ('', 'usage', 'not_found', 'conflict', 'denied', 'refused', 'agent_failed',
	            'unavailable', 'internal')),
	reason      TEXT NOT NULL,
	next        TEXT NOT NULL,
	reverted_by TEXT NOT NULL,
	cancel      INTEGER NOT NULL CHECK (cancel IN (0, 1)),
	chosen      TEXT NOT NULL, -- checkpoint that is offered, or was restored last
	start_from  TEXT NOT NULL, -- commit that a session starts from; '' = base
	identity    TEXT NOT NULL, -- of the session that is resumed
	resumes     INTEGER NOT NULL CHECK (resumes >= 0),
	rollbacks   INTEGER NOT NULL CHECK (rollbacks >= 0),
	created_at  INTEGER NOT NULL,
	moved_at    INTEGER NOT NULL,
	due_at      INTEGER, -- NULL: nothing to do by itself
	holder      TEXT NOT NULL,
	fence       INTEGER NOT NULL CHECK (fence >= 0),
	until_at    INTEGER  -- NULL: nobody holds the next step
) STRICT;
CREATE INDEX change_due ON change (due_at, seq, until_at) WHERE due_at IS NOT NULL;
CREATE INDEX change_top ON change (top, seq);
CREATE INDEX change_state ON change (state, seq);

CREATE TABLE session (
	id         TEXT PRIMARY KEY,
	change     TEXT NOT NULL REFERENCES change (id),
	attempt    INTEGER NOT NULL CHECK (attempt >= 1),
	started_at INTEGER NOT NULL,
	doc        TEXT NOT NULL CHECK (json_valid(doc))
) STRICT;
CREATE INDEX session_change ON session (change, attempt);

CREATE TABLE checkpoint (
	change TEXT NOT NULL REFERENCES change (id),
	number INTEGER NOT NULL CHECK (number >= 1),
	id     TEXT NOT NULL CHECK (id GLOB 'ckpt-*'),
	oid    TEXT NOT NULL,
	status TEXT NOT NULL CHECK (status IN ('valid', 'invalid', 'skipped')),
	cause  TEXT NOT NULL CHECK (cause IN ('end', 'demand', 'interval', 'changes', 'restored', 'interrupted')),
	doc    TEXT NOT NULL CHECK (json_valid(doc)),
	PRIMARY KEY (change, number)
) STRICT;
CREATE INDEX checkpoint_id ON checkpoint (id);

CREATE TABLE proposal (
	change TEXT NOT NULL REFERENCES change (id),
	number INTEGER NOT NULL CHECK (number >= 1),
	digest TEXT NOT NULL,
	doc    TEXT NOT NULL CHECK (json_valid(doc)),
	PRIMARY KEY (change, number)
) STRICT;

CREATE TABLE approval (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT,
	id       TEXT NOT NULL UNIQUE CHECK (id GLOB 'apr-*'),
	change   TEXT NOT NULL REFERENCES change (id),
	kind     TEXT NOT NULL,
	proposal INTEGER NOT NULL,
	digest   TEXT NOT NULL,
	asked_at INTEGER NOT NULL,
	decision TEXT NOT NULL CHECK (decision IN ('pending', 'approved', 'refused', 'void')),
	actor    TEXT CHECK (json_valid(actor)),
	at       INTEGER,
	via      TEXT NOT NULL,
	reason   TEXT NOT NULL,
	FOREIGN KEY (change, proposal) REFERENCES proposal (change, number),
	CHECK (decision NOT IN ('approved', 'refused') OR actor IS NOT NULL AND at IS NOT NULL)
) STRICT;
CREATE INDEX approval_change ON approval (change, seq);
CREATE UNIQUE INDEX approval_pending ON approval (change) WHERE decision = 'pending';

CREATE TABLE landing (
	seq        INTEGER PRIMARY KEY AUTOINCREMENT,
	id         TEXT NOT NULL UNIQUE CHECK (id GLOB 'lnd-*'),
	change     TEXT NOT NULL REFERENCES change (id),
	common_dir TEXT NOT NULL,
	state      TEXT NOT NULL CHECK (state IN ('journaled', 'landed', 'undone', 'stranded')),
	ended_at   INTEGER,
	reason     TEXT NOT NULL,
	doc        TEXT NOT NULL CHECK (json_valid(doc)) -- state, end and reason stand in the columns
) STRICT;
CREATE INDEX landing_change ON landing (change, seq);
CREATE INDEX landing_open ON landing (seq) WHERE state IN ('journaled', 'stranded');
-- Landings are serial in a repository.
CREATE UNIQUE INDEX landing_serial ON landing (common_dir) WHERE state = 'journaled';

CREATE TABLE lease (
	key      TEXT PRIMARY KEY,
	holder   TEXT NOT NULL,
	fence    INTEGER NOT NULL CHECK (fence >= 1),
	until_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
	seq        INTEGER PRIMARY KEY,
	at         INTEGER NOT NULL,
	actor_kind TEXT NOT NULL CHECK (actor_kind IN ('person', 'host', 'agent')),
	actor_name TEXT NOT NULL,
	actor_uid  INTEGER NOT NULL,
	change     TEXT NOT NULL,
	subject    TEXT NOT NULL,
	verb       TEXT NOT NULL CHECK (verb <> ''),
	reason     TEXT NOT NULL,
	digests    TEXT NOT NULL CHECK (json_valid(digests)),
	previous   TEXT NOT NULL,
	hash       TEXT NOT NULL
) STRICT;
CREATE INDEX audit_change ON audit (change, seq);

-- +goose StatementBegin
CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
BEGIN
	SELECT RAISE(ABORT, 'audit rows only grow: UPDATE refused');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_never_shrinks BEFORE DELETE ON audit
BEGIN
	SELECT RAISE(ABORT, 'audit rows only grow: DELETE refused');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_is_a_chain BEFORE INSERT ON audit
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM audit)
	OR NEW.previous IS NOT coalesce((SELECT hash FROM audit ORDER BY seq DESC LIMIT 1), '')
BEGIN
	SELECT RAISE(ABORT, 'audit rows only grow: this one does not follow the last');
END;
-- +goose StatementEnd

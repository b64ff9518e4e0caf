-- A database of this program before anything is written to it: what the migrations in schema/ come to. Written by `make docs`.

CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);

CREATE TABLE counter (
	name TEXT PRIMARY KEY,
	next INTEGER NOT NULL CHECK (next >= 0)
) STRICT, WITHOUT ROWID;

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
, outcome TEXT NOT NULL DEFAULT '' CHECK (outcome IN ('', 'nothing_to_do', 'base_fails_checks')), blocked TEXT NOT NULL DEFAULT ''
	CHECK (blocked IN ('', 'interactive_mode_failure', 'credential_missing', 'budget_used_up')), swap TEXT NOT NULL DEFAULT '', swaps TEXT GENERATED ALWAYS AS (CASE request ->> '$.kind' WHEN 'swap' THEN request ->> '$.group' END) VIRTUAL) STRICT;

CREATE INDEX change_due ON change (due_at, seq, until_at) WHERE due_at IS NOT NULL;

CREATE INDEX change_top ON change (top, seq);

CREATE INDEX change_state ON change (state, seq);

CREATE TABLE proposal (
	change TEXT NOT NULL REFERENCES change (id),
	number INTEGER NOT NULL CHECK (number >= 1),
	digest TEXT NOT NULL,
	doc    TEXT NOT NULL CHECK (json_valid(doc)),
	PRIMARY KEY (change, number)
) STRICT;

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
, actor_person TEXT NOT NULL DEFAULT '', actor_identity TEXT NOT NULL DEFAULT '', stored TEXT NOT NULL DEFAULT '') STRICT;

CREATE INDEX audit_change ON audit (change, seq);

CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
BEGIN
	SELECT RAISE(ABORT, 'audit rows only grow: UPDATE refused');
END;

CREATE TRIGGER audit_never_shrinks BEFORE DELETE ON audit
BEGIN
	SELECT RAISE(ABORT, 'audit rows only grow: DELETE refused');
END;

CREATE TRIGGER audit_is_a_chain BEFORE INSERT ON audit
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM audit)
	OR NEW.previous IS NOT coalesce((SELECT hash FROM audit ORDER BY seq DESC LIMIT 1), '')
BEGIN
	SELECT RAISE(ABORT, 'audit rows only grow: this one does not follow the last');
END;

CREATE TABLE trial (
	seq                INTEGER PRIMARY KEY AUTOINCREMENT,
	change             TEXT NOT NULL UNIQUE REFERENCES change (id),
	landing            TEXT NOT NULL UNIQUE REFERENCES landing (id),
	handshake_state    TEXT NOT NULL CHECK (handshake_state IN ('pending_restart', 'message1_sent', 'confirmed', 'rolled_back')),
	deadman_started_at INTEGER NOT NULL,
	deadman_expires_at INTEGER NOT NULL,
	actor              TEXT CHECK (json_valid(actor)), -- who decided
	at                 INTEGER,
	reason             TEXT NOT NULL,
	doc                TEXT NOT NULL CHECK (json_valid(doc)), timed_out INTEGER NOT NULL DEFAULT 0 CHECK (timed_out IN (0, 1)), -- the rest; the columns above count
	CHECK (handshake_state NOT IN ('confirmed', 'rolled_back') OR actor IS NOT NULL AND at IS NOT NULL),
	-- No extension passes ten minutes from the start.
	CHECK (deadman_expires_at BETWEEN deadman_started_at AND deadman_started_at + 600000)
) STRICT;

CREATE TABLE trust (
	repository TEXT PRIMARY KEY CHECK (repository GLOB '/*'), -- git directory that all its work trees share
	digest     TEXT NOT NULL CHECK (length(digest) = 64 AND digest NOT GLOB '*[^0-9a-f]*'),
	words      TEXT NOT NULL CHECK (json_valid(words)),
	by_name    TEXT NOT NULL,
	by_uid     INTEGER NOT NULL,
	at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "checkpoint" (
	change TEXT NOT NULL REFERENCES change (id),
	number INTEGER NOT NULL CHECK (number >= 1),
	id     TEXT NOT NULL CHECK (id GLOB 'ckpt-*'),
	oid    TEXT NOT NULL,
	status TEXT NOT NULL CHECK (status IN ('valid', 'invalid', 'skipped')),
	cause  TEXT NOT NULL CHECK (cause IN ('end', 'demand', 'interval', 'changes', 'turn_end', 'restored', 'interrupted')),
	doc    TEXT NOT NULL CHECK (json_valid(doc)),
	PRIMARY KEY (change, number)
) STRICT;

CREATE INDEX checkpoint_id ON checkpoint (id);

CREATE TRIGGER trial_is_decided_once BEFORE UPDATE ON trial
WHEN OLD.handshake_state IN ('confirmed', 'rolled_back') AND (NEW.handshake_state, NEW.actor, NEW.at, NEW.reason, NEW.timed_out)
	IS NOT (OLD.handshake_state, OLD.actor, OLD.at, OLD.reason, OLD.timed_out)
BEGIN
	SELECT RAISE(ABORT, 'a trial is decided once');
END;

CREATE TABLE subject (
	id TEXT PRIMARY KEY CHECK (id GLOB 'chg-*' OR id GLOB 'cht-*')
) STRICT, WITHOUT ROWID;

CREATE TRIGGER change_is_a_subject AFTER INSERT ON change
BEGIN
	INSERT INTO subject (id) VALUES (NEW.id);
END;

CREATE TABLE session (
	id         TEXT PRIMARY KEY,
	subject    TEXT NOT NULL REFERENCES subject (id),
	attempt    INTEGER NOT NULL CHECK (attempt >= 1),
	started_at INTEGER NOT NULL,
	doc        TEXT NOT NULL CHECK (json_valid(doc))
) STRICT;

CREATE INDEX session_subject ON session (subject, attempt);

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

CREATE UNIQUE INDEX usage_row ON usage (subject, session, model, minute);

CREATE INDEX usage_minute ON usage (minute);

CREATE TABLE conversation (
	id         TEXT PRIMARY KEY CHECK (id GLOB 'cnv-*'),
	platform   TEXT NOT NULL CHECK (platform <> ''),
	address    TEXT NOT NULL CHECK (address <> ''), -- as the platform has it
	kind       TEXT NOT NULL CHECK (kind IN ('direct', 'group', 'threaded')),
	name       TEXT NOT NULL,
	created_at INTEGER NOT NULL, policy TEXT NOT NULL DEFAULT 'request_approval' CHECK (policy IN ('strict', 'request_approval', 'public')),
	UNIQUE (platform, address)
) STRICT;

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

CREATE TRIGGER chat_is_a_subject AFTER INSERT ON chat
BEGIN
	INSERT INTO subject (id) VALUES (NEW.id);
END;

CREATE TABLE intake (
	seq          INTEGER PRIMARY KEY AUTOINCREMENT,
	conversation TEXT NOT NULL REFERENCES conversation (id),
	platform_id  TEXT, -- NULL: the platform has none
	received_at  INTEGER NOT NULL, -- by our clock
	outcome      TEXT NOT NULL CHECK (outcome IN ('stored', 'dropped')),
	reason       TEXT NOT NULL, times INTEGER NOT NULL DEFAULT 1 CHECK (times > 0),
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
	recurrence TEXT CHECK (json_valid(recurrence)), first_turn INTEGER NOT NULL DEFAULT 0, decides TEXT CHECK (json_valid(decides)), -- NULL: it does not come again
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
	at     INTEGER NOT NULL, change TEXT NOT NULL DEFAULT '', digits INTEGER NOT NULL DEFAULT 0 CHECK (digits = 0 OR digits BETWEEN 10 AND 99), delivered_at INTEGER, card TEXT NOT NULL DEFAULT '' CHECK (card IN ('', 'approval', 'trial', 'promote', 'mount', 'question', 'admission', 'diff')), conversation TEXT NOT NULL DEFAULT '',
	UNIQUE (chat, lane, turn, number)
) STRICT;

CREATE INDEX message_out_chat ON message_out (chat, seq);

CREATE UNIQUE INDEX message_out_call ON message_out (chat, call) WHERE call <> '';

CREATE TABLE person (
	id   TEXT PRIMARY KEY CHECK (id GLOB 'psn-*'),
	name TEXT NOT NULL -- shown, never compared
, gone INTEGER NOT NULL DEFAULT 0 CHECK (gone IN (0, 1))) STRICT, WITHOUT ROWID;

CREATE TABLE identity (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT,
	platform TEXT NOT NULL CHECK (platform <> ''),
	account  TEXT NOT NULL CHECK (account <> ''), -- as the platform authenticates it; at the terminal a uid
	person   TEXT NOT NULL REFERENCES person (id),
	label    TEXT NOT NULL, direct TEXT NOT NULL DEFAULT '', -- shown, never compared
	UNIQUE (platform, account)
) STRICT;

CREATE INDEX identity_person ON identity (person, platform);

CREATE TABLE question (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT,
	id       TEXT NOT NULL UNIQUE CHECK (id GLOB 'qst-*'),
	kind     TEXT NOT NULL CHECK (kind <> ''),
	subject  TEXT NOT NULL REFERENCES subject (id),
	card     TEXT NOT NULL CHECK (json_valid(card)),
	digest   TEXT NOT NULL, -- of what the card shows, where that lies elsewhere; '' = the card is all
	options  TEXT NOT NULL CHECK (json_valid(options)),
	words    INTEGER NOT NULL CHECK (words IN (0, 1)), -- an answer in words is one too
	need     INTEGER NOT NULL CHECK (need >= 1), -- how many people have to choose the same
	asked_at INTEGER NOT NULL,
	outcome  TEXT CHECK (outcome <> ''), -- NULL: it waits
	answer   INTEGER REFERENCES answer (seq), -- that ended it
	ended_at INTEGER,
	reason   TEXT NOT NULL, -- why it is void
	CHECK ((outcome IS NULL) = (ended_at IS NULL)),
	CHECK ((answer IS NULL) = (outcome IS NULL OR outcome = 'void'))
) STRICT;

CREATE INDEX question_open ON question (subject, seq) WHERE outcome IS NULL;

CREATE UNIQUE INDEX question_swap ON question (subject) WHERE kind = 'swap' AND outcome IS NULL;

CREATE TABLE answer (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT,
	question TEXT NOT NULL REFERENCES question (id),
	person   TEXT NOT NULL REFERENCES person (id),
	identity TEXT NOT NULL, -- platform:account
	actor    TEXT NOT NULL CHECK (json_valid(actor)), -- who that was then
	option   TEXT NOT NULL, -- key; '' = in words
	text     TEXT NOT NULL,
	edit     TEXT NOT NULL, -- digest of what they changed; '' = nothing
	via      TEXT NOT NULL,
	at       INTEGER NOT NULL,
	UNIQUE (question, person)
) STRICT;

CREATE TABLE approval (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT,
	id       TEXT NOT NULL UNIQUE CHECK (id GLOB 'apr-*'),
	question TEXT NOT NULL UNIQUE REFERENCES question (id),
	change   TEXT NOT NULL REFERENCES change (id),
	proposal INTEGER NOT NULL,
	message  TEXT NOT NULL, -- of a yes: what the commit is to say
	unsigned INTEGER NOT NULL CHECK (unsigned IN (0, 1)),
	FOREIGN KEY (change, proposal) REFERENCES proposal (change, number)
) STRICT;

CREATE INDEX approval_change ON approval (change, seq);

CREATE TRIGGER question_ends_once BEFORE UPDATE ON question
WHEN OLD.outcome IS NOT NULL OR (NEW.id, NEW.kind, NEW.subject, NEW.card, NEW.digest, NEW.options, NEW.words, NEW.need, NEW.asked_at)
	IS NOT (OLD.id, OLD.kind, OLD.subject, OLD.card, OLD.digest, OLD.options, OLD.words, OLD.need, OLD.asked_at)
BEGIN
	SELECT RAISE(ABORT, 'a question stands as it was asked, and ends once');
END;

CREATE TRIGGER answer_comes_in_time BEFORE INSERT ON answer
WHEN (SELECT outcome FROM question WHERE id = NEW.question) IS NOT NULL
BEGIN
	SELECT RAISE(ABORT, 'a question that has ended takes no answer');
END;

CREATE TRIGGER answer_never_changes BEFORE UPDATE ON answer
BEGIN
	SELECT RAISE(ABORT, 'answers are only ever added: UPDATE refused');
END;

CREATE TRIGGER answer_never_goes BEFORE DELETE ON answer
BEGIN
	SELECT RAISE(ABORT, 'answers are only ever added: DELETE refused');
END;

CREATE TABLE role (
	person TEXT NOT NULL REFERENCES person (id),
	role   TEXT NOT NULL CHECK (role IN ('owner', 'global_admin', 'group_admin', 'member')),
	folder TEXT NOT NULL, -- of a group; '' = all
	PRIMARY KEY (person, role, folder),
	CHECK ((folder = '') = (role IN ('owner', 'global_admin')))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX role_owner ON role (role) WHERE role = 'owner';

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

CREATE TABLE sticky (
	conversation TEXT NOT NULL,
	thread       TEXT NOT NULL,
	folder       TEXT NOT NULL,
	PRIMARY KEY (conversation, thread, folder)
) STRICT, WITHOUT ROWID;

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

CREATE INDEX message_out_card ON message_out (conversation, seq) WHERE digits > 0;

CREATE INDEX message_out_change ON message_out (change, seq) WHERE digits > 0;

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

CREATE TRIGGER message_leaves_by_its_channel AFTER INSERT ON message_out
BEGIN
	INSERT INTO delivery (out, channel, conversation, lane, status, pieces, tries, due_at, platform_id, reason)
	SELECT NEW.id, channel.name, conversation.id, NEW.lane, 'waiting', 0, 0, NEW.at, '', ''
	FROM chat JOIN conversation ON conversation.id = chat.conversation JOIN channel ON channel.name = conversation.platform
	WHERE chat.id = NEW.chat;
END;

CREATE INDEX change_swaps ON change (swaps, seq) WHERE swaps IS NOT NULL;

CREATE UNIQUE INDEX change_open_swap ON change (swaps)
	WHERE swaps IS NOT NULL AND cancel = 0 AND state NOT IN ('finalized', 'rolled_back', 'rejected', 'cancelled', 'failed');

INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (1, 0, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (2, 1, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (3, 2, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (4, 3, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (5, 4, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (6, 5, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (7, 6, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (8, 7, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (9, 8, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (10, 9, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (11, 10, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (12, 11, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (13, 12, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (14, 13, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (15, 14, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (16, 15, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (17, 16, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (18, 17, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (19, 18, 1);
INSERT INTO counter (name, next) VALUES ('uid', 0);

-- Whose the home is becomes a person, with the account by which the terminal knows them and a role. An audit entry keeps the
-- JSON that its hash was made of; entries from before have none. An approval becomes a question with its answer.

-- +goose Up
CREATE TABLE person (
	id   TEXT PRIMARY KEY CHECK (id GLOB 'psn-*'),
	name TEXT NOT NULL -- shown, never compared
) STRICT, WITHOUT ROWID;

CREATE TABLE identity (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT,
	platform TEXT NOT NULL CHECK (platform <> ''),
	account  TEXT NOT NULL CHECK (account <> ''), -- as the platform authenticates it; at the terminal a uid
	person   TEXT NOT NULL REFERENCES person (id),
	label    TEXT NOT NULL, -- shown, never compared
	UNIQUE (platform, account)
) STRICT;
CREATE INDEX identity_person ON identity (person, platform);

CREATE TABLE role (
	person TEXT NOT NULL REFERENCES person (id),
	role   TEXT NOT NULL CHECK (role IN ('owner')),
	PRIMARY KEY (role, person)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX role_owner ON role (role) WHERE role = 'owner';

INSERT INTO person (id, name) SELECT 'psn-' || lower(hex(randomblob(4))), name FROM owner;
INSERT INTO identity (platform, account, person, label) SELECT 'terminal', CAST(owner.uid AS TEXT), person.id, owner.name FROM owner, person;
INSERT INTO role (person, role) SELECT id, 'owner' FROM person;

-- A change may land on the yes that its request brought along: who asked is found again as the person.
UPDATE change SET request = json_set(request, '$.by.person', (SELECT id FROM person), '$.by.identity', 'terminal:' || (SELECT uid FROM owner))
WHERE request ->> '$.by.kind' = 'person' AND request ->> '$.by.uid' = (SELECT uid FROM owner);
DROP TABLE owner;

ALTER TABLE audit ADD COLUMN actor_person TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN actor_identity TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN stored TEXT NOT NULL DEFAULT '';

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
-- Of a change a person is asked one thing at a time.
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

ALTER TABLE approval RENAME TO approval_before;
DROP INDEX approval_change;
DROP INDEX approval_pending;
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

-- Whoever has decided is a person, also if the home belongs to another now. They have no role.
CREATE TABLE decider AS SELECT uid, name, 'psn-' || lower(hex(randomblob(4))) AS person FROM (
	SELECT CAST(coalesce(actor ->> '$.uid', -1) AS TEXT) AS uid, min(coalesce(actor ->> '$.name', '')) AS name FROM approval_before
	WHERE decision IN ('approved', 'refused') GROUP BY 1)
WHERE uid NOT IN (SELECT account FROM identity WHERE platform = 'terminal');
INSERT INTO person (id, name) SELECT person, name FROM decider;
INSERT INTO identity (platform, account, person, label) SELECT 'terminal', uid, person, name FROM decider;
DROP TABLE decider;

INSERT INTO question (seq, id, kind, subject, card, digest, options, words, need, asked_at, outcome, ended_at, reason)
SELECT a.seq, 'qst-' || substr(a.id, 5), a.kind, a.change, json_object('title', coalesce(p.doc ->> '$.card.title', '')), a.digest,
	'[{"key":"approve","label":"approve"},{"key":"refuse","label":"refuse","alone":true}]', 0, 1, a.asked_at,
	CASE decision WHEN 'pending' THEN NULL ELSE 'void' END, CASE decision WHEN 'pending' THEN NULL ELSE coalesce(a.at, a.asked_at) END,
	CASE decision WHEN 'void' THEN a.reason ELSE '' END
FROM approval_before AS a JOIN proposal AS p ON p.change = a.change AND p.number = a.proposal ORDER BY a.seq;

INSERT INTO answer (question, person, identity, actor, option, text, edit, via, at)
SELECT 'qst-' || substr(a.id, 5), i.person, 'terminal:' || i.account, json_set(a.actor, '$.person', i.person, '$.identity', 'terminal:' || i.account),
	CASE decision WHEN 'approved' THEN 'approve' ELSE 'refuse' END, a.reason, '', a.via, a.at
FROM approval_before AS a JOIN identity AS i ON i.platform = 'terminal' AND i.account = CAST(coalesce(a.actor ->> '$.uid', -1) AS TEXT)
WHERE decision IN ('approved', 'refused') ORDER BY a.seq;
UPDATE question SET (outcome, answer) = (SELECT option, seq FROM answer WHERE answer.question = question.id)
WHERE id IN (SELECT question FROM answer);

INSERT INTO approval (seq, id, question, change, proposal, message, unsigned)
SELECT seq, id, 'qst-' || substr(id, 5), change, proposal, message, unsigned FROM approval_before ORDER BY seq;
DROP TABLE approval_before;

-- +goose StatementBegin
CREATE TRIGGER question_ends_once BEFORE UPDATE ON question
WHEN OLD.outcome IS NOT NULL OR (NEW.id, NEW.kind, NEW.subject, NEW.card, NEW.digest, NEW.options, NEW.words, NEW.need, NEW.asked_at)
	IS NOT (OLD.id, OLD.kind, OLD.subject, OLD.card, OLD.digest, OLD.options, OLD.words, OLD.need, OLD.asked_at)
BEGIN
	SELECT RAISE(ABORT, 'a question stands as it was asked, and ends once');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER answer_comes_in_time BEFORE INSERT ON answer
WHEN (SELECT outcome FROM question WHERE id = NEW.question) IS NOT NULL
BEGIN
	SELECT RAISE(ABORT, 'a question that has ended takes no answer');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER answer_never_changes BEFORE UPDATE ON answer
BEGIN
	SELECT RAISE(ABORT, 'answers are only ever added: UPDATE refused');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER answer_never_goes BEFORE DELETE ON answer
BEGIN
	SELECT RAISE(ABORT, 'answers are only ever added: DELETE refused');
END;
-- +goose StatementEnd

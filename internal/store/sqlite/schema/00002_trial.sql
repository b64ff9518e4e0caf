-- What landed and has to prove itself before it counts.

-- +goose Up
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
	doc                TEXT NOT NULL CHECK (json_valid(doc)), -- the rest; the columns above count
	CHECK (handshake_state NOT IN ('confirmed', 'rolled_back') OR actor IS NOT NULL AND at IS NOT NULL),
	-- No extension passes ten minutes from the start.
	CHECK (deadman_expires_at BETWEEN deadman_started_at AND deadman_started_at + 600000)
) STRICT;

-- +goose StatementBegin
CREATE TRIGGER trial_is_decided_once BEFORE UPDATE ON trial
WHEN OLD.handshake_state IN ('confirmed', 'rolled_back') AND (NEW.handshake_state, NEW.actor, NEW.at, NEW.reason)
	IS NOT (OLD.handshake_state, OLD.actor, OLD.at, OLD.reason)
BEGIN
	SELECT RAISE(ABORT, 'a trial is decided once');
END;
-- +goose StatementEnd

-- What models used, one row for a session, a model and a minute: hours and days are sums of whole minutes. Rows stay as long as
-- their change. One without a change is of an agent that was tried.

-- +goose Up
CREATE TABLE usage (
	seq       INTEGER PRIMARY KEY AUTOINCREMENT,
	change    TEXT REFERENCES change (id),
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
CREATE UNIQUE INDEX usage_row ON usage (change, session, model, minute);
CREATE INDEX usage_minute ON usage (minute);

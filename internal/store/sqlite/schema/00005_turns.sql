-- A checkpoint may be taken because an agent waits at the end of its turn. SQLite changes no CHECK: the table is made again.

-- +goose Up
CREATE TABLE checkpoint_new (
	change TEXT NOT NULL REFERENCES change (id),
	number INTEGER NOT NULL CHECK (number >= 1),
	id     TEXT NOT NULL CHECK (id GLOB 'ckpt-*'),
	oid    TEXT NOT NULL,
	status TEXT NOT NULL CHECK (status IN ('valid', 'invalid', 'skipped')),
	cause  TEXT NOT NULL CHECK (cause IN ('end', 'demand', 'interval', 'changes', 'turn_end', 'restored', 'interrupted')),
	doc    TEXT NOT NULL CHECK (json_valid(doc)),
	PRIMARY KEY (change, number)
) STRICT;
INSERT INTO checkpoint_new SELECT change, number, id, oid, status, cause, doc FROM checkpoint;
DROP TABLE checkpoint;
ALTER TABLE checkpoint_new RENAME TO checkpoint;
CREATE INDEX checkpoint_id ON checkpoint (id);

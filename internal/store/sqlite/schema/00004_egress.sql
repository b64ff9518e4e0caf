-- What the programs of a change asked of the network, counted. A line without a host counts kinds that are not told apart.

-- +goose Up
CREATE TABLE asked (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT,
	change   TEXT NOT NULL REFERENCES change (id),
	host     TEXT NOT NULL,
	port     INTEGER NOT NULL CHECK (port BETWEEN 0 AND 65535),
	method   TEXT NOT NULL,
	route    TEXT NOT NULL,
	verdict  TEXT NOT NULL CHECK (verdict IN ('allowed', 'refused', 'failed')),
	why      TEXT NOT NULL,
	count    INTEGER NOT NULL CHECK (count >= 1),
	first_at INTEGER NOT NULL,
	last_at  INTEGER NOT NULL,
	UNIQUE (change, host, port, method, route, verdict, why)
) STRICT;

-- Which words of a repository's own the owner lets the host run. A rollback does not touch it.

-- +goose Up
CREATE TABLE trust (
	repository TEXT PRIMARY KEY CHECK (repository GLOB '/*'), -- git directory that all its work trees share
	digest     TEXT NOT NULL CHECK (length(digest) = 64 AND digest NOT GLOB '*[^0-9a-f]*'),
	words      TEXT NOT NULL CHECK (json_valid(words)),
	by_name    TEXT NOT NULL,
	by_uid     INTEGER NOT NULL,
	at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
